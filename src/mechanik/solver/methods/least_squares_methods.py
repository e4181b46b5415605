"""Least-squares methods: damped, selectively damped and error-damped steps, the pseudo-inverse, and Newton-Raphson.

A step reduces |e + J step|, the linear model with residual e and Jacobian J; s_i are the singular values of J, u_i and
v_i its singular vectors. Some methods can clip large errors first (ClampMag of Buss and Kim 2005). Columns at a limit
that the step would move outwards are removed, and the step is computed again. Methods that support soft objectives
reduce them in the null space of the required objectives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mechanik.kernels.methods.least_squares_steps import COLUMN_FREE, IndexTable
from mechanik.objectives.relation import RelationKind
from mechanik.solver.methods.least_squares_problem import LeastSquaresProblem
from mechanik.solver.methods.method import (
    Method,
    check_at_most_one,
    check_finite,
    check_non_negative,
    check_positive,
)
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module
from mechanik.validation import check_flags

least_squares_kernel = kernel_module("methods.least_squares_steps")


class LinearModel:
    """Linear model of a step, e + J step, with clipped errors and active limits.

    Attributes:
        e, J: required residual (m,), clipped, and its Jacobian (m, n), zero in removed columns; in the units of the
            problem: weighted, lengths divided by the characteristic length.
        effectors: first row and end row of each effector, (g, 2): the lengths of a goal are an effector, and its angles
            are another.
        step: step of the problem, (n,).
        U, s, V: singular vectors (k, m), values (k,) and vectors (k, n) of J, as rows; valid after `spectral_step`.
        has_soft_objectives: whether there are soft objectives.
    """

    def __init__(self, problem: LeastSquaresProblem, D_max: float = math.inf, D_max_angle: float = math.inf) -> None:
        """Allocate the model of a problem.

        Args:
            D_max, D_max_angle: largest errors of an effector, m and rad; larger errors are clipped.
        """
        self._problem, self.step = problem, problem.step
        m, n = problem.jacobian.shape
        k, soft_count = min(m, n), len(problem.soft_residual)
        self.e, self.J = np.empty(m), np.empty((m, n))
        self.U, self.s, self.V = np.empty((k, m)), np.empty(k), np.empty((k, n))
        self.effectors, max_errors = _find_effectors(problem, D_max, D_max_angle)
        self._max_errors = max_errors if np.isfinite(max_errors).any() else max_errors[:0]
        self._soft_J = np.zeros((soft_count, n))
        k = min(soft_count, n)
        self._soft_U, self._soft_s, self._soft_V = np.empty((k, soft_count)), np.empty(k), np.empty((k, n))
        self._soft_step = np.empty(n)
        self._workspace, self._column_states = np.empty(m), np.zeros(n, dtype=np.int64)
        self.has_soft_objectives = soft_count > 0

    def update(self) -> None:
        """Read residual and Jacobian at the present state of the problem."""
        problem = self._problem
        least_squares_kernel.clip_errors(
            problem.residual, problem.jacobian, self.effectors, self._max_errors, self.e, self.J
        )
        if self.has_soft_objectives:
            self._soft_J[:] = problem.soft_jacobian

    def solve(self, write_step: Callable[[], object], hold_at_limits: bool) -> None:
        """Call `write_step`; with `hold_at_limits`, repeat it until no column at a limit moves outwards.

        Columns that would move outwards are removed; a removed column is released if it would move inwards.
        """
        write_step()
        if hold_at_limits:
            problem = self._problem
            self._column_states[:] = COLUMN_FREE
            while least_squares_kernel.update_active_limits(
                problem._ints, problem._floats, problem.jacobian, problem.soft_jacobian, self.e, self._workspace,
                self._column_states, self.J, self._soft_J,
            ):  # fmt: skip
                write_step()

    def spectral_step(self, damping: float, rank_tolerance: float = 0.0) -> None:
        """Write the damped least-squares step by singular values; without damping, the pseudo-inverse step.

        Singular values up to `rank_tolerance` times the largest count as zero.
        """
        least_squares_kernel.spectral_step(self.e, self.J, damping, rank_tolerance, self.U, self.s, self.V, self.step)

    def add_soft_step(self, gain: float, damping: float, rank_tolerance: float) -> None:
        """Add a step towards the soft objectives in the null space of J; U, s and V must be those of J."""
        least_squares_kernel.spectral_step(
            self._problem.soft_residual, self._soft_J, damping, rank_tolerance, self._soft_U, self._soft_s,
            self._soft_V,
            self._soft_step,
        )  # fmt: skip
        least_squares_kernel.add_null_space_step(self.V, self.s, rank_tolerance, gain, self._soft_step, self.step)

    def limit_step(self, gamma_max: float) -> None:
        """Scale the step so that no column moves farther than `gamma_max`, rad or characteristic lengths."""
        if gamma_max < math.inf:
            max_motion = float(np.abs(self.step).max(initial=0.0))
            if max_motion > gamma_max:
                self.step *= gamma_max / max_motion


def _find_effectors(problem: LeastSquaresProblem, D_max: float, D_max_angle: float) -> tuple[IndexTable, Array]:
    """Return the row range of each effector, and its largest error in units of the residual."""
    packed, tree = problem.subproblem.packed, problem.problem.tree
    row_ranges: list[tuple[int, int]] = []
    max_errors: list[float] = []
    for block_index, block in enumerate(packed.block_records()[: problem._required_blocks]):
        kind, first_row, row_count = block.kind, block.rows.start, len(block.rows)
        length_row_count = 0
        if kind in (RelationKind.POSE, RelationKind.AXIS):
            length_row_count = block.position_row_count
        elif kind in (RelationKind.DISTANCE, RelationKind.CENTRE_OF_MASS, RelationKind.HEIGHT) or (
            kind is RelationKind.JOINT_VALUE and not tree.rotates[tree.v_of_x[block.x_index]]
        ):
            length_row_count = row_count
        for start, end, max_error in (
            (first_row, first_row + length_row_count, D_max),
            (first_row + length_row_count, first_row + row_count, D_max_angle),
        ):
            if end > start:
                row_ranges.append((start, end))
                max_errors.append(max_error * float(packed.row_weights(block_index)[start - first_row]))
    return np.array(row_ranges, dtype=np.int64).reshape(-1, 2), np.array(max_errors)


RANK_TOLERANCE = 1e-9
"""Singular values up to this ratio of the largest count as zero: soft objectives may move along their vectors."""


class NormalEquations:
    """Damped steps of a linear model by Cholesky's method; by singular values if the factorization fails."""

    def __init__(self, model: LinearModel) -> None:
        k = len(model.s)
        self._model, self._A, self._y = model, np.empty((k, k)), np.empty(k)

    def write_step(self, squared_damping: float) -> None:
        """Write the damped step to the model.

        Args:
            squared_damping: added to the diagonal of J J' or J'J.
        """
        model = self._model
        if not least_squares_kernel.damped_step(model.e, model.J, squared_damping, self._A, self._y, model.step):
            model.spectral_step(math.sqrt(squared_damping))


