"""Closed-form inverse kinematics of serial arms: every branch by formula; also as a method of `Solver`.

The formulas of an arm family give candidates. Each candidate is polished by Newton's method and checked by forward
kinematics, and branches that coincide are returned once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from mechanik.errors import InvalidArgument, NoClosedForm, NotFinite, ShapeError, StructureError
from mechanik.model import Link, Mechanism
from mechanik.model.closed_form_family import ClosedFormFamily, ClosedFormMatch, match_closed_form
from mechanik.model.screw_axes import ScrewAxes
from mechanik.objectives.relation import Relation, RelationKind
from mechanik.solver.methods.least_squares_problem import LeastSquaresProblem
from mechanik.solver.methods.method import Method
from mechanik.solver.search.arm_families import SRS, Planar2R, Planar3R, SphericalWrist, ThreeParallel
from mechanik.solver.search.constraint_system import unwrap_angles
from mechanik.spatial import Pose, as_pose_matrix, inverse, make_pose, rotation
from mechanik.spatial.array import Array, ArrayLike
from mechanik.spatial.vector_math import cross, length
from mechanik.validation import as_number

BRANCH_TOLERANCE = 1e-9
"""m and rad; maximum pose error of a branch. If the reach is above 1000 m, the length is multiplied by reach / 1000."""
MIN_POLISHED_ERROR = 1e-12
"""Ratio to the reach, and rad; candidates with larger errors are polished."""
SAME_BRANCH_RAD = 1e-7
"""rad; branches closer than this are the same. At a singular pose, equal branches agree only in half of the digits."""
CLOSE_BRANCH_RAD, ROUNDING = 1e-3, 1e-11
"""rad, and ratio to the reach or rad: of two branches within CLOSE_BRANCH_RAD, the one with the larger error is
spurious if its error is above ROUNDING."""
MAX_POLISHED_ERROR = 1e-7
"""Ratio to the reach, and rad, for axes with the exact geometry of their family; candidates with larger errors are not
solutions, and polishing could move them far."""
MAX_NEWTON_STEPS = 4
"""Maximum number of Newton steps. One step suffices, unless the axes are rounded in a file."""

Mask = npt.NDArray[np.bool_]


def verify_branches(
    axes: ScrewAxes, q: Array, target: Array, constrains_rotation: bool, deviation: float
) -> tuple[Array, Mask]:
    """Polish and check candidates `q` (m, B, n) for targets (m, 4, 4).

    Args:
        axes: the axes of the chain.
        q: (m, B, n) candidates, rad.
        target: (m, 4, 4) poses X_base_link.
        constrains_rotation: whether the rotation of the target counts, not only its position.
        deviation: deviation of the axes from the geometry of their family, rad or ratio to the reach.

    Returns:
        Angles (m, B, n) in (-pi, pi], and the mask (m, B) of the branches that exist. The angles are NaN where a
        candidate is no solution, or the same solution as another.
    """
    max_error = MAX_POLISHED_ERROR + 100 * deviation  # the error of the formulas is a multiple of the deviation
    m, B, n = q.shape
    candidates = q.reshape(-1, n)
    target_indices: npt.NDArray[np.int64] = np.repeat(np.arange(m, dtype=np.int64), B)
    indices = np.flatnonzero(np.isfinite(candidates).all(axis=-1))
    angles, target_indices = candidates[indices], target_indices[indices]
    tolerance = BRANCH_TOLERANCE * max(1.0, axes.reach / 1000)  # models in millimetres have a reach of about 1000
    position_error, rotation_error = _errors(axes.poses(angles), target[target_indices], constrains_rotation)
    for _ in range(MAX_NEWTON_STEPS):
        largest_error = np.maximum(position_error / axes.reach, rotation_error)
        polished_indices = np.flatnonzero((largest_error > MIN_POLISHED_ERROR) & (largest_error < max_error))
        if not len(polished_indices):
            break
        refined_angles = _newton_step(
            axes, angles[polished_indices], target[target_indices[polished_indices]], constrains_rotation
        )
        new_position_error, new_rotation_error = _errors(
            axes.poses(refined_angles), target[target_indices[polished_indices]], constrains_rotation
        )
        is_improved = np.maximum(new_position_error / axes.reach, new_rotation_error) < largest_error[polished_indices]
        improved_indices = polished_indices[is_improved]
        angles[improved_indices], position_error[improved_indices], rotation_error[improved_indices] = (
            refined_angles[is_improved],
            new_position_error[is_improved],
            new_rotation_error[is_improved],
        )
    is_solution = (position_error <= tolerance) & (rotation_error <= BRANCH_TOLERANCE)
    indices = indices[is_solution]
    branches, error = np.full((m * B, n), np.nan), np.full(m * B, np.inf)
    branches[indices], error[indices] = (
        wrap_angles(angles[is_solution]),
        np.maximum(position_error / axes.reach, rotation_error)[is_solution],
    )
    branches = branches.reshape(m, B, n)
    is_valid = _unique_mask(branches, error.reshape(m, B))
    branches[~is_valid] = np.nan
    return branches, is_valid


def wrap_angles(angles: Array) -> Array:
    """Return the angles modulo full rotations, in (-pi, pi]."""
    wrapped_angles = np.remainder(angles + np.pi, 2 * np.pi) - np.pi
    return np.where(wrapped_angles <= -np.pi, np.pi, wrapped_angles)


def _errors(X: Array, target: Array, constrains_rotation: bool) -> tuple[Array, Array]:
    """Return the distance (m) and the angle (rad) between poses and targets, (k,) each."""
    position_error = length(X[:, :3, 3] - target[:, :3, 3])
    if not constrains_rotation:
        return position_error, np.zeros_like(position_error)
    difference = X[:, :3, :3] - target[:, :3, :3]
    chord = np.sqrt(np.einsum("kij,kij->k", difference, difference) / 8)
    return position_error, 2 * np.arcsin(np.minimum(chord, 1.0))


def _newton_step(axes: ScrewAxes, q: Array, target: Array, constrains_rotation: bool) -> Array:
    """Return `q` (k, n) after one Newton step; its small damping acts only in nearly singular directions."""
    X, J = axes.poses(q), axes.jacobians(q)
    row_count = 6 if constrains_rotation else 3
    e = np.empty((len(q), 6))
    e[:, :3] = (target[:, :3, 3] - X[:, :3, 3]) / axes.reach
    e[:, 3:] = sum(cross(X[:, :3, k], target[:, :3, k]) for k in range(3)) / 2
    J[:, :3] /= axes.reach
    J, e = J[:, :row_count], e[:, :row_count]
    Jt = np.swapaxes(J, -1, -2)
    return q + (Jt @ np.linalg.solve(J @ Jt + 1e-12 * np.eye(row_count), e[..., None]))[..., 0]


def _unique_mask(q: Array, error: Array) -> Mask:
    """Return the mask (m, B) of the branches that reach their target (finite error) and are not duplicates.

    The second of two branches within `SAME_BRANCH_RAD` is a duplicate. Near a singular pose, the error of a spurious
    candidate can be within the tolerance: such a candidate is close to a true branch, but its error is larger than
    rounding.
    """
    is_valid, is_above_rounding = np.isfinite(error), error > ROUNDING
    first_branch, second_branch = np.triu_indices(q.shape[1], 1)
    step = np.abs(q[:, first_branch] - q[:, second_branch])
    distance = np.minimum(step, 2 * np.pi - step).max(axis=-1)  # (m, pairs), NaN where a branch does not exist
    for k in np.flatnonzero((distance < CLOSE_BRANCH_RAD).any(axis=0)).tolist():
        i, j = int(first_branch[k]), int(second_branch[k])
        targets = np.flatnonzero((distance[:, k] < CLOSE_BRANCH_RAD) & is_valid[:, i] & is_valid[:, j])
        is_same = distance[targets, k] < SAME_BRANCH_RAD
        removes_first = ~is_same & is_above_rounding[targets, i] & (error[targets, i] > error[targets, j])
        removes_second = is_same | (is_above_rounding[targets, j] & ~removes_first)
        is_valid[targets[removes_first], i] = False
        is_valid[targets[removes_second], j] = False
    return is_valid


CLOSED_FORM_KEY = "closed form"
"""First part of the key of a closed form in `LeastSquaresProblem.cache`; the link is the second."""
POSES_PER_CHUNK = 8192
"""Number of poses per chunk, so that intermediate arrays fit in the processor cache."""
FORMULA_BY_FAMILY = {
    ClosedFormFamily.PLANAR_2R: Planar2R,
    ClosedFormFamily.PLANAR_3R: Planar3R,
    ClosedFormFamily.SPHERICAL_WRIST: SphericalWrist,
    ClosedFormFamily.SPHERICAL_SHOULDER: SphericalWrist,
    ClosedFormFamily.THREE_PARALLEL: ThreeParallel,
    ClosedFormFamily.SRS: SRS,
}
"""Formula class of each arm family."""


class ArmFormula(Protocol):
    """Interface of the formulas of an arm family.

    Attributes:
        candidate_count: number of candidates per target.
        constrains_rotation: whether the formula solves for the rotation, not only the position.
    """

    candidate_count: int
    constrains_rotation: bool

    def candidates(self, T: Array, near: Array, elbow: Array | None) -> Array:
        """Return candidates (m, candidate_count, n), rad; those that do not exist are NaN or miss the target.

        Args:
            T: (m, 4, 4) displacements X_base_link home^-1 of the link from its pose with all angles at zero.
            near: (m, n) values of angles that are free at a singular pose, rad.
            elbow: (m,) elbow angles of an S-R-S arm, rad; None for zero. Not used by other families.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClosedForm:
    """Closed-form solver for a serial chain of a mechanism; made by `closed_form`.

    It is valid until the mechanism changes.

    Attributes:
        mechanism: the mechanism.
        link: name of the last link of the chain.
        base: name of the first link; None for the world.
        family_match: the arm family, and the reasons for which the chain belongs to it.
        axes: axes of the n joints of the chain.
        formula: the equations of the family.
        revision: revision of the mechanism for which the solver was made; the methods raise an error for any other.

    Example:
        >>> arm = mk.gallery.ur5()
        >>> form = mk.closed_form(arm, "tool0")
        >>> target = arm.pose("tool0", [0.3, -1.2, 1.1, -0.4, 0.9, 0.2])
        >>> q, exists = form.solve_all(target)
        >>> q.shape, int(exists.sum())
        ((8, 6), 8)
    """

    mechanism: Mechanism
    link: str
    base: str | None
    family_match: ClosedFormMatch
    axes: ScrewAxes
    formula: ArmFormula
    revision: tuple[int, ...]

    def __repr__(self) -> str:
        return f"<closed form of the chain to {self.link!r}: {self.kind}, {', '.join(self.joints)}>"

    @property
    def kind(self) -> str:
        """Name of the arm family, such as "spherical wrist"; `ClosedFormFamily` lists all families."""
        return str(self.family_match.family)

    @property
    def explanation(self) -> str:
        """Why the chain belongs to its family, as text."""
        return "; ".join(self.family_match.reasons)

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the n joints of the chain, base first."""
        return self.axes.names

    def solve_all(
        self, target: Pose | ArrayLike, *, elbow: ArrayLike | None = None, near: ArrayLike | None = None
    ) -> tuple[Array, Mask]:
        """Return every branch for every target, regardless of joint limits.

        Forward kinematics verifies each branch to 1e-9 (m, rad). At a singular pose, branches that coincide are
        returned once, and an angle that is free there is taken from `near`.

        Args:
            target: X_base_link, (..., 4, 4), lengths in m. For a planar 2R arm only the position counts.
            elbow: (...) elbow angle of an S-R-S arm, rad, as defined in `solver/search/arm_families.py`; the default is
                the elbow angle of `near`.
            near: (..., n) angles of the chain, rad; the default is zero.

        Returns:
            The angles of the chain, (..., branches, n) in (-pi, pi], and the mask (..., branches) of the branches that
            exist; the others are NaN.

        Raises:
            StructureError: if the mechanism has changed.
            ShapeError, NotFinite, NotARotation: if an array is not valid.
            InvalidArgument: if `elbow` is given for another family.
        """
        self._check_fresh()
        X = as_pose_matrix(target, "target")
        batch_shape = X.shape[:-2]
        near_angles = np.zeros(self.axes.n) if near is None else _finite(near, "near")
        if near_angles.shape[-1:] != (self.axes.n,):
            raise ShapeError(f"near must have shape (..., {self.axes.n}), not {near_angles.shape}")
        if elbow is None:
            elbow_angles = self._elbow(near_angles) if isinstance(self.formula, SRS) else np.zeros(())
        elif isinstance(self.formula, SRS):
            elbow_angles = _finite(elbow, "elbow")
        else:
            raise InvalidArgument(f"only an S-R-S arm has an elbow angle; the family of this arm is {self.kind!r}")
        batch_shape = np.broadcast_shapes(batch_shape, near_angles.shape[:-1], elbow_angles.shape)
        X = np.broadcast_to(X, (*batch_shape, 4, 4)).reshape(-1, 4, 4)
        start = np.broadcast_to(near_angles, (*batch_shape, self.axes.n)).reshape(-1, self.axes.n)
        elbow_angles = np.broadcast_to(elbow_angles, batch_shape).reshape(-1)
        branch_count = self.formula.candidate_count
        angles = np.empty((len(X), branch_count, self.axes.n))
        exists = np.empty((len(X), branch_count), dtype=np.bool_)
        for k in range(0, len(X), POSES_PER_CHUNK):
            chunk = slice(k, k + POSES_PER_CHUNK)
            angles[chunk], exists[chunk] = self._solve(_orthogonal(X[chunk]), start[chunk], elbow_angles[chunk])
        return angles.reshape(*batch_shape, branch_count, self.axes.n), exists.reshape(*batch_shape, branch_count)

    def branches(
        self,
        target: Pose | ArrayLike,
        q0: ArrayLike | None = None,
        *,
        within_limits: bool = True,
        elbow: float | None = None,
    ) -> Array:
        """Return the branches of a target as configurations (k, nq), nearest to `q0` first.

        Each angle is shifted by full rotations as near to `q0` as the limits allow. Joints outside the chain have their
        values in `q0`.

        Args:
            target: X_base_link, (4, 4).
            q0: (nq,) reference; the default is the present configuration.
            within_limits: whether to leave out branches outside the limits.
            elbow: elbow angle of an S-R-S arm, rad; the default is the elbow angle of `q0`.
        """
        X, start = self._single_target(target, q0)
        angles, exists = self.solve_all(X, elbow=elbow, near=start[self.axes.columns])
        return self._configurations(angles[exists], start, within_limits)

    def nearest(self, target: Pose | ArrayLike, q0: ArrayLike | None = None) -> Array | None:
        """Return the branch (nq,) inside the limits that is nearest to `q0`; None if no such branch is found.

        The distance is the Euclidean norm of the angle differences. For an S-R-S arm the elbow angle is searched too:
        first 360 values, then in smaller and smaller steps around the best value, down to 0.001 degrees.

        Args:
            target: X_base_link, (4, 4).
            q0: (nq,) reference; the default is the present configuration.
        """
        X, start = self._single_target(target, q0)
        if not isinstance(self.formula, SRS):
            configurations = self.branches(X, start)
            return configurations[0] if len(configurations) else None
        near = start[self.axes.columns]
        best_q: Array | None = None
        middle_angle, width, count = float(self._elbow(near)), 2 * np.pi, 360
        for _ in range(4):
            elbow_angles = middle_angle + width * (np.arange(count) - count // 2) / count
            angles, exists = self.solve_all(X, elbow=elbow_angles, near=near)
            configurations = self._configurations(angles[exists], start, True)
            if len(configurations) and (
                best_q is None or _distance(configurations[0], start) < _distance(best_q, start)
            ):
                best_q = configurations[0]
            if best_q is None:
                return None
            middle_angle, width, count = float(self._elbow(best_q[self.axes.columns])), 4 * width / count, 41
        return best_q

    def elbow_angle(self, q: ArrayLike) -> Array:
        """Return the elbow angle (...) of an S-R-S arm at `q` (..., nq), rad in (-pi, pi]."""
        if not isinstance(self.formula, SRS):
            raise InvalidArgument(f"only an S-R-S arm has an elbow angle; the family of this arm is {self.kind!r}")
        self._check_fresh()
        return self._elbow(self.mechanism.space.check_q(q)[..., self.axes.columns])

    def _check_fresh(self) -> None:
        if self.mechanism.revision != self.revision:
            raise StructureError("the mechanism has changed since its closed form was made; call mk.closed_form again")

    def _single_target(self, target: Pose | ArrayLike, q0: ArrayLike | None) -> tuple[Array, Array]:
        """Validate one target (4, 4) and a start (nq,), and return both."""
        X = as_pose_matrix(target, "target")
        if X.ndim != 2:
            raise ShapeError(f"target must be one target, not an array of shape {X.shape}; solve_all takes many")
        self._check_fresh()
        start = self.mechanism.q if q0 is None else self.mechanism.space.check_q(q0)
        if start.ndim != 1:
            raise ShapeError(f"q0 must be one configuration, not an array of shape {start.shape}")
        return X, start

    def _elbow(self, angles: Array) -> Array:
        assert isinstance(self.formula, SRS)
        return self.formula.elbow_angle(angles.reshape(-1, self.axes.n)).reshape(angles.shape[:-1])

    def _solve(self, X: Array, near: Array, elbow: Array) -> tuple[Array, Mask]:
        T = X @ inverse(self.axes.home)
        if self.family_match.is_reversed:
            q = self.formula.candidates(inverse(T), near[:, ::-1], elbow)[..., ::-1]
        else:
            q = self.formula.candidates(T, near, elbow)
        return verify_branches(self.axes, q, X, self.formula.constrains_rotation, self.family_match.deviation)

    def _configurations(self, angles: Array, start: Array, within_limits: bool) -> Array:
        """Return the angles (k, n) of branches as configurations (k', nq), nearest to `start` (nq,) first.

        Each angle is shifted by full rotations as near to `start` as the limits allow.
        """
        columns, axes = self.axes.columns, self.axes
        unwrapped_angles, is_inside = unwrap_angles(angles, start[columns], axes.lower, axes.upper)
        if within_limits:
            unwrapped_angles = unwrapped_angles[is_inside]
        unwrapped_angles = unwrapped_angles[np.argsort(_distance(unwrapped_angles, start[columns]), kind="stable")]
        q = np.tile(start, (len(unwrapped_angles), 1))
        q[:, columns] = unwrapped_angles
        return q


def closed_form(mechanism: Mechanism, link: str | Link, base: str | Link | None = None) -> ClosedForm:
    """Return the closed-form solver of the chain from `base` to `link`.

    Args:
        mechanism: the mechanism.
        link: last link of the chain, or its name.
        base: first link of the chain, or its name; None for the world.

    Returns:
        The solver; its methods take poses X_base_link in m.

    Raises:
        NoClosedForm: if the chain belongs to no known family; the message says why.

    Example:
        >>> form = mk.closed_form(mk.gallery.ur5(), "tool0")
        >>> form.kind, len(form.joints)
        ('three parallel axes', 6)
    """
    link_name = mechanism._link_name(link)
    base_name = None if base is None else mechanism._link_name(base)
    family_match = match_closed_form(mechanism, link_name, base_name)
    if family_match.family is None or family_match.axes is None:
        raise NoClosedForm(
            f"the chain to {link_name!r} has no known closed form: {'; '.join(family_match.reasons)}. "
            "The general solver, mechanik.solve or mechanik.Solver, supports every chain"
        )
    axes = family_match.axes
    h, p = (-axes.directions[::-1], axes.points[::-1]) if family_match.is_reversed else (axes.directions, axes.points)
    formula = FORMULA_BY_FAMILY[family_match.family](h, p, axes.home, axes.reach)
    return ClosedForm(mechanism, link_name, base_name, family_match, axes, formula, mechanism.revision)


def _orthogonal(X: Array) -> Array:
    """Return poses with rotations that are orthogonal to rounding; those of targets may have errors of 1e-6."""
    R = X[:, :3, :3]
    needs_correction = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(axis=(-1, -2)) > 1e-14
    if not needs_correction.any():
        return X
    X = X.copy()
    X[needs_correction, :3, :3] = rotation.nearest(R[needs_correction])
    return X


def _distance(q: Array, start: Array) -> Array:
    return np.sqrt(((q - start) ** 2).sum(axis=-1))


def _finite(values: ArrayLike, name: str) -> Array:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"{name} must be an array of real numbers, not {values!r}") from None
    if not np.isfinite(array).all():
        raise NotFinite(f"{name} has an entry that is not finite")
    return array


POSE_ROWS, POSITION_ROWS = (0, 1, 2, 3, 4, 5), (0, 1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedFormMethod(Method):
    """Closed-form method: a single iteration to the branch nearest to the start, inside the limits.

    If no branch inside the limits reaches the target, the default method descends from the start to the closest pose.
    `mk.closed_form` gives all branches.

    Attributes:
        elbow: elbow angle of an S-R-S arm about the line from shoulder to wrist, rad. None: the elbow angle of the
            branch nearest to the start.
    """

    name: ClassVar[str] = "closed_form"
    title: ClassVar[str] = "the closed form"
    citation: ClassVar[str] = (
        "D. L. Pieper, The kinematics of manipulators under computer control, Stanford, 1968; B. Paden, Kinematics and"
        " control of robot manipulators, Berkeley, 1986"
    )
    default_iterations: ClassVar[int] = 1
    supports_loops: ClassVar[bool] = False
    can_diverge: ClassVar[bool] = False
    is_descent: ClassVar[bool] = False

    elbow: float | None = None

    def __post_init__(self) -> None:
        if self.elbow is not None:
            as_number(self.elbow, "elbow")

    def check(self, problem: LeastSquaresProblem) -> None:
        super(ClosedFormMethod, self).check(problem)
        relation, form = self._relation_and_form(problem)
        columns = set(problem.column_x[problem.free_columns].tolist())
        if not columns.issuperset(form.axes.columns):
            raise self.unsupported_error("needs every joint of the arm, but a joint is locked", "lm")
        if relation.rows == POSITION_ROWS and form.formula.constrains_rotation:
            raise self.unsupported_error(f"of the family {form.kind!r} supports full poses, not positions alone", "lm")

    def iterate(self, problem: LeastSquaresProblem) -> Iterator[float | None]:
        relation, form = self._relation_and_form(problem)
        columns = form.axes.columns
        limits = {"lower": problem.q_lower[columns], "upper": problem.q_upper[columns]}
        form = replace(form, axes=replace(form.axes, **limits))
        frame, _ = problem.subproblem.packed.frames(0)
        X_world_link = make_pose(frame[:9].reshape(3, 3), frame[9:12]) @ inverse(relation.X_b)
        branch = self._nearest_branch(form, X_world_link, problem.q)
        if branch is None:
            yield problem.descend()
        else:
            problem.set_configuration(branch)
            yield

    def _nearest_branch(self, form: ClosedForm, X_world_link: Array, q0: Array) -> Array | None:
        if self.elbow is None:
            return form.nearest(X_world_link, q0)
        branches = form.branches(X_world_link, q0, elbow=self.elbow)
        return branches[0] if len(branches) else None

    def _relation_and_form(self, problem: LeastSquaresProblem) -> tuple[Relation, ClosedForm]:
        """Return the relation of the only goal, the pose or position of a link, and the closed form for it.

        Raises the error of `unsupported_error` if the problem has other goals or no closed form.
        """
        relation = problem.relations[0]
        is_pose = (
            relation.kind is RelationKind.POSE and relation.a is None and relation.rows in (POSE_ROWS, POSITION_ROWS)
        )
        if len(problem.relations) != 1 or not is_pose or relation.b is None or relation.lower is not None:
            raise self.unsupported_error(
                "supports only a single goal, the pose or position of a link in the world", "lm"
            )
        if relation.rows == POSITION_ROWS and np.any(relation.X_b[:3, 3]):
            raise self.unsupported_error("supports positions only of the origin of a link", "lm")
        key = CLOSED_FORM_KEY, relation.b
        form = problem.cache.get(key)
        if not isinstance(form, ClosedForm):
            try:
                form = problem.cache[key] = closed_form(problem.mechanism, relation.b)
            except NoClosedForm as error:
                raise self.unsupported_error(f"does not apply to this arm: {str(error).split('. ')[0]}", "lm") from None
        return relation, form
