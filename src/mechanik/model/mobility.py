"""Mobility and structure of mechanisms with loops: dofs, inputs, passive dofs, idle motions, redundant constraints.

The Grübler-Kutzbach count is compared with the rank of the constraint Jacobian. A structure is read at q and at generic
configurations near q, because q itself may be singular.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from mechanik.errors import InvalidArgument, StructureError
from mechanik.kernels.nodes import FIRST_V
from mechanik.model.frame import Frame, Link
from mechanik.model.joint import Joint
from mechanik.model.linearized_constraints import (
    MIN_PARTICIPATION,
    FirstOrderMotions,
    LinearizedConstraint,
    Mask,
    closed_first_order_motions,
    independent_rows,
    linearize_closure,
    null_space,
    remove_directions,
    sample_closed_neighbours,
    stack_constraints,
)
from mechanik.model.loop_closure import Closure
from mechanik.model.mechanism import Mechanism
from mechanik.model.numpy_kinematics import NumpyKinematics
from mechanik.spatial.array import Array, ArrayLike


@dataclass(frozen=True, slots=True)
class Mobility:
    """The mobility of a mechanism, by count and by the rank of its constraints.

    Attributes:
        tree_dof: dofs of the tree without its closures; dofs whose limits are equal do not count.
        constraints: number of scalar constraints of all closures and joint constraints.
        gruebler: tree_dof - constraints, the Grübler-Kutzbach count; wrong for special geometry.
        dof: the mobility at q; None if a closure or joint constraint is violated.
        redundant: number of dependent constraints at q; None if a closure or joint constraint is violated.

    Example:
        >>> mk.mobility(mk.gallery.four_bar())
        Mobility(tree_dof=3, constraints=5, gruebler=-2, dof=1, redundant=3)
    """

    tree_dof: int
    constraints: int
    gruebler: int
    dof: int | None
    redundant: int | None


def mobility(mechanism: Mechanism, tolerance: float = 1e-6, q: ArrayLike | None = None) -> Mobility:
    """Compute the mobility of a mechanism.

    Args:
        mechanism: the mechanism.
        tolerance: largest gap of a closed loop, m and rad; for a joint constraint, a share of its scale.
        q: (nq,); default: the present configuration.

    Returns:
        The counts, and the mobility at q.

    Raises:
        InvalidArgument: `mechanism` is not a mechanism.

    Example:
        >>> mk.mobility(mk.gallery.four_bar()).dof
        1
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidArgument(f"only a mechanism has mobility, not {mechanism!r}")
    return count_mobility(
        closed_first_order_motions(mechanism, mechanism.q if q is None else mechanism._single_q(q)), tolerance
    )


def count_mobility(here: FirstOrderMotions, tolerance: float = 1e-6) -> Mobility:
    """Compute the mobility of linearized constraints; `tolerance` as in `mobility`."""
    freedoms, rows = int(here.can_move.sum()), len(here.A)
    if any(np.abs(one.residual).max(initial=0.0) > tolerance for one in here.constraints):
        return Mobility(freedoms, rows, freedoms - rows, None, None)
    return Mobility(freedoms, rows, freedoms - rows, here.dof, rows - here.rank)


def closure_jacobian(mechanism: Mechanism, closure: Closure) -> Array:
    """Return the rate of each constrained direction of a closed closure, (constrained, nv); m and rad per unit of v."""
    return linearize_closure(mechanism, closure, NumpyKinematics(mechanism.kinematics, mechanism.q)).J


@dataclass(frozen=True, slots=True, eq=False)
class IdleMotion:
    """An idle motion: a rigid part of a loop moves between two bodies that stay at rest.

    Examples are the spin of a rod between two spherical joints, and of a roller between two bearings.

    Attributes:
        joints: names of the joints that move, one or two; joints that close a loop are not included.
        links: names of the links that move.
        columns: the indices in v of these joints.
        v: (nv,), such a motion, with unit norm in the units of `FirstOrderMotions`.
        ends: see `_as_one`.
    """

    joints: tuple[str, ...]
    links: tuple[str, ...]
    columns: tuple[int, ...]
    v: Array
    ends: tuple[str | None, str | None]

    def evaluate_at(self, here: FirstOrderMotions, placed: NumpyKinematics) -> Array:
        """Return the same motion at a configuration nearby, (nv,)."""
        columns = list(self.columns)
        ways = _idle_ways(here, columns, placed, self.ends, _least(here))
        v = np.zeros(len(self.v))
        v[columns] = ways @ (ways.T @ self.v[columns])
        return v / max(float(np.linalg.norm(v)), 1e-12)


