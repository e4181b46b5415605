"""Mobility and structure of mechanisms with loops: dofs, inputs, passive dofs, idle motions, redundant constraints.

The Grübler-Kutzbach count is compared with the rank of the constraint Jacobian. The structure is determined at q and at
random configurations near q, because q itself may be singular.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from mechanik.errors import InvalidArgument, StructureError
from mechanik.kernels.nodes import Node, open_nodes
from mechanik.model.frame import Frame, Link
from mechanik.model.joint import Joint
from mechanik.model.linearized_constraints import (
    MIN_PARTICIPATION,
    LinearizedConstraint,
    LinearizedSystem,
    Mask,
    independent_rows,
    linearize_closed_system,
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
        dof: the mobility at q; None if a closure or joint constraint is violated at q.
        redundant_constraints: number of constraints at q that depend on other constraints; None if a closure or joint
            constraint is violated at q.

    Example:
        >>> mk.mobility(mk.gallery.four_bar())
        Mobility(tree_dof=3, constraints=5, gruebler=-2, dof=1, redundant_constraints=3)
    """

    tree_dof: int
    constraints: int
    gruebler: int
    dof: int | None
    redundant_constraints: int | None


def mobility(mechanism: Mechanism, tolerance: float = 1e-6, q: ArrayLike | None = None) -> Mobility:
    """Compute the mobility of a mechanism.

    Args:
        mechanism: the mechanism.
        tolerance: largest gap of a closed loop, m and rad; largest error of a joint constraint, relative to its scale.
        q: (nq,); default: the present configuration.

    Returns:
        The counts, and the mobility at q.

    Raises:
        InvalidArgument: `mechanism` is not a mechanism.
        ShapeError, NotFinite: q has the wrong shape or is not finite.

    Example:
        >>> mk.mobility(mk.gallery.four_bar()).dof
        1
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidArgument(f"mobility needs a mechanism, not {mechanism!r}")
    return count_mobility(
        linearize_closed_system(mechanism, mechanism.q if q is None else mechanism._single_q(q)), tolerance
    )


def count_mobility(system: LinearizedSystem, tolerance: float = 1e-6) -> Mobility:
    """Compute the mobility of linearized constraints; `tolerance` as in `mobility`."""
    tree_dof, rows = int(system.can_move.sum()), len(system.A)
    if any(np.abs(constraint.residual).max(initial=0.0) > tolerance for constraint in system.constraints):
        return Mobility(tree_dof, rows, tree_dof - rows, None, None)
    return Mobility(tree_dof, rows, tree_dof - rows, system.dof, rows - system.rank)


def closure_jacobian(mechanism: Mechanism, closure: Closure) -> Array:
    """Return the Jacobian of a closure at the present configuration, (constrained dofs, nv); m and rad per unit of v.

    It is exact only if the closure is satisfied.
    """
    return linearize_closure(mechanism, closure, NumpyKinematics(mechanism.kinematics, mechanism.q)).J


@dataclass(frozen=True, slots=True, eq=False)
class IdleMotion:
    """An idle motion: a rigid part of a loop moves between two bodies that stay at rest.

    Examples are the rotation of a rod between two spherical joints, and of a roller between two bearings.

    Attributes:
        joints: names of the joints that move, one or two; joints that close a loop are not included.
        links: names of the links that move.
        columns: the indices in v, which are columns of `LinearizedSystem.A`, of the dofs of `joints` that can move in a
            loop.
        v: (nv,), the motion, with unit norm in the units of `LinearizedSystem`.
        equal_velocity_links: two links (None: the world) that have the same velocity in this motion; see
            `_links_moving_together`.
    """

    joints: tuple[str, ...]
    links: tuple[str, ...]
    columns: tuple[int, ...]
    v: Array
    equal_velocity_links: tuple[str | None, str | None]

    def evaluate_at(self, system: LinearizedSystem, kinematics: NumpyKinematics) -> Array:
        """Return the idle motion (nv,) at `system.q`, which is near the configuration where the motion was found."""
        columns = list(self.columns)
        basis = _idle_basis(system, columns, kinematics, self.equal_velocity_links, _zero_tolerance(system))
        v = np.zeros(len(self.v))
        v[columns] = basis @ (basis.T @ self.v[columns])
        return v / max(float(np.linalg.norm(v)), 1e-12)


def find_idle_motions(mechanism: Mechanism, system: LinearizedSystem) -> list[IdleMotion]:
    """Find all idle motions at `system.q`, which should not be singular.

    Only the joints at the two ends of the idle part move. So the motion is in the null space of those columns of
    `system.A` that belong to these joints.
    """
    if system.dof == 0 or not len(system.A):
        return []
    columns_by_joint = _loop_columns(mechanism, system)
    bodies = _body_of_links(mechanism, system)
    kinematics, zero_tolerance = NumpyKinematics(mechanism.kinematics, system.q), _zero_tolerance(system)
    idle_motions: list[IdleMotion] = []
    known_motions = np.zeros((0, system.A.shape[1]))
    dof_groups = [constraint.dof_indices for constraint in system.constraints]
    pairs = (
        pair
        for pair in combinations(columns_by_joint, 2)
        if any(all(dof_group & {*columns_by_joint[joint]} for joint in pair) for dof_group in dof_groups)
    )
    for joints in [*((joint,) for joint in columns_by_joint), *pairs]:
        columns = [k for joint in joints for k in columns_by_joint[joint]]
        if not _null_space_basis(system.A[:, columns], zero_tolerance).shape[1]:
            continue
        equal_velocity_links = _links_moving_together(mechanism, joints)
        for joint_velocities in _idle_basis(system, columns, kinematics, equal_velocity_links, zero_tolerance).T:
            v = np.zeros(system.A.shape[1])
            v[columns] = joint_velocities
            v -= known_motions.T @ (known_motions @ v)
            if np.linalg.norm(v) < 1e-6 or any(np.abs(v[columns_by_joint[joint]]).max() < 1e-6 for joint in joints):
                continue
            links = _links_between(mechanism, joints, bodies)
            if links:
                v /= np.linalg.norm(v)
                known_motions = np.vstack([known_motions, v])
                names = tuple(mechanism.name_of(joint) for joint in joints)
                idle_motions.append(IdleMotion(names, links, tuple(columns), v, equal_velocity_links))
    return idle_motions


def _links_moving_together(mechanism: Mechanism, joints: tuple[Joint, ...]) -> tuple[str | None, str | None]:
    """Return two links (None is the world) that have the same velocity if the two joints move a single rigid part.

    If a joint is below the other joint, the part is between the two joints, and the links below the lower joint are at
    rest. Otherwise each joint moves a piece of the part, and both pieces have the same velocity. The velocities must be
    compared because a closure with free translations does not make them equal. For a single joint both are the world.
    """
    if len(joints) < 2:
        return None, None
    first_links, second_links = ({frame for frame in joint.traverse() if isinstance(frame, Link)} for joint in joints)
    part_pieces = (first_links & second_links,) if first_links & second_links else (first_links, second_links)
    first_name, *second_names = (
        next(name for name, link in mechanism.links.items() if link in part_piece) for part_piece in part_pieces
    )
    return first_name, second_names[0] if second_names else None


def _idle_basis(
    system: LinearizedSystem,
    columns: list[int],
    kinematics: NumpyKinematics,
    equal_velocity_links: tuple[str | None, str | None],
    zero_tolerance: float,
) -> Array:
    """Return a basis (columns, k) of the idle motions of these columns, to first order.

    These motions satisfy all constraints and give both links the same velocity.
    """
    relative_jacobian = (
        kinematics.link_kinematics(equal_velocity_links[0]).spatial_jacobian
        - kinematics.link_kinematics(equal_velocity_links[1]).spatial_jacobian
    )
    twist_units = np.array([system.characteristic_length] * 3 + [1.0] * 3)
    rows = (relative_jacobian * system.unit * system.can_move / twist_units[:, None])[:, columns]
    return _null_space_basis(np.vstack([system.A[:, columns], rows]), zero_tolerance)


def _zero_tolerance(system: LinearizedSystem) -> float:
    """Return the threshold up to which a singular value of any selection of columns of A counts as zero.

    It is relative to all of A, since a few columns may contain only rounding errors.
    """
    return system.tolerance * max(float(np.linalg.norm(system.A, 2)), 1e-12)


def _null_space_basis(A: Array, tolerance: float) -> Array:
    """Return a basis (n, k) of the null space of A (m, n)."""
    return null_space(A, int((np.linalg.svd(A, compute_uv=False) > tolerance).sum()))


def _loop_columns(mechanism: Mechanism, system: LinearizedSystem) -> dict[Joint, list[int]]:
    """Return the joints of loops with their indices in v; leaders are excluded, since they move other joints too."""
    # the index of a leader in v occurs in its own node and in the nodes of its mimic joints
    first_v = open_nodes(mechanism.kinematics.nodes).column(Node.first_v)
    node_counts = np.bincount(first_v.astype(np.int64), minlength=mechanism.nv)
    loop_dof_indices = {k for constraint in system.constraints for k in constraint.dof_indices}
    columns_by_joint: dict[Joint, list[int]] = {}
    for joint, indices in mechanism.kinematics.joint_indices.items():
        quaternion_columns = [] if indices.quaternion_v is None else [indices.quaternion_v + k for k in range(3)]
        columns = [
            k
            for k in (*indices.v.values(), *quaternion_columns)
            if k in loop_dof_indices and system.can_move[k] and node_counts[k] <= 1
        ]
        if columns:
            columns_by_joint[joint] = columns
    return columns_by_joint


def _body_of_links(mechanism: Mechanism, system: LinearizedSystem) -> dict[Link, Link]:
    """Map each link to the first link of its body; subtrees that are not part of a loop belong to their parent body."""
    loop_dof_indices = {k for constraint in system.constraints for k in constraint.dof_indices}
    bodies: dict[Link, Link] = {}
    for root in mechanism.roots:
        for frame in root.traverse():
            if isinstance(frame, Link):
                joint = frame.parent
                indices = mechanism.kinematics.joint_indices.get(joint) if isinstance(joint, Joint) else None
                columns = (
                    []
                    if indices is None
                    else [*indices.v.values(), *([] if indices.quaternion_v is None else [indices.quaternion_v])]
                )
                parent_link = _link_above(frame)
                is_rigid = parent_link is not None and not any(k in loop_dof_indices for k in columns)
                bodies[frame] = bodies[parent_link] if is_rigid and parent_link is not None else frame
    return bodies


def _links_between(mechanism: Mechanism, joints: tuple[Joint, ...], bodies: dict[Link, Link]) -> tuple[str, ...]:
    """Return the links that these joints move, if two different bodies at rest support them; otherwise none."""
    moved_links: set[Link] = set()
    for joint in joints:  # links below both joints are at rest (see `_links_moving_together`)
        moved_links ^= {frame for frame in joint.traverse() if isinstance(frame, Link)}
    resting_bodies: set[Link | None] = set()
    for joint in joints:
        ends = (_link_above(joint), joint.child)
        resting_bodies |= {bodies[end] for end in ends if end is not None and end not in moved_links}
    for closure in mechanism.closures.values():
        start = _link_above(closure.joint)
        for near_end, far_end in ((start, closure.link), (closure.link, start)):
            if near_end in moved_links and far_end not in moved_links:
                resting_bodies.add(None if far_end is None else bodies[far_end])
    return (
        tuple(name for name, link in mechanism.links.items() if link in moved_links) if len(resting_bodies) > 1 else ()
    )


def _link_above(frame: Frame) -> Link | None:
    return next((ancestor for ancestor in frame.traverse_parents() if isinstance(ancestor, Link)), None)


@dataclass(frozen=True, slots=True)
class Loop:
    """A group of closures and joint constraints that are connected by shared dofs; two groups share no dof.

    Attributes:
        closures, joint_constraints: names of the closures and joint constraints.
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
        generic_dof: the mobility near q. If it is less than the mobility at q, q is a change point: several
            branches meet at q. If the mobility near q is then zero, all motions at q are only infinitesimal (a shaky
            mechanism).
        inputs: dofs that determine all other dofs except idle motions. Joints of a single dof are preferred, then
            joints of two or three dofs (translations first), then joints of more dofs (floating bodies); within each
            class, joints near the root are preferred, then the order of v. The inputs are chosen at a random
            configuration near q. If all dofs of a joint with a quaternion are inputs, the name is that of the joint
            (`base`), since its angles are not entries of q. If only some of its dofs are inputs, its rotations have
            names such as `base.EX`: rotations about the rotated axes of the joint, which have velocities but no values.
            `closed_jacobian` accepts all names, `assemble` all except these rotations.
        passive_dofs: other dofs that the inputs move.
        immobile_dofs: dofs that loops or limits keep at rest.
        idle_motions: motions of a part that move nothing else, each as the names of its joints.
        redundant_rows: (closure or joint constraint, constrained dof) of each constraint that depends on previous
            constraints at q.
        loops: groups of closures and joint constraints that are connected by shared dofs; two groups share no dof.

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
        system_at_q: the linearized constraints at q.
        generic_system: the linearized constraints at the configuration of largest rank near q; at q if there is none.
        neighbours: the linearized constraints at several configurations near q.
        rank: rank of the constraints near q; the number of movable dofs if all motions at q are only infinitesimal.
        idle_motions: motions of a part that move nothing else.
        inputs: indices in v.
    """

    mechanism: Mechanism
    system_at_q: LinearizedSystem
    generic_system: LinearizedSystem
    neighbours: tuple[LinearizedSystem, ...]
    rank: int
    idle_motions: list[IdleMotion]
    inputs: list[int]

    def idle_basis(self, system: LinearizedSystem) -> Array:
        """Return the idle motions (nv, k) at `system.q`, which is q or near q."""
        kinematics = NumpyKinematics(self.mechanism.kinematics, system.q)
        return (
            np.array([motion.evaluate_at(system, kinematics) for motion in self.idle_motions])
            .reshape(len(self.idle_motions), system.A.shape[1])
            .T
        )


def structure(mechanism: Mechanism, q: ArrayLike | None = None) -> Structure:
    """Determine the inputs, passive dofs, idle motions and redundant constraints of a mechanism.

    Args:
        mechanism: the mechanism.
        q: (nq,), with all loops closed to 1e-6 (m and rad) and all joint constraints satisfied; default: the present
            configuration.

    Returns:
        The structure.

    Raises:
        InvalidArgument: `mechanism` is not a mechanism.
        StructureError: a closure or joint constraint is violated at q.
        ShapeError, NotFinite: q has the wrong shape or is not finite.

    Example:
        >>> mk.structure(mk.gallery.four_bar()).overconstrained
        3
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidArgument(f"structure needs a mechanism, not {mechanism!r}")
    analysis = analyse_structure(mechanism, mechanism.q if q is None else mechanism._single_q(q))
    system, generic_system, names = analysis.system_at_q, analysis.generic_system, mechanism.space.v_names
    idle_basis = analysis.idle_basis(generic_system)
    basis = remove_directions(generic_system.basis(), idle_basis) if analysis.inputs else idle_basis[:, :0]
    input_names = _input_labels(mechanism, analysis.inputs)
    moving_dofs, idle_dofs = (
        set(np.flatnonzero(np.abs(vectors).max(axis=1, initial=0.0) > MIN_PARTICIPATION))
        for vectors in (basis, idle_basis)
    )
    return Structure(
        mobility=count_mobility(system),
        generic_dof=int(generic_system.can_move.sum()) - analysis.rank,
        inputs=tuple(dict.fromkeys(input_names.values())),
        passive_dofs=tuple(names[k] for k in sorted(moving_dofs - set(analysis.inputs))),
        immobile_dofs=tuple(name for k, name in enumerate(names) if k not in moving_dofs | idle_dofs),
        idle_motions=tuple(motion.joints for motion in analysis.idle_motions),
        redundant_rows=tuple(_redundant_rows(system)),
        loops=tuple(_independent_loops(mechanism, system, input_names)),
    )


