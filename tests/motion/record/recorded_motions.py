"""Random motions of mechanisms of different kinds, for the tests of export."""

from __future__ import annotations

import numpy as np

import mechanik as mk
from mechanik.motion.record import Motion

NAMES = ("panda", "hexapod", "humanoid", "rover", "two_arms", "rail_arm", "gripper")
"""Mechanisms with mimic joints, loops, spherical joints, a floating base, two roots or prismatic joints."""


def random_motion(name: str, frames: int = 7, is_even: bool = True) -> Motion:
    """Motion on a straight segment between two random configurations; loops are not closed."""
    mechanism = mk.gallery.make(name)
    rng = np.random.default_rng(len(name))
    start, end = mechanism.random(rng), mechanism.random(rng)
    shares = np.linspace(0.0, 1.0, frames)
    q = mechanism.integrate(start, shares[:, None] * mechanism.difference(start, end))
    times = 2.0 + 0.1 * np.arange(frames) if is_even else 2.0 + np.cumsum(rng.uniform(0.01, 0.2, frames))
    return Motion(mechanism, times, q, name=f"{name} motion")
