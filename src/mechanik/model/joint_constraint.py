"""Relations between joint values: `Coupling` (mimic joints, gears) and `JointConstraint` (sums of polynomials).

A coupling removes an entry from q. A joint constraint, sum of p_k(q_k) = constant, is a residual that solvers keep at
zero; it is scaled by the slope of its terms in the range of the joints.
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
"""Smallest absolute ratio at which the mimic's limits bound the leader; below it the mimic does not move."""


class Coupling:
    """A linear coupling of a mimic joint to its leader: mimic's value = ratio * leader's value + offset.

    `Joint.mimic` creates it. It always holds, and the mimic's dof is not part of q.

    Args:
        mimic: the joint that follows.
        dof: its coupled dof.
        leader: the leading joint.
        leader_dof: the leader's coupled dof.
        ratio: factor of the leader's value.
        offset: m or rad.

    Attributes:
        mimic, dof, leader, leader_dof, ratio, offset: as in Args.

    Raises:
        CouplingError: the dof has a leader, follows itself, closes a loop or is part of a spherical joint.

    Example:
        >>> left, right = mk.Joint("left", dof="Z"), mk.Joint("right", dof="Z")
        >>> right.mimic(left, ratio=-1.0, offset=0.01)
        <coupling right.Z = -1 * left.Z + 0.01>
    """

    def __init__(self, mimic: Joint, dof: DoF, leader: Joint, leader_dof: DoF, ratio: float, offset: float) -> None:
        if dof in mimic._couplings:
            raise CouplingError(f"{dof.name} of {mimic} already has the leader {mimic._couplings[dof].leader}")
        for joint in (mimic, leader):
            if joint.is_closure:
                raise CouplingError(f"{joint} closes a loop, so {mimic} and {leader} cannot be coupled")
        for joint, coupled_dof in ((mimic, dof), (leader, leader_dof)):
            if coupled_dof.is_rotation and all(rotation_dof in joint.dof for rotation_dof in ROTATIONS):
                raise CouplingError(
                    f"{coupled_dof.name} of {joint} is an angle of a spherical joint, which cannot be coupled"
                )
        self.mimic, self.dof, self.leader, self.leader_dof = mimic, dof, leader, leader_dof
        self.ratio, self.offset = ratio, offset
        first_leader, first_dof, _, _ = self.resolve()
        if first_leader is mimic and first_dof is dof:
            raise CouplingError(f"{dof.name} of {mimic} would be its own leader through {leader}")
        mimic._couplings[dof] = self
        leader._mimic_couplings.append(self)
        mimic._targets.pop(dof, None)
        mimic._rest_pose.pop(dof, None)
        self._changed()
        first_leader._clamp_targets()
        first_leader._assign({first_dof: float(first_leader._values[first_dof])})

    def __repr__(self) -> str:
        formula = f"{self.ratio:g} * {self.leader.name}.{self.leader_dof.name} + {self.offset:g}"
        return f"<coupling {self.mimic.name}.{self.dof.name} = {formula}>"

    def undo(self) -> None:
        """Remove the coupling; the mimic joint keeps its value, clamped to its limits."""
        if self.mimic._couplings.get(self.dof) is not self:
            raise CouplingError(f"{self} is already undone")
        del self.mimic._couplings[self.dof]
        self.leader._mimic_couplings.remove(self)
        self._changed()
        if self.dof in self.mimic.dof:
            self.mimic._assign({self.dof: float(self.mimic._values[self.dof])})

    def resolve(self) -> tuple[Joint, DoF, float, float]:
        """Return the joint and dof at the head of a chain of couplings, with the total ratio and offset."""
        ratio, offset, leader, dof = self.ratio, self.offset, self.leader, self.leader_dof
        while dof in leader._couplings and not (leader is self.mimic and dof is self.dof):
            coupling = leader._couplings[dof]
            offset += ratio * coupling.offset
            ratio *= coupling.ratio
            leader, dof = coupling.leader, coupling.leader_dof
        return leader, dof, ratio, offset

    def limits_for_leader(self) -> tuple[float, float]:
        """Return the mimic's limits as limits of the leader's value, m or rad."""
        lower, upper = self.mimic.effective_limits(self.dof)
        if abs(self.ratio) < MIN_RATIO:
            return -math.inf, math.inf
        ends = (lower - self.offset) / self.ratio, (upper - self.offset) / self.ratio
        return min(ends) + 0.0, max(ends) + 0.0  # adding zero turns -0 to 0

    def update_mimic(self) -> None:
        """Set the mimic's value from the leader's value, along all couplings that depend on it."""
        mimic = self.mimic
        mimic._values[self.dof] = self.ratio * float(self.leader._values[self.leader_dof]) + self.offset
        mimic._invalidate()
        for coupling in mimic._mimic_couplings:
            if coupling.leader_dof is self.dof:
                coupling.update_mimic()

    def _changed(self) -> None:
        self.mimic._touch()
        self.leader._touch()