@dataclass(frozen=True, slots=True, kw_only=True)
class DampedLeastSquares(Method):
    """Damped least squares with fixed damping: step = -J' (J J' + lambda^2 1)^-1 e.

    Soft objectives are reduced in the null space of J.

    Attributes:
        damping: lambda, in units of the residual: weighted, lengths divided by the characteristic length, angles in
            rad. The paper leaves it to the user. Near a solution each step multiplies an error along a singular vector
            u_i by lambda^2 / (s_i^2 + lambda^2), where s_i is the singular value.
        svd: compute each step from singular values instead of the normal equations; slower, same result within
            rounding.
        D_max, D_max_angle: m and rad; larger errors of goals are clipped to these values (ClampMag in the paper).
            Infinite by default.
        gamma_max: largest motion of a joint in a step, rad or characteristic lengths; longer steps are scaled down. 45
            degrees is the value in the program of the paper's author.
        hold_at_limits: whether to remove joints at a limit that the step would move outwards, and to compute the step
            again. A joint is released if the linear model moves it inwards. If False, the step is only clamped to the
            limits.
        gain: share of the distance to a rest pose, or another soft objective, that a step covers in the null space, 0
            to 1.
    """

    name: ClassVar[str] = "dls"
    title: ClassVar[str] = "damped least squares"
    citation: ClassVar[str] = (
        "S. R. Buss, Introduction to inverse kinematics with Jacobian transpose, pseudoinverse and damped least squares"
        " methods, University of California, San Diego, 2009"
    )
    supports_soft_objectives: ClassVar[bool] = True

    damping: float = 0.05
    """Best of 0.05, 0.1 and 0.15 with this gamma_max, on 700 random targets each of a Panda, a UR5, a planar 3R and a
    tree with two end effectors.
    """
    svd: bool = False
    D_max: float = math.inf
    D_max_angle: float = math.inf
    gamma_max: float = math.pi / 4
    hold_at_limits: bool = True
    gain: float = 0.5

    def __post_init__(self) -> None:
        check_positive(self, "damping", "D_max", "D_max_angle", "gamma_max")
        check_finite(self, "damping")
        check_non_negative(self, "gain")
        check_at_most_one(self, "gain")
        check_flags(self, "svd", "hold_at_limits")

    def iterate(self, problem: LeastSquaresProblem) -> Iterator[None]:
        model = LinearModel(problem, self.D_max, self.D_max_angle)
        normal_equations, follows_soft = NormalEquations(model), model.has_soft_objectives and self.gain > 0.0

        def write_step() -> None:
            if self.svd or follows_soft:
                model.spectral_step(self.damping)
            else:
                normal_equations.write_step(self.damping * self.damping)
            if follows_soft:
                model.add_soft_step(self.gain, self.damping, RANK_TOLERANCE)

        while True:
            model.update()
            model.solve(write_step, self.hold_at_limits)
            model.limit_step(self.gamma_max)
            problem.advance()
            yield


