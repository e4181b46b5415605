"""A joint: freedoms that hold a link, with targets, a rest pose, couplings, or a closure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from mechanik.errors import CouplingError, StructureError, WrongKind
from mechanik.mechanism.cone import Tilting
from mechanik.mechanism.dof import DoF, DoFLike
from mechanik.mechanism.door import as_number
from mechanik.mechanism.frame import Frame
from mechanik.spatial import Pose
from mechanik.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from mechanik.mechanism.closure import Closure
    from mechanik.mechanism.coupling import Coupling
    from mechanik.mechanism.law import Law
    from mechanik.mechanism.link import Link


class Joint(Tilting):
    """Hangs on a link and holds one link, or is closed onto one.

    Args:
        dof: freedoms in the order X Y Z EX EY EZ.
        axis: (3,), for a joint of one freedom: where that freedom's axis points in the joint's frame.
        axes_wxyz: for any joint: the turn from its frame to its axes of motion.
        lower, upper: limits, one for each freedom; m or rad.
        values: one for each freedom; brought inside the limits.
    """

    kind = "joint"
    plain = ("track_turns",)

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
        self.track_turns = False
        """Whether targets and rest poses count full turns, or mean the nearest equivalent angle."""
        self._targets: dict[DoF, float] = {}
        self._rest_pose: dict[DoF, float] = {}
        self._closure: Closure | None = None
        self._couplings: dict[DoF, Coupling] = {}
        self._followers: list[Coupling] = []
        self._laws: list[Law] = []
        super().__init__(name, dof, position, wxyz, axes_wxyz)
        if axis is not None:
            self.axis = axis
        if lower is not None or upper is not None:
            free = np.full(len(self._dof), np.inf)
            self.set_limits(-free if lower is None else lower, free if upper is None else upper)
        if values is not None:
            self.set_values(values)

    def __repr__(self) -> str:
        freedoms = " ".join(f"{dof.name}={self._values[dof]:.4g}" for dof in self._dof) or "fixed"
        if self._closure is not None:
            return f"<joint {self.name!r} {freedoms}: closes {self._closure}>"
        held = self._children[0].name if self._children else None
        return f"<joint {self.name!r} {freedoms}: {self._parent.name if self._parent else None!r} -> {held!r}>"

    def set_dof(self, dof: Iterable[DoFLike] | DoFLike) -> None:
        """Choose the freedoms anew: values, limits, cone, targets, rest pose, couplings and laws are reset."""
        super().set_dof(dof)
        for coupling in {*self._couplings.values(), *self._followers}:  # one with itself stands in both
            coupling.undo()
        for law in tuple(self._laws):
            law.undo()
        self._targets.clear()
        self._rest_pose.clear()

    # ---- targets and rest pose --------------------------------------------------------------

    @property
    def targets(self) -> tuple[float | None, ...]:
        """Where the solver should drive each freedom; None where nothing is asked."""
        return tuple(self._targets.get(dof) for dof in self._dof)

    def target(self, dof: DoFLike) -> float | None:
        return self._targets.get(self._free(dof))

    def set_targets(self, *targets: ArrayLike) -> bool:
        """Ask for all values, brought inside the limits; returns whether a limit was hit."""
        return self._aim(self._targets, self._each(targets, "targets"))

    def set_target(self, dof: DoFLike, target: float) -> bool:
        """Ask for one value, brought inside its limits; returns whether a limit was hit."""
        return self._aim(self._targets, {self._free(dof): as_number(target, f"target of {self}")})

    def clear_targets(self) -> None:
        self._targets.clear()

    @property
    def rest_pose(self) -> tuple[float | None, ...]:
        """Where each freedom would rest when nothing else is asked of it; None where it does not matter."""
        return tuple(self._rest_pose.get(dof) for dof in self._dof)

    def rest_value(self, dof: DoFLike) -> float | None:
        return self._rest_pose.get(self._free(dof))

    def set_rest_pose(self, *values: ArrayLike) -> bool:
        return self._aim(self._rest_pose, self._each(values, "rest pose"))

    def set_rest_value(self, dof: DoFLike, value: float) -> bool:
        return self._aim(self._rest_pose, {self._free(dof): as_number(value, f"rest value of {self}")})

    def save_rest_pose(self) -> None:
        """Rest where it is now."""
        self._look()
        self._rest_pose = {dof: float(self._values[dof]) for dof in self._dof if dof not in self._couplings}

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

    def make_closure(self, link: Link, at: ArrayLike | Pose | None = None) -> Closure:
        """Close a loop: this joint shall end on `link`, which it does not hold.

        Args:
            at: X_link_end, where on the link; its own frame if not given.
        """
        from mechanik.mechanism.closure import Closure

        return Closure(self, link, at)

    # ---- couplings and laws -----------------------------------------------------------------

    @property
    def couplings(self) -> tuple[Coupling, ...]:
        """By which other joints' freedoms this joint's are led."""
        return tuple(self._couplings[dof] for dof in self._dof if dof in self._couplings)

    @property
    def laws(self) -> tuple[Law, ...]:
        """The laws that bind some of its freedoms to those of other joints."""
        return tuple(self._laws)

    def follow(
        self,
        leader: Joint,
        ratio: float = 1.0,
        offset: float = 0.0,
        *,
        dof: DoFLike | None = None,
        leader_dof: DoFLike | None = None,
    ) -> Coupling:
        """From now on value = ratio * leader's value + offset.

        Args:
            dof, leader_dof: which freedoms; to be named only where a joint has several.
        """
        from mechanik.mechanism.coupling import Coupling

        if not isinstance(leader, Joint):
            raise WrongKind(f"{self} can follow a joint, not {leader!r}")
        return Coupling(
            self,
            self._only_dof("dof") if dof is None else self._free(dof),
            leader,
            leader._only_dof("leader_dof") if leader_dof is None else leader._free(leader_dof),
            as_number(ratio, f"ratio of {self}"),
            as_number(offset, f"offset of {self}"),
        )

    def effective_limits(self, dof: DoFLike) -> tuple[float, float]:
        """The limits of a freedom, narrowed by those of the freedoms that follow it."""
        free = self._free(dof)
        lower, upper = self.limits(free)
        for coupling in self._followers:
            if coupling.leader_dof is free:
                low, high = coupling.limits_for_leader()
                # a follower that would leave its leader no room, as sloppy files have it, is not asked
                if max(lower, low) < min(upper, high):
                    lower, upper = max(lower, low), min(upper, high)
        return lower, upper

    # ---- inside -----------------------------------------------------------------------------

    def _look(self) -> None:
        if self._closure is not None:
            self._closure.settle()

    def _left_free(self) -> tuple[DoF, ...]:
        return self._dof

    def _range(self) -> tuple[Array, Array, Array]:
        """For a closure: the values that it should stay near, and their limits."""
        return self._values, self._lower, self._upper

    def _take(self, values: dict[DoF, float]) -> None:
        self._assign(values)

    def _is_in_world_axes(self) -> bool:
        return False

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
        if self._couplings or self._followers:
            raise StructureError(f"{self} is coupled to another joint and cannot close a loop; undo the coupling first")
        if self._laws:
            raise StructureError(f"{self} is bound by {self._laws[0]} and cannot close a loop; undo the law first")

    def _check_leads(self, dofs: Iterable[DoF]) -> None:
        for dof in dofs:
            if dof in self._couplings:
                raise CouplingError(f"{dof.name} of {self} follows {self._couplings[dof].leader}; move that one")

    def _assign(self, wanted: dict[DoF, float]) -> bool:
        hit = super()._assign(wanted)
        for coupling in self._followers:
            coupling.pull()
        return hit

    def _bound(self, lower: dict[DoF, float], upper: dict[DoF, float]) -> bool:
        moved = super()._bound(lower, upper)
        self._clamp_aims()
        for coupling in self.couplings:  # the head of a coupling has to stay where its followers can follow
            head, dof, _, _ = coupling.resolve()
            head._clamp_aims()
            head._assign({dof: float(head._values[dof])})
        return moved

    def _clamp_aims(self) -> None:
        for aims in (self._targets, self._rest_pose):
            aims.update({dof: self._clamp(dof, value) for dof, value in aims.items()})

    def _aim(self, aims: dict[DoF, float], wanted: dict[DoF, float]) -> bool:
        self._check_leads(wanted)
        inside = {dof: self._clamp(dof, value) for dof, value in wanted.items()}
        aims.update(inside)
        return inside != wanted

    def _nearest(self, dof: DoF, aims: dict[DoF, float]) -> float | None:
        aim = aims.get(dof)
        if aim is None or self.track_turns or not dof.is_rotation:
            return aim
        self._look()
        lower, upper = self.effective_limits(dof)
        turns = round((self._values[dof] - aim) / (2 * math.pi))
        # the nearest turn may lie outside the limits; then the nearest one inside, which is at least `aim`
        while turns > 0 and aim + 2 * math.pi * turns > upper:
            turns -= 1
        while turns < 0 and aim + 2 * math.pi * turns < lower:
            turns += 1
        return aim + 2 * math.pi * turns
