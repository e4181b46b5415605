"""Independent chains: which joints and closures have to be solved together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mechanik.mechanism.closure import Closure
from mechanik.mechanism.dof import DoF
from mechanik.mechanism.frame import Frame
from mechanik.mechanism.joint import Joint


@dataclass(frozen=True, slots=True)
class Chain:
    """Closures and goals that share moving joints, directly or through each other, and all those joints."""

    closures: tuple[Closure, ...]
    joints: tuple[Joint, ...]


def moving_joints(closure: Closure) -> tuple[Joint, ...]:
    """The joints whose motion opens or shuts the closure.

    Those are the moving joints above one of its two ends; a joint above both carries both along. A
    joint that follows another is moved by the one at the head of its couplings.
    """
    apart = _freedoms(closure.joint.parent) ^ _freedoms(closure.link)
    movers = {joint if (led := joint._couplings.get(dof)) is None else led.resolve()[0] for joint, dof in apart}
    return tuple(sorted(movers, key=lambda joint: joint._serial))


def independent_chains(closures: Iterable[Closure]) -> tuple[Chain, ...]:
    """The closures in groups that share no moving joint, each group in the order given."""
    groups: list[tuple[list[Closure], dict[Joint, None]]] = []
    for closure in closures:
        mine, joints = [closure], dict.fromkeys(moving_joints(closure))
        apart: list[tuple[list[Closure], dict[Joint, None]]] = []
        for group in groups:
            if group[1].keys() & joints.keys():
                mine, joints = group[0] + mine, group[1] | joints
            else:
                apart.append(group)
        groups = [*apart, (mine, joints)]
    return tuple(Chain(tuple(mine), tuple(joints)) for mine, joints in groups)


def _freedoms(frame: Frame | None) -> set[tuple[Joint, DoF]]:
    """The freedoms of all joints from `frame` up."""
    freedoms: set[tuple[Joint, DoF]] = set()
    while frame is not None:
        if isinstance(frame, Joint):
            freedoms.update((frame, dof) for dof in frame.dof)
        frame = frame.parent
    return freedoms
