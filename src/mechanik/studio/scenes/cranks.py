"""Linkages that one crank drives, and the curves that their points draw."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from mechanik import gallery
from mechanik.mechanism import Mechanism
from mechanik.mechanism.door import read_only
from mechanik.objectives import JointValues
from mechanik.spatial import apply
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.scenes.controls import choice, slider, switch
from mechanik.studio.scenes.curves import as_curve
from mechanik.studio.scenes.moving import Moving

SAMPLES = 144
"""Of a whole turn."""
EDGE = 0.97
"""The share of its swing that a crank goes which cannot turn all around."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A linkage of the gallery, and which point of which link draws; m."""

    gallery: str
    link: str
    at: tuple[float, float, float]
    words: str


DRAWINGS = {
    "Klann leg": Drawing("klann_leg", "foot", (0.0, 0.0, 0.0), "a foot that steps high, on six bars"),
    "slider crank": Drawing("slider_crank", "rod", (0.5, 0.0, 0.0), "a piston; the middle of its rod draws an egg"),
    "Watt": Drawing("watt_six_bar", "rod", (0.2, 0.0, 0.0), "two four-bars in a row"),
    "Stephenson": Drawing("stephenson_six_bar", "rod", (0.2, 0.0, 0.0), "a four-bar whose coupler drives a lever"),
    "Peaucellier": Drawing("peaucellier", "pen", (0.0, 0.0, 0.0), "a circle made into an exactly straight line"),
    "Bennett": Drawing("bennett", "coupler", (0.0, 0.0, 0.0), "four hinges askew that move all the same"),
}


@cache
def follow(name: str) -> tuple[Array, tuple[float, float]]:
    """Where the point of a drawing goes, (n, 3), m, and the angles between which the crank can turn; 2 pi apart: all
    around."""
    drawing = DRAWINGS[name]
    mechanism = gallery.make(drawing.gallery)
    start = float(mechanism.joint("crank_joint").values[0])
    step = 2 * math.pi / SAMPLES
    ahead = _steps(mechanism, start, step)
    back = [] if len(ahead) == SAMPLES else _steps(mechanism, start, -step)
    q = [*back[:0:-1], *ahead]
    points = read_only(np.array([apply(mechanism.pose(drawing.link, one), drawing.at) for one in q]))
    if len(ahead) == SAMPLES:
        return points, (start, start + 2 * math.pi)
    return points, (start - step * (len(back) - 1), start + step * (len(ahead) - 1))


def _steps(mechanism: Mechanism, start: float, step: float) -> list[Array]:
    """q at each step of the crank, up to where it can go no farther, or once around."""
    found, last = [mechanism.q], None
    while len(found) < SAMPLES:
        last = mechanism.assemble({"crank_joint": start + step * len(found)}, mechanism.q if last is None else last)
        if not last.success:
            break
        found.append(last.q)
    return found


class Cranks(Moving):
    name = "cranks"
    title = "Linkages on a crank"
    about = (
        "Six classics with one freedom: choose one, and its crank turns while a point of it draws. Take any bar by "
        "hand, and all others follow, for the loops are never open."
    )
    starter, still = "turns", False

    def make_controls(self) -> list[ControlInfo]:
        return [
            choice("linkage", "Linkage", tuple(DRAWINGS), "Linkage"),
            switch("turns", "The crank turns", True, "Drive"),
            slider("speed", "Speed, rounds/s", 0.25, -2.0, 2.0, 0.05, "Drive"),
        ]

    def build(self) -> None:
        self._put()

    def changed(self, name: str) -> None:
        if name == "linkage":
            self._put()
        elif name == "turns" and self.is_moving:
            low, high = self.ends
            angle = self.reading("crank_joint")
            share = (angle - (low + high) / 2) / (EDGE * (high - low) / 2)
            self.phase = angle if self.turns_around else math.asin(min(1.0, max(-1.0, share)))
            self.demand(self._drive())
        elif name == "turns":
            self.forget("crank drive")

    @property
    def turns_around(self) -> bool:
        return self.ends[1] - self.ends[0] > 2 * math.pi - 1e-9

    def go(self) -> None:
        self.aim({"crank drive": {"crank_joint": self._angle()}})

    def lines(self) -> list[str]:
        low, high = (math.degrees(end) for end in self.ends)
        swing = "the crank turns all around" if self.turns_around else f"it swings from {low:.0f} to {high:.0f} degrees"
        return [DRAWINGS[self.word("linkage")].words, swing]

    def _put(self) -> None:
        drawing = DRAWINGS[self.word("linkage")]
        mechanism = gallery.make(drawing.gallery)
        points, self.ends = follow(self.word("linkage"))
        self.table(mechanism)
        self.phase = float(mechanism.joint("crank_joint").values[0]) if self.turns_around else 0.0
        if self.is_moving:
            self.demand(self._drive())
        self.session.set_curves([as_curve("drawn", points, closed=self.turns_around)])

    def _drive(self) -> JointValues:
        return JointValues({"crank_joint": self._angle()}, turns="exact", name="crank drive")

    def _angle(self) -> float:
        low, high = self.ends
        return self.phase if self.turns_around else (low + high) / 2 + EDGE * (high - low) / 2 * math.sin(self.phase)
