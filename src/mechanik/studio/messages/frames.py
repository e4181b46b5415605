"""Binary frames: what moves at the rate of the screen. Little-endian float64 throughout, so that nothing is rounded.

State, from the server, one an update:
    HEADER numbers (see `StateHeader`), then
    links    x y z qw qx qy qz of each link, in the order of `Model.links`
    values   of the freedoms (`FreedomInfo.value`): m, rad
    goals    x y z qw qx qy qz, distance (m) and angle (rad) that is missing, in the order of `Goals.goals`
    closures gap (m) and angle (rad), in the order of `Model.closures`

Hand, from the page: HAND numbers (see `Hand`).
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mechanik.errors import Refused
from mechanik.spatial.array import Array
from mechanik.studio.messages.checks import FARTHEST

STATE = 1.0
HAND_GOAL = 2
HAND_FREEDOM = 3
HAND_OBSTACLE = 4
PULL = 0
"""The number of the goal that pulls a link; goals are numbered from 1."""
MAIN_LAYER = 0


class StateHeader(NamedTuple):
    """Numbers at the start of a state frame.

    Attributes:
        kind: STATE.
        revision: of the `Model`; order: of the `Goals`.
        sequence: grows by one a frame.
        tag: of the newest `Hand` that this state answers; 0 if none.
        layer: 0, or of a compared method.
        status: number in `STATUSES`.
        is_at_rest: 1 when nothing will move until something is asked for.
        iterations, seconds: of the last solve; solves_per_second: of the last second.
        residual: the largest error of all goals, in units of tolerance-free m and rad mixed, for the plot.
        links, values, goals, closures: how many of each follow.
    """

    kind: float
    revision: float
    order: float
    sequence: float
    tag: float
    layer: float
    status: float
    is_at_rest: float
    iterations: float
    seconds: float
    solves_per_second: float
    residual: float
    links: float
    values: float
    goals: float
    closures: float


HEADER = len(StateHeader._fields)
STATUSES = (
    "CONVERGED", "CLOSEST", "STALLED", "TIMEOUT", "OPEN", "STOPPED", "DIVERGED", "PAUSED", "IDLE", "PROBLEM",
    "IN_COLLISION",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Hand:
    """Where a hand holds something.

    Attributes:
        kind: HAND_GOAL, HAND_FREEDOM or HAND_OBSTACLE.
        tag: grows with each frame of this page; the state that answers carries it.
        number: of the goal (PULL for a pulled link), or of the freedom; of an obstacle its place when it was taken.
        numbers: pose of the goal or obstacle (position, wxyz), or the value first (three of a ball), the rest unused.
    """

    kind: int
    tag: int
    number: int
    numbers: tuple[float, ...]


HAND = struct.Struct("<10d")


def read_hand(data: bytes) -> Hand:
    """A frame of the page, checked: size, kind, finite and in range, a turn that can be normalised."""
    if len(data) != HAND.size:
        raise Refused(f"a frame of a hand has {HAND.size} bytes, not {len(data)}")
    kind, tag, number, *numbers = HAND.unpack(data)
    if kind not in (HAND_GOAL, HAND_FREEDOM, HAND_OBSTACLE):
        raise Refused(f"no binary frame is of kind {kind!r}")
    for what, value in (("tag", tag), ("number", number)):
        if not (0 <= value <= 2**52 and value == int(value)):
            raise Refused(f"the {what} of a frame is a whole number, not {value!r}")
    if not all(math.isfinite(value) and abs(value) <= FARTHEST for value in numbers):
        raise Refused(f"every number of a frame is finite and within {FARTHEST:g}")
    if kind != HAND_FREEDOM and not 0.5 < math.hypot(*numbers[3:]) < 2:
        raise Refused("the turn of a frame is a unit quaternion")
    return Hand(int(kind), int(tag), int(number), tuple(numbers))


def write_hand(hand: Hand) -> bytes:
    return HAND.pack(hand.kind, hand.tag, hand.number, *hand.numbers, *[0.0] * (7 - len(hand.numbers)))


@dataclass(frozen=True, slots=True)
class StateFrame:
    """A state frame taken apart; for tests and for clients in Python."""

    header: StateHeader
    links: Array  # (L, 7)
    values: Array  # (V,)
    goals: Array  # (G, 9)
    closures: Array  # (C, 2)


def write_state(header: StateHeader, links: Array, values: Array, goals: Array, closures: Array) -> bytes:
    """The bytes of a state; the arrays are as in `StateFrame`."""
    parts = (np.asarray(header, float), links.ravel(), values.ravel(), goals.ravel(), closures.ravel())
    return np.concatenate(parts).astype("<f8", copy=False).tobytes()


def read_state(data: bytes) -> StateFrame:
    numbers = np.frombuffer(data, "<f8")
    header = StateHeader(*numbers[:HEADER])
    sizes = [7 * int(header.links), int(header.values), 9 * int(header.goals), 2 * int(header.closures)]
    links, values, goals, closures, rest = np.split(numbers[HEADER:], np.cumsum(sizes))
    if rest.size or header.kind != STATE:
        raise Refused("these bytes are no state frame")
    return StateFrame(header, links.reshape(-1, 7), values, goals.reshape(-1, 9), closures.reshape(-1, 2))
