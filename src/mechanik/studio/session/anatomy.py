"""A mechanism as it is drawn: all that is needed to read poses, values and gaps from q, and never changes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mechanik.mechanism import Mechanism
from mechanik.spatial.array import Array
from mechanik.studio.session.freedoms import FreedomValues, list_freedoms
from mechanik.studio.session.gaps import Gaps, Measured


class Anatomy:
    """Of a mechanism as its graph stands now. Its methods may be called from any thread.

    Attributes:
        links: number of each link by name.
        freedoms: as pages know them.
        nq, value_count: how many numbers q has, and how many the values of all freedoms are.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self._kinematics = mechanism.kinematics
        self.names: tuple[str, ...] = tuple(mechanism.links)
        self.links: Mapping[str, int] = {name: k for k, name in enumerate(self.names)}
        self.freedoms = list_freedoms(mechanism)
        self.nq = mechanism.nq
        self.gaps = Gaps(mechanism)
        self._values = FreedomValues(self.freedoms)
        self.value_count = self._values.count
        weights = [link.inertial.mass if link.inertial is not None else 0.0 for link in mechanism.links.values()]
        self._mass = float(sum(weights))
        self._masses = np.array(weights)
        self._centres = np.array(
            [np.zeros(3) if link.inertial is None else link.inertial.pose.position for link in mechanism.links.values()]
        ).reshape(-1, 3)

    def poses(self, q: Array) -> Array:
        """X_world_link (L, 4, 4)."""
        return self._kinematics.poses(q)

    def measure(self, X: Array) -> Measured:
        return self.gaps.measure(X)

    def values(self, q: Array, measured: Measured) -> Array:
        """(V,) of all freedoms."""
        return self._values.read(q, measured.values, measured.turned)

    def values_at(self, q: Array) -> Array:
        return self.values(q, self.measure(self.poses(q)))

    def centre(self, X: Array) -> Array | None:
        """Of all masses, (3,); None if nothing weighs anything."""
        if self._mass <= 0.0:
            return None
        places = (X[:, :3, :3] @ self._centres[:, :, None])[:, :, 0] + X[:, :3, 3]
        return self._masses @ places / self._mass
