"""Motions to write: mechanisms of different kinds, each on a random way."""

from __future__ import annotations

import numpy as np

import mechanik as mk
from mechanik.motion.record import Motion

NAMES = ("panda", "hexapod", "humanoid", "rover", "two_arms", "rail_arm", "gripper")
"""With followers, loops, balls, a floating base, two roots or sliders."""


def recorded(name: str, frames: int = 7, is_even: bool = True) -> Motion:
    """On the straight way from one random configuration to another; loops are not looked at."""
    mechanism = mk.gallery.make(name)
    rng = np.random.default_rng(len(name))
    start, end = mechanism.random(rng), mechanism.random(rng)
    shares = np.linspace(0.0, 1.0, frames)
    q = mechanism.integrate(start, shares[:, None] * mechanism.difference(start, end))
    times = 2.0 + 0.1 * np.arange(frames) if is_even else 2.0 + np.cumsum(rng.uniform(0.01, 0.2, frames))
    return Motion(mechanism, times, q, name=f"{name} on its way")
