"""What has to hold, as rows that are zero: for many configurations at once, in units that are all alike.

A step u has one number for each freedom that may move: rad, or sizes of the mechanism. Lengths among the rows are in
sizes too. So one tolerance fits all, and distances between configurations mean something.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mechanik.kernels.layout import FIRST_Q, KIND, RATIO, REVOLUTE
from mechanik.mechanism import Mechanism
from mechanik.objectives import Objective
from mechanik.objectives.aimed import Aimed
from mechanik.objectives.closures import closure_limits, closure_relations
from mechanik.objectives.cones import cone_relations
from mechanik.objectives.evaluate import counts, evaluate, outside
from mechanik.objectives.laws import law_relations
from mechanik.objectives.objective import lengths
from mechanik.objectives.relation import Kind, Relation
from mechanik.search.unwinding import ROUNDING, TURN, unwound
from mechanik.spatial import inverse, rotation
from mechanik.spatial.array import Array

Mask = npt.NDArray[np.bool_]
EXACT = 1e-13
"""Rows (rad, sizes) below this are zero, for rounding."""
HOLDS = 1e-9
"""Rows below this hold; far below what any objective tolerates."""
DAMPING = 1e-12
"""Of Newton's method, so little that only directions that hardly change the rows notice."""
STEPS = 14
"""Of Newton's method: where two solutions fall together it gains a factor of four a step, else it is quadratic."""
NEARLY_ZERO = 0.05
"""Turns (rad, about) below this may be taken for infinitely small ones: Newton's method ends at the same place."""
EYE, AFTER, BEFORE = np.eye(3), [2, 0, 1], [1, 2, 0]


