"""A joint: any ascending subset of the six freedoms, with values, limits, targets and a rest pose."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from mechanik.errors import CouplingError, DoFError, LimitsError, NotARotation, NotFinite, ShapeError, StructureError
from mechanik.mechanism.dof import ROTATIONS, DoF, DoFLike, as_dof, as_dofs
from mechanik.mechanism.frame import Frame, as_vector
from mechanik.spatial import euler, make, quaternion, rotation
from mechanik.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from mechanik.mechanism.closure import Closure
    from mechanik.mechanism.coupling import Coupling
    from mechanik.mechanism.link import Link


class Joint(Frame):
    """A joint holds one link, and moves it by A T(x, y, z) Rz Ry Rx A'.

    A is the turn from the joint's frame to its axes of motion: the identity, unless `axis` or
    `axes_wxyz` says otherwise. A joint whose three rotations are free and unlimited is a ball: a
    quaternion inside, and Euler values that are derived from it and stay continuous.

    Args:
        dof: freedoms in the order X Y Z EX EY EZ.
        axis: (3,), for a joint of one freedom: where that freedom's axis points in the joint's frame.
        axes_wxyz: the turn A in general.
        lower, upper: limits, one for each freedom; m or rad.
        values: one for each freedom; brought inside the limits.
    """

    kind = "joint"

    def __init__(
        self,
        name: str = "",
        *,
        dof: Iterable[DoFLike] | DoFLike = (),
        position: ArrayLike = (0, 0, 0),
        wxyz: ArrayLike = (1, 0, 0, 0),
        axis: ArrayLike | None = None,
        axes_wxyz: ArrayLike = (1, 0, 0, 0),
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        values: ArrayLike | None = None,
    ) -> None:
        super().__init__(name, position=position, wxyz=wxyz)
        self.track_turns = False
        """Whether targets and rest poses count full turns, or mean the nearest equivalent angle."""
        self._closure: Closure | None = None
        self._couplings: dict[DoF, Coupling] = {}
        self._followers: list[Coupling] = []
        self._axes = self._unit(axes_wxyz)
        self.set_dof(dof)
        if axis is not None:
            self.axis = axis
        if lower is not None or upper is not None:
            free = np.full(len(self._dof), np.inf)
            self.set_limits(-free if lower is None else lower, free if upper is None else upper)
        if values is not None:
            self.set_values(values)

    # ---- freedoms ---------------------------------------------------------------------------

    @property
    def dof(self) -> tuple[DoF, ...]:
        return self._dof

    @property
    def dof_flags(self) -> tuple[bool, ...]:
        """Six flags, True where the freedom is free."""
        return tuple(dof in self._dof for dof in DoF)

    def set_dof(self, dof: Iterable[DoFLike] | DoFLike) -> None:
        """Choose the freedoms anew: values, limits, targets, rest pose and couplings are reset."""
        dofs = as_dofs(dof)
        for coupling in [*self._couplings.values(), *self._followers]:
            coupling.undo()
        self._dof = dofs
        self._values = np.zeros(6)
        self._turn = quaternion.identity()
        self._lower, self._upper = np.full(6, -np.inf), np.full(6, np.inf)
        self._targets: dict[DoF, float] = {}
        self._rest_pose: dict[DoF, float] = {}
        self._invalidate()
        self._touch()

    def clear_dof(self) -> None:
        """Make it a fixed joint."""
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
        """The turn A from the joint's frame to its axes of motion, (4,)."""
        return self._axes

    @axes_wxyz.setter
    def axes_wxyz(self, wxyz: ArrayLike) -> None:
        self._axes = self._unit(wxyz)
        self._invalidate()
        self._touch()

    @property
    def axis(self) -> Array:
        """The axis of a joint of one freedom in the joint's frame, (3,), unit."""
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
        """One number for each freedom, m or rad, in the order of `dof`."""
        return self._values[list(self._dof)]

    def value(self, dof: DoFLike) -> float:
        return float(self._values[self._free(dof)])

    def set_values(self, *values: ArrayLike) -> bool:
        """Set all values, brought inside the limits; returns whether a limit was hit."""
        wanted = self._numbers(values, "values")
        self._check_leads(self._dof)
        return self._assign(dict(zip(self._dof, wanted, strict=True)))

    def set_value(self, dof: DoFLike, value: float) -> bool:
        """Set one value, brought inside its limits; returns whether a limit was hit."""
        free = self._free(dof)
        wanted = self._number(value, "value")
        self._check_leads((free,))
        return self._assign({free: wanted})

    @property
    def turn_wxyz(self) -> Array:
        """The rotation of the motion, Rz Ry Rx, as a quaternion (4,)."""
        if self.is_ball:
            return self._turn
        return euler.quaternion_from_euler(self._values[[5, 4, 3]], order="zyx", axes="moving")

    @turn_wxyz.setter
    def turn_wxyz(self, wxyz: ArrayLike) -> None:
        """For a ball only: turn it; the Euler values follow without a jump."""
        if not self.is_ball:
            raise DoFError(f"{self} is not a ball, so its values must be set one by one")
        self._turn = self._unit(wxyz)
        zyx = euler.euler_from_quaternion(self._turn, order="zyx", axes="moving", near=self._values[[5, 4, 3]])
        self._values[[5, 4, 3]] = zyx
        self._invalidate()

    @property
    def motion(self) -> Array:
        """The pose (4, 4) by which the values move the child from the joint's frame."""
        A = quaternion.to_matrix(self._axes)
        return make(A @ quaternion.to_matrix(self.turn_wxyz) @ A.T, A @ self._values[:3])

    @property
    def moved_world_matrix(self) -> Array:
        """X_world_joint times the motion: where the child hangs, (4, 4)."""
        return self._X_world_children_fresh()

    # ---- limits -----------------------------------------------------------------------------

    @property
    def lower(self) -> Array:
        """Lower limits, one for each freedom; -inf where there is none."""
        return self._lower[list(self._dof)]

    @property
    def upper(self) -> Array:
        """Upper limits, one for each freedom; inf where there is none."""
        return self._upper[list(self._dof)]

    def limits(self, dof: DoFLike) -> tuple[float, float]:
        free = self._free(dof)
        return float(self._lower[free]), float(self._upper[free])

    def set_limits(self, lower: ArrayLike, upper: ArrayLike) -> bool:
        """Set all limits at once; values, targets and rest pose are brought inside. Returns whether a value moved."""
        return self._bound(
            dict(zip(self._dof, self._numbers((lower,), "lower limits", infinite=True), strict=True)),
            dict(zip(self._dof, self._numbers((upper,), "upper limits", infinite=True), strict=True)),
        )

    def set_lower(self, *lower: ArrayLike) -> bool:
        return self._bound(dict(zip(self._dof, self._numbers(lower, "lower limits", infinite=True), strict=True)), {})

    def set_upper(self, *upper: ArrayLike) -> bool:
        return self._bound({}, dict(zip(self._dof, self._numbers(upper, "upper limits", infinite=True), strict=True)))

    def set_limit(self, dof: DoFLike, lower: float | None = None, upper: float | None = None) -> bool:
        """Set one or both limits of one freedom; None leaves a side as it is. Returns whether the value moved."""
        free = self._free(dof)
        return self._bound(
            {} if lower is None else {free: self._number(lower, "lower limit", infinite=True)},
            {} if upper is None else {free: self._number(upper, "upper limit", infinite=True)},
        )

    # ---- targets and rest pose --------------------------------------------------------------

    @property
    def targets(self) -> tuple[float | None, ...]:
        """Where the solver should drive each freedom; None where nothing is asked."""
        return tuple(self._targets.get(dof) for dof in self._dof)

    def target(self, dof: DoFLike) -> float | None:
        return self._targets.get(self._free(dof))

    def set_targets(self, *targets: ArrayLike) -> bool:
        return self._aim(self._targets, dict(zip(self._dof, self._numbers(targets, "targets"), strict=True)))

    def set_target(self, dof: DoFLike, target: float) -> bool:
        """Ask for one value, brought inside its limits; returns whether a limit was hit."""
        return self._aim(self._targets, {self._free(dof): self._number(target, "target")})

    def clear_targets(self) -> None:
        self._targets.clear()

    @property
    def rest_pose(self) -> tuple[float | None, ...]:
        """Where each freedom would rest when nothing else is asked of it; None where it does not matter."""
        return tuple(self._rest_pose.get(dof) for dof in self._dof)

    def rest_value(self, dof: DoFLike) -> float | None:
        return self._rest_pose.get(self._free(dof))

    def set_rest_pose(self, *values: ArrayLike) -> bool:
        return self._aim(self._rest_pose, dict(zip(self._dof, self._numbers(values, "rest pose"), strict=True)))

    def set_rest_value(self, dof: DoFLike, value: float) -> bool:
        return self._aim(self._rest_pose, {self._free(dof): self._number(value, "rest value")})

    def save_rest_pose(self) -> None:
        """Rest where it is now."""
        self._rest_pose = {dof: float(self._values[dof]) for dof in self._dof}

    def clear_rest_pose(self) -> None:
        self._rest_pose.clear()

    def nearest_target(self, dof: DoFLike) -> float | None:
        """The target as it should be approached from the present value: see `track_turns`."""
        return self._nearest(self._free(dof), self._targets)

    def nearest_rest_value(self, dof: DoFLike) -> float | None:
        """The rest value as it should be approached from the present value: see `track_turns`."""
        return self._nearest(self._free(dof), self._rest_pose)

    # ---- child and closure ------------------------------------------------------------------

    @property
    def child(self) -> Link | None:
        """The link that hangs on this joint, or onto which it is closed."""
        if self._closure is not None:
            return self._closure.link
        return self._children[0] if self._children else None  # type: ignore[return-value]

    @property
    def closure(self) -> Closure | None:
        return self._closure

    @property
    def is_closure(self) -> bool:
        return self._closure is not None

    def make_closure(self, link: Link, at: ArrayLike | None = None) -> Closure:
        """Close a loop: this joint shall end on `link` (at X_link_end, default its own frame) without being its parent."""
        from mechanik.mechanism.closure import Closure

        return Closure(self, link, at)

    # ---- couplings --------------------------------------------------------------------------

    @property
    def couplings(self) -> tuple[Coupling, ...]:
        """By which other joints' freedoms this joint's are led."""
        return tuple(self._couplings[dof] for dof in self._dof if dof in self._couplings)

    def follow(
        self,
        leader: Joint,
        ratio: float = 1.0,
        offset: float = 0.0,
        *,
        dof: DoFLike | None = None,
        leader_dof: DoFLike | None = None,
    ) -> Coupling:
        """From now on value = ratio * leader's value + offset. The freedoms need naming only where there are several."""
        from mechanik.mechanism.coupling import Coupling

        return Coupling(
            self,
            self._only_dof("dof") if dof is None else self._free(dof),
            leader,
            leader._only_dof("leader_dof") if leader_dof is None else leader._free(leader_dof),
            self._number(ratio, "ratio"),
            self._number(offset, "offset"),
        )

    def effective_limits(self, dof: DoFLike) -> tuple[float, float]:
        """The limits of a freedom, narrowed by those of the freedoms that follow it."""
        free = self._free(dof)
        lower, upper = float(self._lower[free]), float(self._upper[free])
        for coupling in self._followers:
            if coupling.leader_dof is free:
                low, high = coupling.limits_for_leader()
                if max(lower, low) <= min(upper, high):  # a follower that contradicts its leader is not asked
                    lower, upper = max(lower, low), min(upper, high)
        return lower, upper

    # ---- inside -----------------------------------------------------------------------------

    def _accepts(self, child: Frame) -> str:
        if child.kind != "link":
            return "a joint holds a link"
        if self._closure is not None:
            return f"it is closed onto {self._closure.link}"
        return f"it holds {self._children[0]} already" if self._children else ""

    def _check_can_close(self) -> None:
        if self._children:
            raise StructureError(f"{self} holds {self._children[0]} and cannot be closed onto another link")
        if self._closure is not None:
            raise StructureError(f"{self} is closed onto {self._closure.link} already; undo that first")

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

    def _numbers(self, given: tuple[ArrayLike, ...], what: str, infinite: bool = False) -> list[float]:
        """`1, 2`, or `[1, 2]`, or a single number, as one float for each freedom."""
        try:
            vector = np.array(given[0] if len(given) == 1 else given, dtype=np.float64)
        except (TypeError, ValueError):
            raise ShapeError(f"{what} of {self}: {given!r} are not numbers") from None
        if vector.ndim > 1 or vector.size != len(self._dof):
            raise ShapeError(f"{what} of {self}: {vector.size} given, but it has {len(self._dof)} freedoms")
        return [self._number(value, what, infinite) for value in vector.reshape(-1)]

    def _number(self, value: object, what: str, infinite: bool = False) -> float:
        try:
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise ShapeError(f"{what} of {self}: {value!r} is not a number") from None
        if math.isnan(number) or (math.isinf(number) and not infinite):
            raise NotFinite(f"{what} of {self} is {number}")
        return number

    def _check_leads(self, dofs: Iterable[DoF]) -> None:
        for dof in dofs:
            if dof in self._couplings:
                raise CouplingError(f"{dof.name} of {self} follows {self._couplings[dof].leader}; move that one")

    def _clamp(self, dof: DoF, value: float) -> float:
        lower, upper = self.effective_limits(dof)
        return min(max(value, lower), upper)

    def _assign(self, wanted: dict[DoF, float]) -> bool:
        inside = {dof: self._clamp(dof, value) for dof, value in wanted.items()}
        for dof, value in inside.items():
            self._values[dof] = value
        if any(dof.is_rotation for dof in inside):
            self._turn = euler.quaternion_from_euler(self._values[[5, 4, 3]], order="zyx", axes="moving")
        self._invalidate()
        for coupling in self._followers:
            coupling.pull()
        return inside != wanted

    def _bound(self, lower: dict[DoF, float], upper: dict[DoF, float]) -> bool:
        for dof in {*lower, *upper}:
            low, high = lower.get(dof, float(self._lower[dof])), upper.get(dof, float(self._upper[dof]))
            if low > high:
                raise LimitsError(f"limits of {dof.name} of {self}: the lower, {low}, is above the upper, {high}")
        for dof, value in lower.items():
            self._lower[dof] = value
        for dof, value in upper.items():
            self._upper[dof] = value
        for aims in (self._targets, self._rest_pose):
            aims.update({dof: self._clamp(dof, value) for dof, value in aims.items()})
        self._touch()
        for coupling in self._couplings.values():
            head, head_dof, _, _ = coupling.resolve()
            head._assign({head_dof: float(head._values[head_dof])})
        led = {dof: float(self._values[dof]) for dof in self._dof if dof not in self._couplings}
        return self._assign(led)

    def _aim(self, aims: dict[DoF, float], wanted: dict[DoF, float]) -> bool:
        self._check_leads(wanted)
        inside = {dof: self._clamp(dof, value) for dof, value in wanted.items()}
        aims.update(inside)
        return inside != wanted

    def _nearest(self, dof: DoF, aims: dict[DoF, float]) -> float | None:
        aim = aims.get(dof)
        if aim is None or self.track_turns or not dof.is_rotation:
            return aim
        lower, upper = self.effective_limits(dof)
        turns = round((self._values[dof] - aim) / (2 * math.pi))
        # the nearest turn may lie outside the limits; then the nearest one inside, which is at least `aim`
        while aim + 2 * math.pi * turns > upper:
            turns -= 1
        while aim + 2 * math.pi * turns < lower:
            turns += 1
        return aim + 2 * math.pi * turns
