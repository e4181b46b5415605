"""Gradient methods: Jacobian transpose, gradient descent, momentum, Adam and L-BFGS-B, all within joint limits.

All methods use the gradient of half the cost, from the residual and its Jacobian, and clamp their steps to the limits.
Gradient descent can also compute the gradient by finite differences. The pose of an end effector is a product of one
matrix for each joint, O A B C D E. If the products before and after each joint are known, a change of C to C' costs two
multiplications, (O A B) C' (D E), for any length of the arm. The products before a joint are the poses of the nodes.
The products after it are accumulated from the end effector to the root.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from numbers import Integral
from typing import ClassVar, Literal

import numpy as np

from mechanik.errors import LimitsError
from mechanik.kernels.methods.gradient_steps import MAX_LENGTH, OPTIMAL_LENGTH, RATE_BY_JACOBIAN
from mechanik.objectives.relation import RelationKind
from mechanik.solver.methods.least_squares_problem import LeastSquaresProblem
from mechanik.solver.methods.method import Method
from mechanik.spatial.array import Array
from mechanik.tiers import kernel_module
from mechanik.validation import as_number, check_flags

differences_kernel = kernel_module("methods.difference_gradient")

NO_COLUMN = -1
"""Column index of a dof that may not move."""


class FiniteDifferenceGradient:
    """Gradient of half the cost of a problem, by forward differences.

    Args:
        displacement: displacement of each dof, rad or characteristic lengths.
    """

    __slots__ = ("_columns", "_displacement", "_required_blocks", "_tables")

    def __init__(self, problem: LeastSquaresProblem, displacement: float) -> None:
        packed = problem.subproblem.packed
        self._tables, self._required_blocks, self._displacement = (
            (packed.ints, packed.floats),
            problem._required_blocks,
            displacement,
        )
        is_locked = packed.is_locked
        column_by_v = {int(v): k for k, v in enumerate(packed.columns) if v >= 0 and not is_locked[k]}
        nodes = packed.node_records()
        self._columns = np.full((len(nodes), 3), NO_COLUMN, dtype=np.int64)
        for i, node in enumerate(nodes):
            self._columns[i, : node.v_count] = [
                column_by_v.get(node.v_index + axis, NO_COLUMN) for axis in range(node.v_count)
            ]

    def write(self, gradient: Array) -> None:
        """Write the gradient at the present state to `gradient`, (n,)."""
        differences_kernel.difference_gradient(
            *self._tables, self._required_blocks, self._columns, self._displacement, gradient
        )


def unsupported_reason(problem: LeastSquaresProblem) -> str:
    """Return the reason why finite differences do not support a problem; empty if they do.

    They support goals without bands (intervals of values that count as zero) whose residual depends on one chain from
    the world to a link.
    """
    blocks = problem.subproblem.packed.block_records()[: problem._required_blocks]
    if problem.constraint_block_count:
        return "does not support closed loops, joint constraints or swing limits"
    if any(block.kind > RelationKind.DISTANCE for block in blocks):
        return "supports only goals of link frames, no joint values, centres of mass or functions"
    if any(block.node_a >= 0 for block in blocks):
        return "supports only goals that are fixed in the world"
    return "does not support bands" if any(block.has_bands for block in blocks) else ""


gradient_kernel = kernel_module("methods.gradient_steps")


class GradientAndBounds:
    """Gradient of half the cost of a problem, and the range of steps that the limits allow in each column.

    Args:
        differences: finite differences that replace the Jacobian; None: the Jacobian is used.
        squared_row_units: (m,), factors on the squares of the rows in the cost; None: 1.

    Attributes:
        gradient: gradient of half the cost, (n,).
        lower_step, upper_step: largest negative and positive step of each column, (n,); exactly 0 at a limit, and for
            locked columns.
    """

    __slots__ = ("_differences", "_problem", "_squared_row_units", "_tables", "gradient", "lower_step", "upper_step")

    def __init__(
        self,
        problem: LeastSquaresProblem,
        differences: FiniteDifferenceGradient | None = None,
        squared_row_units: Array | None = None,
    ) -> None:
        self._problem, self._differences, self._squared_row_units = problem, differences, squared_row_units
        self._tables = problem.subproblem.packed.ints, problem.subproblem.packed.floats
        self.gradient, self.lower_step, self.upper_step = np.zeros(problem.n), np.zeros(problem.n), np.zeros(problem.n)

    def update(self) -> None:
        """Evaluate the gradient and the range of steps at the present state of the problem."""
        problem, residual = self._problem, self._problem.residual
        if self._squared_row_units is not None:
            residual = residual * self._squared_row_units
        gradient_kernel.gradient_and_bounds(
            *self._tables, residual, problem.jacobian, self.gradient, self.lower_step, self.upper_step
        )
        if self._differences is not None:
            self._differences.write(self.gradient)


@dataclass(frozen=True, slots=True, kw_only=True)
class JacobianTranspose(Method):
    """Jacobian transpose method: joints move as if the error were a force that pulls the end effector.

    A step is cheap and needs no inverse, but many steps are needed. Rotation errors are rotation vectors, not Euler
    angles, so a short step decreases the cost at every orientation.

    Attributes:
        step: alpha in the papers. "optimal": the best length for a linear mechanism, Buss 2009, section 5. A number:
            the update of the original method, q + alpha J'e, with e and J in m and rad (weighted, if objectives or dofs
            have weights). Textbook programs often use 0.05. With a large value the steps oscillate or diverge; see
            `Options.divergence_threshold`. Programs that use differences of Euler angles as rotation errors have the
            same update for positions only; such differences are no gradient, so they can be unstable.
        relaxation: factor on the optimal length, above 0 and below 2. With 1, steps soon alternate between two
            directions; a slightly smaller value needs half as many steps (Raydan and Svaiter 2002). Not used if `step`
            is a number.
    """

    name: ClassVar[str] = "jacobian_transpose"
    title: ClassVar[str] = "Jacobian transpose"
    citation: ClassVar[str] = (
        "W. A. Wolovich and H. Elliott, A computational technique for inverse kinematics, IEEE Conf. Decision and"
        " Control (1984); A. Balestrino, G. De Maria and L. Sciavicco, Robust control of robotic manipulators, IFAC"
        " World Congress (1984); S. R. Buss, Introduction to inverse kinematics with Jacobian transpose, pseudoinverse"
        " and damped least squares methods, University of California, San Diego (2009); M. Raydan and B. F. Svaiter,"
        " Relaxed steepest descent and Cauchy-Barzilai-Borwein method, Comput. Optim. Appl. 21 (2002)"
    )
    default_iterations: ClassVar[int] = 2000

    step: float | Literal["optimal"] = "optimal"
    relaxation: float = 0.9

    def __post_init__(self) -> None:
        if self.step != "optimal" and (isinstance(self.step, str) or not as_number(self.step, "step") > 0):
            raise LimitsError(f"step must be 'optimal' or a number above 0, not {self.step!r}")
        if isinstance(self.relaxation, str) or not 0 < as_number(self.relaxation, "relaxation") < 2:
            raise LimitsError(f"relaxation must be above 0 and below 2, not {self.relaxation!r}")

    def iterate(self, problem: LeastSquaresProblem) -> Iterator[None]:
        is_fixed = not isinstance(self.step, str)
        gradient_and_bounds = GradientAndBounds(problem, squared_row_units=problem.row_units**2 if is_fixed else None)
        alpha = float(self.step) if is_fixed else OPTIMAL_LENGTH
        squared_column_units = problem.column_units**2
        while True:
            gradient_and_bounds.update()
            gradient, low, high = (
                gradient_and_bounds.gradient,
                gradient_and_bounds.lower_step,
                gradient_and_bounds.upper_step,
            )
            length = gradient_kernel.transpose_step(
                problem.jacobian, gradient, low, high, alpha, self.relaxation, problem.step
            )
            if length == 0.0:
                return
            if is_fixed:
                problem.step /= squared_column_units
            problem.advance()
            yield


SUFFICIENT_DECREASE = 1e-4
"""Smallest accepted ratio of the decrease of the cost to the decrease that the slope predicts; gamma in the paper, with
the value of the paper."""
MIN_STEP_RATIO = 1e-12
"""Smallest share of a step that a line search tries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientDescent(Method):
    """Gradient descent within the limits, with fixed steps or a line search.

    Attributes:
        gradient: "analytic": from the residual and its Jacobian. "differences": from a small displacement of each
            joint (`FiniteDifferenceGradient`).
        step: length of a step. "spectral": first from the curvature along the last step (Barzilai and Borwein), then
            shortened until the cost is below the largest of the last `memory` costs (Birgin, Martinez, Raydan).
            "backtracking": first twice the last multiple of the gradient, then shortened until the cost decreases
            (Armijo). A number: a fixed multiple of the gradient; with a large value the steps oscillate.
        memory: M in the paper, the number of costs for comparison with "spectral"; with 1 the cost never increases.
        largest_step: rad or characteristic lengths; largest motion of a column in a step with a line search. With
            longer steps, joints move to their limits and stay there. 0.2 was tuned on an arm of ten joints.
        difference: displacement of a joint for a finite difference, rad or characteristic lengths. The joint values to
            which the method converges have an error of about this size.
    """

    name: ClassVar[str] = "gradient_descent"
    title: ClassVar[str] = "gradient descent"
    citation: ClassVar[str] = (
        "E. G. Birgin, J. M. Martinez and M. Raydan, Nonmonotone spectral projected gradient methods on convex sets,"
        " SIAM J. Optim. 10 (2000); J. Barzilai and J. M. Borwein, Two-point step size gradient methods, IMA J. Numer."
        " Anal. 8 (1988); L. Armijo, Minimization of functions having Lipschitz continuous first partial derivatives,"
        " Pacific J. Math. 16 (1966)"
    )
    default_iterations: ClassVar[int] = 2000

    gradient: Literal["analytic", "differences"] = "analytic"
    step: float | Literal["spectral", "backtracking"] = "spectral"
    memory: int = 10
    largest_step: float = 0.2
    difference: float = 1e-7

    def __post_init__(self) -> None:
        if self.gradient not in ("analytic", "differences"):
            raise LimitsError(f"gradient must be 'analytic' or 'differences', not {self.gradient!r}")
        if self.step not in ("spectral", "backtracking") and (
            isinstance(self.step, str) or not as_number(self.step, "step") > 0
        ):
            raise LimitsError(f"step must be 'spectral', 'backtracking' or a number above 0, not {self.step!r}")
        if isinstance(self.memory, bool) or not isinstance(self.memory, Integral) or self.memory < 1:
            raise LimitsError(f"memory must be an integer of 1 or more, not {self.memory!r}")
        for name in ("largest_step", "difference"):
            value = getattr(self, name)
            if isinstance(value, str) or not as_number(value, name, allow_infinite=name == "largest_step") > 0:
                raise LimitsError(f"{name} must be above 0, not {value!r}")

    def check(self, problem: LeastSquaresProblem) -> None:
        Method.check(self, problem)
        if self.gradient == "differences" and (reason := unsupported_reason(problem)):
            raise self.unsupported_error(f"by differences {reason}", "gradient_descent", option="gradient='analytic'")

    def iterate(self, problem: LeastSquaresProblem) -> Iterator[None]:
        differences = None
        if self.gradient == "differences":
            differences = FiniteDifferenceGradient(problem, self.difference)
        gradient_and_bounds = GradientAndBounds(problem, differences)
        return (
            self._iterate_with_fixed_length(problem, gradient_and_bounds, self.step)
            if not isinstance(self.step, str)
            else self._iterate_with_line_search(problem, gradient_and_bounds)
        )

    def _iterate_with_fixed_length(
        self, problem: LeastSquaresProblem, gradient_and_bounds: GradientAndBounds, alpha: float
    ) -> Iterator[None]:
        """Iterate with steps of a fixed multiple `alpha` of the gradient."""
        gradient_and_bounds.update()
        while (
            gradient_kernel.gradient_step(
                gradient_and_bounds.gradient,
                gradient_and_bounds.lower_step,
                gradient_and_bounds.upper_step,
                alpha,
                problem.step,
            )
            < 0.0
        ):
            problem.advance()
            yield
            gradient_and_bounds.update()

    def _iterate_with_line_search(
        self, problem: LeastSquaresProblem, gradient_and_bounds: GradientAndBounds
    ) -> Iterator[None]:
        """Iterate with a line search in each step."""
        is_spectral = self.step == "spectral"
        recent_costs = deque([problem.cost], self.memory if is_spectral else 1)
        last_gradient, last_x = np.zeros(problem.n), problem.x.copy()
        alpha = share = 0.0
        while True:
            gradient_and_bounds.update()
            if share == 0.0:
                alpha = MAX_LENGTH
            elif is_spectral:
                alpha = gradient_kernel.spectral_length(
                    gradient_and_bounds.gradient, last_gradient, share, problem.step
                )
            else:
                alpha *= 2.0 * share
            alpha = min(alpha, gradient_kernel.longest_step_length(gradient_and_bounds.gradient, self.largest_step))
            derivative = gradient_kernel.gradient_step(
                gradient_and_bounds.gradient,
                gradient_and_bounds.lower_step,
                gradient_and_bounds.upper_step,
                alpha,
                problem.step,
            )
            if not derivative < 0.0:
                return
            cost, max_cost, share = problem.cost, max(recent_costs), 1.0
            last_gradient[:], last_x[:] = gradient_and_bounds.gradient, problem.x
            problem.advance()
            while not problem.cost <= max_cost + 2.0 * SUFFICIENT_DECREASE * share * derivative and not problem.is_met:
                share = shortened_share(share, derivative, 0.5 * (problem.cost - cost))
                if share < MIN_STEP_RATIO:
                    problem.set_state(last_x)
                    return
                problem.x[:] = last_x
                problem.advance(share)
            recent_costs.append(problem.cost)
            yield