@dataclass(frozen=True, slots=True, kw_only=True)
class Chan(Method):
    """Error-damped least squares: step = -(J'J + W_n)^-1 J'e with W_n = lambda E 1 and E = e'e / 2.

    Steps are cautious far from the goal and fast near it.

    Attributes:
        damping: lambda; damping for a unit of E. E is in squared units of the residual: weighted, lengths divided by
            the characteristic length, angles in rad.
        hold_at_limits: whether to remove joints at a limit that the step would move outwards, and to compute the step
            again.
    """

    name: ClassVar[str] = "chan"
    title: ClassVar[str] = "error damped least squares"
    citation: ClassVar[str] = (
        "S. K. Chan and P. D. Lawrence, General inverse kinematics with the error damped pseudoinverse, IEEE"
        " International Conference on Robotics and Automation, 1988"
    )

    damping: float = 0.1
    """Best of 0.1, 0.3 and 1 on 700 random targets each of a Panda, a UR5, a planar 3R and a tree with two end
    effectors.
    """
    hold_at_limits: bool = True

    def __post_init__(self) -> None:
        check_positive(self, "damping")
        check_finite(self, "damping")
        check_flags(self, "hold_at_limits")

    def iterate(self, problem: LeastSquaresProblem) -> Iterator[None]:
        model = LinearModel(problem)
        normal_equations = NormalEquations(model)
        while True:
            W_n = self.damping * 0.5 * problem.cost
            model.update()
            model.solve(lambda W_n=W_n: normal_equations.write_step(W_n), self.hold_at_limits)
            problem.advance()
            yield


@dataclass(frozen=True, slots=True, kw_only=True)
class Sugihara(Method):
    """Robust error-damped least squares: step = -(J'J + W_n)^-1 J'e with W_n = (E + w_n_bar) 1 and E = e'e / 2.

    The method is robust for goals that cannot be met.

    Attributes:
        w_n_bar: damping that remains at zero error, in squared units of the residual: weighted, lengths divided by the
            characteristic length, angles in rad. From 1e-4 to 1e-2 the success on random targets is about the same;
            smaller values take fewer iterations.
        hold_at_limits: whether to remove joints at a limit that the step would move outwards, and to compute the step
            again.
    """

    name: ClassVar[str] = "sugihara"
    title: ClassVar[str] = "robust error damped least squares"
    citation: ClassVar[str] = (
        "T. Sugihara, Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method, IEEE Transactions"
        " on Robotics 27(5), 2011"
    )

    w_n_bar: float = 1e-3
    hold_at_limits: bool = True

    def __post_init__(self) -> None:
        check_positive(self, "w_n_bar")
        check_finite(self, "w_n_bar")
        check_flags(self, "hold_at_limits")

    def iterate(self, problem: LeastSquaresProblem) -> Iterator[None]:
        model = LinearModel(problem)
        normal_equations = NormalEquations(model)
        while True:
            W_n = 0.5 * problem.cost + self.w_n_bar
            model.update()
            model.solve(lambda W_n=W_n: normal_equations.write_step(W_n), self.hold_at_limits)
            problem.advance()
            yield


