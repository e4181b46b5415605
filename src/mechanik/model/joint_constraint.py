"""Relations between joint values: `Coupling` (mimic joints, gears) and `JointConstraint` (sums of polynomials).

A coupling removes an entry from q. A joint constraint requires that a sum of polynomials p_k(q_k) equals a constant;
solvers keep its residual at zero. The residual is divided by the largest change of the sum per unit of a joint value,
estimated over the joint limits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mechanik.errors import CouplingError, InvalidArgument, ShapeError
from mechanik.model.dof import ROTATIONS, DoF, DoFLike
from mechanik.model.joint import Joint
from mechanik.spatial.array import Array
from mechanik.validation import as_number

MIN_RATIO = 1e-12
"""Couplings with a smaller absolute ratio do not limit the leader: the mimic joint practically does not move."""


class Coupling:
    """A linear coupling of a mimic joint to its leader: mimic's value = ratio * leader's value + offset.

    `Joint.mimic` creates couplings. A coupling cannot be violated, and the mimic's dof is not part of q.

    Args:
        mimic: the mimic joint.
        dof: coupled dof of the mimic joint.
        leader: the joint that determines the value of the mimic joint.
        leader_dof: the leader's coupled dof.
        ratio: coefficient of the leader's value.
        offset: m or rad.

    Attributes:
        mimic, dof, leader, leader_dof, ratio, offset: as in Args.

    Raises:
        CouplingError: the mimic dof already has a leader or would be its own leader, a joint closes a loop, or a dof is
            an angle of a joint with three rotations.

    Example:
        >>> left, right = mk.Joint("left", dof="Z"), mk.Joint("right", dof="Z")
        >>> right.mimic(left, ratio=-1.0, offset=0.01)
        <coupling right.Z = -1 * left.Z + 0.01>
    """

    def __init__(self, mimic: Joint, dof: DoF, leader: Joint, leader_dof: DoF, ratio: float, offset: float) -> None:
        if dof in mimic._couplings:
            raise CouplingError(
                f"{dof.name} of {mimic} already has the leader {mimic._couplings[dof].leader}; undo that coupling first"
            )
        for joint in (mimic, leader):
            if joint.is_closure:
                raise CouplingError(f"{joint} closes a loop, so {mimic} and {leader} cannot be coupled")
        for joint, coupled_dof in ((mimic, dof), (leader, leader_dof)):
            if coupled_dof.is_rotation and all(rotation_dof in joint.dof for rotation_dof in ROTATIONS):
                raise CouplingError(
                    f"{coupled_dof.name} of {joint} is an angle of a joint with three rotations and cannot be coupled"
                )
        self.mimic, self.dof, self.leader, self.leader_dof = mimic, dof, leader, leader_dof
        self.ratio, self.offset = ratio, offset
        root_leader, root_dof, _, _ = self.resolve()
        if root_leader is mimic and root_dof is dof:
            raise CouplingError(f"{dof.name} of {mimic} would be its own leader through {leader}")
        mimic._couplings[dof] = self
        leader._mimic_couplings.append(self)
        mimic._targets.pop(dof, None)
        mimic._rest_pose.pop(dof, None)
        self._mark_joints_changed()
        root_leader._clamp_targets()
        root_leader._assign({root_dof: float(root_leader._values[root_dof])})

    def __repr__(self) -> str:
        formula = f"{self.ratio:g} * {self.leader.name}.{self.leader_dof.name} + {self.offset:g}"
        return f"<coupling {self.mimic.name}.{self.dof.name} = {formula}>"

    def undo(self) -> None:
        """Remove the coupling; the mimic joint keeps its value, clamped to its limits.

        Raises:
            CouplingError: the coupling is already removed.
        """
        if self.mimic._couplings.get(self.dof) is not self:
            raise CouplingError(f"{self} is already undone")
        del self.mimic._couplings[self.dof]
        self.leader._mimic_couplings.remove(self)
        self._mark_joints_changed()
        if self.dof in self.mimic.dof:
            self.mimic._assign({self.dof: float(self.mimic._values[self.dof])})

    def resolve(self) -> tuple[Joint, DoF, float, float]:
        """Return the independent joint and dof that determine the mimic's value, with the total ratio and offset."""
        ratio, offset, leader, dof = self.ratio, self.offset, self.leader, self.leader_dof
        while dof in leader._couplings and not (leader is self.mimic and dof is self.dof):
            coupling = leader._couplings[dof]
            offset += ratio * coupling.offset
            ratio *= coupling.ratio
            leader, dof = coupling.leader, coupling.leader_dof
        return leader, dof, ratio, offset

    def limits_for_leader(
        self, replaced: Mapping[tuple[Joint, DoF], tuple[float, float]] | None = None
    ) -> tuple[float, float]:
        """Return the mimic's limits as limits of the leader's value, m or rad.

        Args:
            replaced: limits that replace those of the joints, as in `Joint.effective_limits`.
        """
        lower, upper = self.mimic.effective_limits(self.dof, replaced)
        if abs(self.ratio) < MIN_RATIO:
            return -math.inf, math.inf
        bounds = (lower - self.offset) / self.ratio, (upper - self.offset) / self.ratio
        return min(bounds) + 0.0, max(bounds) + 0.0  # adding zero converts -0 to 0

    def update_mimic(self) -> None:
        """Set the mimic's value from the leader's value, then the values of all dofs whose leader is the mimic."""
        mimic = self.mimic
        mimic._values[self.dof] = self.ratio * float(self.leader._values[self.leader_dof]) + self.offset
        mimic._invalidate()
        for coupling in mimic._mimic_couplings:
            if coupling.leader_dof is self.dof:
                coupling.update_mimic()

    def _mark_joints_changed(self) -> None:
        self.mimic._mark_changed()
        self.leader._mark_changed()


