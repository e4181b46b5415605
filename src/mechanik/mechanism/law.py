"""A law that binds joint values: polynomials of single freedoms that add up to a constant."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mechanik.errors import CouplingError, ShapeError, WrongKind
from mechanik.mechanism.dof import ROTATIONS, DoF, DoFLike
from mechanik.mechanism.door import as_number
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.slopes import slopes, sum_of_powers
from mechanik.spatial.array import Array

CANCELS = 1e-14
"""Of what a coupling says too, a share as small as this is left by rounding."""

Freedom = Joint | tuple[Joint, DoFLike]
Factors = float | Sequence[float] | Array

_serials = itertools.count()


@dataclass(frozen=True, slots=True)
class Term:
    """factors[0] * value + factors[1] * value^2 + ..., for the value of one freedom (m or rad)."""

    joint: Joint
    dof: DoF
    factors: tuple[float, ...]

    @property
    def value(self) -> float:
        """Where the joint stands now."""
        return float(np.polynomial.polynomial.polyval(self.joint.value(self.dof), (0.0, *self.factors)))


class Law:
    """The sum of all terms is `constant`: what a differential, a cam or a pair of cylinders holds joints to.

    Solvers keep laws as they keep loops shut. Moving a joint by hand breaks a law as it opens a loop; `error` tells.
    Where one freedom is a multiple of another, `Joint.follow` is better: it cannot be broken and takes a number off q.

    Args:
        terms: for a joint of one freedom, or for (joint, freedom), the factor of its value; or a list, the factors of
            its value, its square, its third power and so on.
        constant: what they add up to.
        name: for people; laws without one are numbered.
    """

    def __init__(self, terms: Mapping[Freedom, Factors], constant: float = 0.0, *, name: str = "") -> None:
        if not isinstance(name, str):
            raise WrongKind(f"the name of a law is a string, not {name!r}")
        if not isinstance(terms, Mapping):
            raise ShapeError(f"the terms of a law are given by joint, as in {{left: 1, right: 1}}, not as {terms!r}")
        self._name, self._serial = name, next(_serials)
        self._constant = as_number(constant, f"constant of {self}")
        found: dict[tuple[Joint, DoF], Term] = {}
        for freedom, given in terms.items():
            joint, dof = self._freedom(freedom)
            if (joint, dof) in found:
                raise CouplingError(f"{self} names {dof.name} of {joint} twice; add up the factors")
            factors = self._factors(given, joint)
            if factors:
                found[joint, dof] = Term(joint, dof, factors)
        if not found:
            raise CouplingError(f"{self} binds nothing: give at least one joint a factor other than zero")
        self._terms = tuple(found.values())
        self._is_kept = True
        for joint in self.joints:
            joint._laws.append(self)
        self._changed()

    def __str__(self) -> str:
        return f"<law {self._name!r}>" if self._name else "<unnamed law>"

    def __repr__(self) -> str:
        return f"<law {self._name!r}: {self.formula} = {self._constant:g}, off by {self.error():.3g}>"

    @property
    def name(self) -> str:
        return self._name

    @property
    def terms(self) -> tuple[Term, ...]:
        return self._terms

    @property
    def constant(self) -> float:
        return self._constant

    @property
    def formula(self) -> str:
        """Its terms, for people: `1 left.EZ + 0.5 left.EZ^2 + -2 slide.Z`."""
        return " + ".join(
            f"{factor:g} {term.joint.name}.{term.dof.name}{f'^{power}' if power > 1 else ''}"
            for term in self._terms
            for power, factor in enumerate(term.factors, start=1)
            if factor
        )

    @property
    def joints(self) -> tuple[Joint, ...]:
        """The joints that it binds, each once."""
        return tuple(dict.fromkeys(term.joint for term in self._terms))

    @property
    def scale(self) -> float:
        """The largest of `slopes`, those of followers as their leaders have them.

        Errors are large or small compared with it.
        """
        factors, constant = self.resolved()
        some = factors or {(term.joint, term.dof): np.array(term.factors) for term in self._terms}
        return max(slopes([(one, joint.effective_limits(dof)) for (joint, dof), one in some.items()], constant))

    def error(self) -> float:
        """How far the terms are from the constant where the joints stand now; in the law's own unit, with its sign."""
        return sum(term.value for term in self._terms) - self._constant

    def undo(self) -> None:
        """Bind the joints no more."""
        if not self._is_kept:
            raise CouplingError(f"{self} was undone before")
        self._is_kept = False
        for joint in self.joints:
            joint._laws.remove(self)
        self._changed()

    def resolved(self) -> tuple[dict[tuple[Joint, DoF], Array], float]:
        """The same law for freedoms that follow no other: the factors of each one's powers 1 to n, and the constant.

        Where a law says no more than a coupling does, no freedom is left.
        """
        added: dict[tuple[Joint, DoF], Array] = {}
        sizes: dict[tuple[Joint, DoF], Array] = {}  # the same, with nothing that cancels
        constant = self._constant
        for term in self._terms:
            joint, dof, factors = term.joint, term.dof, np.array(term.factors)
            if dof in joint._couplings:
                joint, dof, ratio, offset = joint._couplings[dof].resolve()
                line = np.polynomial.Polynomial([offset, ratio])
                powers = np.zeros(len(factors) + 1)
                for k, factor in enumerate(factors, start=1):
                    powers[: k + 1] += factor * (line**k).coef
                constant, factors = constant - float(powers[0]), powers[1:]
            added[joint, dof] = sum_of_powers(added.get((joint, dof)), factors)
            sizes[joint, dof] = sum_of_powers(sizes.get((joint, dof)), np.abs(factors))
        kept = {key: np.where(np.abs(one) > CANCELS * sizes[key], one, 0.0) for key, one in added.items()}
        return {key: one for key, one in kept.items() if one.any()}, constant

    # ---- inside -----------------------------------------------------------------------------

    def _freedom(self, freedom: Freedom) -> tuple[Joint, DoF]:
        pair = freedom if isinstance(freedom, tuple) else (freedom, None)
        joint, which = pair if len(pair) == 2 else (None, None)
        if not isinstance(joint, Joint):
            raise WrongKind(f"{self} can bind joints, or (joint, freedom), not {freedom!r}")
        if joint.is_closure:
            raise CouplingError(
                f"{joint} closes a loop, so its values are no numbers of q, and {self} cannot bind them; "
                "let another joint of the loop close it"
            )
        dof = joint._only_dof(f"terms of {self}") if which is None else joint._free(which)
        if dof.is_rotation and all(one in joint.dof for one in ROTATIONS):
            raise CouplingError(
                f"{dof.name} of {joint} is one angle of three, and {self} can bind single turns only; "
                "make it of three joints with one turn each"
            )
        return joint, dof

    def _factors(self, given: Factors, joint: Joint) -> tuple[float, ...]:
        """Without zeros at the end."""
        what = f"factors of {joint} in {self}"
        try:
            several = np.atleast_1d(np.array(given, dtype=np.float64))
        except (TypeError, ValueError):
            raise ShapeError(f"{what} are a number, or a list of numbers, not {given!r}") from None
        if several.ndim != 1:
            raise ShapeError(f"{what} are a number, or a list of numbers, not an array of shape {several.shape}")
        factors = [as_number(one, what) for one in several.tolist()]
        while factors and factors[-1] == 0.0:
            factors.pop()
        return tuple(factors)

    def _changed(self) -> None:
        for joint in self.joints:
            joint._touch()
