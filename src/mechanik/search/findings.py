"""What has been found of the solutions of a target so far: single ones, curves, and samples of what is wider."""

from __future__ import annotations

import numpy as np

from mechanik.search.clusters import Clusters, spread
from mechanik.search.conditions import Conditions
from mechanik.search.self_motion import Curve, follow, lies_on
from mechanik.spatial.array import Array

AT_A_TIME = 8
"""Curves that are followed together."""
SEEN = 1e-5
"""Descents that end so near (rad, sizes) to a known single solution ended there: no need to polish them."""


class Findings:
    """
    Attributes:
        points: single solutions.
        curves: self-motions, whole, beyond the limits of turning joints too.
        seeds: (k, nq) solutions that lie on them.
        wide: (k, nq) solutions that leave two and more freedoms.
        redundant: the most freedoms that any of the solutions leaves.
    """

    def __init__(self, conditions: Conditions) -> None:
        self.conditions = conditions
        self.points = Clusters(conditions)
        self.curves: list[Curve] = []
        self.seeds = np.zeros((0, conditions.mechanism.nq))
        self.wide = np.zeros((0, conditions.mechanism.nq))
        self.redundant = 0

    def fresh(self, q: Array) -> Array:
        """Those of q (K, nq), as descents leave them, that are not next to a known single solution."""
        for one in self.points.q:
            q = q[np.abs(self.conditions.apart(one, q)).max(axis=1, initial=0.0) > SEEN]
        return q

    def add(self, q: Array) -> int:
        """Sort polished solutions (K, nq) in; returns how many of them are, or lie on, something new."""
        q = self._off_curves(self.points.unknown(q), self.curves)
        freedoms = self.conditions.freedoms(q)
        wide = freedoms > 1
        if wide.any():
            self.wide = np.concatenate([self.wide, q[wide]])
            self.redundant = max(self.redundant, int(freedoms.max()))
        return self.points.add(q[freedoms == 0]) + self._follow(q[freedoms == 1])

    def _follow(self, q: Array) -> int:
        """Sort in solutions that leave one freedom, at least to first order."""
        new = 0
        while len(q):
            chosen = spread(self.conditions, q, AT_A_TIME)
            curves: list[Curve] = []
            for k, curve in zip(chosen, follow(self.conditions, q[chosen]), strict=True):
                if len(curve.q) == 1:
                    new += self.points.add(q[k][None])  # it cannot go anywhere: two solutions fall together here
                elif not any(lies_on(self.conditions, one, q[k][None])[0] for one in curves):
                    curves.append(curve)
                    self.seeds, self.redundant = np.vstack([self.seeds, q[k]]), max(self.redundant, 1)
            self.curves += curves
            new += len(curves)
            q = self._off_curves(self.points.unknown(np.delete(q, chosen, axis=0)), curves)
        return new

    def _off_curves(self, q: Array, curves: list[Curve]) -> Array:
        """Those that lie on none; the others are kept as seeds."""
        for curve in curves:
            on = lies_on(self.conditions, curve, q)
            self.seeds, q = np.concatenate([self.seeds, q[on]]), q[~on]
        return q