MIN_RANGE = 1e-6
"""Lower bound, m or rad, of the range that `term_scales` computes from joint limits. Without this bound the scale of
high powers could be zero."""
MIN_RANGE_FROM_OTHER_TERMS = 1e-3
"""Lower bound, m or rad, of the range that `term_scales` computes from the other terms; larger than `MIN_RANGE`, since
the estimate from other terms is less accurate."""


def term_scales(terms: Sequence[tuple[Array, tuple[float, float]]], constant: float) -> list[float]:
    """Estimate, for each dof of a joint constraint, how much a unit of the dof changes the sum of the terms.

    The coefficient of a high power is no measure of its effect: for |q| up to 0.02 m, 1e9 q^5 changes the sum as much
    as 160 q. So the coefficient of power n is multiplied by range^(n - 1). The range is the largest expected |q|: at
    most 1 (m or rad), at most the larger absolute limit, and at most the |q| up to which the other terms can cancel
    each power of q.

    Args:
        terms: for each dof the coefficients of its powers 1 to n, and its limits.
        constant: required value of the sum of all terms.

    Returns:
        For each dof the change of the sum per unit of the dof: that of the power with the largest effect.
    """
    ranges = [min(max(abs(lower), abs(upper), MIN_RANGE), 1.0) for _, (lower, upper) in terms]
    max_term_values = [
        float(_power_slopes(coefficients, dof_range).sum()) * dof_range
        for (coefficients, _), dof_range in zip(terms, ranges, strict=True)
    ]
    scales: list[float] = []
    for k, (coefficients, _) in enumerate(terms):
        dof_range, max_other_terms = ranges[k], abs(constant) + sum(max_term_values[:k]) + sum(max_term_values[k + 1 :])
        if len(terms) > 1:
            indices = np.flatnonzero(coefficients)  # the coefficient at index i belongs to power i + 1
            range_from_other_terms = float(
                ((max_other_terms / np.abs(coefficients[indices])) ** (1.0 / (indices + 1.0))).min()
            )
            dof_range = min(dof_range, max(range_from_other_terms, MIN_RANGE_FROM_OTHER_TERMS))
        scales.append(float(_power_slopes(coefficients, dof_range).max()))
    return scales


def add_coefficients(coefficients: Array | None, second_summand: Array) -> Array:
    """Add two arrays of coefficients of the powers 1 to n, which may differ in length; None is zero."""
    first_summand = np.zeros(0) if coefficients is None else coefficients
    total = np.zeros(max(len(first_summand), len(second_summand)))
    total[: len(first_summand)] += first_summand
    total[: len(second_summand)] += second_summand
    return total


def _power_slopes(coefficients: Array, dof_range: float) -> Array:
    """Return |coefficient| * range^(n - 1) for each power n: the change of the sum per unit of the dof."""
    return np.abs(coefficients) * np.power(dof_range, np.arange(len(coefficients), dtype=np.float64))


CANCELLATION_TOLERANCE = 1e-14
"""After couplings are substituted, a coefficient is a sum. If its ratio to the sum of the absolute summands is at most
this number, the coefficient is a rounding error and counts as zero."""

JointDof = Joint | tuple[Joint, DoFLike]
Coefficients = float | Sequence[float] | Array

_serials = itertools.count()