def analyse_structure(
    mechanism: Mechanism, q: Array, movable_dofs: Mask | None = None, tool: str | None = None
) -> StructureAnalysis:
    """Linearize the constraints at q and near q, find the idle motions, and choose the inputs.

    Args:
        mechanism: the mechanism.
        q: (nq,), with all loops closed.
        movable_dofs: (nv,), mask of the dofs that may move; default: all. Dofs whose limits are equal never move.
        tool: name of a link whose motion is never idle.

    Raises:
        StructureError: a closure or joint constraint is violated at q.
    """
    system = linearize_closed_system(mechanism, q, movable_dofs)
    check_loops_closed(mechanism, system)
    neighbours = sample_closed_neighbours(mechanism, system)
    generic_system = max(neighbours, key=lambda candidate: candidate.rank, default=system)
    rank = max(system.rank, generic_system.rank)
    if not neighbours and system.dof:
        rank = int(system.can_move.sum())  # all first-order motions are only infinitesimal
    idle_motions = (
        [candidate for candidate in find_idle_motions(mechanism, generic_system) if tool not in candidate.links]
        if neighbours
        else []
    )
    inputs = [] if not neighbours and system.dof else _choose_inputs(mechanism, generic_system, idle_motions)
    return StructureAnalysis(mechanism, system, generic_system, tuple(neighbours), rank, idle_motions, inputs)


