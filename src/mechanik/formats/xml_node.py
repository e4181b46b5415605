"""XML parser whose nodes record their file and line, so that every message can name the location.

Files are not trusted: size and nesting are limited, and entities are rejected. Namespace prefixes (`sensor:camera`)
need no declaration, because many robot files use them without one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any
from xml.sax import SAXParseException
from xml.sax.handler import ContentHandler

from mechanik.errors import FormatError
from mechanik.formats.source import Source
from mechanik.validation import format_count

MAX_DEPTH = 200
"""Maximum number of nesting levels. URDF needs about ten; MJCF needs one for each body of a chain."""
MAX_XML_ELEMENTS = 1_000_000
"""Maximum number of elements of a document; the largest robots have about ten thousand."""
PART_TAGS = frozenset(("link", "joint", "freejoint", "body", "frame", "site", "model"))
"""Tags, of all formats, that are counted as links and joints for `FileResolver.count_parts`."""
MAX_TEXT_LENGTH = 65_536
"""Characters; text of an element beyond about this length is dropped. Names and numbers need about a hundred."""


class XmlDocument:
    """Data that all nodes of a document share: the file name for messages, the error class, and the warnings so far."""

    def __init__(self, file: str = "", error: type[FormatError] = FormatError) -> None:
        self.file, self.error = file, error
        self.warnings: list[str] = []


class XmlNode:
    """An XML element: tag, attributes, children, text, and the line where it begins."""

    __slots__ = ("attributes", "children", "document", "line", "parent", "tag", "text")

    def __init__(
        self, document: XmlDocument, tag: str, attributes: dict[str, str], line: int, parent: XmlNode | None
    ) -> None:
        self.document, self.tag, self.attributes = document, tag, attributes
        self.line, self.parent = line, parent
        self.children: list[XmlNode] = []
        self.text = ""

    # ---- location, for messages -------------------------------------------------------------

    @property
    def full_location(self) -> str:
        """File, line and element for messages, such as `arm.urdf, line 12: <axis> of joint 'elbow'`."""
        return f"{self.location}: {self.subject}"

    @property
    def location(self) -> str:
        """File and line for messages, such as `arm.urdf, line 12`."""
        file = f"{self.document.file}, " if self.document.file else ""
        return f"{file}line {self.line}"

    @property
    def subject(self) -> str:
        """The element for messages, such as `joint 'elbow'`, `<axis> of joint 'elbow'` or `<axis>`."""
        if self.tag in ("link", "joint", "material", "model", "frame") and self.attributes.get("name"):
            return f"{self.tag} {self.attributes['name']!r}"
        ancestor = self.parent
        while ancestor is not None and ancestor.tag not in ("link", "joint", "material", "closure"):
            ancestor = ancestor.parent
        if ancestor is None or not ancestor.attributes.get("name"):
            return f"<{self.tag}>"
        return f"<{self.tag}> of {ancestor.tag} {ancestor.attributes['name']!r}"

    def make_error(self, message: str) -> FormatError:
        """Return the document's error with the location of this node and `message`."""
        return self.document.error(f"{self.full_location} {message}")

    def warn(self, message: str) -> None:
        """Add a warning with the location of this node to the warnings of the document."""
        self.document.warnings.append(f"{self.full_location} {message}")

    # ---- children and attributes ------------------------------------------------------------

    def all(self, tag: str) -> list[XmlNode]:
        return [child for child in self.children if child.tag == tag]

    def first(self, tag: str) -> XmlNode | None:
        """Return the first child with this tag, or None; warn if there are several."""
        matches = self.all(tag)
        if len(matches) > 1:
            matches[1].warn(f"is a duplicate of line {matches[0].line} and is ignored")
        return matches[0] if matches else None

    def walk(self, skip_children_of: Iterable[str] = ()) -> Iterator[XmlNode]:
        """Iterate over this node and all nodes below it, without the children of the tags in `skip_children_of`."""
        stack: list[XmlNode] = [self]
        skipped_tags = set(skip_children_of)
        while stack:
            node = stack.pop()
            yield node
            if node.tag not in skipped_tags:
                stack.extend(reversed(node.children))

    def require(self, attribute: str) -> str:
        """Return an attribute that must exist and must not be blank."""
        value = self.attributes.get(attribute)
        if value is None:
            raise self.make_error(f"has no {attribute!r}")
        if not value.strip():
            raise self.make_error(f"has an empty {attribute!r}")
        return value

    def numbers(self, attribute: str, count: int) -> tuple[float, ...] | None:
        """Return `count` finite numbers, or None if the attribute is missing."""
        text = self.attributes.get(attribute)
        if text is None:
            return None
        words = text.split()
        if len(words) != count:
            hint = " (separate them by spaces)" if "," in text or ";" in text else ""
            raise self.make_error(
                f"has {attribute}={text!r}: {format_count(len(words), 'number')} instead of {count}{hint}"
            )
        return tuple(self._read_finite(attribute, word) for word in words)

    def number(self, attribute: str) -> float | None:
        numbers = self.numbers(attribute, 1)
        return None if numbers is None else numbers[0]

    def _read_finite(self, attribute: str, word: str) -> float:
        try:
            number = float(word.replace("_", "?"))  # Python accepts 1_000, XML formats do not
        except ValueError:
            raise self.make_error(f"has {attribute}={self.attributes[attribute]!r}: {word!r} is not a number") from None
        if not math.isfinite(number):
            raise self.make_error(f"has {attribute}={self.attributes[attribute]!r}: {word!r} is not a finite number")
        return number


