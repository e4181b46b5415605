"""Hypothesis strategies for rotations, twists and quaternions, including the edges of the formulas."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

PI = np.pi


def _direction(components: tuple[float, ...]) -> np.ndarray:
    v = np.array(components)
    return v / np.linalg.norm(v)


def directions() -> SearchStrategy[np.ndarray]:
    """Unit vectors, the coordinate axes and near-axes among them."""
    component = st.one_of(st.floats(-1.0, 1.0), st.sampled_from([0.0, 1.0, -1.0, 1e-9, -1e-17]))
    return st.tuples(component, component, component).filter(lambda v: np.linalg.norm(v) > 0.1).map(_direction)


def tiny(smallest: int = -16) -> SearchStrategy[float]:
    """From 1e-3 down to 10**smallest, evenly in the exponent."""
    return st.floats(smallest, -3.0).map(lambda e: 10.0**e)


def turns() -> SearchStrategy[float]:
    """Angles in [0, pi], crowded at both ends; none so small that half of it has fewer digits."""
    ends = st.sampled_from([0.0, 1e-300, PI / 2, 1.0, np.nextafter(1.0, 0.0), PI])
    return st.one_of(st.floats(1e-290, PI), tiny(-20), tiny().map(lambda d: PI - d), ends)


def rotation_vectors() -> SearchStrategy[np.ndarray]:
    return st.builds(lambda axis, angle: axis * angle, directions(), turns())


def vectors(size: int = 3, largest: float = 2.0) -> SearchStrategy[np.ndarray]:
    return st.tuples(*[st.floats(-largest, largest)] * size).map(np.array)


def twists() -> SearchStrategy[np.ndarray]:
    """(linear, angular), the angular part a shortest one."""
    return st.builds(lambda v, w: np.concatenate([v, w]), vectors(), rotation_vectors())


def quaternions() -> SearchStrategy[np.ndarray]:
    """Unit, of both signs; made without the code under test."""

    def made(w: np.ndarray, sign: float) -> np.ndarray:
        angle = float(np.linalg.norm(w))
        axis = w / angle if angle else np.array([1.0, 0.0, 0.0])
        return sign * np.array([np.cos(angle / 2), *(np.sin(angle / 2) * axis)])

    return st.builds(made, rotation_vectors(), st.sampled_from([1.0, -1.0]))
