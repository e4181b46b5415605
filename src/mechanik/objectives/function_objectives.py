"""Objectives from functions of the configuration: user functions in Python, and manipulability."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import index
from typing import Any, Unpack

import numpy as np

from mechanik.errors import DoFError, InvalidArgument, LimitsError, ObjectiveError
from mechanik.model import DoF, Link, Mechanism
from mechanik.model.dof import ALL_DOFS, DoFLike, as_dofs
from mechanik.model.kinematics import joint_and_dofs
from mechanik.objectives.objective import Objective, ObjectiveOptions, check_link, link_name
from mechanik.objectives.relation import Relation, RelationKind
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_number, as_point, format_count, read_only

ConfigurationFunction = Callable[[Mechanism, Array], ArrayLike]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Custom(Objective):
    """Objective: a Python function of the configuration is zero, or inside a band.

    The residual rows count as angles: `angle_tolerance` applies to them.

    Args:
        function: (mechanism, q) -> residual (m,), or a number; smooth, and always of the same length.
        jacobian: (mechanism, q) -> (m, nv), derivative of the function by v of `mechanism.integrate`; None: central
            differences with 2 nv calls of the function. Stored as `derivative`.
        residual_size: number of rows; None: determined by a call at the present configuration of the mechanism.
        lower, upper: the band, a number for all rows or (m,); one None: no such bound; both None: zero.
        step: step of the central differences, m and rad.
        **options: `weight`, `level`, `tolerance` and the other fields of `Objective`.

    Raises:
        InvalidArgument: an argument is not callable.
        ObjectiveError: an argument is out of range; later, if the function fails or returns wrong values.
        LimitsError: `lower` is above `upper`; raised by `relations`.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> same_angles = mk.Custom(lambda mechanism, q: q[0] - q[1])
        >>> same_angles.residual(arm, [0.5, 0.2]).round(3).tolist()
        [0.3]
    """

    function: ConfigurationFunction
    derivative: ConfigurationFunction | None
    residual_size: int | None
    lower: Array | None
    upper: Array | None
    step: float

    def __init__(
        self,
        function: ConfigurationFunction,
        jacobian: ConfigurationFunction | None = None,
        residual_size: int | None = None,
        *,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        step: float = 1e-5,
        **options: Unpack[ObjectiveOptions],
    ) -> None:
        Objective.__init__(self, **options)
        if not callable(function) or not (jacobian is None or callable(jacobian)):
            not_callable = jacobian if callable(function) else function
            raise InvalidArgument(f"{self._label} needs functions of (mechanism, q), not {not_callable!r}")
        size = None if residual_size is None else _as_size(residual_size, self._label)
        step_size = as_number(step, f"step of {self._label}")
        if step_size <= 0.0:
            raise ObjectiveError(f"step of {self._label} must be above zero, not {step_size:g}")
        fields = {
            "function": function,
            "derivative": jacobian,
            "residual_size": size,
            "lower": self._as_bound(lower, "lower"),
            "upper": self._as_bound(upper, "upper"),
            "step": step_size,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"<{self._label}: {getattr(self.function, '__qualname__', self.function)}>"

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        size = len(self._value_at(mechanism, mechanism.q, None)) if self.residual_size is None else self.residual_size
        lower, upper = self._band(size)
        rows = tuple(range(size))
        return (
            Relation(
                RelationKind.FUNCTION,
                rows,
                function=_CustomResidual(self, size),
                lower=lower,
                upper=upper,
                weight=self.weight,
            ),
        )

    def _value_at(self, mechanism: Mechanism, q: Array, size: int | None) -> Array:
        """Return the value (m,) of the function at q; raises `ObjectiveError` if it has another size or is invalid."""
        value = np.atleast_1d(self._call(self.function, "function", mechanism, q))
        if value.ndim != 1 or (size is not None and len(value) != size):
            expected = "(m,)" if size is None else f"({size},)"
            raise ObjectiveError(f"{self._label}: its function returned the shape {value.shape}, not {expected}")
        return value

    def _jacobian_at(self, mechanism: Mechanism, q: Array, size: int) -> Array:
        """Return the Jacobian (m, nv) at q."""
        if self.derivative is not None:
            J = self._call(self.derivative, "jacobian", mechanism, q)
            if J.shape != (size, mechanism.nv):
                shape = f"({size}, {mechanism.nv})"
                raise ObjectiveError(f"{self._label}: its jacobian returned the shape {J.shape}, not {shape}")
            return J
        steps = self.step * np.eye(mechanism.nv)
        ends = mechanism.integrate(np.broadcast_to(q, (2 * mechanism.nv, len(q))), np.concatenate([steps, -steps]))
        values = np.array([self._value_at(mechanism, end, size) for end in ends]).reshape(2, mechanism.nv, size)
        return np.ascontiguousarray((values[0] - values[1]).T) / (2.0 * self.step)

    def _call(self, function: ConfigurationFunction, role: str, mechanism: Mechanism, q: Array) -> Array:
        try:
            value: Any = function(mechanism, q.copy())  # the function may modify its argument
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise ObjectiveError(f"{self._label}: its {role} failed at q = {q.tolist()}: {reason}") from error
        try:
            array = np.array(value, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ObjectiveError(f"{self._label}: its {role} returned {value!r}, which is not numeric") from error
        if not np.isfinite(array).all():
            raise ObjectiveError(
                f"{self._label}: its {role} returned {array.tolist()} at q = {q.tolist()}, which is not finite"
            )
        return array

    def _as_bound(self, bound: ArrayLike | None, side: str) -> Array | None:
        if bound is None:
            return None
        try:
            values = np.array(bound, dtype=np.float64)
        except (TypeError, ValueError):
            raise ObjectiveError(f"{side} of {self._label} must be a number or an array (m,), not {bound!r}") from None
        if values.ndim > 1 or np.isnan(values).any():
            raise ObjectiveError(f"{side} of {self._label} must be a number or an array (m,), not {values.tolist()}")
        return read_only(values)

    def _band(self, size: int) -> tuple[Array | None, Array | None]:
        if self.lower is None and self.upper is None:
            return None, None
        try:
            lower, upper = (
                read_only(np.broadcast_to(unbounded if bound is None else bound, (size,)).copy())
                for bound, unbounded in ((self.lower, -np.inf), (self.upper, np.inf))
            )
        except ValueError:
            raise ObjectiveError(
                f"lower and upper of {self._label} must be numbers or arrays ({size},), one entry for each residual row"
            ) from None
        if (lower > upper).any():
            raise LimitsError(f"{self._label}: lower {lower.tolist()} is above upper {upper.tolist()}")
        return lower, upper


@dataclass(frozen=True, slots=True, eq=False)
class _CustomResidual:
    """Residual function of a `Custom` relation; a class, since nested functions cannot be pickled."""

    objective: Custom
    size: int

    def __call__(self, mechanism: Mechanism, q: Array) -> tuple[Array, Array]:
        residual = self.objective._value_at(mechanism, q, self.size)
        return residual, self.objective._jacobian_at(mechanism, q, self.size)


def _as_size(residual_size: object, label: str) -> int:
    try:
        size = index(residual_size)  # type: ignore[arg-type]
    except TypeError:
        raise ObjectiveError(f"residual_size of {label} must be an integer, not {residual_size!r}") from None
    if size < 1:
        raise ObjectiveError(f"residual_size of {label} is {size}; it must be at least 1")
    return size


REFERENCE_SAMPLES = 32
"""Number of random configurations; the median of their manipulability is the default reference."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Manipulability(Objective):
    """Soft objective: large manipulability w = sqrt(det(J J')) of a point of a link, after Yoshikawa.

    w is the volume of the ellipsoid of possible velocities, up to a constant. The single residual row has no unit:
    reference / (w + reference). It is 1 at a singular configuration and decreases as w grows. By default the objective
    has level 50, below the goals, and is not required for success.

    T. Yoshikawa, "Manipulability of Robotic Mechanisms", International Journal of Robotics Research 4(2), 1985.

    Args:
        link: name of the link, or a `Link`.
        dof: components of the velocity that count, along and about the axes of the world: X Y Z EX EY EZ.
        at: point of the link, (3,), m, in the link.
        joints: joints or dofs whose motion counts, by name; None: all.
        reference: value with which w is compared; None: the median over random configurations.
        **options: `weight`, `level`, `tolerance` and the other fields of `Objective`.

    Raises:
        DoFError: `dof` is empty.
        ObjectiveError: the reference is not above zero. Raised by `relations`: the joints have fewer dofs than there
            are components in `dof`, or w is zero at most of the random configurations.

    Example:
        >>> arm = mk.arm_2d([0.5, 0.3])
        >>> goal = mk.Manipulability("tool", dof=("X", "Y"))
        >>> goal.measure(arm, [[0.0, 0.0], [0.0, np.pi / 2]]).round(3).tolist()
        [0.0, 0.15]
    """

    link: str
    dof: tuple[DoF, ...]
    point: Array
    joints: tuple[str, ...] | None
    reference: float | None

    def __init__(
        self,
        link: str | Link,
        dof: Iterable[DoFLike] | DoFLike = ALL_DOFS,
        at: ArrayLike = (0.0, 0.0, 0.0),
        *,
        joints: Iterable[str] | str | None = None,
        reference: float | None = None,
        **options: Unpack[ObjectiveOptions],
    ) -> None:
        options.setdefault("level", 50)
        options.setdefault("required", False)
        Objective.__init__(self, **options)
        dofs = as_dofs(dof)
        if not dofs:
            raise DoFError(f"dof of {self._label} is empty; give one or more of X Y Z EX EY EZ")
        checked_reference = None if reference is None else as_number(reference, f"reference of {self._label}")
        if checked_reference is not None and checked_reference <= 0.0:
            raise ObjectiveError(f"reference of {self._label} must be above zero, not {checked_reference:g}")
        joint_names = (joints,) if isinstance(joints, str) else joints
        fields = {
            "link": link_name(link),
            "dof": dofs,
            "point": as_point(at, f"point of {self._label}"),
            "joints": None if joint_names is None else tuple(joint_names),
            "reference": checked_reference,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"<{self._label} of link {self.link!r}: {' '.join(dof.name for dof in self.dof)}>"

    def measure(self, mechanism: Mechanism, q: ArrayLike) -> Array:
        """Return the manipulability w (...) at q (..., nq); sqrt(det(J' J)) if J has more rows than columns.

        Args:
            mechanism: the mechanism with the link.
            q: one configuration (nq,) or several (..., nq).
        """
        return np.linalg.svd(self._selected_jacobian(mechanism, mechanism.space.check_q(q)), compute_uv=False).prod(
            axis=-1
        )

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        check_link(mechanism, self.link)
        column_count = len(self._columns(mechanism))
        if column_count < len(self.dof):
            raise ObjectiveError(
                f"{self._label}: {format_count(column_count, 'dof')} cannot produce "
                f"{format_count(len(self.dof), 'independent component')} of the velocity; name fewer in `dof`"
            )
        reference = self.reference
        if reference is None:
            samples = mechanism.random(np.random.default_rng(0), REFERENCE_SAMPLES)
            reference = float(np.median(self.measure(mechanism, samples)))
            if reference < 1e-12:
                raise ObjectiveError(
                    f"{self._label}: link {self.link!r} is singular at most random configurations; "
                    "name fewer components in `dof`"
                )
        return (
            Relation(
                RelationKind.FUNCTION, (0,), function=_ManipulabilityResidual(self, reference), weight=self.weight
            ),
        )

    def _selected_jacobian(self, mechanism: Mechanism, q: Array) -> Array:
        """Return the Jacobian J with the rows of `dof` and the columns of `joints` only."""
        J = mechanism.jacobian(self.link, q, self.point)
        return J[..., list(self.dof), :][..., self._columns(mechanism)]

    def _columns(self, mechanism: Mechanism) -> list[int]:
        if self.joints is None:
            return list(range(mechanism.nv))
        columns: set[int] = set()
        for name in self.joints:
            joint, dofs = joint_and_dofs(name, mechanism.joints)
            indices = mechanism.kinematics.joint_indices.get(joint)
            if indices is None:
                raise ObjectiveError(f"{joint} has no value in q; remove it from `joints` of {self._label}")
            columns |= {indices.v[dof] for dof in dofs if dof in indices.v}
            if indices.quaternion_v is not None:
                columns |= {indices.quaternion_v + dof.axis_index for dof in dofs if dof.is_rotation}
        return sorted(columns)


@dataclass(frozen=True, slots=True, eq=False)
class _ManipulabilityResidual:
    """Residual function of a `Manipulability` relation: reference / (w + reference), and its derivative."""

    objective: Manipulability
    reference: float

    def __call__(self, mechanism: Mechanism, q: Array) -> tuple[Array, Array]:
        selected_jacobian = self.objective._selected_jacobian
        U, singular_values, Vt = np.linalg.svd(selected_jacobian(mechanism, q), full_matrices=False)
        # dw is the sum over k of (product of the other singular values) u_k' dJ v_k. There is no division, so the
        # formula is valid at singular configurations too. Where one singular value is zero, w has a kink, and dw is the
        # derivative on one side; where several are zero, dw is zero.
        products_of_others = np.array([np.delete(singular_values, k).prod() for k in range(len(singular_values))])
        step, unit_vectors = 1e-5, np.eye(mechanism.nv)  # m or rad, for central differences of fourth order
        difference_1, difference_2 = (
            selected_jacobian(mechanism, mechanism.integrate(q, k * step * unit_vectors))
            - selected_jacobian(mechanism, mechanism.integrate(q, -k * step * unit_vectors))
            for k in (1, 2)
        )
        dJ = (8.0 * difference_1 - difference_2) / (12.0 * step)
        dw = np.einsum("k,ik,nij,kj->n", products_of_others, U, dJ, Vt)
        denominator = float(singular_values.prod()) + self.reference
        return np.array([self.reference / denominator]), (-self.reference / denominator**2 * dw)[None]