class Conditions:
    """Required objectives and closures of a mechanism, within limits.

    Attributes:
        moving: (n,) which numbers of v may move.
        columns: (n,) where these stand in q; -1 for those of balls.
        unit: (n,) what a step of 1 is, in rad or m.
        is_angle: (n,) whether full turns mean the same.
        lower, upper: (nq,).
    """

    def __init__(
        self,
        mechanism: Mechanism,
        objectives: tuple[Objective, ...],
        moving: Mask,
        bounds: tuple[Array, Array],
        size: float,
    ) -> None:
        """
        Args:
            moving: (nv,).
            size: what counts as a unit of length, m.
        """
        self.mechanism, self.size = mechanism, size
        self.objectives = tuple(one for one in objectives if one.required)
        self.lower, self.upper = bounds
        self.moving = np.flatnonzero(moving)
        space = mechanism.space
        column_of = np.full(space.nv, -1)
        column_of[space.scalars_v] = space.scalars_q
        self.columns = column_of[self.moving]
        self.unit = np.where(space.rotates[self.moving], 1.0, size)
        self._relations = [one.relations(mechanism) for one in self.objectives]
        self.is_angle = self._find_angles()
        self._shut = [
            relation
            for closure in mechanism.closures.values()
            for relation in (*closure_relations(mechanism, closure), *closure_limits(mechanism, closure))
        ]
        self._shut += law_relations(mechanism).values()
        self._shut += [relation for some in cone_relations(mechanism).values() for relation in some]
        self._pose = self._only_pose()
        self._X_a_world = np.eye(4) if self._pose is None else inverse(self._pose.X_a)
        self._has_balls = bool((self.columns < 0).any())
        self._scalars = self.columns[self.columns >= 0]
        self._turning = self.columns[self.is_angle]
        self._sliding = self.columns[~self.is_angle & (self.columns >= 0)]

    @property
    def n(self) -> int:
        return len(self.moving)

    # ---- places -----------------------------------------------------------------------------

    def step(self, q: Array, u: Array) -> Array:
        """Configurations (K, nq), each a step u (K, n) from q (K, nq)."""
        if self._has_balls:
            v = np.zeros((len(q), self.mechanism.nv))
            v[:, self.moving] = u * self.unit
            return self.mechanism.integrate(q, v)
        end = q.copy()
        end[:, self.columns] += u * self.unit
        return end

    def apart(self, a: Array, b: Array) -> Array:
        """The shortest step u (..., n) from a (..., nq) to b (..., nq): full turns of angles aside."""
        if self._has_balls:
            u = self.mechanism.space.difference(a, b)[..., self.moving] / self.unit
        else:
            u = (b - a)[..., self.columns] / self.unit
        return np.where(self.is_angle, u - TURN * np.round(u / TURN), u)

    def far(self, a: Array, b: Array) -> Array:
        """The length (...) of the way from a to b, rad and m: full turns count, and what does not move does not."""
        return np.linalg.norm(self.mechanism.space.difference(a, b)[..., self.moving], axis=-1)

    def unwind(self, q: Array, near: Array) -> tuple[Array, Mask]:
        """q (K, nq) with each angle by full turns as near to that of `near` (nq,) as the limits let it.

        Returns:
            (K, nq), and (K,) whether it is inside the limits then.
        """
        turned, inside = q.copy(), np.ones(len(q), dtype=np.bool_)
        k = self._turning
        if len(k):
            turned[:, k], inside = unwound(q[:, k], near[k], self.lower[k], self.upper[k])
        k = self._sliding
        if len(k):
            inside = inside & self.slides_inside(q)
            clipped = np.clip(q[:, k], self.lower[k], self.upper[k])
            turned[:, k] = np.where(inside[:, None], clipped, q[:, k])
        return turned, inside

    def slides_inside(self, q: Array) -> Mask:
        """(K,) whether what does not turn is inside its limits."""
        k = self._sliding
        outside = (q[:, k] < self.lower[k] - ROUNDING) | (q[:, k] > self.upper[k] + ROUNDING)
        return np.asarray(~outside.any(axis=1))

    # ---- rows -------------------------------------------------------------------------------

    def rows(self, q: Array) -> tuple[Array, Array]:
        """The rows (K, m) at q (K, nq), zero where all holds, and their derivatives by u (K, m, n)."""
        return self._rows_one_by_one(q) if self._pose is None else self._rows_of_pose(q, self._pose)

    def settle(self, q: Array, held: Mask | None = None, steps: int = STEPS) -> tuple[Array, Array]:
        """Newton's method from each q (K, nq) to where all holds, by the shortest way; limits are not looked at.

        Args:
            held: (K, n) what stays.
        Returns:
            (K, nq), and the largest row (K,) that is left. A step that makes this worse is not taken.
        """
        q = q.copy()
        e, J = self.rows(q)
        error = np.abs(e).max(axis=1, initial=0.0)
        going = error > EXACT
        for _ in range(steps):
            k = np.flatnonzero(going)
            if not len(k):
                break
            trial = self.step(q[k], -least(J[k] if held is None else np.where(held[k, None], 0.0, J[k]), e[k]))
            e_trial, J_trial = self.rows(trial)
            after = np.abs(e_trial).max(axis=1)
            better = after < error[k]
            going[k[~better]] = False
            k, trial = k[better], trial[better]
            q[k], e[k], J[k], error[k] = trial, e_trial[better], J_trial[better], after[better]
            going[k] = error[k] > EXACT
        return q, error

    def polish(self, q: Array, near: Array) -> tuple[Array, Mask]:
        """q (K, nq) to the last digits, unwound; and (K,) whether all holds there, inside the limits.

        What polishing takes over a limit stands on it, and moves with the rest.
        """
        found, error = self.settle(q)
        found, inside = self.unwind(found, near)
        beyond = np.flatnonzero((error < HOLDS) & ~inside)
        if len(beyond):
            back, _ = self.unwind(q[beyond], near)
            clipped = np.clip(found[beyond], self.lower, self.upper)
            at = np.zeros((len(beyond), self.n), dtype=np.bool_)
            scalar = self.columns >= 0
            at[:, scalar] = (clipped != found[beyond])[:, self._scalars]
            # only a little: else this is another place
            k = np.flatnonzero(np.abs(self.apart(back, clipped)).max(axis=1) < 1e-3)
            moved, rest = self.settle(clipped[k], at[k])
            moved, within = self.unwind(moved, near)
            k = k[within]
            found[beyond[k]], error[beyond[k]], inside[beyond[k]] = moved[within], rest[within], True
        return found, inside & (error < HOLDS)

    def errors(self, q: Array) -> Array:
        """(K, 2) the largest distance (m) and angle (rad) by which an objective is missed."""
        found = [[one.error(self.mechanism, at) for one in self.objectives] for at in q]
        largest = [[max((e.position for e in row), default=0.0), max((e.rotation for e in row), default=0.0)]
                   for row in found]  # fmt: skip
        return np.array(largest).reshape(len(q), 2)

    def freedoms(self, q: Array, share: float = 1e-6) -> npt.NDArray[np.int64]:
        """(K,) in how many directions q can go while, to first order, all goes on to hold: n less the rank.

        Args:
            share: of the largest singular value, below which one counts as zero.
        """
        if not len(q):
            return np.zeros(0, dtype=np.int64)
        J = self.rows(q)[1]
        if not J.shape[1]:
            return np.full(len(q), self.n)
        sizes = np.linalg.svd(J, compute_uv=False)
        return self.n - (sizes > share * np.maximum(sizes[:, :1], 1e-12)).sum(axis=1)

    # ---- inside -----------------------------------------------------------------------------

    def _find_angles(self) -> Mask:
        """(n,) turning freedoms that nothing counts the turns of: no target, and no joint that follows by a share."""
        nodes = self.mechanism.kinematics.nodes
        counted = {
            relation.freedom
            for one, rows in zip(self.objectives, self._relations, strict=True)
            for relation in rows
            if relation.kind is Kind.VALUE and not (isinstance(one, Aimed) and one.turns == "nearest")
        }
        names = self.mechanism.space.q_names
        found = np.zeros(len(self.moving), dtype=np.bool_)
        for k, column in enumerate(self.columns.tolist()):
            mine = nodes[(nodes[:, FIRST_Q] == column) & (nodes[:, KIND] <= REVOLUTE + 1)]
            turns = bool((mine[:, KIND] == REVOLUTE).all() and (mine[:, RATIO] == np.round(mine[:, RATIO])).all())
            found[k] = column >= 0 and turns and self.unit[k] == 1.0 and names[column] not in counted
            found[k] &= bool(self.mechanism.space.rotates[self.moving[k]])
        return found

    def _only_pose(self) -> Relation | None:
        """The relation, if all that is asked is a pose, or some of its rows, of one link in the world."""
        rows = [relation for one in self._relations for relation in one]
        if len(rows) != 1 or self._shut:
            return None
        one = rows[0]
        plain = one.kind is Kind.POSE and one.a is None and one.b is not None and one.world_axes is None
        return one if plain and one.lower is None and one.upper is None else None

    def _rows_of_pose(self, q: Array, relation: Relation) -> tuple[Array, Array]:
        link, X_b = relation.b or "", relation.X_b
        X = self._X_a_world @ self.mechanism.pose(link, q) @ X_b
        J = self.mechanism.jacobian(link, q, X_b[:3, 3])[..., self.moving] * self.unit
        R_a = self._X_a_world[:3, :3]
        e = np.empty((len(q), 6))
        e[:, :3] = X[:, :3, 3] / self.size
        wanted = list(relation.rows)
        if wanted[-3:] == [3, 4, 5] and len(q) and np.abs(X[:, :3, :3] - EYE).max() < NEARLY_ZERO:
            e[:, 3:], W = 0.5 * (X[:, AFTER, BEFORE] - X[:, BEFORE, AFTER]), R_a  # what both are to first order
        else:
            e[:, 3:] = rotation.log(X[:, :3, :3])
            W = rotation.left_jacobian_inverse(e[:, 3:]) @ R_a
        J = np.concatenate([R_a @ J[:, :3] / self.size, W @ J[:, 3:]], axis=1)
        return (e, J) if len(wanted) == 6 else (e[:, wanted], J[:, wanted])

    def _rows_one_by_one(self, q: Array) -> tuple[Array, Array]:
        parts = [self._rows_at(one) for one in q]
        if not parts:
            return np.zeros((0, 0)), np.zeros((0, 0, self.n))
        return np.array([e for e, _ in parts]), np.array([J for _, J in parts])

    def _rows_at(self, q: Array) -> tuple[Array, Array]:
        values, slopes = [np.zeros(0)], [np.zeros((0, self.n))]
        rows = [
            one.nearest(self.mechanism, q, self.lower, self.upper) if isinstance(one, Aimed) else relations
            for one, relations in zip(self.objectives, self._relations, strict=True)
        ]
        for relation in (*self._shut, *(relation for one in rows for relation in one)):
            value, J = evaluate(self.mechanism, relation, q)
            scale = np.where(lengths(self.mechanism, relation, len(value)), 1.0 / self.size, 1.0)
            values.append(outside(relation, value) * scale)
            J = J[:, self.moving] * self.unit * scale[:, None]
            slopes.append(np.where(counts(relation, value)[:, None], J, 0.0))
        return np.concatenate(values), np.concatenate(slopes)


def least(J: Array, e: Array) -> Array:
    """The shortest u (K, n) with J u = e, or as near to it as there is: J (K, m, n), e (K, m)."""
    m, n = J.shape[1:]
    Jt = np.swapaxes(J, -1, -2)
    if m <= n:
        return (Jt @ np.linalg.solve(J @ Jt + DAMPING * np.eye(m), e[..., None]))[..., 0]
    return np.asarray(np.linalg.solve(Jt @ J + DAMPING * np.eye(n), Jt @ e[..., None])[..., 0], dtype=np.float64)


def length(u: Array) -> Array:
    """(...) of steps u (..., n)."""
    return np.sqrt((u * u).sum(axis=-1))