@dataclass(frozen=True, slots=True, kw_only=True)
class PseudoInverse(Method):
    """Undamped pseudo-inverse: step = -J^+ e, the smallest step that meets the goals of the linear model.

    If the goals of the linear model cannot be met, it is the smallest step that comes nearest to them. Near a singular
    pose the step is large in directions that reduce the error little, so the mechanism jumps; far from a goal the step
    overshoots. Whitney's paper makes small increments along a path instead; here a finite `gamma_max` limits the step.
    With 45 degrees, 56 % instead of 26 % of 700 random targets of a UR5 are reached in one attempt, and 47 % instead of
    33 % of a Panda.

    Attributes:
        rank_tolerance: singular values below this share of the largest count as zero.
        gamma_max: largest motion of a joint in a step, rad or characteristic lengths; longer steps are scaled down.
            Infinite by default.
        hold_at_limits: whether to remove joints at a limit that the step would move outwards, and to compute the step
            again.
        gain: share of the distance to a rest pose, or another soft objective, that a step covers in the null space, 0
            to 1.
    """

    name: ClassVar[str] = "pseudo_inverse"
    title: ClassVar[str] = "the pseudo-inverse"
    citation: ClassVar[str] = (
        "D. E. Whitney, Resolved motion rate control of manipulators and human prostheses, IEEE Transactions on"
        " Man-Machine Systems 10(2), 1969"
    )
    supports_soft_objectives: ClassVar[bool] = True

    rank_tolerance: float = 1e-6
    gamma_max: float = math.inf
    hold_at_limits: bool = True
    gain: float = 0.5

    def __post_init__(self) -> None:
        check_positive(self, "gamma_max")
        check_non_negative(self, "rank_tolerance", "gain")
        check_at_most_one(self, "gain")
        check_flags(self, "hold_at_limits")

    def iterate(self, problem: LeastSquaresProblem) -> Iterator[None]:
        model = LinearModel(problem)

        def write_step() -> None:
            model.spectral_step(0.0, self.rank_tolerance)
            if model.has_soft_objectives and self.gain > 0.0:
                model.add_soft_step(self.gain, 0.0, self.rank_tolerance)

        while True:
            model.update()
            model.solve(write_step, self.hold_at_limits)
            model.limit_step(self.gamma_max)
            problem.advance()
            yield


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectivelyDamped(Method):
    """Selectively damped least squares: the pseudo-inverse step with its part along each singular vector limited.

    The limit for v_i is gamma_i = min(1, N_i / M_i) gamma_max, where N_i is how far u_i moves the effectors, and M_i
    how far v_i / s_i would move them if joints could not cancel each other; u_i, v_i and s_i are the singular vectors
    and values of J. Each goal is two effectors: its lengths and its angles, in units of the residual; the paper has
    positions only. A part in which a joint moves farther than gamma_i is scaled down to gamma_i; the authors' program
    scales every part by gamma_i / (gamma_i + length) instead.

    Attributes:
        gamma_max: rad or characteristic lengths; largest motion of a joint in a step. 45 degrees is the value in the
            authors' program.
        D_max, D_max_angle: m and rad; larger errors of goals are clipped to these values (ClampMag in the paper).
            Infinite by default.
        hold_at_limits: whether to remove joints at a limit that the step would move outwards, and to compute the step
            again.
    """

    name: ClassVar[str] = "sdls"
    title: ClassVar[str] = "selectively damped least squares"
    citation: ClassVar[str] = (
        "S. R. Buss and J.-S. Kim, Selectively damped least squares for inverse kinematics, Journal of Graphics Tools"
        " 10(3), 2005"
    )

    gamma_max: float = math.pi / 4
    D_max: float = math.inf
    D_max_angle: float = math.inf
    hold_at_limits: bool = True

    def __post_init__(self) -> None:
        check_positive(self, "gamma_max", "D_max", "D_max_angle")
        check_flags(self, "hold_at_limits")

    def iterate(self, problem: LeastSquaresProblem) -> Iterator[None]:
        model = LinearModel(problem, self.D_max, self.D_max_angle)
        rho = np.empty(problem.n)

        def write_step() -> None:
            least_squares_kernel.selective_step(
                model.e, model.J, model.effectors, self.gamma_max, model.U, model.s, model.V, rho, model.step
            )

        while True:
            model.update()
            model.solve(write_step, self.hold_at_limits)
            model.limit_step(self.gamma_max)
            problem.advance()
            yield


