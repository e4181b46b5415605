"""Joints of a URDF that mimic others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mechanik.formats.urdf_tree import JointSpec, listed, nearest_name
from mechanik.formats.xml_text import Node
from mechanik.mechanism.coupling import Coupling
from mechanik.mechanism.joint import Joint


def couple(specs: Sequence[JointSpec], joints: Mapping[str, Joint]) -> None:
    """Let mimicking joints follow, wherever in the file their leaders stand."""
    wanted: dict[str, tuple[Node, str]] = {}
    still: list[tuple[Node, str, str]] = []
    for spec in specs:
        node = spec.node.first("mimic")
        if node is None:
            continue
        leader = node.need("joint")
        if leader not in joints:  # found in files that other readers load, which ignore mimic altogether
            node.warn(f"is left out, since joint {leader!r} does not exist{nearest_name(leader, joints)}")
            continue
        wrong = [name for name in (spec.name, leader) if len(joints[name].dof) != 1]
        if wrong:
            still.append((node, spec.name, wrong[0]))
        else:
            wanted[spec.name] = node, leader
    _report(still)
    _refuse_circles(wanted)
    made: list[tuple[Node, Coupling]] = []
    for name, (node, leader) in wanted.items():
        ratio, offset = node.number("multiplier"), node.number("offset")
        made.append((node, joints[name].follow(joints[leader], 1.0 if ratio is None else ratio, offset or 0.0)))
    for node, coupling in made:
        if contradicts(coupling):
            follower, leader = coupling.follower.name, coupling.leader.name
            node.document.warnings.append(
                f"{node.where}: joint {follower!r} follows {leader!r} by ratio {coupling.ratio:g}, and its limits "
                f"contradict those of {leader!r}; they are not looked at"
            )


def contradicts(coupling: Coupling) -> bool:
    """Whether a follower's limits leave its leader, which could move, nowhere to go."""
    lower, upper = coupling.leader.limits(coupling.leader_dof)
    low, high = coupling.limits_for_leader()
    return lower < upper and max(lower, low) >= min(upper, high)


def _report(still: Sequence[tuple[Node, str, str]]) -> None:
    """Said once: robots with a dozen such joints are common."""
    if len(still) == 1:
        node, _, name = still[0]
        node.warn(f"is left out, since joint {name!r} does not have one freedom")
    elif still:
        first = still[0][0]
        first.document.warnings.append(
            f"{first.where}: the <mimic> of {len(still)} joints is left out, since they or the joints that they "
            f"follow do not have one freedom: {listed([name for _, name, _ in still])}"
        )


def _refuse_circles(wanted: Mapping[str, tuple[Node, str]]) -> None:
    for name, (node, leader) in wanted.items():
        way = [name]
        while leader in wanted and leader not in way:
            way.append(leader)
            leader = wanted[leader][1]
        if leader == name:
            raise node.fault(f"lets it follow itself: {' -> '.join([*way, name])}")