def check_loops_closed(mechanism: Mechanism, system: LinearizedSystem, tolerance: float = 1e-6) -> None:
    """Raise `StructureError` if a closure or a joint constraint is violated by more than `tolerance`.

    The tolerance is in m and rad for a closure, and relative to its scale for a joint constraint.
    """
    for constraint in system.constraints:
        if np.abs(constraint.residual).max(initial=0.0) <= tolerance:
            continue
        if constraint.kind == "joint_constraint":
            violation = float(constraint.residual[0]) * mechanism.joint_constraint(constraint.name).scale
            problem = f"joint constraint {constraint.name!r} is violated by {violation:.3g}"
        else:
            metres, radians = (
                float(np.linalg.norm(constraint.residual[mask]))
                for mask in (constraint.is_length, ~constraint.is_length)
            )
            gap = f"{metres:.3g} m" if metres >= radians else f"{radians:.3g} rad"
            problem = f"loop {constraint.name!r} has a gap of {gap}"
        raise StructureError(
            f"{problem}; velocities and structure are defined only where all loops are closed and all joint "
            "constraints are satisfied. First call mechanism.apply(mechanism.assemble())"
        )


def _input_labels(mechanism: Mechanism, inputs: list[int]) -> dict[int, str]:
    """Return the name of each input; if all dofs of a joint with a quaternion are inputs, the name is the joint's."""
    names = {k: mechanism.space.v_names[k] for k in inputs}
    for joint, indices in mechanism.kinematics.joint_indices.items():
        if indices.quaternion_v is not None:
            columns = [*indices.v.values(), *range(indices.quaternion_v, indices.quaternion_v + 3)]
            if names.keys() >= set(columns):
                names |= dict.fromkeys(columns, mechanism.name_of(joint))
    return names


