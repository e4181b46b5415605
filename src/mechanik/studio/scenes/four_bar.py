"""The four-bar linkage: its lengths, what Grashof says of them, and the curve that a point of its coupler draws."""

from __future__ import annotations

import math

import numpy as np

from mechanik import gallery
from mechanik.gallery.bones import DARK, ORANGE, ball, bone, put_on
from mechanik.gallery.grashof import four_bar_kind
from mechanik.mechanism import Joint, Link, Mechanism
from mechanik.objectives import JointValues
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.scenes.controls import choice, slider, switch
from mechanik.studio.scenes.curves import as_curve
from mechanik.studio.scenes.moving import Moving

Lengths = tuple[float, float, float, float]
LENGTHS = ("ground", "crank", "coupler", "rocker")
SAMPLES = 240
FLAT = 1e-6
"""Rad: ends of a swing that are nearer to a flat linkage than this are so by rounding, and it goes on through it."""
WHOLE = 2 * math.pi - FLAT
"""A swing that is wider, rad, is no swing: the crank turns all around."""
EDGE = 0.999
"""The share of its swing that a crank goes which cannot turn all around: at the very end it could go on both ways."""
WORDS = {
    "crank-rocker": "the crank turns all around, the rocker swings",
    "double-crank": "crank and rocker both turn all around",
    "rocker-crank": "the rocker could turn all around, the crank swings",
    "double-rocker": "both swing; only the coupler could turn all around",
    "change-point": "it can lie flat, and go on in two ways from there",
    "triple-rocker": "no bar turns all around",
}


def swing(ground: float, crank: float, coupler: float, rocker: float) -> tuple[float, float]:
    """Between which angles the crank can go, rad; 2 pi apart: all around.

    The way from its tip to the rocker's pivot must be one that coupler and rocker can bridge.
    """

    def angle(way: float) -> float:
        cosine = (ground**2 + crank**2 - way**2) / (2 * ground * crank)
        return math.acos(min(1.0, max(-1.0, cosine)))

    least, most = angle(abs(coupler - rocker)), angle(coupler + rocker)
    folds, stretches = least < FLAT, most > math.pi - FLAT
    if folds:
        return (-math.pi, math.pi) if stretches else (-most, most)
    return (least, 2 * math.pi - least) if stretches else (least, most)


def nearest_inside(angle: float, low: float, high: float) -> float:
    """The angle, or the nearest one that looks the same or lies inside the swing."""
    if high - low > WHOLE:
        return angle
    middle, half = (low + high) / 2, EDGE * (high - low) / 2
    off = math.remainder(angle - middle, 2 * math.pi)
    return middle + min(half, max(-half, off))


def coupler_points(lengths: Lengths, at: tuple[float, float], angles: Array, up: bool) -> Array:
    """(n, 3), m: where the point `at` of the coupler (along it and to its left) is at crank angles (n,)."""
    ground, crank, coupler, rocker = lengths
    knee = crank * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    to_far = np.array([ground, 0.0]) - knee
    way = np.linalg.norm(to_far, axis=-1)
    cosine = (coupler**2 + way**2 - rocker**2) / (2 * coupler * way)
    bend = np.arccos(np.clip(cosine, -1.0, 1.0))
    heading = np.arctan2(to_far[:, 1], to_far[:, 0]) + (bend if up else -bend)
    c, s = np.cos(heading), np.sin(heading)
    x, y = knee[:, 0] + at[0] * c - at[1] * s, knee[:, 1] + at[0] * s + at[1] * c
    return np.stack([x, y, np.zeros_like(x)], axis=-1)


