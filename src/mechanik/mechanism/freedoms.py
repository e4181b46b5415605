"""A frame that moves: freedoms with values and limits."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mechanik.errors import DoFError, LimitsError, NotARotation
from mechanik.mechanism.dof import ROTATIONS, DoF, DoFLike, as_dof, as_dofs
from mechanik.mechanism.door import as_number, as_numbers, as_vector, read_only
from mechanik.mechanism.frame import Frame
from mechanik.spatial import euler, make, quaternion, rotation
from mechanik.spatial.array import Array, ArrayLike


class Freedoms(Frame):
    """Any ascending subset of X Y Z EX EY EZ, moving what hangs on it by A T(x, y, z) Rz Ry Rx A'.

    A is the turn from the frame to its axes of motion: the identity, unless `axis` or `axes_wxyz` says
    otherwise. Where the three rotations are free and unlimited it is a ball: a quaternion inside, and Euler
    values that are derived from it and stay continuous.
    """

    def __init__(
        self,
        name: str,
        dof: Iterable[DoFLike] | DoFLike,
        position: ArrayLike,
        wxyz: ArrayLike,
        axes_wxyz: ArrayLike,
    ) -> None:
        super().__init__(name, position=position, wxyz=wxyz)
        self._axes = read_only(self._unit(axes_wxyz))
        self.set_dof(dof)

    # ---- freedoms ---------------------------------------------------------------------------

    @property
    def dof(self) -> tuple[DoF, ...]:
        """The freedoms, in the order X Y Z EX EY EZ."""
        return self._dof

    @property
    def dof_flags(self) -> tuple[bool, ...]:
        """Six flags, True where the freedom is free."""
        return tuple(dof in self._dof for dof in DoF)

    def set_dof(self, dof: Iterable[DoFLike] | DoFLike) -> None:
        """Choose the freedoms anew: values and limits are reset."""
        self._dof = as_dofs(dof)
        self._values = np.zeros(6)
        self._turn = read_only(quaternion.identity())
        self._lower, self._upper = np.full(6, -np.inf), np.full(6, np.inf)
        self._invalidate()
        self._touch()

    def clear_dof(self) -> None:
        """Fix it."""
        self.set_dof(())

    @property
    def is_ball(self) -> bool:
        """Three free rotations without limits: kept as a quaternion."""
        return (
            all(dof in self._dof for dof in ROTATIONS)
            and not np.isfinite(self._lower[3:]).any()
            and not np.isfinite(self._upper[3:]).any()
        )

    @property
    def axes_wxyz(self) -> Array:
        """The turn A from the frame to its axes of motion, (4,)."""
        return self._axes

    @axes_wxyz.setter
    def axes_wxyz(self, wxyz: ArrayLike) -> None:
        self._axes = read_only(self._unit(wxyz))
        self._invalidate()
        self._touch()

    @property
    def axis(self) -> Array:
        """For one freedom: where its axis points in the frame, (3,), unit."""
        return quaternion.rotate(self._axes, np.eye(3)[self._only_dof("axis").direction])

    @axis.setter
    def axis(self, axis: ArrayLike) -> None:
        dof = self._only_dof("axis")
        direction = as_vector(axis, 3, f"axis of {self}")
        if np.linalg.norm(direction) < 1e-12:
            raise NotARotation(f"axis of {self} is zero; it must point somewhere")
        self.axes_wxyz = quaternion.from_matrix(rotation.between(np.eye(3)[dof.direction], direction))

    # ---- values -----------------------------------------------------------------------------

    @property
    def values(self) -> Array:
        """One number for each freedom, m or rad, in the order of `dof`; set values are brought inside the limits."""
        self._look()
        return read_only(self._values[list(self._dof)])

    @values.setter
    def values(self, values: ArrayLike) -> None:
        self.set_values(values)

    def value(self, dof: DoFLike) -> float:
        """The value of one freedom."""
        self._look()
        return float(self._values[self._free(dof)])

    def set_values(self, *values: ArrayLike) -> bool:
        """Set all values, brought inside the limits; returns whether a limit was hit."""
        wanted = self._each(values, "values")
        self._check_leads(self._dof)
        return self._assign(wanted)

    def set_value(self, dof: DoFLike, value: float) -> bool:
        """Set one value, brought inside its limits; returns whether a limit was hit."""
        free = self._free(dof)
        wanted = as_number(value, f"value of {self}")
        self._check_leads((free,))
        return self._assign({free: wanted})

    @property
    def turn_wxyz(self) -> Array:
        """The rotation of the motion, Rz Ry Rx, as a quaternion (4,)."""
        self._look()
        if self.is_ball:
            return self._turn
        return read_only(euler.quaternion_from_euler(self._values[[5, 4, 3]], order="zyx", axes="moving"))

    @turn_wxyz.setter
    def turn_wxyz(self, wxyz: ArrayLike) -> None:
        """For a ball only: turn it; the Euler values follow without a jump."""
        if not self.is_ball:
            raise DoFError(f"{self} is not a ball, so its values must be set one by one")
        self._turn = read_only(self._unit(wxyz))
        zyx = euler.euler_from_quaternion(self._turn, order="zyx", axes="moving", near=self._values[[5, 4, 3]])
        self._values[[5, 4, 3]] = zyx
        self._invalidate()

    @property
    def motion(self) -> Array:
        """The pose (4, 4) by which the values move from the frame."""
        A = quaternion.to_matrix(self._axes)
        return make(A @ quaternion.to_matrix(self.turn_wxyz) @ A.T, A @ self._values[:3])

    @property
    def moved_world_matrix(self) -> Array:
        """The frame's world pose times its motion: where what it holds hangs, (4, 4)."""
        return self._X_world_children_fresh()

    # ---- limits -----------------------------------------------------------------------------

    @property
    def lower(self) -> Array:
        """Lower limits, one for each freedom; -inf where there is none."""
        return read_only(self._lower[list(self._dof)])

    @property
    def upper(self) -> Array:
        """Upper limits, one for each freedom; inf where there is none."""
        return read_only(self._upper[list(self._dof)])

    def limits(self, dof: DoFLike) -> tuple[float, float]:
        """Lower and upper limit of one freedom."""
        free = self._free(dof)
        return float(self._lower[free]), float(self._upper[free])

    def set_limits(self, lower: ArrayLike, upper: ArrayLike) -> bool:
        """Set all limits at once, and bring the values inside; returns whether one moved."""
        low, high = (self._each((side,), "limits", infinite=True) for side in (lower, upper))
        return self._bound(low, high)

    def set_lower(self, *lower: ArrayLike) -> bool:
        """Set all lower limits, and bring the values inside; returns whether one moved."""
        return self._bound(self._each(lower, "lower limits", infinite=True), {})

    def set_upper(self, *upper: ArrayLike) -> bool:
        """Set all upper limits, and bring the values inside; returns whether one moved."""
        return self._bound({}, self._each(upper, "upper limits", infinite=True))

    def set_limit(self, dof: DoFLike, lower: float | None = None, upper: float | None = None) -> bool:
        """Set one or both limits of one freedom; None leaves a side as it is. Returns whether the value moved."""
        free = self._free(dof)
        return self._bound(
            {} if lower is None else {free: as_number(lower, f"lower limit of {self}", infinite=True)},
            {} if upper is None else {free: as_number(upper, f"upper limit of {self}", infinite=True)},
        )

    def effective_limits(self, dof: DoFLike) -> tuple[float, float]:
        """The limits of a freedom, narrowed by all that depends on it."""
        return self.limits(dof)

    # ---- inside -----------------------------------------------------------------------------

    def _X_world_children(self) -> Array:
        return super()._X_world_children() @ self.motion

    def _free(self, dof: DoFLike) -> DoF:
        which = as_dof(dof)
        if which not in self._dof:
            free = " ".join(one.name for one in self._dof) or "none"
            raise DoFError(f"{which.name} of {self} is not free; free: {free}")
        return which

    def _only_dof(self, what: str) -> DoF:
        if len(self._dof) != 1:
            raise DoFError(f"{what}: {self} has {len(self._dof)} freedoms, not one; say which is meant")
        return self._dof[0]

    def _each(self, given: tuple[ArrayLike, ...], what: str, infinite: bool = False) -> dict[DoF, float]:
        numbers = as_numbers(given, len(self._dof), f"{what} of {self}", infinite)
        return dict(zip(self._dof, numbers, strict=True))

    def _look(self) -> None:
        """Bring the values up to date, where they follow from something else."""

    def _check_leads(self, dofs: Iterable[DoF]) -> None:
        """Refuse to set freedoms that something else moves."""

    def _clamp(self, dof: DoF, value: float) -> float:
        lower, upper = self.effective_limits(dof)
        return min(max(value, lower), upper)

    def _assign(self, wanted: dict[DoF, float]) -> bool:
        inside = {dof: self._clamp(dof, value) for dof, value in wanted.items()}
        for dof, value in inside.items():
            self._values[dof] = value
        if any(dof.is_rotation for dof in inside):
            self._turn = read_only(euler.quaternion_from_euler(self._values[[5, 4, 3]], order="zyx", axes="moving"))
        self._invalidate()
        return inside != wanted

    def _bound(self, lower: dict[DoF, float], upper: dict[DoF, float]) -> bool:
        for dof in {*lower, *upper}:
            low, high = lower.get(dof, float(self._lower[dof])), upper.get(dof, float(self._upper[dof]))
            if low == np.inf or high == -np.inf:
                raise LimitsError(f"limits of {dof.name} of {self}, {low} and {high}, leave no value")
            if low > high:
                raise LimitsError(f"limits of {dof.name} of {self}: the lower, {low}, is above the upper, {high}")
        for dof, value in lower.items():
            self._lower[dof] = value
        for dof, value in upper.items():
            self._upper[dof] = value
        self._touch()
        return self._assign({dof: float(self._values[dof]) for dof in self._dof})
