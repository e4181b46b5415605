"""Start configurations: Halton samples within the limits, and seed tables that rank them by cost.

A seed table stores the relative link poses at each start, so that starts can be tried in the order of goal and closure
errors. Ranking a start costs far less than an attempt from a bad start. The restarts of the general path use this
table; the chain kernel has its own (`kernels/chain_restarts.py`). Measurements: docs/seed_tables.md.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mechanik.model import Mechanism
from mechanik.model.configuration_space import ConfigurationSpace
from mechanik.objectives.constraint_relations import (
    closure_relations,
    joint_constraint_relation,
    joint_constraint_residuals,
)
from mechanik.objectives.relation import MIN_DIRECTION_LENGTH, Relation, RelationKind, band_violation
from mechanik.problem import closing_values
from mechanik.solver.kernel_driver import run_kernel
from mechanik.solver.methods.least_squares_problem import LeastSquaresProblem
from mechanik.solver.methods.levenberg_marquardt import LevenbergMarquardt
from mechanik.solver.monitor import Monitor
from mechanik.solver.options import Options
from mechanik.spatial import inverse, make_pose, rotation
from mechanik.spatial.array import Array

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71)
"""Bases of the Halton sequence; further dimensions use random numbers with the first index as seed."""


def halton_configurations(space: ConfigurationSpace, count: int, first_index: int = 0) -> Array:
    """Return configurations (count, nq) of the Halton sequence, from index `first_index`: repeatable and evenly spread.

    A dof without limits ranges from -pi to pi rad or from -1 m to 1 m, as in `ConfigurationSpace.random`.
    """
    return configurations_from_unit_cube(space, halton_points(space, count, first_index))


def halton_points(space: ConfigurationSpace, count: int, first_index: int = 0) -> Array:
    """Return points (count, scalars + 3 * quaternions) of the Halton sequence in the unit cube, from `first_index`."""
    dimensions = len(space.scalars_q) + 3 * len(space.quaternions_q)
    unit_points = np.empty((count, dimensions))
    for k in range(min(dimensions, len(PRIMES))):
        unit_points[:, k] = _van_der_corput(first_index, count, PRIMES[k])
    unit_points[:, len(PRIMES) :] = np.random.default_rng(first_index).random((count, max(0, dimensions - len(PRIMES))))
    return unit_points


def random_configurations(space: ConfigurationSpace, count: int, rng: np.random.Generator) -> Array:
    """Return configurations (count, nq), uniform within the limits."""
    return space.random(rng, count)


def configurations_from_unit_cube(space: ConfigurationSpace, unit_points: Array) -> Array:
    """Map points of the unit cube (n, scalars + 3 * quaternions) to configurations (n, nq), with uniform density."""
    half_range = np.where(space.rotates[space.scalars_v], math.pi, 1.0)
    lower, upper = space.lower[space.scalars_q], space.upper[space.scalars_q]
    low = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 2 * half_range, -half_range))
    high = np.where(np.isfinite(upper), upper, np.where(np.isfinite(lower), lower + 2 * half_range, half_range))
    q = np.empty((len(unit_points), space.nq))
    q[:, space.scalars_q] = low + (high - low) * unit_points[:, : len(low)]
    for i, k in enumerate(space.quaternions_q):
        # uniform rotations of Shoemake, from three uniform numbers
        a, b, c = unit_points[:, len(low) + 3 * i : len(low) + 3 * i + 3].T
        s, t = np.sqrt(1 - a), np.sqrt(a)
        b, c = 2 * math.pi * b, 2 * math.pi * c
        q[:, k : k + 4] = np.stack([t * np.cos(c), s * np.sin(b), s * np.cos(b), t * np.sin(c)], axis=1)
    return q


def _van_der_corput(first_index: int, count: int, base: int) -> Array:
    """Return `count` elements of the van der Corput sequence of a base, from index `first_index`."""
    quotients = np.arange(first_index + 1, first_index + count + 1)
    value, digit_weight = np.zeros(count), 1.0 / base
    while quotients.any():
        value += digit_weight * (quotients % base)
        quotients, digit_weight = quotients // base, digit_weight / base
    return value


RELATIVE_POSE_KINDS = (
    RelationKind.POSE,
    RelationKind.AXIS,
    RelationKind.COSINE,
    RelationKind.LOOK_AT,
    RelationKind.DISTANCE,
)
"""Kinds of relation whose residual depends only on the pose of B relative to A."""
FULL_ROTATION = (3, 4, 5)
"""Row indices of all three rotation residuals of a pose."""


def squared_residuals(relation: Relation, weights: Array, X_a_b: Array) -> Array:
    """Return the weighted sum of squares (n,) of the residual outside its bands; for ranking, not for convergence.

    A band is an interval of values that count as zero.

    For a full rotation the squared chord, 4 sin^2(angle / 2), replaces the squared angle: it grows with the angle too,
    and is computed ten times as fast.

    Args:
        weights: (rows,).
        X_a_b: pose of link B in link A, (n, 4, 4); A is the world if `relation.a` is None.
    """
    X_a, X_b = relation.X_a, relation.X_b
    if relation.world_axes is not None:  # A is fixed: rotate frame A to the world axes, and B by the same rotation
        C = relation.world_axes
        X_b = X_b @ make_pose(X_a[:3, :3].T @ C, np.zeros(3))
        X_a = make_pose(C, X_a[:3, 3])
    X = inverse(X_a) @ X_a_b @ X_b
    if (
        relation.kind is RelationKind.POSE
        and relation.rows[-3:] == FULL_ROTATION
        and relation.lower is relation.upper is None
    ):
        position_residual = weights[:-3] * X[:, relation.rows[:-3], 3]
        squared_chord = 3.0 - np.trace(X[:, :3, :3], axis1=1, axis2=2)
        return (position_residual * position_residual).sum(axis=1) + weights[-1] ** 2 * squared_chord
    violation = weights * band_violation(relation, _residual(relation, X))
    return (violation * violation).sum(axis=1)


def squared_joint_residuals(relation: Relation, weights: Array, values: Array) -> Array:
    """Return the weighted sum of squares (n,) of a relation of kind JOINT_VALUE, for dof values (n,)."""
    violation = weights * band_violation(relation, values[:, None] - relation.target)
    return (violation * violation).sum(axis=1)


def _residual(relation: Relation, X: Array) -> Array:
    """Return the residual (n, rows) as `relation.py` defines it, for the pose of B in A, (n, 4, 4)."""
    p, z, rows = X[:, :3, 3], X[:, :3, 2], list(relation.rows)
    match relation.kind:
        case RelationKind.POSE if rows[-1] < 3:
            return p[:, rows]
        case RelationKind.POSE:
            return np.concatenate([p, rotation.log(X[:, :3, :3])], axis=1)[:, rows]
        case RelationKind.AXIS:
            return np.concatenate([p, _tilt(z)], axis=1)[:, rows]
        case RelationKind.COSINE:
            return z[:, 2:]
        case RelationKind.LOOK_AT:
            return _tilt(p)[:, rows]
        case _:
            return np.linalg.norm(p, axis=1, keepdims=True)


def _tilt(u: Array) -> Array:
    """Return the tilt (n, 2) of directions u (n, 3): their (x, y), scaled to the length of their angle to z, in rad.

    A direction opposite to z tilts along x.
    """
    xy_length = np.hypot(u[:, 0], u[:, 1])
    angle = np.arctan2(xy_length, u[:, 2])
    has_direction = xy_length > MIN_DIRECTION_LENGTH
    direction = np.where(
        has_direction[:, None], u[:, :2] / np.where(has_direction, xy_length, 1.0)[:, None], (1.0, 0.0)
    )
    return angle[:, None] * direction


SEED_TABLE_SIZE = 256
"""Number of starts in a seed table. Tuned on two arms and a humanoid: a quarter of the size costs up to a seventh more
iterations; four times the size saves as many iterations again, but ranking then takes longer than these iterations.
"""

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]
RelativePoses = dict[tuple[str | None, str | None], Array]
"""By pair of links, the pose of the second relative to the first at each start, (entries, 4, 4)."""


class SeedTable:
    """Ranked start configurations for a problem, for given limits and given values of fixed joints.

    Attributes:
        starts: configurations in Halton order, (entries, nq); fixed joints have their given values.
        closure_residuals: sum of squares of the residuals of closures and joint constraints at each start, (entries,);
            0 if there are none.
        has_constraints: whether the problem has closures, joint constraints or swing limits.
    """

    def __init__(
        self, problem: LeastSquaresProblem, space: ConfigurationSpace, unit_points: Array, is_movable: Mask, q: Array
    ) -> None:
        """Create the starts and evaluate their closure residuals.

        Args:
            problem: the problem.
            space: configuration space with the limits of the call.
            unit_points: Halton points, (entries, scalars + 3 * quaternions).
            is_movable: mask of the entries of q that may move, (nq,).
            q: values of the other entries, (nq,).
        """
        self.starts = np.where(is_movable, configurations_from_unit_cube(space, unit_points), q)
        self._poses: RelativePoses = {}
        self._closed_starts, self._is_closed = np.zeros((0, len(q))), np.zeros(0, dtype=np.bool_)
        self._closed_poses: RelativePoses = {}
        self.closure_residuals = np.zeros(len(unit_points))
        mechanism, full_problem = problem.mechanism, problem.problem
        self.has_constraints = problem.constraint_block_count > 0
        for index in sorted({-1 - owner for owner in problem.subproblem.owners if owner < 0}):
            if index >= len(full_problem.closures) + len(full_problem.joint_constraints):
                continue  # a swing limit, which is easy to satisfy
            if index >= len(full_problem.closures):
                constraint = list(full_problem.joint_constraints.values())[index - len(full_problem.closures)]
                self.closure_residuals += (
                    joint_constraint_residuals(mechanism, joint_constraint_relation(mechanism, constraint), self.starts)
                    / constraint.scale
                ) ** 2
                continue
            for relation in closure_relations(mechanism, full_problem.closures[index]):
                if relation.kind in RELATIVE_POSE_KINDS and not _depends_on_pose_of_a(relation):
                    weights = np.where(relation.is_length, 1.0 / full_problem.length_unit, 1.0)
                    self.closure_residuals += squared_residuals(
                        relation, weights, self._relative_poses(mechanism, relation, self.starts, {})
                    )

    def starts_by_cost(self, problem: LeastSquaresProblem) -> Array:
        """Return all starts, (entries, nq), ordered by the cost of the present goals and closures."""
        costs = self._goal_costs(problem, self.starts, self._poses)
        if costs is None and not self.has_constraints:
            return self.starts
        return self.starts[
            np.argsort(self.closure_residuals if costs is None else costs + self.closure_residuals, kind="stable")
        ]

    def closed_starts_by_cost(self, problem: LeastSquaresProblem, count: int, monitor: Monitor) -> Array:
        """Return the first `count` starts of the table, with closed loops, ordered by the cost of the present goals.

        Starts whose loops cannot be closed are left out. If the deadline passes, the result contains only starts that
        were closed in this call, in Halton order.
        """
        known_count = len(self._is_closed)
        if known_count < min(count, len(self.starts)):
            closed_starts, is_closed = close_loops_of_starts(problem, self.starts[known_count:count], monitor)
            if len(is_closed) < len(self.starts[known_count:count]):
                return closed_starts  # not cached, since another call may have more time
            self._closed_starts, self._is_closed = (
                np.concatenate([self._closed_starts, closed_starts]),
                np.append(self._is_closed, is_closed),
            )
            self._closed_poses = {}
        costs = self._goal_costs(problem, self._closed_starts, self._closed_poses)
        closed_count = int(self._is_closed[:count].sum())  # earlier calls may have closed more starts
        return (
            self._closed_starts[:closed_count]
            if costs is None
            else self._closed_starts[np.argsort(costs[:closed_count], kind="stable")]
        )

    def _goal_costs(self, problem: LeastSquaresProblem, starts: Array, poses: RelativePoses) -> Array | None:
        """Return the cost of the goals at each start, (entries,); None if no goal has a kind that can be ranked."""
        packed, costs = problem.subproblem.packed, None
        for block_index, (owner, relation) in enumerate(zip(problem.subproblem.owners, problem.relations, strict=True)):
            if owner < 0 or not problem.objectives[owner].required or not relation.rows:
                continue
            weights = packed.row_weights(block_index)[: len(relation.rows)]
            if relation.kind is RelationKind.JOINT_VALUE:
                k = problem.problem.tree.x_of[relation.dof_name]
                if k >= problem.mechanism.nq:
                    continue
                block_costs = squared_joint_residuals(relation, weights, starts[:, k])
            elif relation.kind in RELATIVE_POSE_KINDS and not _depends_on_pose_of_a(relation):
                block_costs = squared_residuals(
                    relation, weights, self._relative_poses(problem.mechanism, relation, starts, poses)
                )
            else:
                continue
            costs = block_costs if costs is None else costs + block_costs
        return costs

    def _relative_poses(self, mechanism: Mechanism, relation: Relation, starts: Array, poses: RelativePoses) -> Array:
        links = relation.a, relation.b
        if links not in poses:
            X_a, X_b = (np.eye(4) if link is None else mechanism.pose(link, starts) for link in links)
            X_a_b = X_b if relation.a is None else inverse(X_a) @ X_b
            poses[links] = np.broadcast_to(X_a_b, (len(starts), 4, 4))
        return poses[links]


class SeedTableCache:
    """Cache of the seed table of a problem; the table is rebuilt when limits or fixed joints change."""

    def __init__(self, problem: LeastSquaresProblem) -> None:
        self._problem = problem
        self._cached_table: tuple[bytes, SeedTable] | None = None
        self._unit_points = halton_points(problem.mechanism.space, SEED_TABLE_SIZE)
        self._relevant_entries = _relevant_mask(problem)

    def table(self, bounds: tuple[Array, Array], is_movable: Mask, q: Array) -> SeedTable:
        """Return the table for lower and upper limits, (nq,) each, with all entries of q outside `is_movable` fixed."""
        fixed_values = q[self._relevant_entries & ~is_movable]
        key = b"".join(array.tobytes() for array in (*bounds, is_movable, fixed_values))
        if self._cached_table is None or key != self._cached_table[0]:
            space = replace(self._problem.mechanism.space, lower=bounds[0], upper=bounds[1])
            self._cached_table = key, SeedTable(self._problem, space, self._unit_points, is_movable, q)
        return self._cached_table[1]


def seed_table_cache(problem: LeastSquaresProblem) -> SeedTableCache:
    """Return the seed table cache of a problem; a change of the mechanism creates new problems."""
    cache = problem.cache.get("seed table")
    if not isinstance(cache, SeedTableCache):
        cache = problem.cache["seed table"] = SeedTableCache(problem)
    return cache


def close_loops_of_starts(problem: LeastSquaresProblem, starts: Array, monitor: Monitor) -> tuple[Array, Mask]:
    """Close the loops of starts (n, nq), without regard to the goals.

    The result depends on the starts, the limits and the locked dofs, not on targets or options; only a deadline counts.
    The options and the report of the packed problem are overwritten.

    Returns:
        The configurations with closed loops, (k, nq), and for each start whether its loops could be closed, (n,); the
        mask is shorter if the deadline passes before the last start.
    """
    mechanism, packed, nq = problem.mechanism, problem.subproblem.packed, starts.shape[1]
    extra_state = packed.extra_state.copy()
    no_restarts, closed_starts, is_closed = np.zeros((0, nq)), list[Array](), list[bool]()
    packed.set_options(LevenbergMarquardt().kernel_options(Options(), problem.problem.length_unit))
    with packed.constraints_only():
        for start in starts:
            packed.set_extra_values(closing_values(mechanism, problem.problem, start))
            q = run_kernel(
                mechanism, problem.subproblem, problem.relations, start, no_restarts, Monitor(monitor.deadline)
            )
            if monitor.is_over():
                break
            is_closed.append(packed.report.success)
            if is_closed[-1]:
                closed_starts.append(q)
    packed.extra_state[:] = extra_state
    return np.array(closed_starts).reshape(len(closed_starts), nq), np.array(is_closed, dtype=np.bool_)


def movable_configuration_mask(problem: LeastSquaresProblem, locked_dofs: Mask) -> Mask:
    """Return a mask (nq,) of the entries of q that a problem may move, without the locked dofs (nv,)."""
    space, can_move = problem.mechanism.space, problem.subproblem.moving_dofs & ~locked_dofs
    mask = np.zeros(space.nq, dtype=np.bool_)
    mask[space.scalars_q] = can_move[space.scalars_v]
    for k, v in zip(space.quaternions_q, space.quaternions_v, strict=True):
        mask[k : k + 4] = can_move[v]
    return mask


def _relevant_mask(problem: LeastSquaresProblem) -> Mask:
    """Return a mask (nq,) of the entries of q that move the frames of a problem."""
    mask = np.zeros(problem.mechanism.nq, dtype=np.bool_)
    for node in problem.subproblem.packed.node_records():
        mask[node.q_index : node.q_index + node.q_count] = True
    return mask


def _depends_on_pose_of_a(relation: Relation) -> bool:
    """Return whether the residual uses world axes while A moves, so that it depends on more than the pose of B in A."""
    return relation.world_axes is not None and relation.a is not None