def coupler_curve(lengths: Lengths, at: tuple[float, float], up: bool = True) -> Array:
    """(n, 3), m, closed: a crank that swings comes back with coupler and rocker on the other side."""
    low, high = swing(*lengths)
    if high - low > WHOLE:
        return coupler_points(lengths, at, np.linspace(low, high, SAMPLES + 1)[:-1], up)
    # near its ends, where the curve turns fast, the crank is slow
    angles = (low + high) / 2 - (high - low) / 2 * np.cos(np.linspace(0.0, math.pi, SAMPLES // 2 + 1))
    there, back = (coupler_points(lengths, at, angles[::way], up == (way > 0)) for way in (1, -1))
    return np.concatenate([there[:-1], back[:-1]])


def with_pen(lengths: Lengths, at: tuple[float, float], angle: float, up: bool) -> Mechanism:
    """The four-bar of the gallery, assembled at an angle of its crank, with a link `pen` on its coupler."""
    mechanism = gallery.four_bar(*lengths, angle=angle, elbow="up" if up else "down")
    coupler, p, r = mechanism.link("coupler"), (*at, 0.0), 0.015 * lengths[0]
    put_on(coupler, bone((0.0, 0.0, 0.0), p, r, ORANGE), bone((lengths[2], 0.0, 0.0), p, r, ORANGE))
    pen, joint = Link("pen"), Joint("pen_joint", position=p)
    put_on(pen, ball((0.0, 0.0, 0.0), 2 * r, DARK))
    joint.add_child(pen)
    coupler.add_child(joint)
    mechanism.configurations["home"] = mechanism.q
    return mechanism


class FourBar(Moving):
    name = "four_bar"
    title = "Four-bar and its coupler curve"
    about = (
        "Four bars in a ring have one freedom. Change their lengths and see which of them can turn all around; move "
        "the pen on the coupler and see what it draws. Take the crank or the pen by hand, and the loop stays shut."
    )
    starter, still = "turns", False

    def make_controls(self) -> list[ControlInfo]:
        return [
            slider("ground", "Ground, m", 2.0, 0.3, 3.2, 0.05, "Lengths"),
            slider("crank", "Crank, m", 0.5, 0.1, 2.0, 0.05, "Lengths"),
            slider("coupler", "Coupler, m", 1.8, 0.4, 3.4, 0.05, "Lengths"),
            slider("rocker", "Rocker, m", 1.2, 0.1, 3.0, 0.05, "Lengths"),
            choice("elbow", "Elbow", ("up", "down"), "Lengths", "On which side coupler and rocker meet."),
            slider("along", "Pen along the coupler, m", 0.9, -1.0, 3.0, 0.02, "Pen"),
            slider("across", "Pen across it, m", 0.6, -1.5, 1.5, 0.02, "Pen"),
            switch("turns", "The crank turns", True, "Drive"),
            slider("speed", "Speed, rounds/s", 0.25, 0.0, 2.0, 0.05, "Drive"),
        ]

    def build(self) -> None:
        self._put(0.6)

    def changed(self, name: str) -> None:
        match name:
            case "speed":
                pass
            case "turns" if self.is_on("turns"):
                self.phase = self._phase_of(self.reading("crank_joint"))
                self.demand(self._drive())
            case "turns":
                self.forget("crank drive")
            case _:
                self._put(self.reading("crank_joint"))

    def go(self) -> None:
        self.aim({"crank drive": {"crank_joint": self._angle(self.phase)}})

    def lines(self) -> list[str]:
        low, high = swing(*self.lengths)
        rate = self.rate if self.is_moving else 0.0
        angle = self.reading("crank_joint")
        ends = coupler_points(self.lengths, self.at, np.array([angle - 1e-5, angle + 1e-5]), self.up)
        speed = rate * float(np.linalg.norm(ends[1] - ends[0])) / 2e-5
        lines = [f"{self.kind}: {WORDS[self.kind]}"]
        if high - low < WHOLE:
            lines.append(f"the crank goes from {math.degrees(low):.0f} to {math.degrees(high):.0f} degrees")
        elif rate:
            lines.append(f"the pen goes at {speed:.2f} m/s")
        return lines

    # ---- inside -----------------------------------------------------------------------------

    def _put(self, angle: float) -> None:
        """Another linkage, its crank as near to where it was as it can be."""
        ground, crank, coupler, rocker = (self.number(name) for name in LENGTHS)
        lengths = ground, crank, coupler, rocker
        kind = four_bar_kind(*lengths)  # refuses bars that cannot move
        at, up = (self.number("along"), self.number("across")), self.word("elbow") == "up"
        angle = nearest_inside(angle, *swing(*lengths))
        mechanism = with_pen(lengths, at, angle, up)
        self.lengths, self.kind, self.at, self.up = lengths, kind, at, up
        self.table(mechanism)
        self.phase = self._phase_of(angle)
        if self.is_moving:
            self.demand(self._drive())
        self.session.set_curves([as_curve("coupler curve", coupler_curve(lengths, at, up), closed=True)])

    def _drive(self) -> JointValues:
        return JointValues({"crank_joint": self._angle(self.phase)}, turns="exact", name="crank drive")

    def _angle(self, phase: float) -> float:
        """Of the crank: all around, or to and fro between its ends."""
        low, high = swing(*self.lengths)
        if high - low > WHOLE:
            return phase
        return (low + high) / 2 + EDGE * (high - low) / 2 * math.sin(phase)

    def _phase_of(self, angle: float) -> float:
        low, high = swing(*self.lengths)
        if high - low > WHOLE:
            return angle
        return math.asin(min(1.0, max(-1.0, (angle - (low + high) / 2) / (EDGE * (high - low) / 2))))