def find_idle_motions(mechanism: Mechanism, here: FirstOrderMotions) -> list[IdleMotion]:
    """Find all idle motions at a generic configuration.

    Only the joints at the two ends of such a part move, so the motion is a null vector of their columns alone.
    """
    if here.dof == 0 or not len(here.A):
        return []
    held = _columns(mechanism, here)
    bodies = _bodies(mechanism, here)
    placed, least = NumpyKinematics(mechanism.kinematics, here.q), _least(here)
    found: list[IdleMotion] = []
    known = np.zeros((0, here.A.shape[1]))
    together = [one.dof_indices for one in here.constraints]
    pairs = (two for two in combinations(held, 2) if any(all(m & {*held[j]} for j in two) for m in together))
    for joints in [*((one,) for one in held), *pairs]:
        columns = [k for joint in joints for k in held[joint]]
        if not _ways(here.A[:, columns], least).shape[1]:
            continue
        ends = _as_one(mechanism, joints)
        for part in _idle_ways(here, columns, placed, ends, least).T:
            v = np.zeros(here.A.shape[1])
            v[columns] = part
            v -= known.T @ (known @ v)
            if np.linalg.norm(v) < 1e-6 or any(np.abs(v[held[joint]]).max() < 1e-6 for joint in joints):
                continue
            links = _between(mechanism, joints, bodies)
            if links:
                v /= np.linalg.norm(v)
                known = np.vstack([known, v])
                names = tuple(mechanism.name_of(joint) for joint in joints)
                found.append(IdleMotion(names, links, tuple(columns), v, ends))
    return found


def _as_one(mechanism: Mechanism, joints: tuple[Joint, ...]) -> tuple[str | None, str | None]:
    """Return two links (None is the world) that have the same velocity if the two joints move a single rigid part.

    If a joint is below the other, the part ends above the lower joint, and the links below that joint rest like the
    world. Otherwise each joint carries a piece of the part. A closure that lets links slide guarantees neither.
    """
    if len(joints) < 2:
        return None, None
    one, other = ({frame for frame in joint.traverse() if isinstance(frame, Link)} for joint in joints)
    pieces = (one & other,) if one & other else (one, other)
    first, *rest = (next(name for name, link in mechanism.links.items() if link in piece) for piece in pieces)
    return first, rest[0] if rest else None


def _idle_ways(
    here: FirstOrderMotions,
    columns: list[int],
    placed: NumpyKinematics,
    ends: tuple[str | None, str | None],
    least: float,
) -> Array:
    """Return a basis (columns, k) of the motions of these columns that keep all constraints and the ends together."""
    apart = placed.link_kinematics(ends[0]).spatial_jacobian - placed.link_kinematics(ends[1]).spatial_jacobian
    lengths = np.array([here.characteristic_length] * 3 + [1.0] * 3)
    rows = (apart * here.unit * here.can_move / lengths[:, None])[:, columns]
    return _ways(np.vstack([here.A[:, columns], rows]), least)


def _least(here: FirstOrderMotions) -> float:
    """Return the singular value up to which values count as zero, also for a few columns, which may all be rounding."""
    return here.tolerance * max(float(np.linalg.norm(here.A, 2)), 1e-12)


def _ways(A: Array, least: float) -> Array:
    """Return a basis (n, k) of the null space of A (m, n)."""
    return null_space(A, int((np.linalg.svd(A, compute_uv=False) > least).sum()))


def _columns(mechanism: Mechanism, here: FirstOrderMotions) -> dict[Joint, list[int]]:
    """Return the joints of loops with their indices in v; leaders are left out, since they move other joints too."""
    shared = np.bincount(mechanism.kinematics.nodes[:, FIRST_V].astype(np.int64), minlength=mechanism.nv)
    in_loops = {k for one in here.constraints for k in one.dof_indices}
    held: dict[Joint, list[int]] = {}
    for joint, slot in mechanism.kinematics.joint_indices.items():
        ball = [] if slot.quaternion_v is None else [slot.quaternion_v + k for k in range(3)]
        columns = [k for k in (*slot.v.values(), *ball) if k in in_loops and here.can_move[k] and shared[k] <= 1]
        if columns:
            held[joint] = columns
    return held


