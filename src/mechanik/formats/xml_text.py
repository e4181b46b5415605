"""XML as plain nodes that know where they stand, so that every message can name the place.

Nothing here recurses, entities are refused, and prefixes (`sensor:camera`) need no declaration,
as in the XML readers that most robot files were written for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any
from xml.sax import SAXParseException
from xml.sax.handler import ContentHandler

from mechanik.errors import FormatError, UrdfError, XmlError
from mechanik.formats.source import Source

DEEPEST = 200
"""Levels; robots need ten, and what nests deeper is no description of one."""
MOST = 1_000_000
"""Elements; the largest robots have some ten thousand."""
PARTS = frozenset(("link", "joint", "freejoint", "body", "frame", "site", "model"))
"""Elements that become links and joints, in any of the formats."""
LONGEST_TEXT = 65_536
"""Characters of an element's text that are kept; names and numbers need a hundred."""


class Document:
    """What the nodes of one text share: its name for messages, the kind of its errors, and the warnings so far."""

    def __init__(self, file: str = "", error: type[FormatError] = UrdfError) -> None:
        self.file, self.error = file, error
        self.warnings: list[str] = []


class Node:
    """An element: tag, attributes, children, the text between them, and the line in which it begins."""

    __slots__ = ("attributes", "children", "document", "line", "parent", "tag", "text")

    def __init__(
        self, document: Document, tag: str, attributes: dict[str, str], line: int, parent: Node | None
    ) -> None:
        self.document, self.tag, self.attributes = document, tag, attributes
        self.line, self.parent = line, parent
        self.children: list[Node] = []
        self.text = ""

    # ---- the place, for messages ------------------------------------------------------------

    @property
    def place(self) -> str:
        """Such as `arm.urdf, line 12: <axis> of joint 'elbow'`."""
        return f"{self.where}: {self.subject}"

    @property
    def where(self) -> str:
        file = f"{self.document.file}, " if self.document.file else ""
        return f"{file}line {self.line}"

    @property
    def subject(self) -> str:
        if self.tag in ("link", "joint", "material", "model", "frame") and self.attributes.get("name"):
            return f"{self.tag} {self.attributes['name']!r}"
        above = self.parent
        while above is not None and above.tag not in ("link", "joint", "material", "closure"):
            above = above.parent
        if above is None or not above.attributes.get("name"):
            return f"<{self.tag}>"
        return f"<{self.tag}> of {above.tag} {above.attributes['name']!r}"

    def fault(self, what: str) -> FormatError:
        """The error that says what is wrong here."""
        return self.document.error(f"{self.place} {what}")

    def warn(self, what: str) -> None:
        self.document.warnings.append(f"{self.place} {what}")

    # ---- children and attributes ------------------------------------------------------------

    def all(self, tag: str) -> list[Node]:
        return [child for child in self.children if child.tag == tag]

    def first(self, tag: str) -> Node | None:
        """The child of that tag; of several the first, with a warning."""
        found = self.all(tag)
        if len(found) > 1:
            found[1].warn(f"is a second one; only the first, in line {found[0].line}, counts")
        return found[0] if found else None

    def walk(self, leave_out: Iterable[str] = ()) -> Iterator[Node]:
        """This node and all below it, but nothing below the tags in `leave_out`."""
        waiting: list[Node] = [self]
        skipped = set(leave_out)
        while waiting:
            node = waiting.pop()
            yield node
            if node.tag not in skipped:
                waiting.extend(reversed(node.children))

    def need(self, attribute: str) -> str:
        """An attribute that has to be there and to say something."""
        value = self.attributes.get(attribute)
        if value is None:
            raise self.fault(f"has no {attribute!r}")
        if not value.strip():
            raise self.fault(f"has an empty {attribute!r}")
        return value

    def numbers(self, attribute: str, count: int) -> tuple[float, ...] | None:
        """`count` finite numbers, or None where the attribute is missing."""
        text = self.attributes.get(attribute)
        if text is None:
            return None
        words = text.split()
        if len(words) != count:
            hint = " (they are separated by blanks)" if "," in text or ";" in text else ""
            raise self.fault(f"has {attribute}={text!r}: {len(words)} numbers where {count} are needed{hint}")
        return tuple(self._finite(attribute, word) for word in words)

    def number(self, attribute: str) -> float | None:
        found = self.numbers(attribute, 1)
        return None if found is None else found[0]

    def _finite(self, attribute: str, word: str) -> float:
        try:
            number = math.nan if "_" in word else float(word)
        except ValueError:
            raise self.fault(f"has {attribute}={self.attributes[attribute]!r}: {word!r} is not a number") from None
        if not math.isfinite(number):
            raise self.fault(f"has {attribute}={self.attributes[attribute]!r}: {word!r} is not a finite number")
        return number