@dataclass(frozen=True, slots=True)
class PolynomialTerm:
    """A polynomial of a dof: coefficients[0] * value + coefficients[1] * value^2 + ..., value in m or rad.

    Attributes:
        joint, dof: the variable.
        coefficients: coefficients of the powers 1 to n.
    """

    joint: Joint
    dof: DoF
    coefficients: tuple[float, ...]

    @property
    def value(self) -> float:
        """The polynomial at the joint's present value."""
        return float(np.polynomial.polynomial.polyval(self.joint.value(self.dof), (0.0, *self.coefficients)))


class JointConstraint:
    """A constraint on joint values, such as a differential or a cam: the sum of all terms equals `constant`.

    Solvers satisfy joint constraints like loop closures. Values that are set directly may violate a constraint; `error`
    returns the violation. If a dof is a multiple of another dof, prefer `Joint.mimic`: it cannot be violated and
    removes an entry from q.

    Args:
        terms: for a joint of one dof, or for (joint, dof), the coefficient of its value; or a list of the coefficients
            of its powers 1, 2, 3 and so on. Values are in m or rad.
        constant: required value of the sum of the terms, in the unit of the terms.
        name: name of the constraint; in a mechanism, unnamed constraints are `constraint1`, `constraint2` and so on.

    Raises:
        InvalidArgument: a key is neither a joint nor (joint, dof), or the name is not a string.
        DoFError: a joint does not have the dof, or a joint of several dofs is given without a dof.
        ShapeError, NotFinite: `terms` is not a mapping to finite numbers, or `constant` is not a finite number.
        CouplingError: a dof occurs twice or is an angle of a joint with three rotations, a joint closes a loop, or all
            coefficients are zero.

    Example:
        >>> left, right = mk.Joint("left", dof="EZ", values=0.2), mk.Joint("right", dof="EZ")
        >>> constraint = mk.JointConstraint({left: 1, right: 1}, name="differential")
        >>> constraint.formula, constraint.error()
        ('1 left.EZ + 1 right.EZ', 0.2)
    """

    def __init__(self, terms: Mapping[JointDof, Coefficients], constant: float = 0.0, *, name: str = "") -> None:
        if not isinstance(name, str):
            raise InvalidArgument(f"the name of a joint constraint must be a string, not {name!r}")
        if not isinstance(terms, Mapping):
            raise ShapeError(
                f"terms of a joint constraint must be a mapping such as {{left: 1, right: 1}}, not {terms!r}"
            )
        self._name, self._serial = name, next(_serials)  # mechanisms sort constraints by serial number
        self._constant = as_number(constant, f"constant of {self}")
        polynomials: dict[tuple[Joint, DoF], PolynomialTerm] = {}
        for joint_or_dof, coefficients in terms.items():
            joint, dof = self._joint_and_dof(joint_or_dof)
            if (joint, dof) in polynomials:
                raise CouplingError(f"{self} contains {dof.name} of {joint} twice; add the coefficients")
            valid_coefficients = self._validate_coefficients(coefficients, joint)
            if valid_coefficients:
                polynomials[joint, dof] = PolynomialTerm(joint, dof, valid_coefficients)
        if not polynomials:
            raise CouplingError(f"{self} has no effect: at least one coefficient must not be zero")
        self._terms = tuple(polynomials.values())
        self._is_active = True
        for joint in self.joints:
            joint._joint_constraints.append(self)
        self._mark_joints_changed()

    def __str__(self) -> str:
        return f"<joint constraint {self._name!r}>" if self._name else "<unnamed joint constraint>"

    def __repr__(self) -> str:
        return f"<joint constraint {self._name!r}: {self.formula} = {self._constant:g}, error {self.error():.3g}>"

    @property
    def name(self) -> str:
        """The name of the constraint; may be empty."""
        return self._name

    @property
    def terms(self) -> tuple[PolynomialTerm, ...]:
        """The polynomial of each dof."""
        return self._terms

    @property
    def constant(self) -> float:
        """Required value of the sum of the terms."""
        return self._constant

    @property
    def formula(self) -> str:
        """The terms as text: `1 left.EZ + 0.5 left.EZ^2 + -2 slide.Z`."""
        return " + ".join(
            f"{coefficient:g} {term.joint.name}.{term.dof.name}{f'^{power}' if power > 1 else ''}"
            for term in self._terms
            for power, coefficient in enumerate(term.coefficients, start=1)
            if coefficient
        )

    @property
    def joints(self) -> tuple[Joint, ...]:
        """The constrained joints, without repetition."""
        return tuple(dict.fromkeys(term.joint for term in self._terms))

    @property
    def scale(self) -> float:
        """Largest change of the sum per unit of a dof, as in `term_scales`, with mimic dofs replaced by their leaders.

        Residuals are divided by this scale.
        """
        resolved_coefficients, constant = self.resolve_couplings()
        coefficients_by_dof = resolved_coefficients or {
            (term.joint, term.dof): np.array(term.coefficients) for term in self._terms
        }
        return max(
            term_scales(
                [
                    (dof_coefficients, joint.effective_limits(dof))
                    for (joint, dof), dof_coefficients in coefficients_by_dof.items()
                ],
                constant,
            )
        )

    def error(self) -> float:
        """Return the sum of the terms minus the constant at the present joint values, in the unit of the terms."""
        return sum(term.value for term in self._terms) - self._constant

    def undo(self) -> None:
        """Remove the constraint.

        Raises:
            CouplingError: the constraint is already removed.
        """
        if not self._is_active:
            raise CouplingError(f"{self} is already undone")
        self._is_active = False
        for joint in self.joints:
            joint._joint_constraints.remove(self)
        self._mark_joints_changed()

    def resolve_couplings(self) -> tuple[dict[tuple[Joint, DoF], Array], float]:
        """Express the constraint in dofs that are not mimic dofs.

        Returns:
            The coefficients of the powers 1 to n of each dof, and the constant. The mapping is empty if all
            coefficients cancel: then the couplings alone determine whether the constraint is satisfied.
        """
        coefficients_by_dof: dict[tuple[Joint, DoF], Array] = {}
        magnitudes_by_dof: dict[tuple[Joint, DoF], Array] = {}  # sums of absolute values, to detect cancellation
        constant = self._constant
        for term in self._terms:
            joint, dof, coefficients = term.joint, term.dof, np.array(term.coefficients)
            if dof in joint._couplings:
                joint, dof, ratio, offset = joint._couplings[dof].resolve()
                leader_polynomial = np.polynomial.Polynomial([offset, ratio])
                substituted_coefficients = np.zeros(len(coefficients) + 1)
                for k, coefficient in enumerate(coefficients, start=1):
                    substituted_coefficients[: k + 1] += coefficient * (leader_polynomial**k).coef
                constant, coefficients = constant - float(substituted_coefficients[0]), substituted_coefficients[1:]
            coefficients_by_dof[joint, dof] = add_coefficients(coefficients_by_dof.get((joint, dof)), coefficients)
            magnitudes_by_dof[joint, dof] = add_coefficients(magnitudes_by_dof.get((joint, dof)), np.abs(coefficients))
        nonzero_coefficients = {
            key: np.where(
                np.abs(dof_coefficients) > CANCELLATION_TOLERANCE * magnitudes_by_dof[key], dof_coefficients, 0.0
            )
            for key, dof_coefficients in coefficients_by_dof.items()
        }
        return {
            key: dof_coefficients for key, dof_coefficients in nonzero_coefficients.items() if dof_coefficients.any()
        }, constant

    def _joint_and_dof(self, joint_or_dof: JointDof) -> tuple[Joint, DoF]:
        pair = joint_or_dof if isinstance(joint_or_dof, tuple) else (joint_or_dof, None)
        joint, dof_like = pair if len(pair) == 2 else (None, None)
        if not isinstance(joint, Joint):
            raise InvalidArgument(f"a term of {self} must be a joint or (joint, dof), not {joint_or_dof!r}")
        if joint.is_closure:
            raise CouplingError(
                f"{joint} closes a loop, so its values are not in q and {self} cannot use them; "
                "close the loop by another joint"
            )
        dof = joint._only_dof(f"terms of {self}") if dof_like is None else joint._check_dof(dof_like)
        if dof.is_rotation and all(rotation_dof in joint.dof for rotation_dof in ROTATIONS):
            raise CouplingError(
                f"{dof.name} of {joint} is an angle of a joint with three rotations, and {self} cannot use it; "
                "replace the joint by three revolute joints"
            )
        return joint, dof

    def _validate_coefficients(self, coefficients: Coefficients, joint: Joint) -> tuple[float, ...]:
        """Validate coefficients and remove trailing zeros."""
        label = f"coefficients of {joint} in {self}"
        try:
            array = np.atleast_1d(np.array(coefficients, dtype=np.float64))
        except (TypeError, ValueError):
            raise ShapeError(f"{label} must be a number or a list of numbers, not {coefficients!r}") from None
        if array.ndim != 1:
            raise ShapeError(f"{label} must be a number or a list of numbers, not an array of shape {array.shape}")
        numbers = [as_number(value, f"a coefficient of {joint} in {self}") for value in array.tolist()]
        while numbers and numbers[-1] == 0.0:
            numbers.pop()
        return tuple(numbers)

    def _mark_joints_changed(self) -> None:
        for joint in self.joints:
            joint._mark_changed()
