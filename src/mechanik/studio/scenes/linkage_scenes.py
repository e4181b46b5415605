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
LENGTH_NAMES = ("ground", "crank", "coupler", "rocker")
CURVE_SAMPLES = 240
"""Number of points of a coupler curve."""
COLLINEAR_TOLERANCE = 1e-6
"""A crank range that ends within this angle (rad) of 0 or pi is assumed to include 0 or pi."""
FULL_ROTATION_RANGE = 2 * math.pi - COLLINEAR_TOLERANCE
"""Crank range above which the crank rotates fully, rad."""
SWING_SHARE = 0.999
"""Share of its range that a crank without full rotation uses; at the ends of the range both assembly modes meet."""
KIND_DESCRIPTIONS = {
    "crank-rocker": "the crank rotates fully, the rocker swings",
    "double-crank": "crank and rocker both rotate fully",
    "rocker-crank": "the rocker can rotate fully, the crank swings",
    "double-rocker": "crank and rocker swing; only the coupler can rotate fully",
    "change-point": "all bars can lie on one line, where the assembly mode can change",
    "triple-rocker": "no bar rotates fully",
}
"""Description of each kind of four-bar for the display."""


def crank_range(ground: float, crank: float, coupler: float, rocker: float) -> tuple[float, float]:
    """Return the lowest and the highest crank angle, rad; they differ by 2 pi if the crank rotates fully.

    The distance from the crank tip to the rocker pivot must lie between |coupler - rocker| and coupler + rocker. If the
    crank can reach neither 0 nor pi, there are two mirrored ranges; the result is the range with positive angles.
    """

    def crank_angle(distance: float) -> float:
        cosine = (ground**2 + crank**2 - distance**2) / (2 * ground * crank)
        return math.acos(min(1.0, max(-1.0, cosine)))

    min_angle, max_angle = crank_angle(abs(coupler - rocker)), crank_angle(coupler + rocker)
    can_reach_zero, can_reach_pi = min_angle < COLLINEAR_TOLERANCE, max_angle > math.pi - COLLINEAR_TOLERANCE
    if can_reach_zero:
        return (-math.pi, math.pi) if can_reach_pi else (-max_angle, max_angle)
    return (min_angle, 2 * math.pi - min_angle) if can_reach_pi else (min_angle, max_angle)


def clamp_crank_angle(angle: float, lower: float, upper: float) -> float:
    """Return the angle modulo full rotations, clamped to the share `SWING_SHARE` of the range.

    The angle is unchanged if the crank rotates fully.
    """
    if upper - lower > FULL_ROTATION_RANGE:
        return angle
    middle, half_range = (lower + upper) / 2, SWING_SHARE * (upper - lower) / 2
    offset = math.remainder(angle - middle, 2 * math.pi)
    return middle + min(half_range, max(-half_range, offset))


def coupler_points(lengths: Lengths, at: tuple[float, float], angles: Array, is_elbow_up: bool) -> Array:
    """Return the positions of a coupler point in the frame of the ground, (n, 3), m.

    Args:
        lengths: ground, crank, coupler and rocker, m.
        at: position of the point along the coupler and to its left, m.
        angles: crank angles, (n,), rad.
        is_elbow_up: assembly mode: elbow up, else elbow down.
    """
    ground, crank, coupler, rocker = lengths
    crank_tip = crank * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    to_rocker_pivot = np.array([ground, 0.0]) - crank_tip
    distance = np.linalg.norm(to_rocker_pivot, axis=-1)
    cosine = (coupler**2 + distance**2 - rocker**2) / (2 * coupler * distance)
    angle_to_diagonal = np.arccos(np.clip(cosine, -1.0, 1.0))
    coupler_angle = np.arctan2(to_rocker_pivot[:, 1], to_rocker_pivot[:, 0]) + (
        angle_to_diagonal if is_elbow_up else -angle_to_diagonal
    )
    c, s = np.cos(coupler_angle), np.sin(coupler_angle)
    x, y = crank_tip[:, 0] + at[0] * c - at[1] * s, crank_tip[:, 1] + at[0] * s + at[1] * c
    return np.stack([x, y, np.zeros_like(x)], axis=-1)