ARMIJO_RATIO = 1e-4
"""Smallest accepted ratio of the decrease of the cost to the decrease that the slope predicts (alpha of Dennis and
Schnabel)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Newton(Method):
    """Newton-Raphson with a line search: a damped pseudo-inverse step, shortened until the cost decreases enough.

    The method follows NewtonRoot of KrisLibrary, which Klampt uses. Singular values are damped as 1 / (s + lambda).
    Joints at a limit that the step would move outwards are removed. The step is shortened by quadratic and then cubic
    interpolation (Dennis and Schnabel 1983, A6.3.1) and clamped to the limits at each trial. The method ends when no
    joint would move by `tolx`.

    Differences from Klampt: Klampt removes joints once, by the sign of the gradient. This method removes them by the
    sign of the step, repeats this until no further joint is removed, and may release joints again. Klampt also moves
    along vectors whose singular value is zero. Residuals in Klampt are in m and rad; here lengths are divided by the
    characteristic length, so the unit of lambda differs. Klampt defines rotation errors differently, and applies a
    single tolerance to the largest residual; here each goal has its own tolerance. In Klampt tolx is relative to the
    value of the joint; here it is absolute. The starts and restarts of Klampt are not part of this method.

    The method is slow for targets out of reach: near a stretched pose steps are long and reduce the error little, and
    the line search shortens them.

    Attributes:
        damping: lambda, added to the singular values, in their units. 0.01 is Klampt's value. With 0.1 more
            random targets are reached in one attempt (50 % instead of 43 % of a UR5), with more iterations for each
            target (16 instead of 12).
        step_max: longest step, as a multiple of the number of columns or of the norm of x, whichever is larger. 10 is
            Klampt's value; longer steps come from singular values far below lambda.
        tolx: rad or characteristic lengths; the method ends if the shortened step moves every joint by less. Klampt
            uses a hundredth of the tolerance; here it is a hundredth of the closure tolerance.
    """

    name: ClassVar[str] = "newton"
    title: ClassVar[str] = "Newton-Raphson with a line search"
    citation: ClassVar[str] = (
        "K. Hauser, Robust contact generation for robot simulation with unstructured meshes, International Symposium on"
        " Robotics Research, 2013 (Klampt); J. E. Dennis and R. B. Schnabel, Numerical methods for unconstrained"
        " optimization and nonlinear equations, Prentice-Hall, 1983"
    )
    can_diverge: ClassVar[bool] = False

    damping: float = 0.01
    step_max: float = 10.0
    tolx: float = 1e-12

    def __post_init__(self) -> None:
        check_non_negative(self, "damping")
        check_finite(self, "damping")
        check_positive(self, "step_max", "tolx")

    def iterate(self, problem: LeastSquaresProblem) -> Iterator[None]:
        model = LinearModel(problem)
        slope = 0.0

        def write_step() -> None:
            nonlocal slope
            slope = least_squares_kernel.newton_step(
                model.e, model.J, self.damping, model.U, model.s, model.V, model.step
            )

        while True:
            model.update()
            model.solve(write_step, hold_at_limits=True)
            max_length = self.step_max * max(float(np.linalg.norm(problem.x)), problem.n)
            length = float(np.linalg.norm(problem.step))
            if length > max_length:
                problem.step *= max_length / length
                slope *= max_length / length
            if not slope < 0.0 or not self._search_line(problem, slope):
                return
            yield

    def _search_line(self, problem: LeastSquaresProblem, slope: float) -> bool:
        """Shorten the step until the cost decreases enough; return False, with the state unchanged, if it does not."""
        start_x, start_half_cost = problem.x.copy(), 0.5 * problem.cost
        min_share = self.tolx / float(np.abs(problem.step).max())
        share, last_share, last_half_cost = 1.0, 0.0, 0.0
        while share >= min_share:
            problem.x[:] = start_x
            problem.advance(share)
            half_cost = 0.5 * problem.cost
            if half_cost <= start_half_cost + ARMIJO_RATIO * share * slope:
                return True
            minimizer = _line_search_minimizer(
                share, half_cost - start_half_cost, last_share, last_half_cost - start_half_cost, slope
            )
            last_share, last_half_cost, share = share, half_cost, max(min(minimizer, 0.5 * share), 0.1 * share)
        problem.set_state(start_x)
        return False


def _line_search_minimizer(share: float, rise: float, last_share: float, last_rise: float, slope: float) -> float:
    """Return the share of a step that minimizes the parabola, or the cubic after two trials, through the known values.

    Args:
        share, rise: share of the step in this trial, and the increase of half the cost there.
        last_share, last_rise: the same for the previous trial; `last_share` is 0 if there is none.
        slope: derivative of half the cost along the step.
    """
    if not (math.isfinite(rise) and math.isfinite(last_rise)):
        return 0.5 * share
    excess = rise - slope * share
    if last_share == 0.0:
        return -slope * share * share / (2.0 * excess)
    curvature, last_curvature = excess / share**2, (last_rise - slope * last_share) / last_share**2
    a, b = (
        (curvature - last_curvature) / (share - last_share),
        (share * last_curvature - last_share * curvature) / (share - last_share),
    )
    if a == 0.0:
        return -slope / (2.0 * b)
    discriminant = b * b - 3.0 * a * slope
    if discriminant < 0.0:
        return 0.5 * share
    return (math.sqrt(discriminant) - b) / (3.0 * a) if b <= 0.0 else -slope / (b + math.sqrt(discriminant))