def parse_xml(source: Source, error: type[FormatError] = FormatError) -> XmlNode:
    """Parse XML and return its root node.

    Args:
        source: the bytes to parse.
        error: class of the errors that `XmlNode.make_error` returns.

    Raises:
        FormatError: the XML is not well-formed, defines entities, refers to an external document, or exceeds a limit.
    """
    # a late import keeps `import mechanik` fast
    from defusedxml import sax
    from defusedxml.common import DTDForbidden, EntitiesForbidden, ExternalReferenceForbidden

    data, skipped_line_count = _strip_beginning(source)
    handler = _NodeBuilder(XmlDocument(source.name, error), skipped_line_count)
    try:
        sax.parseString(data, handler, forbid_entities=True, forbid_external=True)
    except EntitiesForbidden as problem:
        name: Any = problem.name
        raise FormatError(
            f"{handler.line_prefix()} defines the entity {name!r}. Entities are not allowed, because they "
            "can exhaust the memory or read other files; write the text itself instead"
        ) from None
    except (ExternalReferenceForbidden, DTDForbidden):
        raise FormatError(
            f"{handler.line_prefix()} refers to an external document, which is not allowed; "
            "copy its content into this file"
        ) from None
    except SAXParseException as problem:
        raise FormatError(handler.syntax_error_message(problem)) from None
    except (LookupError, ValueError) as problem:
        if isinstance(problem, FormatError):
            raise
        raise FormatError(f"{handler.line_prefix()} cannot be decoded: {problem}; save it as UTF-8") from None
    assert handler.root is not None  # the parser rejects a document without an element
    if source.resolver is not None:
        source.resolver.count_parts(sum(node.tag in PART_TAGS for node in handler.root.walk()), source.message_prefix)
    return handler.root


def _strip_beginning(source: Source) -> tuple[bytes, int]:
    """Return the bytes to parse, and the number of lines removed at the beginning."""
    data = source.data.removeprefix(b"\xef\xbb\xbf")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data, 0
    text = data.lstrip()  # expat rejects blanks before <?xml, but other XML readers accept them
    if not source.name and text.startswith(b"<?xml") and b"?>" in text:
        # a text was encoded as UTF-8, even if its XML declaration names another encoding
        text = text[text.index(b"?>") + 2 :].lstrip()
    return text, data[: len(data) - len(text)].count(b"\n")


class _NodeBuilder(ContentHandler):
    """SAX handler that builds the nodes."""

    def __init__(self, document: XmlDocument, skipped_line_count: int) -> None:
        super().__init__()
        self.skipped_line_count = skipped_line_count
        self.document = document
        self.root: XmlNode | None = None
        self.open_nodes: list[XmlNode] = []
        self.node_count = 0

    def startElement(self, name: str, attrs: Any) -> None:
        parent = self.open_nodes[-1] if self.open_nodes else None
        node = XmlNode(self.document, name, dict(attrs.items()), self.line(), parent)
        self.node_count += 1
        if len(self.open_nodes) >= MAX_DEPTH:
            raise FormatError(f"{self.line_prefix()} nests elements deeper than the limit of {MAX_DEPTH}")
        if self.node_count > MAX_XML_ELEMENTS:
            raise FormatError(f"{self.line_prefix()} exceeds the limit of {MAX_XML_ELEMENTS} elements")
        if parent is None:
            self.root = node
        else:
            parent.children.append(node)
        self.open_nodes.append(node)

    def characters(self, content: str) -> None:
        if self.open_nodes and len(self.open_nodes[-1].text) < MAX_TEXT_LENGTH:
            self.open_nodes[-1].text += content

    def endElement(self, name: str) -> None:
        self.open_nodes.pop()

    def line(self) -> int:
        locator: Any = getattr(self, "_locator", None)
        return self.skipped_line_count + (int(locator.getLineNumber() or 1) if locator is not None else 1)

    def line_prefix(self) -> str:
        """Return file and line as the first words of a message, with a comma at the end."""
        return f"{self.document.file or 'the text'}, line {self.line()},"

    def syntax_error_message(self, error: SAXParseException) -> str:
        line, column = self.skipped_line_count + (error.getLineNumber() or 1), error.getColumnNumber()
        location = f"{self.document.file or 'the text'}, line {line}, column {column}"
        context = f" inside {self.open_nodes[-1].subject} (line {self.open_nodes[-1].line})" if self.open_nodes else ""
        message = error.getMessage()
        if "no element found" in message or "unclosed" in message:
            return (
                f"{location}: the XML ends{context} with open elements; the file seems truncated"
                if context
                else f"{location}: there is no XML element"
            )
        return f"{location}: not well-formed XML{context}: {message}"
