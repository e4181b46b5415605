"""A freedom that follows another: gears, fingers, the `mimic` of URDF."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mechanik.errors import CouplingError
from mechanik.mechanism.dof import ROTATIONS, DoF

if TYPE_CHECKING:
    from mechanik.mechanism.joint import Joint


SMALLEST_RATIO = 1e-12
"""Below it a follower stands still, and its limits say nothing about where the leader may go."""


class Coupling:
    """follower's value = ratio * leader's value + offset, at all times. Made by `Joint.follow`."""

    def __init__(self, follower: Joint, dof: DoF, leader: Joint, leader_dof: DoF, ratio: float, offset: float) -> None:
        if dof in follower._couplings:
            raise CouplingError(f"{dof.name} of {follower} follows {follower._couplings[dof].leader} already")
        for joint in (follower, leader):
            if joint.is_closure:
                raise CouplingError(f"{joint} closes a loop, so {follower} and {leader} cannot be coupled")
        for joint, which in ((follower, dof), (leader, leader_dof)):
            if which.is_rotation and all(one in joint.dof for one in ROTATIONS):
                raise CouplingError(f"{which.name} of {joint} is one angle of three; only single turns can be coupled")
        self.follower, self.dof, self.leader, self.leader_dof = follower, dof, leader, leader_dof
        self.ratio, self.offset = ratio, offset
        head, head_dof, _, _ = self.resolve()
        if head is follower and head_dof is dof:
            raise CouplingError(f"{dof.name} of {follower} would follow itself through {leader}")
        follower._couplings[dof] = self
        leader._followers.append(self)
        follower._targets.pop(dof, None)
        follower._rest_pose.pop(dof, None)
        self._changed()
        head._clamp_aims()
        head._assign({head_dof: float(head._values[head_dof])})

    def __repr__(self) -> str:
        law = f"{self.ratio:g} * {self.leader.name}.{self.leader_dof.name} + {self.offset:g}"
        return f"<coupling {self.follower.name}.{self.dof.name} = {law}>"

    def undo(self) -> None:
        """Let the follower go; it keeps its value, brought inside its limits."""
        if self.follower._couplings.get(self.dof) is not self:
            raise CouplingError(f"{self} was undone before")
        del self.follower._couplings[self.dof]
        self.leader._followers.remove(self)
        self._changed()
        if self.dof in self.follower.dof:
            self.follower._assign({self.dof: float(self.follower._values[self.dof])})

    def resolve(self) -> tuple[Joint, DoF, float, float]:
        """The freedom at the head of a chain of couplings, with the ratio and offset to it."""
        ratio, offset, leader, dof = self.ratio, self.offset, self.leader, self.leader_dof
        while dof in leader._couplings and not (leader is self.follower and dof is self.dof):
            above = leader._couplings[dof]
            offset += ratio * above.offset
            ratio *= above.ratio
            leader, dof = above.leader, above.leader_dof
        return leader, dof, ratio, offset

    def limits_for_leader(self) -> tuple[float, float]:
        """The follower's limits, seen from the leader."""
        lower, upper = self.follower.effective_limits(self.dof)
        if abs(self.ratio) < SMALLEST_RATIO:
            return -math.inf, math.inf
        ends = (lower - self.offset) / self.ratio, (upper - self.offset) / self.ratio
        return min(ends) + 0.0, max(ends) + 0.0  # no -0

    def pull(self) -> None:
        """Bring the follower where the leader says."""
        follower = self.follower
        follower._values[self.dof] = self.ratio * float(self.leader._values[self.leader_dof]) + self.offset
        follower._invalidate()
        for coupling in follower._followers:
            if coupling.leader_dof is self.dof:
                coupling.pull()

    def _changed(self) -> None:
        self.follower._touch()
        self.leader._touch()