def _bodies(mechanism: Mechanism, here: FirstOrderMotions) -> dict[Link, Link]:
    """Map each link to the first link of its body; links that hang on a loop but are not part of it belong to it."""
    in_loops = {k for one in here.constraints for k in one.dof_indices}
    bodies: dict[Link, Link] = {}
    for root in mechanism.roots:
        for frame in root.traverse():
            if isinstance(frame, Link):
                joint = frame.parent
                slot = mechanism.kinematics.joint_indices.get(joint) if isinstance(joint, Joint) else None
                columns = (
                    []
                    if slot is None
                    else [*slot.v.values(), *([] if slot.quaternion_v is None else [slot.quaternion_v])]
                )
                above = _link_above(frame)
                joined = above is not None and not any(k in in_loops for k in columns)
                bodies[frame] = bodies[above] if joined and above is not None else frame
    return bodies


def _between(mechanism: Mechanism, joints: tuple[Joint, ...], bodies: dict[Link, Link]) -> tuple[str, ...]:
    """Return the links that move with these joints alone if two different resting bodies hold them; else none."""
    moved: set[Link] = set()
    for joint in joints:  # with two joints, links below exactly one move; links below both rest (see `_as_one`)
        moved ^= {frame for frame in joint.traverse() if isinstance(frame, Link)}
    holders: set[Link | None] = set()
    for joint in joints:
        ends = (_link_above(joint), joint.child)
        holders |= {bodies[end] for end in ends if end is not None and end not in moved}
    for closure in mechanism.closures.values():
        start = _link_above(closure.joint)
        for one, other in ((start, closure.link), (closure.link, start)):
            if one in moved and other not in moved:
                holders.add(None if other is None else bodies[other])
    return tuple(name for name, link in mechanism.links.items() if link in moved) if len(holders) > 1 else ()


def _link_above(frame: Frame) -> Link | None:
    return next((one for one in frame.traverse_parents() if isinstance(one, Link)), None)


@dataclass(frozen=True, slots=True)
class Loop:
    """A group of closures and joint constraints that share moving joints; two groups share no dof.

    Attributes:
        closures, joint_constraints: by name.
        dofs: names as in `ConfigurationSpace.v_names`.
        mobility: mobility of the group alone.
        inputs: the mechanism's inputs that belong to this group.

    Example:
        >>> loop = mk.structure(mk.gallery.four_bar()).loops[0]
        >>> loop.closures, loop.inputs
        (('closing_joint',), ('crank_joint',))
    """

    closures: tuple[str, ...]
    joint_constraints: tuple[str, ...]
    dofs: tuple[str, ...]
    mobility: Mobility
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Structure:
    """The structure of a mechanism with loops: inputs, passive dofs, idle motions and redundant constraints.

    Attributes:
        mobility: the counts, and the mobility at q.
        generic_dof: the mobility near q. If it is less than at q, q is a change point, where several branches meet. It
            is also zero if the dofs at q are infinitesimal only (a shaky mechanism).
        inputs: dofs that determine all others except the idle motions. Preferred are joints of a single dof, then
            joints of several dofs, floating bodies last; near the root first, then in order of v. They are chosen at a
            generic configuration near q. `closed_jacobian` and `assemble` accept these names. A joint with a quaternion
            that is an input as a whole has the name of the joint (`base`), since its angles have no values of their
            own. If only a part of it is an input, the rotations about its own axes are named (`base.EX`); these have
            velocities but no values.
        passive_dofs: dofs that the inputs move.
        immobile_dofs: dofs that loops or limits hold fixed.
        idle_motions: motions of a part that move nothing else, each by the names of its joints.
        redundant_rows: (closure or joint constraint, direction) of each constraint that depends on earlier ones at q.
        loops: groups that share no dof.

    Example:
        >>> structure = mk.structure(mk.gallery.four_bar())
        >>> structure.inputs, structure.passive_dofs
        (('crank_joint',), ('coupler_joint', 'rocker_joint'))
    """

    mobility: Mobility
    generic_dof: int
    inputs: tuple[str, ...]
    passive_dofs: tuple[str, ...]
    immobile_dofs: tuple[str, ...]
    idle_motions: tuple[tuple[str, ...], ...]
    redundant_rows: tuple[tuple[str, str], ...]
    loops: tuple[Loop, ...]

    @property
    def is_change_point(self) -> bool:
        """Whether the mobility at q differs from the mobility near q."""
        return self.mobility.dof != self.generic_dof

    @property
    def overconstrained(self) -> int:
        """Number of redundant constraints near q."""
        return self.generic_dof - self.mobility.gruebler


