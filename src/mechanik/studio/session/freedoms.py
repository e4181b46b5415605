"""The freedoms of a mechanism as pages know them, one after the other, and their values read from q."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanik.mechanism import DoF, Joint, Mechanism
from mechanik.mechanism.dof import ROTATIONS, TRANSLATIONS
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array
from mechanik.studio.messages.checks import Vector
from mechanik.studio.messages.events import FreedomInfo

MOTION = (*TRANSLATIONS, *reversed(ROTATIONS))
"""The order in which the freedoms of a joint move what it holds."""


@dataclass(frozen=True, slots=True, eq=False)
class Freedom:
    """
    Attributes:
        name: `elbow`, or `base.X` where its joint has several.
        joint: its name; number: which one it is among the joints.
        dof: None for a ball.
        axis: in the joint's frame.
        value: where its first number stands among the values.
        place: in q, of its own number or of its leader's, or of a ball's quaternion; -1 for a joint that closes a loop.
        ratio, offset: value = ratio * q[place] + offset.
        leader: the freedom that it follows, or -1.
        closure: number of the loop that its joint closes, or -1.
        others: how many freedoms its joint has besides.
    """

    name: str
    joint: str
    number: int
    dof: DoF | None
    axis: Vector
    value: int
    place: int
    ratio: float = 1.0
    offset: float = 0.0
    leader: int = -1
    closure: int = -1
    others: int = 0

    @property
    def is_ball(self) -> bool:
        return self.dof is None

    @property
    def turns(self) -> bool:
        return self.dof is None or self.dof.is_rotation


def list_freedoms(mechanism: Mechanism) -> tuple[Freedom, ...]:
    """All that can be told apart by a number, closing joints among them, in the order of the joints."""
    slots, names = mechanism.kinematics.slots, list(mechanism.joints)
    closures = list(mechanism.closures)
    found: list[Freedom] = []
    heads: dict[tuple[Joint, DoF], int] = {}
    width = 0
    for number, (name, joint) in enumerate(mechanism.joints.items()):
        slot = slots.get(joint)
        closes = closures.index(name) if joint.is_closure else -1
        if slot is None and closes < 0:
            continue  # it holds nothing, so it moves nothing
        axes = quaternion.to_matrix(joint.axes_wxyz)
        is_ball = joint.is_ball
        singles = [dof for dof in MOTION if dof in joint.dof and not (is_ball and dof.is_rotation)]
        others = len(singles) + is_ball - 1
        for dof in singles:
            label = name if len(joint.dof) == 1 else f"{name}.{dof.name}"
            x, y, z = axes[:, dof.direction].tolist()
            place = -1 if slot is None else slot.q.get(dof, -1)
            heads[joint, dof] = len(found)
            found.append(Freedom(label, name, number, dof, (x, y, z), width, place, closure=closes, others=others))
            width += 1
        if is_ball:
            label = name if not singles else f"{name}.turn"
            x, y, z = axes[:, 2].tolist()
            place = -1 if slot is None or slot.ball_q is None else slot.ball_q
            found.append(Freedom(label, name, number, None, (x, y, z), width, place, closure=closes, others=others))
            width += 3
    return tuple(_led(one, mechanism.joints[names[one.number]], heads, found) for one in found)


def _led(one: Freedom, joint: Joint, heads: dict[tuple[Joint, DoF], int], found: Sequence[Freedom]) -> Freedom:
    """The same, with whom it follows."""
    coupling = next((some for some in joint.couplings if some.dof is one.dof), None)
    if coupling is None:
        return one
    leader, dof, ratio, offset = coupling.resolve()
    head = heads[leader, dof]
    return Freedom(
        one.name, one.joint, one.number, one.dof, one.axis, one.value, found[head].place, ratio, offset, head,
        others=one.others,
    )  # fmt: skip


def freedom_infos(mechanism: Mechanism, freedoms: Sequence[Freedom], locked: frozenset[int]) -> list[FreedomInfo]:
    """As a page is told."""
    return [_info(mechanism.joints[one.joint], one, k in locked) for k, one in enumerate(freedoms)]


def _info(joint: Joint, one: Freedom, locked: bool) -> FreedomInfo:
    lower, upper, rest = -math.inf, math.inf, None
    if one.dof is not None:
        lower, upper = joint.effective_limits(one.dof)
        rest = joint.rest_value(one.dof)
    return FreedomInfo(
        name=one.name,
        joint=one.number,
        kind="ball" if one.dof is None else "turn" if one.dof.is_rotation else "slide",
        axis=one.axis,
        value=one.value,
        lower=lower if math.isfinite(lower) else None,
        upper=upper if math.isfinite(upper) else None,
        rest=rest,
        locked=locked,
        leader=one.leader,
    )


class FreedomValues:
    """Reads the values of all freedoms, (V,), from q and from what the closures have measured."""

    def __init__(self, freedoms: Sequence[Freedom]) -> None:
        tree = [one for one in freedoms if one.closure < 0 and not one.is_ball]
        balls = [one for one in freedoms if one.closure < 0 and one.is_ball]
        closing = [one for one in freedoms if one.closure >= 0 and one.dof is not None]
        closing_balls = [one for one in freedoms if one.closure >= 0 and one.is_ball]
        self.count = sum(3 if one.is_ball else 1 for one in freedoms)
        self._to = np.array([one.value for one in tree], dtype=np.int64)
        self._from = np.array([one.place for one in tree], dtype=np.int64)
        self._ratio, self._offset = np.array([one.ratio for one in tree]), np.array([one.offset for one in tree])
        self._ball_to = np.array([range(one.value, one.value + 3) for one in balls], dtype=np.int64).reshape(-1, 3)
        self._ball_from = np.array([range(one.place, one.place + 4) for one in balls], dtype=np.int64).reshape(-1, 4)
        self._closing_to = np.array([one.value for one in closing], dtype=np.int64)
        self._closing_at = (
            np.array([one.closure for one in closing], dtype=np.int64),
            np.array([int(one.dof or 0) for one in closing], dtype=np.int64),
        )
        self._turned_to = np.array([range(one.value, one.value + 3) for one in closing_balls], dtype=np.int64).reshape(
            -1, 3
        )
        self._turned_at = np.array([one.closure for one in closing_balls], dtype=np.int64)

    def read(self, q: Array, measured: Array, turned: Array) -> Array:
        """
        Args:
            measured, turned: (C, 6) and (C, 3), see `Gaps`.
        """
        values = np.empty(self.count)
        values[self._to] = self._ratio * q[self._from] + self._offset
        if len(self._ball_to):
            values[self._ball_to] = quaternion.log(q[self._ball_from])
        if len(self._closing_to):
            values[self._closing_to] = measured[self._closing_at]
        if len(self._turned_to):
            values[self._turned_to] = turned[self._turned_at]
        return values