def parse_xml(source: Source, error: type[FormatError] = UrdfError) -> Node:
    """The root of well-formed XML; everything else is an `XmlError` with its line.

    Args:
        error: what the nodes raise when something is wrong with what they say.
    """
    # imported here, so that importing mechanik does not pay for it
    from defusedxml import sax
    from defusedxml.common import DTDForbidden, EntitiesForbidden, ExternalReferenceForbidden

    data, skipped = _prepared(source)
    handler = _Collector(Document(source.name, error), skipped)
    try:
        sax.parseString(data, handler, forbid_entities=True, forbid_external=True)
    except EntitiesForbidden as found:
        name: Any = found.name
        raise XmlError(
            f"{handler.where()} defines the entity {name!r}; entities can blow up memory or read "
            "other files, so they are refused. Write the text itself in their place"
        ) from None
    except (ExternalReferenceForbidden, DTDForbidden):
        raise XmlError(
            f"{handler.where()} refers to another document, which is refused; put it into this one"
        ) from None
    except SAXParseException as found:
        raise XmlError(handler.explain(found)) from None
    except (LookupError, ValueError) as found:
        if isinstance(found, FormatError):
            raise
        raise XmlError(f"{handler.where()} cannot be decoded: {found}; save it as UTF-8") from None
    assert handler.root is not None  # the parser refuses a document without an element
    if source.around is not None:
        source.around.count(sum(node.tag in PARTS for node in handler.root.walk()), source.where)
    return handler.root


def _prepared(source: Source) -> tuple[bytes, int]:
    """What to parse, and how many lines were cut off its head."""
    data = source.data.removeprefix(b"\xef\xbb\xbf")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data, 0
    text = data.lstrip()  # blanks before <?xml are a mistake that every other reader forgives
    if not source.name and text.startswith(b"<?xml") and b"?>" in text:
        # text that was passed as such is UTF-8, whatever its declaration says
        text = text[text.index(b"?>") + 2 :].lstrip()
    return text, data[: len(data) - len(text)].count(b"\n")


class _Collector(ContentHandler):
    """Takes the parser's events and builds nodes."""

    def __init__(self, document: Document, skipped: int) -> None:
        super().__init__()
        self.skipped = skipped
        self.document = document
        self.root: Node | None = None
        self.open: list[Node] = []
        self.count = 0

    def startElement(self, name: str, attrs: Any) -> None:
        parent = self.open[-1] if self.open else None
        node = Node(self.document, name, dict(attrs.items()), self.line(), parent)
        self.count += 1
        if len(self.open) >= DEEPEST:
            raise XmlError(f"{self.where()} nests elements more than {DEEPEST} deep; a robot does not")
        if self.count > MOST:
            raise XmlError(f"{self.where()} is past {MOST} elements; a robot does not have as many")
        if parent is None:
            self.root = node
        else:
            parent.children.append(node)
        self.open.append(node)

    def characters(self, content: str) -> None:
        if self.open and len(self.open[-1].text) < LONGEST_TEXT:
            self.open[-1].text += content

    def endElement(self, name: str) -> None:
        self.open.pop()

    def line(self) -> int:
        locator: Any = getattr(self, "_locator", None)
        return self.skipped + (int(locator.getLineNumber() or 1) if locator is not None else 1)

    def where(self) -> str:
        return f"{self.document.file or 'the text'}, line {self.line()},"

    def explain(self, error: SAXParseException) -> str:
        line, column = self.skipped + (error.getLineNumber() or 1), error.getColumnNumber()
        at = f"{self.document.file or 'the text'}, line {line}, column {column}"
        inside = f" inside {self.open[-1].subject} (line {self.open[-1].line})" if self.open else ""
        what = error.getMessage()
        if "no element found" in what or "unclosed" in what:
            return (
                f"{at}: the XML ends{inside} before everything is closed; it seems cut off"
                if inside
                else (f"{at}: there is no XML element in it")
            )
        return f"{at}: not well-formed XML{inside}: {what}"
