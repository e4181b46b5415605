"""Text description of a mechanism: its parts, its mobility, and which of its chains have a closed form."""

from __future__ import annotations

from collections.abc import Sequence

from mechanik.errors import UnknownName
from mechanik.model.closed_form_family import ClosedFormMatch, match_closed_form
from mechanik.model.dof import DoF
from mechanik.model.frame import Link
from mechanik.model.joint import Joint
from mechanik.model.mechanism import Mechanism
from mechanik.model.mobility import Structure, mobility, structure
from mechanik.validation import format_count


def explain_mechanism(mechanism: Mechanism, link: str | None = None) -> str:
    """Describe a mechanism as text, with a paragraph for each chain.

    Args:
        mechanism: the mechanism.
        link: name of the tip link of the chain; default: every link without child links.

    Raises:
        UnknownName: no link has that name.
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
    parts = f"{mechanism.name or 'This mechanism'} has {format_count(len(mechanism.links), 'link')}"
    parts += f" and {format_count(found.tree_dof, 'freedom')}"
    if not found.constraints:
        return f"{parts}, and no closed loops."
    rows = format_count(found.constraints, "row")
    loops = "closes a loop" if len(closures) == 1 else f"close {len(closures)} loops"
    holds = [f"{_list(list(closures))} {loops}"] if closures else []
    if mechanism.joint_constraints:
        holds.append(
            f"{_some(list(mechanism.joint_constraints))} "
            f"bind{'s' if len(mechanism.joint_constraints) == 1 else ''} joints"
        )
    text = f"{parts}. {_list(holds)}, by {rows}."
    if found.dof is None:
        what = "A loop stands open or a law is broken" if mechanism.joint_constraints else "A loop stands open"
        return f"{text} {what} now, so there is no mobility; by count it would be {found.gruebler}."
    text += f" Where it stands now it moves with {format_count(found.dof, 'freedom')}"
    seen = structure(mechanism)
    if found.redundant:
        rest = f"by count it would be {found.gruebler}, but {found.redundant} of the rows say nothing new"
        text = f"{text}; {rest}: {_rows(seen)}."
    else:
        text += ", as the count of rows says."
    return " ".join([text, *describe_structure(seen)])


def describe_structure(seen: Structure) -> list[str]:
    """Return sentences about inputs, passive dofs, idle motions and the present configuration."""
    told: list[str] = []
    drives, followers, still = (_joints_of(some, seen) for some in (seen.inputs, seen.passive_dofs, seen.immobile_dofs))
    if seen.is_change_point and seen.generic_dof:
        told.append(
            f"It stands at a change point: beside it, it moves with {format_count(seen.generic_dof, 'freedom')}."
        )
    elif seen.is_change_point:
        told.append("But it can only shake: all that seems free here leads nowhere.")
    if drives:
        rest = f"; {_some(followers)} follow{'s' if len(followers) == 1 else ''}" if followers else ""
        told.append(f"It can be driven by {_some(drives)}{rest}.")
    if seen.idle_motions:
        joints = [" with ".join(motion) for motion in seen.idle_motions]
        told.append(f"{_some(joints)} can move and nothing else feels it.")
    if still:
        told.append(f"{_some(still)} cannot move.")
    if len(seen.loops) > 1:
        parts = [
            f"{_some([*loop.closures, *loop.joint_constraints])} ({format_count(loop.mobility.dof or 0, 'freedom')})"
            for loop in seen.loops
        ]
        told.append(f"There are {len(seen.loops)} parts that share no joint: {_some(parts)}.")
    return told


def _joints_of(names: Sequence[str], seen: Structure) -> list[str]:
    """Replace the dofs of a joint by the name of the joint if all of them are listed."""
    told: dict[str, None] = {}
    for name in names:
        joint, _, dof = name.rpartition(".")
        others = [
            one for one in (*seen.inputs, *seen.passive_dofs, *seen.immobile_dofs) if one.rpartition(".")[0] == joint
        ]
        told[joint if dof in DoF.__members__ and set(others) <= set(names) else name] = None
    return list(told)


def _rows(seen: Structure) -> str:
    """Format the redundant constraints, such as `Z, EX and EY of closing_joint`."""
    by_closure: dict[str, list[str]] = {}
    for closure, direction in seen.redundant_rows:
        by_closure.setdefault(closure, []).append(direction)
    return _some([f"{_list(directions)} of {closure}" for closure, directions in by_closure.items()])


def _chain(mechanism: Mechanism, end: str) -> str:
    joints = _joints(mechanism, end)
    if not joints:
        return "nothing moves it."
    found = match_closed_form(mechanism, end)
    names = ", ".join(found.axes.names if found.axes is not None else joints)
    if found:
        return f"{names}. {_verdict(found)}"
    text = (
        f"{names}. {_sentences(found.reasons)} So no closed form is known for it here, and the general solver is used."
    )
    for base in _above(mechanism, end):
        part = match_closed_form(mechanism, end, base)
        if part and part.axes is not None:
            some = f"{part.axes.names[0]} to {part.axes.names[-1]}"
            return f"{text} From the base {base!r} on ({some}) it is another matter. {_verdict(part)}"
    return text


def _verdict(found: ClosedFormMatch) -> str:
    return f"{_sentences(found.reasons)} So it has a closed form: {found.family}."


def _joints(mechanism: Mechanism, end: str) -> list[str]:
    above = [f for f in mechanism.link(end).traverse_parents() if isinstance(f, Joint) and f.dof]
    return [mechanism.name_of(joint) for joint in reversed(above)]


def _above(mechanism: Mechanism, end: str) -> list[str]:
    """Return the names of the links above, from the root down."""
    above = [f for f in mechanism.link(end).traverse_parents() if isinstance(f, Link)]
    return [mechanism.name_of(link) for link in reversed(above)]


def _is_end(link: Link) -> bool:
    return not any(isinstance(joint, Joint) and joint.children for joint in link.children)


def _sentences(texts: tuple[str, ...]) -> str:
    return " ".join(f"{text[0].upper()}{text[1:]}." for text in texts)


def _some(names: Sequence[str], most: int = 8) -> str:
    """Format a list of names; a long list is cut."""
    return _list(list(names) if len(names) <= most else [*names[: most - 2], f"{len(names) - most + 2} more"])


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