def _choose_inputs(mechanism: Mechanism, system: LinearizedSystem, idle_motions: list[IdleMotion]) -> list[int]:
    """Choose the inputs: the dofs that remain after the passive dofs are selected.

    Passive dofs have linearly independent columns of A; dofs that are less preferred as inputs are selected first.
    """
    A = np.vstack([system.A, *(motion.v[None] for motion in idle_motions)])
    order = [k for k in reversed(_input_preference(mechanism)) if system.can_move[k]]
    passive_dofs = independent_rows(A.T, order, MIN_PARTICIPATION)
    return [k for k in reversed(order) if k not in passive_dofs]


def _input_preference(mechanism: Mechanism) -> list[int]:
    """Sort the indices of v by preference as inputs: joints of one dof, then translations, then rotations.

    Floating bodies are last, since they are rarely actuated. Within each class joints near the root are first.
    """
    keys: dict[int, tuple[int, int, int]] = {}
    for joint, indices in mechanism.kinematics.joint_indices.items():
        is_floating, depth = len(joint.dof) > 3, _joint_depth(joint)
        for dof, k in indices.v.items():
            keys[k] = 0 if len(joint.dof) == 1 else 3 if is_floating else 2 if dof.is_rotation else 1, depth, k
        if indices.quaternion_v is not None:
            keys |= {
                indices.quaternion_v + k: (3 if is_floating else 2, depth, indices.quaternion_v + k) for k in range(3)
            }
    return sorted(keys, key=lambda k: keys[k])