MIN_RANGE = 1e-6
"""Smallest range, m or rad, that limits give a dof in `term_scales`; it keeps the scale of high powers above zero."""
MIN_BALANCED_RANGE = 1e-3
"""Smallest range, m or rad, that the other terms give a dof; larger, since that range is less certain."""


def term_scales(terms: Sequence[tuple[Array, tuple[float, float]]], constant: float) -> list[float]:
    """Estimate, for each dof of a joint constraint, how much a unit of the dof changes the sum of the terms.

    The factor of a high power alone says little: 1e9 times the fifth power of a lift of up to 0.02 m changes the sum as
    much as 160 times the lift. So the factor of power n is multiplied by range^(n - 1). The range of a dof is bounded
    by its limits, by what the other terms can balance, and by 1 (m or rad).

    Args:
        terms: for each dof the factors of its powers 1 to n, and its limits.
        constant: the sum of all terms.

    Returns:
        A scale for each dof.
    """
    ranges = [min(max(abs(lower), abs(upper), MIN_RANGE), 1.0) for _, (lower, upper) in terms]
    max_terms = [
        float(_power_sizes(factors, dof_range).sum()) * dof_range
        for (factors, _), dof_range in zip(terms, ranges, strict=True)
    ]
    scales: list[float] = []
    for k, (factors, _) in enumerate(terms):
        dof_range, balance = ranges[k], abs(constant) + sum(max_terms[:k]) + sum(max_terms[k + 1 :])
        if len(terms) > 1:
            powers = np.flatnonzero(factors)
            balanced_range = float(((balance / np.abs(factors[powers])) ** (1.0 / (powers + 1.0))).min())
            dof_range = min(dof_range, max(balanced_range, MIN_BALANCED_RANGE))
        scales.append(float(_power_sizes(factors, dof_range).max()))
    return scales


def add_coefficients(coefficients: Array | None, summand: Array) -> Array:
    """Add two arrays of factors of the powers 1 to n, which may differ in length; None is zero."""
    padded = np.zeros(0) if coefficients is None else coefficients
    total = np.zeros(max(len(padded), len(summand)))
    total[: len(padded)] += padded
    total[: len(summand)] += summand
    return total


def _power_sizes(factors: Array, dof_range: float) -> Array:
    """Return the change by each power for a unit of the dof, at the end of its range."""
    return np.abs(factors) * np.power(dof_range, np.arange(len(factors), dtype=np.float64))


CANCELLATION_TOLERANCE = 1e-14
"""Share of a factor below which the rest after cancellation with a coupling is rounding."""

JointDof = Joint | tuple[Joint, DoFLike]
Coefficients = float | Sequence[float] | Array

_serials = itertools.count()


