"""Linkages with closed forms, for tests: planar ones by circles, platforms by what is known of their geometry."""

from __future__ import annotations

import math

import numpy as np

import mechanik as mk
from mechanik.spatial.array import Array


def four_bar(
    ground: float, crank: float, coupler: float, rocker: float, angle: float, *, is_crossed: bool = False
) -> mk.Mechanism:
    """Joints `crank`, `coupler` and `rocker` about z, closed by `pin`; `is_crossed`: the elbow below, not above."""
    knee, elbow, pivot = elbow_position(ground, crank, coupler, rocker, angle, is_crossed)
    turn = math.atan2(*(elbow - knee)[::-1])
    b = mk.Builder("four_bar")
    b.revolute("crank", "ground", "crank_link", value=angle)
    b.revolute("coupler", "crank_link", "coupler_link", at=(crank, 0.0, 0.0), value=turn - angle)
    b.revolute("rocker", "ground", "rocker_link", at=(ground, 0.0, 0.0), value=math.atan2(*(elbow - pivot)[::-1]))
    b.close("pin", "coupler_link", "rocker_link", "pin", at=(coupler, 0.0, 0.0), onto=(rocker, 0.0, 0.0))
    return b.build()


def elbow_position(
    ground: float, crank: float, coupler: float, rocker: float, angle: float, is_crossed: bool = False
) -> tuple[Array, Array, Array]:
    """Return the end of the crank, the pin between coupler and rocker, and the pivot of the rocker, (2,) each."""
    knee, pivot = crank * np.array([math.cos(angle), math.sin(angle)]), np.array([ground, 0.0])
    knee_to_pivot = pivot - knee
    apart = float(np.linalg.norm(knee_to_pivot))
    along = (apart**2 + coupler**2 - rocker**2) / (2 * apart)
    aside = math.sqrt(max(coupler**2 - along**2, 0.0)) * (-1.0 if is_crossed else 1.0)
    return knee, knee + (along * knee_to_pivot + aside * np.array([-knee_to_pivot[1], knee_to_pivot[0]])) / apart, pivot


def rocker_angle_of(
    ground: float, crank: float, coupler: float, rocker: float, angle: float, is_crossed: bool = False
) -> float:
    """The rocker's angle, in -pi to pi."""
    _, elbow, pivot = elbow_position(ground, crank, coupler, rocker, angle, is_crossed)
    return math.atan2(*(elbow - pivot)[::-1])


def angle_difference(a: Array | float, b: Array | float) -> float:
    """Return the largest difference of angles modulo full turns."""
    return float(np.abs(np.remainder(np.asarray(a) - b + math.pi, 2 * math.pi) - math.pi).max())


def gough_platform(base: Array, platform: Array, lengths: Array) -> mk.Mechanism:
    """A platform `platform` on six legs from points (6, 3) of the base to points (6, 3) of its own.

    Slides `slide0` to `slide5` are the legs' lengths. One angle of each universal joint stays within a quarter turn, so
    that the direction of a leg determines its angles.
    """
    b = mk.Builder("gough_platform")
    b.free("float", "base", "platform")
    for k in range(6):
        limits = ((-math.pi / 2, -math.inf), (math.pi / 2, math.inf))
        b.universal(f"universal{k}", "base", f"leg{k}", at=base[k], limits=limits)
        b.prismatic(f"slide{k}", f"leg{k}", f"rod{k}", value=float(lengths[k]))
        b.close(f"ball{k}", f"rod{k}", "platform", "ball", onto=platform[k])
    return b.build()


def lengths_at(base: Array, platform: Array, X_base_platform: Array) -> Array:
    """(6,) of the legs, with the platform at a pose (4, 4)."""
    there = platform @ X_base_platform[:3, :3].T + X_base_platform[:3, 3]
    return np.linalg.norm(there - base, axis=1)
