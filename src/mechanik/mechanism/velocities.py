"""Velocities of a mechanism with its loops shut: what each drive's velocity makes of the tool, and of all else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from mechanik.errors import DoFError, StructureError, WrongKind
from mechanik.mechanism.by_name import _named as joint_and_freedoms
from mechanik.mechanism.closure import Closure
from mechanik.mechanism.constraints import closure_axes
from mechanik.mechanism.dof import DoF
from mechanik.mechanism.door import as_vector, read_only
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.mechanism import Mechanism
from mechanik.mechanism.motions import WEAK, Motions, independent, null_space, without
from mechanik.mechanism.nearby import shut_motions
from mechanik.mechanism.placed import Placed
from mechanik.mechanism.structure import analyse, refuse_open
from mechanik.spatial import apply
from mechanik.spatial.array import Array, ArrayLike


@dataclass(frozen=True, slots=True, eq=False)
class SingularDirections:
    """
    Attributes:
        twists: (k, 6), orthonormal world twists (linear in sizes of the mechanism, angular) that no drive makes.
        drives: (k, drives), orthonormal velocities of the drives (shifts in sizes of the mechanism) that leave the
            tool where it is.
    """

    twists: Array
    drives: Array


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClosedJacobian:
    """How a mechanism moves by its drives, at one configuration.

    Attributes:
        link: the tool.
        drives: the freedoms that drive, by name.
        matrix: (6, drives), world velocity (linear, angular) of the tool for each drive's velocity.
        transmission: (nv, drives), velocities of all freedoms for each drive's velocity; idle motions stand still, but
            for those of the tool.
        dependent: drives that cannot be moved on their own here: at a dead point, or because those before them say how
            they move. What is impossible for the drives is left out of `matrix` and `transmission`.
        undetermined: freedoms that can move while all drives stand still, idle motions aside; of all motions that
            agree with the drives the smallest is given.
        size: m, the unit of length for `condition` and `singular_directions`: the longest fixed length between two
            joints of a link, or the extent of the places where loops are closed, if that is more.
    """

    link: str
    drives: tuple[str, ...]
    matrix: Array
    transmission: Array
    dependent: tuple[str, ...]
    undetermined: tuple[str, ...]
    size: float
    _scaled: Array

    def __repr__(self) -> str:
        text = f"{', '.join(self.drives) or 'no drive'} to {self.link!r}, condition {self.condition:.3g}"
        for what, names in (("dependent", self.dependent), ("undetermined", self.undetermined)):
            text += f"; {what}: {', '.join(names)}" if names else ""
        return f"<closed Jacobian: {text}>"

    @property
    def condition(self) -> float:
        """The largest over the smallest singular value of `matrix`, lengths in sizes; infinite where it is singular.

        There are as many of them as drives, or six if that is less. So it is infinite wherever drives can move and the
        tool stand still; and it is infinite where a drive is dependent.
        """
        sizes = np.linalg.svd(self._scaled, compute_uv=False)
        if not len(sizes):
            return 1.0
        return float(sizes[0] / sizes[-1]) if sizes[-1] > WEAK * sizes[0] and not self.dependent else np.inf

    @property
    def singular_directions(self) -> SingularDirections:
        """What the tool cannot do, and what of the drives it does not feel. A planar tool never leaves its plane."""
        u, sizes, vt = np.linalg.svd(self._scaled)
        rank = int((sizes > WEAK * max(float(sizes.max(initial=0.0)), 1e-12)).sum())
        return SingularDirections(read_only(u[:, rank:].T.copy()), read_only(vt[rank:].copy()))


def closed_jacobian(
    mechanism: Mechanism,
    link: str,
    drive: Iterable[str] | str | None = None,
    q: ArrayLike | None = None,
    point: ArrayLike | None = None,
) -> ClosedJacobian:
    """See `Mechanism.closed_jacobian`."""
    p_link = np.zeros(3) if point is None else as_vector(point, 3, "point")
    here = shut_motions(mechanism, mechanism.q if q is None else mechanism._one(q))
    refuse_open(mechanism, here)
    placed = Placed(mechanism.kinematics, here.q)
    tool = placed.carried(link)
    J_tree = tool.at(apply(tool.X, p_link))
    ways = here.basis()
    if drive is None:
        seen = analyse(mechanism, here.q, tool=link)
        names = [mechanism.space.v_names[k] for k in seen.drives]
        rows, units = np.eye(mechanism.nv)[seen.drives], here.unit[seen.drives]
        ways = without(ways, seen.spins(here))
    else:
        names, rows, units = _drive_rows(mechanism, placed, _as_names(drive), here)
    driven = rows * here.unit / units[:, None] @ ways
    rest = null_space(driven, _strong(driven))
    if drive is not None and rest.shape[1]:  # what stays undetermined may be idle only
        spins = analyse(mechanism, here.q, tool=link).spins(here)
        turned = rows * here.unit / units[:, None] @ spins  # an idle motion in which a drive takes part is driven
        ways = without(ways, spins @ null_space(turned, _strong(turned)))
        driven = rows * here.unit / units[:, None] @ ways
        rest = null_space(driven, _strong(driven))
    free = np.abs(ways @ rest).max(axis=1, initial=0.0) > WEAK
    led = independent(driven, range(len(names)), WEAK, 1.0)
    scaled = ways @ _inverse(driven)
    lengths = np.array([here.size] * 3 + [1.0] * 3)
    return ClosedJacobian(
        link=link,
        drives=tuple(names),
        matrix=read_only(J_tree @ (here.unit[:, None] * scaled / units)),
        transmission=read_only(here.unit[:, None] * scaled / units),
        dependent=tuple(name for k, name in enumerate(names) if k not in led),
        undetermined=tuple(name for name, is_free in zip(mechanism.space.v_names, free, strict=True) if is_free),
        size=here.size,
        _scaled=read_only(J_tree / lengths[:, None] @ (here.unit[:, None] * scaled)),
    )


def _drive_rows(
    mechanism: Mechanism, placed: Placed, drive: list[str], here: Motions
) -> tuple[list[str], Array, Array]:
    """Names of single freedoms, how v makes the velocity of each (drives, nv), and the unit of each."""
    names: list[str] = []
    rows: list[Array] = []
    units: list[float] = []
    slots = mechanism.kinematics.slots
    for given in drive:
        joint, dofs = joint_and_freedoms(given, mechanism.joints)
        if not dofs:
            raise DoFError(f"{joint} is fixed and cannot drive")
        name = mechanism.name_of(joint)
        for dof in dofs:
            label = name if len(joint.dof) == 1 else f"{name}.{dof.name}"
            if label in names:
                raise StructureError(f"{label!r} is named twice among the drives")
            names.append(label)
            units.append(1.0 if dof.is_rotation else here.size)
            if joint.closure is not None:
                rows.append(_closing_row(mechanism, joint.closure, dof, placed))
                continue
            if joint not in slots:
                raise StructureError(f"{joint} holds no link and cannot drive")
            row = np.zeros(mechanism.nv)
            column, ratio = _column(joint, dof, mechanism)
            row[column] = ratio
            rows.append(row)
    if not rows:
        raise StructureError("no drive is named; leave `drive` out to have drives chosen")
    return names, np.array(rows), np.array(units)


def _as_names(drive: Iterable[str] | str) -> list[str]:
    """Drives by name."""
    if not isinstance(drive, Iterable):
        raise WrongKind(f"drives are given by name, as 'crank_joint' or ['left', 'base.X'], not as {drive!r}")
    names: list[str] = [drive] if isinstance(drive, str) else list(drive)
    for name in names:
        if not isinstance(name, str):
            raise WrongKind(f"a drive is given by the name of a joint or freedom, not as {name!r}")
    return names


def _column(joint: Joint, dof: DoF, mechanism: Mechanism) -> tuple[int, float]:
    """The number of v that moves a freedom, and by how much."""
    slots = mechanism.kinematics.slots
    if dof in joint._couplings:
        leader, leader_dof, ratio, _ = joint._couplings[dof].resolve()
        return slots[leader].v[leader_dof], ratio
    slot = slots[joint]
    if slot.ball_v is not None and dof.is_rotation:  # a ball turns about its own axes
        return slot.ball_v + dof.direction, 1.0
    return slot.v[dof], 1.0


def _closing_row(mechanism: Mechanism, closure: Closure, dof: DoF, placed: Placed) -> Array:
    """How v changes a value of the joint that closes a loop, (nv,)."""
    if dof.is_rotation and sum(one.is_rotation for one in closure.free) > 1:
        raise DoFError(f"{closure.joint} closes a loop and turns in several ways; only single turns can drive")
    axes, apart = closure_axes(mechanism, closure, placed)
    return axes[:, dof.direction] @ (apart[3:] if dof.is_rotation else apart[:3])


def _strong(driven: Array) -> int:
    """The rank of what the drives see of the motions, which have unit length."""
    return int((np.linalg.svd(driven, compute_uv=False) > WEAK).sum()) if driven.size else 0


def _inverse(driven: Array) -> Array:
    """The pseudo-inverse, without what the drives hardly see."""
    if not driven.size:
        return np.zeros(driven.shape[::-1])
    u, sizes, vt = np.linalg.svd(driven, full_matrices=False)
    strong = sizes > WEAK
    return (vt[strong].T / sizes[strong]) @ u[:, strong].T
