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
    """Describe a mechanism as text: a paragraph for the mechanism and one for each chain.

    Args:
        mechanism: the mechanism.
        link: name of the tip link of the chain; default: every link without child links.

    Raises:
        UnknownName: no link has that name.
    """
    if link is not None and link not in mechanism.links:
        raise UnknownName("link", link, mechanism.links)
    tip_names = (
        [link] if link is not None else [name for name, tip_link in mechanism.links.items() if _is_tip_link(tip_link)]
    )
    paragraphs = [_describe_mechanism(mechanism)]
    chains: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for tip_name in tip_names:
        chains.setdefault(
            (_describe_chain(mechanism, tip_name), tuple(_moving_joint_names(mechanism, tip_name))), []
        ).append(tip_name)
    for (text, _), names in chains.items():
        paragraphs.append(f"Chain to {_join_names(names)}: {text}")
    return "\n\n".join(paragraphs)


def _describe_mechanism(mechanism: Mechanism) -> str:
    counts, closures = mobility(mechanism), mechanism.closures
    parts = f"{mechanism.name or 'This mechanism'} has {format_count(len(mechanism.links), 'link')}"
    parts += f" and {format_count(counts.tree_dof, 'dof')}"
    if not counts.constraints:
        return f"{parts}, and no closed loops."
    constraints = format_count(counts.constraints, "scalar constraint")
    loops = "closes a loop" if len(closures) == 1 else f"close {len(closures)} loops"
    sources = [f"{_join_names(list(closures))} {loops}"] if closures else []
    if mechanism.joint_constraints:
        sources.append(
            f"{_join_shortened(list(mechanism.joint_constraints))} "
            f"constrain{'s' if len(mechanism.joint_constraints) == 1 else ''} joints"
        )
    text = f"{parts}. {_join_names(sources)}: {constraints}."
    if counts.dof is None:
        problem = "A loop is not closed"
        if mechanism.joint_constraints:
            problem += " or a joint constraint is violated"
        return (
            f"{text} {problem} in this configuration, so the mobility is unknown; "
            f"Grübler's count gives {counts.gruebler}."
        )
    text += f" Its mobility in this configuration is {format_count(counts.dof, 'dof')}"
    analysis = structure(mechanism)
    if redundant_count := counts.redundant_constraints:
        redundancy_clause = f"{redundant_count} of the constraints {'is' if redundant_count == 1 else 'are'} redundant"
        text += (
            f". Grübler's count gives {counts.gruebler}, but {redundancy_clause}: {_describe_redundant_rows(analysis)}."
        )
    else:
        text += ", equal to Grübler's count."
    return " ".join([text, *describe_structure(analysis)])


def describe_structure(analysis: Structure) -> list[str]:
    """Return sentences about change points, inputs, passive and immobile dofs, idle motions and groups of loops."""
    sentences: list[str] = []
    input_labels, passive_labels, immobile_labels = (
        _joint_labels(names, analysis) for names in (analysis.inputs, analysis.passive_dofs, analysis.immobile_dofs)
    )
    if analysis.is_change_point and analysis.generic_dof:
        sentences.append(
            f"It is at a change point: near it the mobility is {format_count(analysis.generic_dof, 'dof')}."
        )
    elif analysis.is_change_point:
        sentences.append(
            "But its motions are only infinitesimal (a shaky mechanism): near this configuration nothing can move."
        )
    if input_labels:
        passive_clause = (
            f"; {_join_shortened(passive_labels)} {'is' if len(passive_labels) == 1 else 'are'} passive"
            if passive_labels
            else ""
        )
        sentences.append(f"It can be driven by {_join_shortened(input_labels)}{passive_clause}.")
    if analysis.idle_motions:
        joints = [" with ".join(motion) for motion in analysis.idle_motions]
        sentences.append(f"{_join_shortened(joints)} can move without effect on other links.")
    if immobile_labels:
        sentences.append(f"{_join_shortened(immobile_labels)} cannot move.")
    if len(analysis.loops) > 1:
        parts = [
            f"{_join_shortened([*loop.closures, *loop.joint_constraints])} "
            f"({format_count(loop.mobility.dof or 0, 'dof')})"
            for loop in analysis.loops
        ]
        sentences.append(f"It has {len(analysis.loops)} groups of loops that share no dof: {_join_shortened(parts)}.")
    return sentences


def _joint_labels(names: Sequence[str], analysis: Structure) -> list[str]:
    """Replace the dofs of a joint by the name of the joint if all its dofs are listed."""
    labels: dict[str, None] = {}
    for name in names:
        joint, _, dof = name.rpartition(".")
        joint_dofs = [
            dof_name
            for dof_name in (*analysis.inputs, *analysis.passive_dofs, *analysis.immobile_dofs)
            if dof_name.rpartition(".")[0] == joint
        ]
        labels[joint if dof in DoF.__members__ and set(joint_dofs) <= set(names) else name] = None
    return list(labels)


def _describe_redundant_rows(analysis: Structure) -> str:
    """Format the redundant constraints, such as `Z, EX and EY of closing_joint`."""
    rows_by_name: dict[str, list[str]] = {}
    for name, row_name in analysis.redundant_rows:
        rows_by_name.setdefault(name, []).append(row_name)
    return _join_shortened([f"{_join_names(row_names)} of {name}" for name, row_names in rows_by_name.items()])


def _describe_chain(mechanism: Mechanism, tip: str) -> str:
    joints = _moving_joint_names(mechanism, tip)
    if not joints:
        return "it cannot move."
    match = match_closed_form(mechanism, tip)
    names = ", ".join(match.axes.names if match.axes is not None else joints)
    if match:
        return f"{names}. {_describe_match(match)}"
    text = f"{names}. {_sentences(match.reasons)} So it has no known closed form, and the general solver is used."
    for base in _links_above(mechanism, tip):
        part_match = match_closed_form(mechanism, tip, base)
        if part_match and part_match.axes is not None:
            part_joints = f"{part_match.axes.names[0]} to {part_match.axes.names[-1]}"
            return (
                f"{text} The part from base {base!r} ({part_joints}) has a closed form. {_describe_match(part_match)}"
            )
    return text


def _describe_match(match: ClosedFormMatch) -> str:
    return f"{_sentences(match.reasons)} So it has a closed form: {match.family}."


def _moving_joint_names(mechanism: Mechanism, tip: str) -> list[str]:
    ancestors = [frame for frame in mechanism.link(tip).traverse_parents() if isinstance(frame, Joint) and frame.dof]
    return [mechanism.name_of(joint) for joint in reversed(ancestors)]


def _links_above(mechanism: Mechanism, tip: str) -> list[str]:
    """Return the names of the links above a link, from the root down."""
    ancestors = [frame for frame in mechanism.link(tip).traverse_parents() if isinstance(frame, Link)]
    return [mechanism.name_of(link) for link in reversed(ancestors)]


def _is_tip_link(link: Link) -> bool:
    return not any(isinstance(joint, Joint) and joint.children for joint in link.children)


def _sentences(texts: tuple[str, ...]) -> str:
    return " ".join(f"{text[0].upper()}{text[1:]}." for text in texts)


def _join_shortened(names: Sequence[str], max_count: int = 8) -> str:
    """Format a list of names; the end of a long list is replaced by the number of omitted names."""
    return _join_names(
        list(names) if len(names) <= max_count else [*names[: max_count - 2], f"{len(names) - max_count + 2} more"]
    )


def _join_names(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
