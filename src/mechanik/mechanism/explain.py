"""A mechanism in plain sentences: its parts, how freely it moves, and which of its chains have a closed form."""

from __future__ import annotations

from collections.abc import Sequence

from mechanik.errors import UnknownName
from mechanik.mechanism.dof import DoF
from mechanik.mechanism.door import counted
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.link import Link
from mechanik.mechanism.mechanism import Mechanism
from mechanik.mechanism.mobility import mobility
from mechanik.mechanism.recognise import Recognition, recognise
from mechanik.mechanism.structure import Structure, structure


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
    if not found.constraints:
        return f"{parts}, and no closed loops."
    rows = counted(found.constraints, "row")
    loops = "closes a loop" if len(closures) == 1 else f"close {len(closures)} loops"
    holds = [f"{_list(list(closures))} {loops}"] if closures else []
    if mechanism.laws:
        holds.append(f"{_some(list(mechanism.laws))} bind{'s' if len(mechanism.laws) == 1 else ''} joints")
    text = f"{parts}. {_list(holds)}, by {rows}."
    if found.dof is None:
        what = "A loop stands open or a law is broken" if mechanism.laws else "A loop stands open"
        return f"{text} {what} now, so there is no mobility; by count it would be {found.gruebler}."
    text += f" Where it stands now it moves with {counted(found.dof, 'freedom')}"
    seen = structure(mechanism)
    if found.redundant:
        rest = f"by count it would be {found.gruebler}, but {found.redundant} of the rows say nothing new"
        text = f"{text}; {rest}: {_rows(seen)}."
    else:
        text += ", as the count of rows says."
    return " ".join([text, *structure_sentences(seen)])


def structure_sentences(seen: Structure) -> list[str]:
    """What drives, what follows, what is idle, and what is special about where it stands."""
    told: list[str] = []
    drives, followers, still = (_joints_of(some, seen) for some in (seen.drives, seen.followers, seen.still))
    if seen.is_change_point and seen.generic_dof:
        told.append(f"It stands at a change point: beside it, it moves with {counted(seen.generic_dof, 'freedom')}.")
    elif seen.is_change_point:
        told.append("But it can only shake: all that seems free here leads nowhere.")
    if drives:
        rest = f"; {_some(followers)} follow{'s' if len(followers) == 1 else ''}" if followers else ""
        told.append(f"It can be driven by {_some(drives)}{rest}.")
    if seen.idle:
        joints = [" with ".join(motion) for motion in seen.idle]
        told.append(f"{_some(joints)} can move and nothing else feels it.")
    if still:
        told.append(f"{_some(still)} cannot move.")
    if len(seen.loops) > 1:
        parts = [
            f"{_some([*loop.closures, *loop.laws])} ({counted(loop.mobility.dof or 0, 'freedom')})"
            for loop in seen.loops
        ]
        told.append(f"There are {len(seen.loops)} parts that share no joint: {_some(parts)}.")
    return told


def _joints_of(names: Sequence[str], seen: Structure) -> list[str]:
    """The same freedoms, with the joint's name for all freedoms of a joint."""
    told: dict[str, None] = {}
    for name in names:
        joint, _, dof = name.rpartition(".")
        others = [one for one in (*seen.drives, *seen.followers, *seen.still) if one.rpartition(".")[0] == joint]
        told[joint if dof in DoF.__members__ and set(others) <= set(names) else name] = None
    return list(told)


def _rows(seen: Structure) -> str:
    """Such as `Z, EX and EY of closing_joint`."""
    by_closure: dict[str, list[str]] = {}
    for closure, direction in seen.redundant_rows:
        by_closure.setdefault(closure, []).append(direction)
    return _some([f"{_list(directions)} of {closure}" for closure, directions in by_closure.items()])


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


def _some(names: Sequence[str], most: int = 8) -> str:
    """All, or the first of many."""
    return _list(list(names) if len(names) <= most else [*names[: most - 2], f"{len(names) - most + 2} more"])


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
