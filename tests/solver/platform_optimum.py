"""The closest pose of a Stewart platform, found independently by SLSQP over the six coordinates of the platform."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation


class PlatformOptimum:
    """
    Args:
        mechanism: a Stewart platform whose spherical joints are its closures; it defines the geometry.
        limits: by joint and dof, (lower, upper) instead of the mechanism's.
    """

    def __init__(self, mechanism, limits=None):
        self.mechanism = mechanism
        self.legs = [mechanism.joint(f"leg{k}_universal").matrix for k in range(1, 7)]
        self.balls = [mechanism.closures[f"leg{k}_ball"].at.matrix[:3, 3] for k in range(1, 7)]
        own = {}
        for k in range(1, 7):
            slide, universal = mechanism.joint(f"leg{k}_slide"), mechanism.joint(f"leg{k}_universal")
            own[f"leg{k}_slide"] = slide.limits(slide.dof[0])
            for dof in universal.dof:
                own[f"leg{k}_universal.{dof.name}"] = universal.limits(dof)
        names = [f"leg{k}_{what}" for k in range(1, 7) for what in ("slide", "universal.EX", "universal.EY")]
        self.lower, self.upper = np.array([{**own, **(limits or {})}[name] for name in names]).T

    def pose(self, q):
        X = self.mechanism.pose("platform", q)
        return np.concatenate([X[:3, 3], Rotation.from_matrix(X[:3, :3]).as_rotvec()])

    def joints(self, x):
        """Length and two angles of each leg: its end lies along Ry(b) Rx(a) z."""
        R, values = Rotation.from_rotvec(x[3:]).as_matrix(), []
        for X, ball in zip(self.legs, self.balls, strict=True):
            along = X[:3, :3].T @ (R @ ball + x[:3] - X[:3, 3])
            length = np.linalg.norm(along)
            values += [length, -np.arcsin(along[1] / length), np.arctan2(along[0], along[2])]
        return np.array(values)

    def cost(self, x, X_goal):
        """Sum of the squared distance, m, and the squared angle, rad."""
        R = Rotation.from_rotvec(x[3:]).as_matrix()
        shift = X_goal[:3, :3].T @ (x[:3] - X_goal[:3, 3])
        rotation = Rotation.from_matrix(X_goal[:3, :3].T @ R).as_rotvec()
        return float(shift @ shift + rotation @ rotation)

    def best(self, X_goal, x0, rng, scales=(0.0, 1e-3, 1e-2)):
        """The best pose that SLSQP finds from near x0, and its cost."""
        inside = {
            "type": "ineq",
            "fun": lambda x: np.concatenate([self.joints(x) - self.lower, self.upper - self.joints(x)]),
        }
        optima = [
            minimize(
                self.cost,
                x0 + scale * rng.standard_normal(6),
                args=(X_goal,),
                method="SLSQP",
                constraints=[inside],
                options={"maxiter": 300, "ftol": 1e-15},
            )
            for scale in scales
        ]
        feasible = [optimum for optimum in optima if (inside["fun"](optimum.x) > -1e-7).all()]
        best = min(feasible, key=lambda optimum: optimum.fun)
        return best.x, float(best.fun)
