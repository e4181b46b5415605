"""Scenes with planar and spatial linkages: a four-bar with its coupler curve, and six classic crank linkages."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from mechanik import gallery
from mechanik.gallery.construction import DARK, ORANGE, add_shapes, capsule, sphere
from mechanik.gallery.planar_linkages import four_bar_kind
from mechanik.model import Joint, Link, Mechanism
from mechanik.objectives import JointValues
from mechanik.spatial import apply
from mechanik.spatial.array import Array
from mechanik.studio.messages.events import ControlInfo
from mechanik.studio.scenes.scene_base import AnimatedScene
from mechanik.studio.scenes.scene_controls import choice, make_curve, slider, switch
from mechanik.validation import read_only

Lengths = tuple[float, float, float, float]
LENGTHS = ("ground", "crank", "coupler", "rocker")
CURVE_SAMPLES = 240
FLAT_TOLERANCE = 1e-6
"""Angle below which an end of the crank range counts as flat, rad; it is rounding, and the crank passes through."""
FULL_ROTATION_RANGE = 2 * math.pi - FLAT_TOLERANCE
"""Range above which the crank rotates fully, rad."""
SWING_SHARE = 0.999
"""Share of its range that a crank without full rotation uses; at the very end both branches meet."""
KIND_TEXTS = {
    "crank-rocker": "the crank rotates fully, the rocker swings",
    "double-crank": "crank and rocker both rotate fully",
    "rocker-crank": "the rocker can rotate fully, the crank swings",
    "double-rocker": "both swing; only the coupler can rotate fully",
    "change-point": "all bars can be in one line; there the assembly mode can change",
    "triple-rocker": "no bar rotates fully",
}


def crank_range(ground: float, crank: float, coupler: float, rocker: float) -> tuple[float, float]:
    """Return the lowest and highest crank angle, rad; 2 pi apart if the crank rotates fully.

    The distance from the crank tip to the rocker pivot must lie between |coupler - rocker| and coupler + rocker.
    """

    def angle(distance: float) -> float:
        cosine = (ground**2 + crank**2 - distance**2) / (2 * ground * crank)
        return math.acos(min(1.0, max(-1.0, cosine)))

    least, most = angle(abs(coupler - rocker)), angle(coupler + rocker)
    folds, stretches = least < FLAT_TOLERANCE, most > math.pi - FLAT_TOLERANCE
    if folds:
        return (-math.pi, math.pi) if stretches else (-most, most)
    return (least, 2 * math.pi - least) if stretches else (least, most)


def clamp_crank_angle(angle: float, low: float, high: float) -> float:
    """Return the angle clamped to the range, up to full rotations."""
    if high - low > FULL_ROTATION_RANGE:
        return angle
    middle, half = (low + high) / 2, SWING_SHARE * (high - low) / 2
    off = math.remainder(angle - middle, 2 * math.pi)
    return middle + min(half, max(-half, off))


def coupler_points(lengths: Lengths, at: tuple[float, float], angles: Array, up: bool) -> Array:
    """Return the positions of a coupler point, (n, 3), m.

    Args:
        lengths: ground, crank, coupler and rocker, m.
        at: the point, along the coupler and to its left, m.
        angles: crank angles, (n,), rad.
        up: assembly mode.
    """
    ground, crank, coupler, rocker = lengths
    knee = crank * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    to_far = np.array([ground, 0.0]) - knee
    distance = np.linalg.norm(to_far, axis=-1)
    cosine = (coupler**2 + distance**2 - rocker**2) / (2 * coupler * distance)
    bend = np.arccos(np.clip(cosine, -1.0, 1.0))
    heading = np.arctan2(to_far[:, 1], to_far[:, 0]) + (bend if up else -bend)
    c, s = np.cos(heading), np.sin(heading)
    x, y = knee[:, 0] + at[0] * c - at[1] * s, knee[:, 1] + at[0] * s + at[1] * c
    return np.stack([x, y, np.zeros_like(x)], axis=-1)


def coupler_curve(lengths: Lengths, at: tuple[float, float], up: bool = True) -> Array:
    """Return the closed coupler curve, (n, 3), m; a crank without full rotation returns in the other assembly mode."""
    low, high = crank_range(*lengths)
    if high - low > FULL_ROTATION_RANGE:
        return coupler_points(lengths, at, np.linspace(low, high, CURVE_SAMPLES + 1)[:-1], up)
    # cosine spacing: near the ends of the range the point moves fast for a small crank step
    angles = (low + high) / 2 - (high - low) / 2 * np.cos(np.linspace(0.0, math.pi, CURVE_SAMPLES // 2 + 1))
    there, back = (coupler_points(lengths, at, angles[::direction], up == (direction > 0)) for direction in (1, -1))
    return np.concatenate([there[:-1], back[:-1]])


def four_bar_with_pen(lengths: Lengths, at: tuple[float, float], angle: float, up: bool) -> Mechanism:
    """Return the four-bar of the gallery, assembled at a crank angle, with a link `pen` on its coupler."""
    mechanism = gallery.four_bar(*lengths, angle=angle, elbow="up" if up else "down")
    coupler, p, r = mechanism.link("coupler"), (*at, 0.0), 0.015 * lengths[0]
    add_shapes(coupler, capsule((0.0, 0.0, 0.0), p, r, ORANGE), capsule((lengths[2], 0.0, 0.0), p, r, ORANGE))
    pen, joint = Link("pen"), Joint("pen_joint", position=p)
    add_shapes(pen, sphere((0.0, 0.0, 0.0), 2 * r, DARK))
    joint.add_child(pen)
    coupler.add_child(joint)
    mechanism.configurations["home"] = mechanism.q
    return mechanism


class FourBarScene(AnimatedScene):
    """Four-bar linkage with Grashof class and coupler curve."""

    name = "four_bar"
    title = "Four-bar and its coupler curve"
    about = (
        "A four-bar linkage has one degree of freedom. Change the lengths and see which bars can rotate fully; move "
        "the pen on the coupler and see its coupler curve. Drag the crank or the pen: the loop stays closed."
    )
    motion_control, stopped_value = "turns", False

    def make_controls(self) -> list[ControlInfo]:
        return [
            slider("ground", "Ground, m", 2.0, 0.3, 3.2, 0.05, "Lengths"),
            slider("crank", "Crank, m", 0.5, 0.1, 2.0, 0.05, "Lengths"),
            slider("coupler", "Coupler, m", 1.8, 0.4, 3.4, 0.05, "Lengths"),
            slider("rocker", "Rocker, m", 1.2, 0.1, 3.0, 0.05, "Lengths"),
            choice(
                "elbow", "Elbow", ("up", "down"), "Lengths", "Assembly mode: the side on which coupler and rocker meet."
            ),
            slider("along", "Pen along the coupler, m", 0.9, -1.0, 3.0, 0.02, "Pen"),
            slider("across", "Pen across the coupler, m", 0.6, -1.5, 1.5, 0.02, "Pen"),
            switch("turns", "Rotate the crank", True, "Drive"),
            slider("speed", "Speed, rounds/s", 0.25, 0.0, 2.0, 0.05, "Drive"),
        ]

    def build(self) -> None:
        self._put(0.6)

    def on_control_changed(self, name: str) -> None:
        match name:
            case "speed":
                pass
            case "turns" if self.is_on("turns"):
                self.phase = self._phase_of(self.joint_value("crank_joint"))
                self.add_objective(self._drive())
            case "turns":
                self.remove_objective("crank drive")
            case _:
                self._put(self.joint_value("crank_joint"))

    def apply_phase(self) -> None:
        self.set_targets({"crank drive": {"crank_joint": self._angle(self.phase)}})

    def make_readouts(self) -> list[str]:
        low, high = crank_range(*self.lengths)
        rate = self.phase_rate if self.is_moving else 0.0
        angle = self.joint_value("crank_joint")
        ends = coupler_points(self.lengths, self.at, np.array([angle - 1e-5, angle + 1e-5]), self.up)
        speed = rate * float(np.linalg.norm(ends[1] - ends[0])) / 2e-5
        lines = [f"{self.kind}: {KIND_TEXTS[self.kind]}"]
        if high - low < FULL_ROTATION_RANGE:
            lines.append(f"range of the crank: {math.degrees(low):.0f} to {math.degrees(high):.0f} degrees")
        elif rate:
            lines.append(f"speed of the pen: {speed:.2f} m/s")
        return lines

    # ---- internals --------------------------------------------------------------------------

    def _put(self, angle: float) -> None:
        """Load the linkage of the sliders, with its crank as near to `angle` as possible."""
        ground, crank, coupler, rocker = (self.number(name) for name in LENGTHS)
        lengths = ground, crank, coupler, rocker
        kind = four_bar_kind(*lengths)  # raises for bars that cannot move
        at, up = (self.number("along"), self.number("across")), self.text("elbow") == "up"
        angle = clamp_crank_angle(angle, *crank_range(*lengths))
        mechanism = four_bar_with_pen(lengths, at, angle, up)
        self.lengths, self.kind, self.at, self.up = lengths, kind, at, up
        self.load_mechanism(mechanism)
        self.phase = self._phase_of(angle)
        if self.is_moving:
            self.add_objective(self._drive())
        self.session.set_curves([make_curve("coupler curve", coupler_curve(lengths, at, up), closed=True)])

    def _drive(self) -> JointValues:
        return JointValues({"crank_joint": self._angle(self.phase)}, angle_mode="exact", name="crank drive")

    def _angle(self, phase: float) -> float:
        """Return the crank angle at a phase, rad: a full rotation, or an oscillation inside its range."""
        low, high = crank_range(*self.lengths)
        if high - low > FULL_ROTATION_RANGE:
            return phase
        return (low + high) / 2 + SWING_SHARE * (high - low) / 2 * math.sin(phase)

    def _phase_of(self, angle: float) -> float:
        low, high = crank_range(*self.lengths)
        if high - low > FULL_ROTATION_RANGE:
            return angle
        return math.asin(min(1.0, max(-1.0, (angle - (low + high) / 2) / (SWING_SHARE * (high - low) / 2))))


CRANK_SAMPLES = 144
"""Number of samples of a full rotation."""
CRANK_SWING_SHARE = 0.97
"""Share of its range that a crank without full rotation uses."""


@dataclass(frozen=True, slots=True)
class CrankLinkage:
    """A linkage of the gallery, and the point of a link that draws.

    Attributes:
        gallery: name of the mechanism.
        link: name of the link.
        at: the point in the frame of the link, m.
        description: text for the display.
    """

    gallery: str
    link: str
    at: tuple[float, float, float]
    description: str


CRANK_LINKAGES = {
    "Klann leg": CrankLinkage("klann_leg", "foot", (0.0, 0.0, 0.0), "six bars and a foot with a high step"),
    "slider crank": CrankLinkage(
        "slider_crank", "rod", (0.5, 0.0, 0.0), "a piston; the middle of its rod draws an oval"
    ),
    "Watt": CrankLinkage("watt_six_bar", "rod", (0.2, 0.0, 0.0), "two four-bars in a row"),
    "Stephenson": CrankLinkage("stephenson_six_bar", "rod", (0.2, 0.0, 0.0), "a four-bar whose coupler drives a lever"),
    "Peaucellier": CrankLinkage("peaucellier", "pen", (0.0, 0.0, 0.0), "converts a circle into an exact straight line"),
    "Bennett": CrankLinkage(
        "bennett", "coupler", (0.0, 0.0, 0.0), "four skew revolute joints with one degree of freedom"
    ),
}


@cache
def trace_point(name: str) -> tuple[Array, tuple[float, float]]:
    """Return the path of the drawing point, (n, 3), m, and the range of the crank, rad; 2 pi apart: full rotation."""
    drawing = CRANK_LINKAGES[name]
    mechanism = gallery.make(drawing.gallery)
    start = float(mechanism.joint("crank_joint").values[0])
    step = 2 * math.pi / CRANK_SAMPLES
    ahead = _steps(mechanism, start, step)
    back = [] if len(ahead) == CRANK_SAMPLES else _steps(mechanism, start, -step)
    q = [*back[:0:-1], *ahead]
    points = read_only(np.array([apply(mechanism.pose(drawing.link, q_row), drawing.at) for q_row in q]))
    if len(ahead) == CRANK_SAMPLES:
        return points, (start, start + 2 * math.pi)
    return points, (start - step * (len(back) - 1), start + step * (len(ahead) - 1))


def _steps(mechanism: Mechanism, start: float, step: float) -> list[Array]:
    """Return q at each step of the crank, up to its limit or to a full rotation."""
    configurations, last = [mechanism.q], None
    while len(configurations) < CRANK_SAMPLES:
        last = mechanism.assemble(
            {"crank_joint": start + step * len(configurations)}, mechanism.q if last is None else last
        )
        if not last.success:
            break
        configurations.append(last.q)
    return configurations


class CrankScene(AnimatedScene):
    """Six classic linkages with one dof, driven by a crank."""

    name = "cranks"
    title = "Linkages on a crank"
    about = (
        "Six classic linkages with one degree of freedom: choose one, and a point draws its curve while the crank "
        "rotates. Drag any bar, and the others follow: the loops stay closed."
    )
    motion_control, stopped_value = "turns", False

    def make_controls(self) -> list[ControlInfo]:
        return [
            choice("linkage", "Linkage", tuple(CRANK_LINKAGES), "Linkage"),
            switch("turns", "Rotate the crank", True, "Drive"),
            slider("speed", "Speed, rounds/s", 0.25, -2.0, 2.0, 0.05, "Drive"),
        ]

    def build(self) -> None:
        self._put()

    def on_control_changed(self, name: str) -> None:
        if name == "linkage":
            self._put()
        elif name == "turns" and self.is_moving:
            low, high = self.crank_limits
            angle = self.joint_value("crank_joint")
            share = (angle - (low + high) / 2) / (CRANK_SWING_SHARE * (high - low) / 2)
            self.phase = angle if self.rotates_fully else math.asin(min(1.0, max(-1.0, share)))
            self.add_objective(self._drive())
        elif name == "turns":
            self.remove_objective("crank drive")

    @property
    def rotates_fully(self) -> bool:
        return self.crank_limits[1] - self.crank_limits[0] > 2 * math.pi - 1e-9

    def apply_phase(self) -> None:
        self.set_targets({"crank drive": {"crank_joint": self._angle()}})

    def make_readouts(self) -> list[str]:
        low, high = (math.degrees(end) for end in self.crank_limits)
        swing = (
            "the crank rotates fully"
            if self.rotates_fully
            else f"the crank swings from {low:.0f} to {high:.0f} degrees"
        )
        return [CRANK_LINKAGES[self.text("linkage")].description, swing]

    def _put(self) -> None:
        drawing = CRANK_LINKAGES[self.text("linkage")]
        mechanism = gallery.make(drawing.gallery)
        points, self.crank_limits = trace_point(self.text("linkage"))
        self.load_mechanism(mechanism)
        self.phase = float(mechanism.joint("crank_joint").values[0]) if self.rotates_fully else 0.0
        if self.is_moving:
            self.add_objective(self._drive())
        self.session.set_curves([make_curve("drawn", points, closed=self.rotates_fully)])

    def _drive(self) -> JointValues:
        return JointValues({"crank_joint": self._angle()}, angle_mode="exact", name="crank drive")

    def _angle(self) -> float:
        low, high = self.crank_limits
        return (
            self.phase
            if self.rotates_fully
            else (low + high) / 2 + CRANK_SWING_SHARE * (high - low) / 2 * math.sin(self.phase)
        )