def shortened_share(share: float, slope: float, rise: float) -> float:
    """Return the next share of a step in a line search.

    The share minimizes the parabola through the known values, but is at least a tenth and at most half of `share`.

    Args:
        share: share that was tried.
        slope: derivative of half the cost along the step.
        rise: increase of half the cost at the share that was tried.
    """
    excess = rise - share * slope
    minimizer = -0.5 * share * share * slope / excess if excess > 0.0 else 0.0
    return min(max(minimizer, 0.1 * share), 0.5 * share)


@dataclass(frozen=True, slots=True, kw_only=True)
class Momentum(Method):
    """Gradient descent with momentum (heavy ball): each step continues with a share of the last velocity.

    Attributes:
        alpha: factor on the negative gradient that is added to the velocity. None: the inverse of the sum of squares of
            the Jacobian; this is at most the inverse of the largest curvature of the linear model's cost.
        beta: share of the last velocity. 0.98 was tuned on random targets of five arms, with `restart`; without it
            0.9 is better.
        nesterov: whether to evaluate the gradient after the velocity step, as Nesterov does; if False, before it, as
            Polyak does.
        restart: whether to reset the velocity if it increases the cost (O'Donoghue and Candes); not part of the
            methods of Polyak and Nesterov.
    """

    name: ClassVar[str] = "momentum"
    title: ClassVar[str] = "gradient descent with momentum"
    citation: ClassVar[str] = (
        "B. T. Polyak, Some methods of speeding up the convergence of iteration methods, USSR Comput. Math. Math. Phys."
        " 4 (1964); Y. Nesterov, A method of solving a convex programming problem with convergence rate O(1/k^2),"
        " Soviet Math. Dokl. 27 (1983); B. O'Donoghue and E. Candes, Adaptive restart for accelerated gradient schemes,"
        " Found. Comput. Math. 15 (2015)"
    )
    default_iterations: ClassVar[int] = 2000

    alpha: float | None = None
    beta: float = 0.98
    nesterov: bool = False
    restart: bool = True

    def __post_init__(self) -> None:
        if self.alpha is not None and (isinstance(self.alpha, str) or not as_number(self.alpha, "alpha") > 0):
            raise LimitsError(f"alpha must be above 0, or None for a value from the Jacobian, not {self.alpha!r}")
        if isinstance(self.beta, str) or not 0 <= as_number(self.beta, "beta") < 1:
            raise LimitsError(f"beta must be from 0 to below 1, not {self.beta!r}")
        check_flags(self, "nesterov", "restart")

    def iterate(self, problem: LeastSquaresProblem) -> Iterator[None]:
        gradient_and_bounds, velocity = GradientAndBounds(problem), np.zeros(problem.n)
        alpha = RATE_BY_JACOBIAN if self.alpha is None else float(self.alpha)
        while True:
            gradient_and_bounds.update()
            max_motion = gradient_kernel.momentum_step(
                problem.jacobian, gradient_and_bounds.gradient, gradient_and_bounds.lower_step,
                gradient_and_bounds.upper_step, alpha, self.beta, self.nesterov, self.restart, velocity, problem.step,
            )  # fmt: skip
            if max_motion == 0.0:
                return
            problem.advance()
            yield