@dataclass(frozen=True, slots=True, eq=False)
class StructureAnalysis:
    """The data from which a `Structure` is derived.

    Attributes:
        mechanism: the mechanism.
        here: the constraints at q.
        generic: the constraints at a generic configuration near q; `here` if there is none.
        neighbours: the constraints at several configurations near q.
        rank: rank of the constraints at a generic configuration.
        idle_motions: motions that move nothing else.
        inputs: indices in v.
    """

    mechanism: Mechanism
    here: FirstOrderMotions
    generic: FirstOrderMotions
    neighbours: tuple[FirstOrderMotions, ...]
    rank: int
    idle_motions: list[IdleMotion]
    inputs: list[int]

    def idle_basis(self, at: FirstOrderMotions) -> Array:
        """Return the idle motions at a configuration nearby, (nv, k)."""
        placed = NumpyKinematics(self.mechanism.kinematics, at.q)
        return (
            np.array([one.evaluate_at(at, placed) for one in self.idle_motions])
            .reshape(len(self.idle_motions), at.A.shape[1])
            .T
        )


def structure(mechanism: Mechanism, q: ArrayLike | None = None) -> Structure:
    """Determine the inputs, passive dofs, idle motions and redundant constraints of a mechanism.

    Args:
        mechanism: the mechanism.
        q: (nq,), with all loops closed to 1e-6 (m and rad); default: the present configuration.

    Returns:
        The structure.

    Raises:
        InvalidArgument: `mechanism` is not a mechanism.
        StructureError: a closure or joint constraint is violated at q.

    Example:
        >>> mk.structure(mk.gallery.four_bar()).overconstrained
        3
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidArgument(f"only a mechanism has a structure, not {mechanism!r}")
    seen = analyse_structure(mechanism, mechanism.q if q is None else mechanism._single_q(q))
    here, beside, names = seen.here, seen.generic, mechanism.space.v_names
    spins = seen.idle_basis(beside)
    ways = remove_directions(beside.basis(), spins) if seen.inputs else spins[:, :0]
    called = _called(mechanism, seen.inputs)
    moving, spinning = (
        set(np.flatnonzero(np.abs(some).max(axis=1, initial=0.0) > MIN_PARTICIPATION)) for some in (ways, spins)
    )
    return Structure(
        mobility=count_mobility(here),
        generic_dof=int(beside.can_move.sum()) - seen.rank,
        inputs=tuple(dict.fromkeys(called.values())),
        passive_dofs=tuple(names[k] for k in sorted(moving - set(seen.inputs))),
        immobile_dofs=tuple(name for k, name in enumerate(names) if k not in moving | spinning),
        idle_motions=tuple(one.joints for one in seen.idle_motions),
        redundant_rows=tuple(_redundant(here)),
        loops=tuple(_loops(mechanism, here, called)),
    )


def analyse_structure(
    mechanism: Mechanism, q: Array, active: Mask | None = None, tool: str | None = None
) -> StructureAnalysis:
    """Linearize the constraints at q and near q.

    Args:
        mechanism: the mechanism.
        q: (nq,), with all loops closed.
        active: (nv,), dofs that may move; default: all dofs whose limits differ.
        tool: name of a link whose motion is never idle.

    Raises:
        StructureError: a closure or joint constraint is violated at q.
    """
    here = closed_first_order_motions(mechanism, q, active)
    check_loops_closed(mechanism, here)
    around = sample_closed_neighbours(mechanism, here)
    beside = max(around, key=lambda one: one.rank, default=here)
    rank = max(here.rank, beside.rank)
    if not around and here.dof:
        rank = int(here.can_move.sum())  # the first-order motions are infinitesimal only
    idle = [one for one in find_idle_motions(mechanism, beside) if tool not in one.links] if around else []
    drives = [] if not around and here.dof else _drives(mechanism, beside, idle)
    return StructureAnalysis(mechanism, here, beside, tuple(around), rank, idle, drives)


def check_loops_closed(mechanism: Mechanism, here: FirstOrderMotions, tolerance: float = 1e-6) -> None:
    """Raise `StructureError` if a closure (m and rad) or a joint constraint (share of its scale) is violated."""
    for one in here.constraints:
        if np.abs(one.residual).max(initial=0.0) <= tolerance:
            continue
        if one.kind == "law":
            off = float(one.residual[0]) * mechanism.joint_constraint(one.name).scale
            wrong, mended = f"law {one.name!r} is off by {off:.3g}", "have it kept"
        else:
            metres, radians = (float(np.linalg.norm(one.residual[some])) for some in (one.in_metres, ~one.in_metres))
            gap = f"{metres:.3g} m" if metres >= radians else f"{radians:.3g} rad"
            wrong, mended = f"loop {one.name!r} stands open by {gap}", "shut it"
        raise StructureError(
            f"{wrong}, and only where all loops are shut and all laws kept are there velocities and a structure; "
            f"{mended} first: mechanism.apply(mechanism.assemble())"
        )


def _called(mechanism: Mechanism, drives: list[int]) -> dict[int, str]:
    """Return the name of each input; a joint with a quaternion whose dofs are all inputs is named as a whole."""
    called = {k: mechanism.space.v_names[k] for k in drives}
    for joint, slot in mechanism.kinematics.joint_indices.items():
        if slot.quaternion_v is not None:
            own = [*slot.v.values(), *range(slot.quaternion_v, slot.quaternion_v + 3)]
            if called.keys() >= set(own):
                called |= dict.fromkeys(own, mechanism.name_of(joint))
    return called


def _drives(mechanism: Mechanism, at: FirstOrderMotions, idle: list[IdleMotion]) -> list[int]:
    """Choose the inputs: take passive dofs from the least preferred input on until they span all constraints."""
    A = np.vstack([at.A, *(one.v[None] for one in idle)])
    order = [k for k in reversed(_by_preference(mechanism)) if at.can_move[k]]
    followers = independent_rows(A.T, order, MIN_PARTICIPATION)
    return [k for k in reversed(order) if k not in followers]


def _by_preference(mechanism: Mechanism) -> list[int]:
    """Sort the indices of v by preference as inputs: single dofs, translations, rotations; near the root first.

    Floating bodies come last, since they are rarely actuated.
    """
    keys: dict[int, tuple[int, int, int]] = {}
    for joint, slot in mechanism.kinematics.joint_indices.items():
        floats, depth = len(joint.dof) > 3, _depth(joint)
        for dof, k in slot.v.items():
            keys[k] = 0 if len(joint.dof) == 1 else 3 if floats else 2 if dof.is_rotation else 1, depth, k
        if slot.quaternion_v is not None:
            keys |= {slot.quaternion_v + k: (3 if floats else 2, depth, slot.quaternion_v + k) for k in range(3)}
    return sorted(keys, key=lambda k: keys[k])


def _depth(joint: Frame) -> int:
    return sum(isinstance(frame, Joint) and bool(frame.dof) for frame in joint.traverse_parents())


def _redundant(here: FirstOrderMotions) -> list[tuple[str, str]]:
    labels = [(one.name, direction) for one in here.constraints for direction in one.directions]
    new = independent_rows(here.A, range(len(labels)), here.tolerance)
    return [label for k, label in enumerate(labels) if k not in new]


def _loops(mechanism: Mechanism, here: FirstOrderMotions, drives: dict[int, str]) -> list[Loop]:
    groups: list[tuple[list[LinearizedConstraint], set[int]]] = []
    for one in here.constraints:
        mine, moves = [one], set(one.dof_indices)
        for group in [group for group in groups if group[1] & moves]:
            groups.remove(group)
            mine, moves = [*group[0], *mine], moves | group[1]
        groups.append((mine, moves))
    names, loops = mechanism.space.v_names, list[Loop]()
    for mine, moves in groups:
        members = here.can_move & np.isin(np.arange(mechanism.nv), list(moves))
        counts = count_mobility(stack_constraints(mechanism, here.q, mine, members))
        freedoms, own = sorted(moves), [name for k, name in drives.items() if k in moves]
        loops.append(
            Loop(
                closures=tuple(one.name for one in mine if one.kind == "closure"),
                joint_constraints=tuple(one.name for one in mine if one.kind == "law"),
                dofs=tuple(names[k] for k in freedoms),
                mobility=counts,
                inputs=tuple(dict.fromkeys(own)),
            )
        )
    return loops
