"""Time-optimal speeds along a curve by toppra, the reference implementation of reachability analysis."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np

from mechanik.motion.retime.joint_spline import JointSpline
from mechanik.spatial.array import Array

UNLIMITED = 1e9
"""rad or m, per s or s^2: toppra takes no infinite limits."""


def toppra_speeds(curve: JointSpline, velocity: Array, acceleration: Array, s: Array) -> Array:
    """Speeds ds/dt (M,) at the grid points s (M,) within limits (nv,), from rest to rest."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # toppra imports plotting libraries, which may warn
        algorithm, constraint, interpolator = (
            import_module(f"toppra.{name}") for name in ("algorithm", "constraint", "interpolator")
        )

    class Adapter(interpolator.AbstractGeometricPath):
        """The curve with dof velocities as derivatives, also for spherical joints."""

        dof = curve.mechanism.nv
        path_interval = np.array([0.0, curve.length])

        def __call__(self, path_positions: Any, order: int = 0) -> Array:
            values = curve.at(np.atleast_1d(np.asarray(path_positions, dtype=np.float64)))[order]
            return values if np.ndim(path_positions) else values[0]

    velocity, acceleration = np.minimum(velocity, UNLIMITED), np.minimum(acceleration, UNLIMITED)
    velocities = constraint.JointVelocityConstraint(np.stack([-velocity, velocity], axis=1))
    accelerations = constraint.JointAccelerationConstraint(
        np.stack([-acceleration, acceleration], axis=1),
        discretization_scheme=constraint.DiscretizationType.Interpolation,
    )
    solver = algorithm.TOPPRA([velocities, accelerations], Adapter(), gridpoints=s, solver_wrapper="seidel")
    return np.maximum(np.asarray(solver.compute_parameterization(0, 0)[1], dtype=np.float64), 0.0)