@dataclass(frozen=True, slots=True)
class PolynomialTerm:
    """A polynomial of a dof: coefficients[0] * value + coefficients[1] * value^2 + ..., value in m or rad.

    Attributes:
        joint: the joint.
        dof: its dof.
        coefficients: factors of the powers 1 to n.
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
        terms: for a joint of one dof, or for (joint, dof), the factor of its value; or a list of the factors of its
            powers 1, 2, 3 and so on. Values are in m or rad.
        constant: the sum of the terms.
        name: name of the constraint; unnamed constraints are numbered.

    Raises:
        InvalidArgument: a key is not a joint, or the name is not a string.
        ShapeError: `terms` is not a mapping to numbers.
        CouplingError: a dof is named twice, closes a loop or is part of a spherical joint; or all factors are zero.

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
        self._name, self._serial = name, next(_serials)
        self._constant = as_number(constant, f"constant of {self}")
        polynomials: dict[tuple[Joint, DoF], PolynomialTerm] = {}
        for joint_or_dof, coefficients in terms.items():
            joint, dof = self._joint_and_dof(joint_or_dof)
            if (joint, dof) in polynomials:
                raise CouplingError(f"{self} names {dof.name} of {joint} twice; add the factors")
            factors = self._checked_factors(coefficients, joint)
            if factors:
                polynomials[joint, dof] = PolynomialTerm(joint, dof, factors)
        if not polynomials:
            raise CouplingError(f"{self} has no effect: at least one factor must not be zero")
        self._terms = tuple(polynomials.values())
        self._is_active = True
        for joint in self.joints:
            joint._joint_constraints.append(self)
        self._changed()

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
        """The sum of the terms."""
        return self._constant

    @property
    def formula(self) -> str:
        """The terms as text: `1 left.EZ + 0.5 left.EZ^2 + -2 slide.Z`."""
        return " + ".join(
            f"{factor:g} {term.joint.name}.{term.dof.name}{f'^{power}' if power > 1 else ''}"
            for term in self._terms
            for power, factor in enumerate(term.coefficients, start=1)
            if factor
        )

    @property
    def joints(self) -> tuple[Joint, ...]:
        """The constrained joints, without repetition."""
        return tuple(dict.fromkeys(term.joint for term in self._terms))

    @property
    def scale(self) -> float:
        """The largest of `term_scales`, with mimic dofs replaced by their leaders.

        Residuals are measured relative to it.
        """
        factors, constant = self.resolve_couplings()
        factors_by_dof = factors or {(term.joint, term.dof): np.array(term.coefficients) for term in self._terms}
        return max(
            term_scales(
                [(dof_factors, joint.effective_limits(dof)) for (joint, dof), dof_factors in factors_by_dof.items()],
                constant,
            )
        )

    def error(self) -> float:
        """Return the sum of the terms minus the constant at the present joint values, in the constraint's own unit."""
        return sum(term.value for term in self._terms) - self._constant

    def undo(self) -> None:
        """Remove the constraint. Raises `CouplingError` the second time."""
        if not self._is_active:
            raise CouplingError(f"{self} is already undone")
        self._is_active = False
        for joint in self.joints:
            joint._joint_constraints.remove(self)
        self._changed()

    def resolve_couplings(self) -> tuple[dict[tuple[Joint, DoF], Array], float]:
        """Express the constraint in dofs that are not mimic dofs.

        Returns:
            The factors of the powers 1 to n of each dof, and the constant. There are no dofs if the constraint repeats
            a coupling.
        """
        sums: dict[tuple[Joint, DoF], Array] = {}
        sizes: dict[tuple[Joint, DoF], Array] = {}  # sums of absolute values, to detect cancellation
        constant = self._constant
        for term in self._terms:
            joint, dof, factors = term.joint, term.dof, np.array(term.coefficients)
            if dof in joint._couplings:
                joint, dof, ratio, offset = joint._couplings[dof].resolve()
                line = np.polynomial.Polynomial([offset, ratio])
                powers = np.zeros(len(factors) + 1)
                for k, factor in enumerate(factors, start=1):
                    powers[: k + 1] += factor * (line**k).coef
                constant, factors = constant - float(powers[0]), powers[1:]
            sums[joint, dof] = add_coefficients(sums.get((joint, dof)), factors)
            sizes[joint, dof] = add_coefficients(sizes.get((joint, dof)), np.abs(factors))
        rounded = {
            key: np.where(np.abs(dof_factors) > CANCELLATION_TOLERANCE * sizes[key], dof_factors, 0.0)
            for key, dof_factors in sums.items()
        }
        return {key: dof_factors for key, dof_factors in rounded.items() if dof_factors.any()}, constant

    # ---- inside -----------------------------------------------------------------------------

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
                f"{dof.name} of {joint} is an angle of a spherical joint, and {self} cannot use it; "
                "replace the joint by three revolute joints"
            )
        return joint, dof

    def _checked_factors(self, coefficients: Coefficients, joint: Joint) -> tuple[float, ...]:
        """Validate factors and remove trailing zeros."""
        label = f"factors of {joint} in {self}"
        try:
            array = np.atleast_1d(np.array(coefficients, dtype=np.float64))
        except (TypeError, ValueError):
            raise ShapeError(f"{label} must be a number or a list of numbers, not {coefficients!r}") from None
        if array.ndim != 1:
            raise ShapeError(f"{label} must be a number or a list of numbers, not an array of shape {array.shape}")
        factors = [as_number(value, label) for value in array.tolist()]
        while factors and factors[-1] == 0.0:
            factors.pop()
        return tuple(factors)

    def _changed(self) -> None:
        for joint in self.joints:
            joint._touch()
