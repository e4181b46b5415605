"""Independent chains: which joints and closures have to be solved together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mechanik.mechanism.closure import Closure
from mechanik.mechanism.dof import ROTATIONS, TRANSLATIONS, DoF
from mechanik.mechanism.frame import Frame
from mechanik.mechanism.goal import Goal
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.law import Law


@dataclass(frozen=True, slots=True)
class Chain:
    """Closures, goals and laws that share moving joints, directly or through each other, and all those joints."""

    closures: tuple[Closure, ...]
    joints: tuple[Joint, ...]
    laws: tuple[Law, ...] = ()


def moving_joints(closure: Closure) -> tuple[Joint, ...]:
    """The joints whose motion opens or shuts the closure.

    Those are the moving joints above one of its two ends; a joint above both carries both along. A
    joint that follows another is moved by the one at the head of its couplings.
    """
    one, other = _freedoms(closure.joint.parent), _freedoms(closure.link)
    # a joint above both ends turns both, but not the axes of the world in which some of a goal's directions lie
    apart = one | other if _is_partial_in_world(closure) else one ^ other
    movers = {joint if (led := joint._couplings.get(dof)) is None else led.resolve()[0] for joint, dof in apart}
    return tuple(sorted(movers, key=lambda joint: joint._serial))


def independent_chains(closures: Iterable[Closure], laws: Iterable[Law] = ()) -> tuple[Chain, ...]:
    """Closures and laws in groups that share no moving joint, each group in the order given."""
    shut, kept = list(closures), list(laws)
    given = [
        *(set(moving_joints(closure)) for closure in shut),
        *({joint for joint, _ in law.resolved()[0]} for law in kept),
    ]
    groups: list[tuple[set[int], set[Joint]]] = []
    for i, moving in enumerate(given):
        mine, joints = {i}, moving
        apart: list[tuple[set[int], set[Joint]]] = []
        for group in groups:
            if group[1] & joints:
                mine, joints = mine | group[0], joints | group[1]
            else:
                apart.append(group)
        groups = [*apart, (mine, joints)]
    return tuple(
        Chain(
            tuple(shut[i] for i in sorted(mine) if i < len(shut)),
            tuple(sorted(joints, key=lambda joint: joint._serial)),
            tuple(kept[i - len(shut)] for i in sorted(mine) if i >= len(shut)),
        )
        for mine, joints in sorted(groups, key=lambda group: min(group[0]))
    )


def _is_partial_in_world(closure: Closure) -> bool:
    if not isinstance(closure.joint, Goal) or closure.joint.axes != "world":
        return False
    return any(0 < len([dof for dof in block if dof in closure.free]) < 3 for block in (TRANSLATIONS, ROTATIONS))


def _freedoms(frame: Frame | None) -> set[tuple[Joint, DoF]]:
    """The freedoms of all joints from `frame` up."""
    freedoms: set[tuple[Joint, DoF]] = set()
    while frame is not None:
        if isinstance(frame, Joint):
            freedoms.update((frame, dof) for dof in frame.dof)
        frame = frame.parent
    return freedoms