def coupler_curve(lengths: Lengths, at: tuple[float, float], is_elbow_up: bool = True) -> Array:
    """Return the closed coupler curve in the frame of the ground, (CURVE_SAMPLES, 3), m.

    A crank without full rotation moves forward in one assembly mode and back in the other.
    """
    lower, upper = crank_range(*lengths)
    if upper - lower > FULL_ROTATION_RANGE:
        return coupler_points(lengths, at, np.linspace(lower, upper, CURVE_SAMPLES + 1)[:-1], is_elbow_up)
    # cosine spacing: near the ends of the range the point moves fast for a small crank step
    angles = (lower + upper) / 2 - (upper - lower) / 2 * np.cos(np.linspace(0.0, math.pi, CURVE_SAMPLES // 2 + 1))
    forward_points, backward_points = (
        coupler_points(lengths, at, angles[::direction], is_elbow_up == (direction > 0)) for direction in (1, -1)
    )
    return np.concatenate([forward_points[:-1], backward_points[:-1]])


def four_bar_with_pen(lengths: Lengths, at: tuple[float, float], angle: float, is_elbow_up: bool) -> Mechanism:
    """Return the four-bar of the gallery, assembled at a crank angle (rad), with a link `pen` on its coupler.

    The other arguments are those of `coupler_points`.
    """
    mechanism = gallery.four_bar(*lengths, angle=angle, elbow="up" if is_elbow_up else "down")
    coupler, pen_position, rod_radius = mechanism.link("coupler"), (*at, 0.0), 0.015 * lengths[0]
    add_shapes(
        coupler,
        capsule((0.0, 0.0, 0.0), pen_position, rod_radius, ORANGE),
        capsule((lengths[2], 0.0, 0.0), pen_position, rod_radius, ORANGE),
    )
    pen, joint = Link("pen"), Joint("pen_joint", position=pen_position)
    add_shapes(pen, sphere((0.0, 0.0, 0.0), 2 * rod_radius, DARK))
    joint.add_child(pen)
    coupler.add_child(joint)
    mechanism.configurations["home"] = mechanism.q
    return mechanism


class FourBarScene(AnimatedScene):
    """Four-bar linkage with its Grashof class and its coupler curve."""

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
            slider("speed", "Speed, revolutions/s", 0.25, 0.0, 2.0, 0.05, "Drive"),
        ]

    def build(self) -> None:
        self._load_linkage(0.6)

    def on_control_changed(self, name: str) -> None:
        match name:
            case "speed":
                pass
            case "turns" if self.is_on("turns"):
                self.phase = self._phase_of_angle(self.joint_value("crank_joint"))
                self.add_objective(self._crank_objective())
            case "turns":
                self.remove_objective("crank drive")
            case _:
                self._load_linkage(self.joint_value("crank_joint"))

    def apply_phase(self) -> None:
        self.set_targets({"crank drive": {"crank_joint": self._crank_angle(self.phase)}})

    def make_readouts(self) -> list[str]:
        lower, upper = crank_range(*self.lengths)
        rate = self.phase_rate if self.is_moving else 0.0
        angle = self.joint_value("crank_joint")
        nearby_points = coupler_points(self.lengths, self.at, np.array([angle - 1e-5, angle + 1e-5]), self.is_elbow_up)
        speed = rate * float(np.linalg.norm(nearby_points[1] - nearby_points[0])) / 2e-5
        lines = [f"{self.kind}: {KIND_DESCRIPTIONS[self.kind]}"]
        if upper - lower < FULL_ROTATION_RANGE:
            lines.append(f"range of the crank: {math.degrees(lower):.0f} to {math.degrees(upper):.0f} degrees")
        elif rate:
            lines.append(f"speed of the pen: {speed:.2f} m/s")
        return lines

    # ---- internals --------------------------------------------------------------------------

    def _load_linkage(self, angle: float) -> None:
        """Load the linkage with the lengths of the sliders, at the possible crank angle nearest to `angle`, rad."""
        ground, crank, coupler, rocker = (self.number(name) for name in LENGTH_NAMES)
        lengths = ground, crank, coupler, rocker
        kind = four_bar_kind(*lengths)  # raises an error for lengths that cannot be assembled
        at, is_elbow_up = (self.number("along"), self.number("across")), self.text("elbow") == "up"
        angle = clamp_crank_angle(angle, *crank_range(*lengths))
        mechanism = four_bar_with_pen(lengths, at, angle, is_elbow_up)
        self.lengths, self.kind, self.at, self.is_elbow_up = lengths, kind, at, is_elbow_up
        self.load_mechanism(mechanism)
        self.phase = self._phase_of_angle(angle)
        if self.is_moving:
            self.add_objective(self._crank_objective())
        self.session.set_curves([make_curve("coupler curve", coupler_curve(lengths, at, is_elbow_up), closed=True)])

    def _crank_objective(self) -> JointValues:
        return JointValues({"crank_joint": self._crank_angle(self.phase)}, angle_mode="exact", name="crank drive")

    def _crank_angle(self, phase: float) -> float:
        """Return the crank angle at a phase, rad: a full rotation, or an oscillation inside its range."""
        lower, upper = crank_range(*self.lengths)
        if upper - lower > FULL_ROTATION_RANGE:
            return phase
        return (lower + upper) / 2 + SWING_SHARE * (upper - lower) / 2 * math.sin(phase)

    def _phase_of_angle(self, angle: float) -> float:
        """Return the phase at which the crank has this angle, or the nearest possible angle, rad."""
        lower, upper = crank_range(*self.lengths)
        if upper - lower > FULL_ROTATION_RANGE:
            return angle
        return math.asin(min(1.0, max(-1.0, (angle - (lower + upper) / 2) / (SWING_SHARE * (upper - lower) / 2))))


CRANK_SAMPLES = 144
"""Number of samples of a full rotation."""
CRANK_SWING_SHARE = 0.97
"""Share of its range that a crank without full rotation uses; the ends of the range are dead points of the crank."""


@dataclass(frozen=True, slots=True)
class CrankLinkage:
    """A linkage of the gallery, and the point whose path is drawn.

    Attributes:
        gallery_name: name of the mechanism in the gallery.
        link: name of the link with the point.
        at: position of the point in the frame of the link, m.
        description: text for the display.
    """

    gallery_name: str
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
"""Linkages by the choices of the control "linkage"."""


@cache
def trace_point(name: str) -> tuple[Array, tuple[float, float]]:
    """Return the path of the drawn point, (n, 3), m, and the lowest and the highest crank angle, rad.

    The angles differ by 2 pi if the crank rotates fully; otherwise they are up to one sample inside the crank's limits.
    """
    linkage = CRANK_LINKAGES[name]
    mechanism = gallery.make(linkage.gallery_name)
    start_angle = float(mechanism.joint("crank_joint").values[0])
    step = 2 * math.pi / CRANK_SAMPLES
    forward_configurations = _crank_steps(mechanism, start_angle, step)
    backward_configurations = (
        [] if len(forward_configurations) == CRANK_SAMPLES else _crank_steps(mechanism, start_angle, -step)
    )
    configurations = [*backward_configurations[:0:-1], *forward_configurations]
    points = read_only(np.array([apply(mechanism.pose(linkage.link, q), linkage.at) for q in configurations]))
    if len(forward_configurations) == CRANK_SAMPLES:
        return points, (start_angle, start_angle + 2 * math.pi)
    return points, (
        start_angle - step * (len(backward_configurations) - 1),
        start_angle + step * (len(forward_configurations) - 1),
    )


def _crank_steps(mechanism: Mechanism, start_angle: float, step: float) -> list[Array]:
    """Return q (nq,) at each step of the crank, up to its limit or to a full rotation; angles in rad."""
    configurations, assembly = [mechanism.q], None
    while len(configurations) < CRANK_SAMPLES:
        assembly = mechanism.assemble(
            {"crank_joint": start_angle + step * len(configurations)}, mechanism.q if assembly is None else assembly
        )
        if not assembly.success:
            break
        configurations.append(assembly.q)
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
            slider("speed", "Speed, revolutions/s", 0.25, -2.0, 2.0, 0.05, "Drive"),
        ]

    def build(self) -> None:
        self._load_linkage()

    def on_control_changed(self, name: str) -> None:
        if name == "linkage":
            self._load_linkage()
        elif name == "turns" and self.is_moving:
            lower, upper = self.crank_limits
            angle = self.joint_value("crank_joint")
            relative_angle = (angle - (lower + upper) / 2) / (CRANK_SWING_SHARE * (upper - lower) / 2)
            self.phase = angle if self.can_rotate_fully else math.asin(min(1.0, max(-1.0, relative_angle)))
            self.add_objective(self._crank_objective())
        elif name == "turns":
            self.remove_objective("crank drive")

    @property
    def can_rotate_fully(self) -> bool:
        """Whether the crank can rotate fully."""
        return self.crank_limits[1] - self.crank_limits[0] > 2 * math.pi - 1e-9

    def apply_phase(self) -> None:
        self.set_targets({"crank drive": {"crank_joint": self._crank_angle()}})

    def make_readouts(self) -> list[str]:
        lower, upper = (math.degrees(limit) for limit in self.crank_limits)
        range_text = (
            "the crank rotates fully"
            if self.can_rotate_fully
            else f"the crank swings from {lower:.0f} to {upper:.0f} degrees"
        )
        return [CRANK_LINKAGES[self.text("linkage")].description, range_text]

    def _load_linkage(self) -> None:
        linkage = CRANK_LINKAGES[self.text("linkage")]
        mechanism = gallery.make(linkage.gallery_name)
        points, self.crank_limits = trace_point(self.text("linkage"))
        self.load_mechanism(mechanism)
        self.phase = float(mechanism.joint("crank_joint").values[0]) if self.can_rotate_fully else 0.0
        if self.is_moving:
            self.add_objective(self._crank_objective())
        self.session.set_curves([make_curve("path", points, closed=self.can_rotate_fully)])

    def _crank_objective(self) -> JointValues:
        return JointValues({"crank_joint": self._crank_angle()}, angle_mode="exact", name="crank drive")

    def _crank_angle(self) -> float:
        lower, upper = self.crank_limits
        return (
            self.phase
            if self.can_rotate_fully
            else (lower + upper) / 2 + CRANK_SWING_SHARE * (upper - lower) / 2 * math.sin(self.phase)
        )
