"""A mechanism in plain sentences: its parts, how freely it moves, and which of its chains have a closed form."""

from __future__ import annotations

from mechanik.errors import UnknownName
from mechanik.mechanism.door import counted
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.link import Link
from mechanik.mechanism.mechanism import Mechanism
from mechanik.mechanism.mobility import mobility
from mechanik.mechanism.recognise import Recognition, recognise


def explain(mechanism: Mechanism, link: str | None = None) -> str:
    """For people to read, a paragraph for each chain.

    Args:
        link: the end of the chain to explain; every link that holds no other if it is not given.
    """
    if link is not None and link not in mechanism.links:
        raise UnknownName("link", link, mechanism.links)
    ends = [link] if link is not None else [name for name, one in mechanism.links.items() if _is_end(one)]
    paragraphs = [_whole(mechanism)]
    chains: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for end in ends:
        chains.setdefault((_chain(mechanism, end), tuple(_joints(mechanism, end))), []).append(end)
    for (text, _), names in chains.items():
        paragraphs.append(f"Chain to {_list(names)}: {text}")
    return "\n\n".join(paragraphs)


def _whole(mechanism: Mechanism) -> str:
    found, closures = mobility(mechanism), mechanism.closures
    parts = f"{mechanism.name or 'This mechanism'} has {counted(len(mechanism.links), 'link')}"
    parts += f" and {counted(found.freedoms, 'freedom')}"
    if not closures:
        return f"{parts}, and no closed loops."
    rows = counted(found.constraints, "row")
    loops = "closes a loop" if len(closures) == 1 else f"close {len(closures)} loops"
    text = f"{parts}. {_list(list(closures))} {loops}, by {rows}."
    if found.dof is None:
        return f"{text} A loop stands open now, so there is no mobility; by count it would be {found.gruebler}."
    text += f" Where it stands now it moves with {counted(found.dof, 'freedom')}"
    if found.redundant:
        return f"{text}; by count it would be {found.gruebler}, but {found.redundant} of the rows say nothing new."
    return f"{text}, as the count of rows says."


def _chain(mechanism: Mechanism, end: str) -> str:
    joints = _joints(mechanism, end)
    if not joints:
        return "nothing moves it."
    found = recognise(mechanism, end)
    names = ", ".join(found.axes.names if found.axes is not None else joints)
    if found:
        return f"{names}. {_verdict(found)}"
    text = f"{names}. {_sentences(found.why)} So no closed form is known for it here, and the general solver is used."
    for base in _above(mechanism, end):
        part = recognise(mechanism, end, base)
        if part and part.axes is not None:
            some = f"{part.axes.names[0]} to {part.axes.names[-1]}"
            return f"{text} From the base {base!r} on ({some}) it is another matter. {_verdict(part)}"
    return text


def _verdict(found: Recognition) -> str:
    return f"{_sentences(found.why)} So it has a closed form: {found.family}."


def _joints(mechanism: Mechanism, end: str) -> list[str]:
    above = [f for f in mechanism.link(end).traverse_parents() if isinstance(f, Joint) and f.dof]
    return [mechanism.name_of(joint) for joint in reversed(above)]


def _above(mechanism: Mechanism, end: str) -> list[str]:
    """The links above, from the root down."""
    above = [f for f in mechanism.link(end).traverse_parents() if isinstance(f, Link)]
    return [mechanism.name_of(link) for link in reversed(above)]


def _is_end(link: Link) -> bool:
    return not any(isinstance(joint, Joint) and joint.children for joint in link.children)


def _sentences(texts: tuple[str, ...]) -> str:
    return " ".join(f"{text[0].upper()}{text[1:]}." for text in texts)


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
