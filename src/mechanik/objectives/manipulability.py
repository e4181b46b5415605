"""Away from singular poses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from mechanik.errors import DoFError, ObjectiveError
from mechanik.mechanism import DoF, Link, Mechanism
from mechanik.mechanism.by_name import _named as joint_and_freedoms
from mechanik.mechanism.dof import ALL, DoFLike, as_dofs
from mechanik.mechanism.door import as_number
from mechanik.objectives.door import as_point, known_link, link_name
from mechanik.objectives.objective import Objective, Wish
from mechanik.objectives.relation import Kind, Relation
from mechanik.spatial.array import Array, ArrayLike

SAMPLES = 32
"""Configurations of which the median is the usual size of the measure."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Manipulability(Objective):
    """Raises Yoshikawa's measure of a point of a link: w = sqrt(det(J J')), the volume of the speeds it can have.

    One row, without a unit: usual / (w + usual), which is 1 where the pose is singular and falls as w grows. By
    default it is below the goals, and no condition of success.

    T. Yoshikawa, "Manipulability of Robotic Mechanisms", International Journal of Robotics Research 4(2), 1985.

    Args:
        dof: which speeds count, along and about the axes of the world: X Y Z EX EY EZ.
        at: (3,), m, in the link.
        joints: whose motion counts, by joint or by freedom; None: that of all.
        usual: what w is to be compared with; None: the median of some random configurations.
    """

    link: str
    dof: tuple[DoF, ...]
    point: Array
    joints: tuple[str, ...] | None
    usual: float | None

    def __init__(
        self,
        link: str | Link,
        dof: Iterable[DoFLike] | DoFLike = ALL,
        at: ArrayLike = (0.0, 0.0, 0.0),
        *,
        joints: Iterable[str] | str | None = None,
        usual: float | None = None,
        **wish: Unpack[Wish],
    ) -> None:
        wish.setdefault("level", 50)
        wish.setdefault("required", False)
        Objective.__init__(self, **wish)
        speeds = as_dofs(dof)
        if not speeds:
            raise DoFError(f"{self._called} has no speed that counts; name some of X Y Z EX EY EZ")
        scale = None if usual is None else as_number(usual, f"usual of {self._called}")
        if scale is not None and scale <= 0.0:
            raise ObjectiveError(f"usual of {self._called} must be above zero, not {scale:g}")
        some = (joints,) if isinstance(joints, str) else joints
        fields = {
            "link": link_name(link),
            "dof": speeds,
            "point": as_point(at, f"point of {self._called}"),
            "joints": None if some is None else tuple(some),
            "usual": scale,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"<{self._called} of link {self.link!r}: {' '.join(dof.name for dof in self.dof)}>"

    def measure(self, mechanism: Mechanism, q: ArrayLike) -> Array:
        """w (...) at q (..., nq)."""
        return np.linalg.svd(self._speeds(mechanism, mechanism.space.check_q(q)), compute_uv=False).prod(axis=-1)

    def relations(self, mechanism: Mechanism) -> tuple[Relation, ...]:
        known_link(mechanism, self.link)
        columns = len(self._columns(mechanism))
        if columns < len(self.dof):
            raise ObjectiveError(
                f"{self._called}: {columns} freedoms cannot give {len(self.dof)} speeds; name fewer in `dof`"
            )
        usual = self.usual
        if usual is None:
            samples = mechanism.random(np.random.default_rng(0), SAMPLES)
            usual = float(np.median(self.measure(mechanism, samples)))
            if usual < 1e-12:
                raise ObjectiveError(
                    f"{self._called}: link {self.link!r} is singular everywhere; name fewer speeds in `dof`"
                )
        return (Relation(Kind.FUNCTION, (0,), function=_Row(self, usual), weight=self.weight),)

    def _speeds(self, mechanism: Mechanism, q: Array) -> Array:
        """The rows and columns of the Jacobian that count, (..., dof, columns)."""
        J = mechanism.jacobian(self.link, q, self.point)
        return J[..., list(self.dof), :][..., self._columns(mechanism)]

    def _columns(self, mechanism: Mechanism) -> list[int]:
        if self.joints is None:
            return list(range(mechanism.nv))
        found: set[int] = set()
        for name in self.joints:
            joint, dofs = joint_and_freedoms(name, mechanism.joints)
            slot = mechanism.kinematics.slots.get(joint)
            if slot is None:
                raise ObjectiveError(f"{joint} has no numbers in q, so its motion cannot count in {self._called}")
            found |= {slot.v[dof] for dof in dofs if dof in slot.v}
            if slot.ball_v is not None:
                found |= {slot.ball_v + dof.direction for dof in dofs if dof.is_rotation}
        return sorted(found)


@dataclass(frozen=True, slots=True, eq=False)
class _Row:
    """usual / (w + usual), and its derivative."""

    objective: Manipulability
    usual: float

    def __call__(self, mechanism: Mechanism, q: Array) -> tuple[Array, Array]:
        speeds = self.objective._speeds
        U, sizes, Vt = np.linalg.svd(speeds(mechanism, q), full_matrices=False)
        # dw is the sum over k of (product of the other sizes) u_k' dJ v_k. Nothing is divided by, so a singular pose
        # has a way out too: of the two along which w rises, one is chosen.
        others = np.array([np.delete(sizes, k).prod() for k in range(len(sizes))])
        step, units = 1e-5, np.eye(mechanism.nv)
        near, far = (
            speeds(mechanism, mechanism.integrate(q, k * step * units))
            - speeds(mechanism, mechanism.integrate(q, -k * step * units))
            for k in (1, 2)
        )
        dJ = (8.0 * near - far) / (12.0 * step)
        dw = np.einsum("k,ik,nij,kj->n", others, U, dJ, Vt)
        total = float(sizes.prod()) + self.usual
        return np.array([self.usual / total]), (-self.usual / total**2 * dw)[None]
