"""How a mechanism with loops hangs together: what drives, what follows, what is idle, which rows say nothing new."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanik.errors import StructureError, WrongKind
from mechanik.mechanism.constraints import Constraint
from mechanik.mechanism.frame import Frame
from mechanik.mechanism.idle import Idle, idle_motions
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.mechanism import Mechanism
from mechanik.mechanism.mobility import Mobility, counted_in
from mechanik.mechanism.motions import WEAK, Mask, Motions, gathered, independent, without
from mechanik.mechanism.nearby import neighbours, shut_motions
from mechanik.mechanism.placed import Placed
from mechanik.spatial.array import Array, ArrayLike


@dataclass(frozen=True, slots=True)
class Loop:
    """Closures and laws that share moving joints, and all that moves in them; two of these share no freedom.

    Attributes:
        closures, laws: by name.
        freedoms: as in `ConfigurationSpace.v_names`.
        mobility: as if there were nothing else.
        drives: of the mechanism's drives, those that drive this loop.
    """

    closures: tuple[str, ...]
    laws: tuple[str, ...]
    freedoms: tuple[str, ...]
    mobility: Mobility
    drives: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Structure:
    """
    Attributes:
        mobility: the counts, and the true mobility at q.
        generic_dof: the true mobility beside q. Less than at q: q is a change point, from which it can go on in several
            ways. Zero also where the freedoms at q lead nowhere, so that it can only shake.
        drives: freedoms that determine all others but the idle motions; joints of one freedom before those of several,
            bodies that float last, near the root before far from it, and then in order. Chosen beside q, where nothing
            is special. `closed_jacobian` and `assemble` take them as they are named: a joint with a ball that drives
            as a whole by its name (`base`), since no angle of a ball has a value of its own. Of a ball that drives in
            part the turns about its own axes are named (`base.EX`), which have velocities and no values.
        followers: freedoms that the drives move.
        still: freedoms that loops or limits hold where they are.
        idle: motions of a part that move nothing else, each by the joints that move in it.
        redundant_rows: (closure or law, direction), rows that say nothing new at q after those named before them.
        loops: that share no freedom.
    """

    mobility: Mobility
    generic_dof: int
    drives: tuple[str, ...]
    followers: tuple[str, ...]
    still: tuple[str, ...]
    idle: tuple[tuple[str, ...], ...]
    redundant_rows: tuple[tuple[str, str], ...]
    loops: tuple[Loop, ...]

    @property
    def is_change_point(self) -> bool:
        return self.mobility.dof != self.generic_dof

    @property
    def overconstrained(self) -> int:
        """By how many rows more is it held than it would need to be, beside q."""
        return self.generic_dof - self.mobility.gruebler


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """What a structure is read off.

    Attributes:
        mechanism: whose it is.
        here: the constraints at q.
        beside: those at a place close to it where nothing is special; `here` if it has no such place.
        around: several such places.
        rank: of the constraints there.
        idle: motions that move nothing else.
        drives: numbers of v.
    """

    mechanism: Mechanism
    here: Motions
    beside: Motions
    around: tuple[Motions, ...]
    rank: int
    idle: list[Idle]
    drives: list[int]

    def spins(self, at: Motions) -> Array:
        """The idle motions at a place close by, (nv, k)."""
        placed = Placed(self.mechanism.kinematics, at.q)
        return np.array([one.at(at, placed) for one in self.idle]).reshape(len(self.idle), at.A.shape[1]).T


def structure(mechanism: Mechanism, q: ArrayLike | None = None) -> Structure:
    """What drives and what follows, and how many constraints hold it.

    Args:
        q: (nq,), with all loops shut to 1e-6; as the joints stand now if it is not given.
    """
    if not isinstance(mechanism, Mechanism):
        raise WrongKind(f"only a mechanism has a structure, not {mechanism!r}")
    seen = analyse(mechanism, mechanism.q if q is None else mechanism._one(q))
    here, beside, names = seen.here, seen.beside, mechanism.space.v_names
    spins = seen.spins(beside)
    ways = without(beside.basis(), spins) if seen.drives else spins[:, :0]
    called = _called(mechanism, seen.drives)
    moving, spinning = (set(np.flatnonzero(np.abs(some).max(axis=1, initial=0.0) > WEAK)) for some in (ways, spins))
    return Structure(
        mobility=counted_in(here),
        generic_dof=int(beside.can_move.sum()) - seen.rank,
        drives=tuple(dict.fromkeys(called.values())),
        followers=tuple(names[k] for k in sorted(moving - set(seen.drives))),
        still=tuple(name for k, name in enumerate(names) if k not in moving | spinning),
        idle=tuple(one.joints for one in seen.idle),
        redundant_rows=tuple(_redundant(here)),
        loops=tuple(_loops(mechanism, here, called)),
    )


def analyse(mechanism: Mechanism, q: Array, active: Mask | None = None, tool: str | None = None) -> Analysis:
    """The constraints at q and beside it; refused while a loop stands open.

    Args:
        active: (nv,), what may move; all that its limits let move if it is not given.
        tool: a link whose motion is never idle.
    """
    here = shut_motions(mechanism, q, active)
    refuse_open(mechanism, here)
    around = neighbours(mechanism, here)
    beside = max(around, key=lambda one: one.rank, default=here)
    rank = max(here.rank, beside.rank)
    if not around and here.dof:
        rank = int(here.can_move.sum())  # all that seems free leads nowhere
    idle = [one for one in idle_motions(mechanism, beside) if tool not in one.links] if around else []
    drives = [] if not around and here.dof else _drives(mechanism, beside, idle)
    return Analysis(mechanism, here, beside, tuple(around), rank, idle, drives)


def refuse_open(mechanism: Mechanism, here: Motions, tolerance: float = 1e-6) -> None:
    """Raise if a loop stands open (m and rad), or a law is broken (in shares of its scale)."""
    for one in here.constraints:
        if np.abs(one.gap).max(initial=0.0) <= tolerance:
            continue
        if one.kind == "law":
            off = float(one.gap[0]) * mechanism.law(one.name).scale
            wrong, mended = f"law {one.name!r} is off by {off:.3g}", "have it kept"
        else:
            metres, radians = (float(np.linalg.norm(one.gap[some])) for some in (one.in_metres, ~one.in_metres))
            gap = f"{metres:.3g} m" if metres >= radians else f"{radians:.3g} rad"
            wrong, mended = f"loop {one.name!r} stands open by {gap}", "shut it"
        raise StructureError(
            f"{wrong}, and only where all loops are shut and all laws kept are there velocities and a structure; "
            f"{mended} first: mechanism.apply(mechanism.assemble())"
        )


def _called(mechanism: Mechanism, drives: list[int]) -> dict[int, str]:
    """What each drive is called: freedoms of a joint with a ball, if all of them drive, by the joint."""
    called = {k: mechanism.space.v_names[k] for k in drives}
    for joint, slot in mechanism.kinematics.slots.items():
        if slot.ball_v is not None:
            own = [*slot.v.values(), *range(slot.ball_v, slot.ball_v + 3)]
            if called.keys() >= set(own):
                called |= dict.fromkeys(own, mechanism.name_of(joint))
    return called


def _drives(mechanism: Mechanism, at: Motions, idle: list[Idle]) -> list[int]:
    """Followers are taken first, from the least likely drive on, until they span all rows; the rest drives."""
    A = np.vstack([at.A, *(one.v[None] for one in idle)])
    order = [k for k in reversed(_by_preference(mechanism)) if at.can_move[k]]
    followers = independent(A.T, order, WEAK)
    return [k for k in reversed(order) if k not in followers]


def _by_preference(mechanism: Mechanism) -> list[int]:
    """Numbers of v: joints of one freedom first, then shifts before turns, then near the root, then in order.

    Bodies that float come last, since what is driven is seldom what is to be moved.
    """
    keys: dict[int, tuple[int, int, int]] = {}
    for joint, slot in mechanism.kinematics.slots.items():
        floats, depth = len(joint.dof) > 3, _depth(joint)
        for dof, k in slot.v.items():
            keys[k] = 0 if len(joint.dof) == 1 else 3 if floats else 2 if dof.is_rotation else 1, depth, k
        if slot.ball_v is not None:
            keys |= {slot.ball_v + k: (3 if floats else 2, depth, slot.ball_v + k) for k in range(3)}
    return sorted(keys, key=lambda k: keys[k])


def _depth(joint: Frame) -> int:
    return sum(isinstance(frame, Joint) and bool(frame.dof) for frame in joint.traverse_parents())


def _redundant(here: Motions) -> list[tuple[str, str]]:
    labels = [(one.name, direction) for one in here.constraints for direction in one.directions]
    new = independent(here.A, range(len(labels)), here.tolerance)
    return [label for k, label in enumerate(labels) if k not in new]


def _loops(mechanism: Mechanism, here: Motions, drives: dict[int, str]) -> list[Loop]:
    groups: list[tuple[list[Constraint], set[int]]] = []
    for one in here.constraints:
        mine, moves = [one], set(one.moves)
        for group in [group for group in groups if group[1] & moves]:
            groups.remove(group)
            mine, moves = [*group[0], *mine], moves | group[1]
        groups.append((mine, moves))
    names, loops = mechanism.space.v_names, list[Loop]()
    for mine, moves in groups:
        members = here.can_move & np.isin(np.arange(mechanism.nv), list(moves))
        counts = counted_in(gathered(mechanism, here.q, mine, members))
        freedoms, own = sorted(moves), [name for k, name in drives.items() if k in moves]
        loops.append(
            Loop(
                closures=tuple(one.name for one in mine if one.kind == "closure"),
                laws=tuple(one.name for one in mine if one.kind == "law"),
                freedoms=tuple(names[k] for k in freedoms),
                mobility=counts,
                drives=tuple(dict.fromkeys(own)),
            )
        )
    return loops