def _joint_depth(joint: Frame) -> int:
    return sum(isinstance(frame, Joint) and bool(frame.dof) for frame in joint.traverse_parents())


def _redundant_rows(system: LinearizedSystem) -> list[tuple[str, str]]:
    labels = [(constraint.name, row_name) for constraint in system.constraints for row_name in constraint.row_names]
    independent_indices = independent_rows(system.A, range(len(labels)), system.tolerance)
    return [label for k, label in enumerate(labels) if k not in independent_indices]


def _independent_loops(mechanism: Mechanism, system: LinearizedSystem, input_names: dict[int, str]) -> list[Loop]:
    groups: list[tuple[list[LinearizedConstraint], set[int]]] = []
    for constraint in system.constraints:
        constraints, columns = [constraint], set(constraint.dof_indices)
        for group in [group for group in groups if group[1] & columns]:
            groups.remove(group)
            constraints, columns = [*group[0], *constraints], columns | group[1]
        groups.append((constraints, columns))
    names, loops = mechanism.space.v_names, list[Loop]()
    for constraints, columns in groups:
        group_can_move = system.can_move & np.isin(np.arange(mechanism.nv), list(columns))
        group_mobility = count_mobility(stack_constraints(mechanism, system.q, constraints, group_can_move))
        dof_columns, inputs = sorted(columns), [name for k, name in input_names.items() if k in columns]
        loops.append(
            Loop(
                closures=tuple(constraint.name for constraint in constraints if constraint.kind == "closure"),
                joint_constraints=tuple(
                    constraint.name for constraint in constraints if constraint.kind == "joint_constraint"
                ),
                dofs=tuple(names[k] for k in dof_columns),
                mobility=group_mobility,
                inputs=tuple(dict.fromkeys(inputs)),
            )
        )
    return loops
