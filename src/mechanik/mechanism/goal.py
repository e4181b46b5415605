"""A goal: a pose that a link should take, in some or all of its six directions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import numpy as np

from mechanik.errors import DoFError, StructureError
from mechanik.mechanism.dof import ALL, DoF, DoFLike, as_dofs
from mechanik.mechanism.frame import Frame
from mechanik.spatial import Pose, quaternion
from mechanik.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from mechanik.mechanism.closure import Closure
    from mechanik.mechanism.link import Link


class Goal(Frame):
    """Where a link should be. Stands in the world, or hangs on a link and moves with it.

    Args:
        dof: the directions that count, in the order X Y Z EX EY EZ; all six by default.
        axes: whether those directions are the goal's own or the world's.
    """

    kind = "goal"

    def __init__(
        self,
        name: str = "",
        *,
        dof: Iterable[DoFLike] | DoFLike = ALL,
        axes: Literal["goal", "world"] = "goal",
        position: ArrayLike = (0, 0, 0),
        wxyz: ArrayLike = (1, 0, 0, 0),
    ) -> None:
        super().__init__(name, position=position, wxyz=wxyz)
        self._closure: Closure | None = None
        self._dof = as_dofs(dof)
        self.axes = axes

    @property
    def goal_dof(self) -> tuple[DoF, ...]:
        """The directions in which the link is wanted at the goal."""
        return self._dof

    def set_goal_dof(self, dof: Iterable[DoFLike] | DoFLike) -> None:
        self._dof = as_dofs(dof)
        self._touch_structure()

    @property
    def free_dof(self) -> tuple[DoF, ...]:
        """The directions that do not matter."""
        return tuple(dof for dof in ALL if dof not in self._dof)

    def set_free_dof(self, dof: Iterable[DoFLike] | DoFLike) -> None:
        free = as_dofs(dof)
        self.set_goal_dof([dof for dof in ALL if dof not in free])

    @property
    def axes(self) -> Literal["goal", "world"]:
        """Along whose axes the directions are meant."""
        return self._axes_of

    @axes.setter
    def axes(self, axes: Literal["goal", "world"]) -> None:
        if axes not in ("goal", "world"):
            raise DoFError(f"axes of {self} can be 'goal' or 'world', not {axes!r}")
        self._axes_of: Literal["goal", "world"] = axes
        self._touch_structure()

    @property
    def axes_wxyz(self) -> Array:
        return quaternion.identity()

    @property
    def child(self) -> Link | None:
        """The link that is wanted here."""
        return self._closure.link if self._closure is not None else None

    @property
    def closure(self) -> Closure | None:
        return self._closure

    def make_closure(self, link: Link, at: ArrayLike | Pose | None = None) -> Closure:
        """Want `link` (its point and axes at X_link_end, default its own frame) to come to this goal."""
        from mechanik.mechanism.closure import Closure

        return Closure(self, link, at)

    def _check_can_close(self) -> None:
        if self._closure is not None:
            raise StructureError(f"{self} is a goal of {self._closure.link} already; undo that first")

    def _left_free(self) -> tuple[DoF, ...]:
        return self.free_dof

    def _range(self) -> tuple[Array, Array, Array]:
        return np.zeros(6), np.full(6, -np.inf), np.full(6, np.inf)

    def _take(self, values: dict[DoF, float]) -> None:
        """A goal has no values of its own."""

    def _is_in_world_axes(self) -> bool:
        return self._axes_of == "world"

    def _accepts(self, child: Frame) -> str:
        return "a goal holds nothing"

    def _touch(self) -> None:
        """Moving a goal changes what is wanted, not what the mechanism is: nothing has to be compiled again."""