@dataclass(frozen=True, slots=True, kw_only=True)
class Adam(Method):
    """Adam: the step of each joint is divided by the recent size of its gradient.

    Attributes:
        alpha: rad or characteristic lengths; approximate motion of a joint in the first steps. The paper's 0.001 is for
            neural networks; 0.1 was tuned on random targets of five arms.
        beta1, beta2: decay rates of the averages of the gradient and of its square; the paper's values.
        epsilon: added to the root of the average square of the gradient, against division by 0; the paper's value.
    """

    name: ClassVar[str] = "adam"
    title: ClassVar[str] = "Adam"
    citation: ClassVar[str] = "D. P. Kingma and J. Ba, Adam: a method for stochastic optimization, ICLR (2015)"
    default_iterations: ClassVar[int] = 2000

    alpha: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        for name in ("alpha", "epsilon"):
            value = getattr(self, name)
            if isinstance(value, str) or not as_number(value, name) > 0:
                raise LimitsError(f"{name} must be above 0, not {value!r}")
        for name in ("beta1", "beta2"):
            value = getattr(self, name)
            if isinstance(value, str) or not 0 <= as_number(value, name) < 1:
                raise LimitsError(f"{name} must be from 0 to below 1, not {value!r}")

    def iterate(self, problem: LeastSquaresProblem) -> Iterator[None]:
        gradient_and_bounds, first_moment, second_moment = (
            GradientAndBounds(problem),
            np.zeros(problem.n),
            np.zeros(problem.n),
        )
        for t in count(1):
            gradient_and_bounds.update()
            max_motion = gradient_kernel.adam_step(
                gradient_and_bounds.gradient, gradient_and_bounds.lower_step, gradient_and_bounds.upper_step,
                self.alpha, self.beta1, self.beta2, self.epsilon, float(t), first_moment, second_moment, problem.step,
            )  # fmt: skip
            if max_motion == 0.0:
                return
            problem.advance()
            yield


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedMemoryBFGS(Method):
    """L-BFGS-B: quasi-Newton steps within the limits, with the curvature estimated from the last steps.

    The curvature is estimated as in the paper. Limits are handled more simply: columns at a limit that the negative
    gradient would move outwards are removed; the step of the other columns is clamped to the limits and then shortened
    until the cost decreases. The paper first follows the projected gradient to find the active limits.

    Attributes:
        m: number of stored steps.
        largest_step: rad or characteristic lengths; largest motion of a column in a step. With longer steps, joints
            move to their limits and stay there. 0.4 was tuned on random targets of five arms.
    """

    name: ClassVar[str] = "lbfgsb"
    title: ClassVar[str] = "L-BFGS-B"
    citation: ClassVar[str] = (
        "R. H. Byrd, P. Lu, J. Nocedal and C. Zhu, A limited memory algorithm for bound constrained optimization, SIAM"
        " J. Sci. Comput. 16 (1995); J. Nocedal, Updating quasi-Newton matrices with limited storage, Math. Comp. 35"
        " (1980)"
    )
    default_iterations: ClassVar[int] = 500
    can_diverge: ClassVar[bool] = False

    m: int = 10
    largest_step: float = 0.4

    def __post_init__(self) -> None:
        if isinstance(self.m, bool) or not isinstance(self.m, Integral) or self.m < 1:
            raise LimitsError(f"m must be an integer of 1 or more, not {self.m!r}")
        largest_step = self.largest_step
        if isinstance(largest_step, str) or not as_number(largest_step, "largest_step", allow_infinite=True) > 0:
            raise LimitsError(f"largest_step must be above 0, not {largest_step!r}")

    def iterate(self, problem: LeastSquaresProblem) -> Iterator[None]:
        n, gradient_and_bounds = problem.n, GradientAndBounds(problem)
        steps, gradient_changes, coefficients, is_free = (
            np.zeros((self.m, n)),
            np.zeros((self.m, n)),
            np.zeros((2, self.m)),
            np.zeros(n),
        )
        last_gradient, last_x = np.zeros(n), problem.x.copy()
        stored_count = newest_index = 0
        gradient_and_bounds.update()
        while True:
            derivative = gradient_kernel.quasi_newton_step(
                problem.jacobian, gradient_and_bounds.gradient, gradient_and_bounds.lower_step,
                gradient_and_bounds.upper_step, steps, gradient_changes, coefficients, is_free, stored_count,
                newest_index, self.largest_step, problem.step,
            )  # fmt: skip
            if not derivative < 0.0:
                return
            cost, share = problem.cost, 1.0
            last_gradient[:], last_x[:] = gradient_and_bounds.gradient, problem.x
            problem.advance()
            while not problem.cost <= cost + 2.0 * SUFFICIENT_DECREASE * share * derivative and not problem.is_met:
                share = shortened_share(share, derivative, 0.5 * (problem.cost - cost))
                if share < MIN_STEP_RATIO:
                    break
                problem.x[:] = last_x
                problem.advance(share)
            if share < MIN_STEP_RATIO:
                problem.set_state(last_x)
                if stored_count == 0:
                    return
                stored_count = 0  # the stored curvature does not fit here: continue without it
                continue
            yield
            gradient_and_bounds.update()
            newest_index, stored_count = (newest_index + 1) % self.m, min(stored_count + 1, self.m)
            np.multiply(problem.step, share, out=steps[newest_index])
            np.subtract(gradient_and_bounds.gradient, last_gradient, out=gradient_changes[newest_index])
