"""The Jacobian of a mechanism with closed loops: velocities of a tool and of all dofs by the input velocities.

The null space of the constraint Jacobian spans the motions that keep the loops closed. The pseudo-inverse of the input
rows on this basis maps input velocities to motions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from mechanik.errors import DoFError, InvalidArgument, StructureError
from mechanik.model.dof import DoF
from mechanik.model.joint import Joint
from mechanik.model.kinematics import joint_and_dofs
from mechanik.model.linearized_constraints import (
    MIN_PARTICIPATION,
    FirstOrderMotions,
    closed_first_order_motions,
    closure_axes_and_twists,
    independent_rows,
    null_space,
    remove_directions,
)
from mechanik.model.loop_closure import Closure
from mechanik.model.mechanism import Mechanism
from mechanik.model.mobility import analyse_structure, check_loops_closed
from mechanik.model.numpy_kinematics import NumpyKinematics
from mechanik.spatial import apply
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import as_vector, read_only


@dataclass(frozen=True, slots=True, eq=False)
class SingularDirections:
    """The singular directions of a closed Jacobian.

    Attributes:
        twists: (k, 6), orthonormal world twists (linear in characteristic lengths, angular) that no input produces.
        inputs: (k, inputs), orthonormal input velocities (translations in characteristic lengths) that do not move the
            tool.
    """

    twists: Array
    inputs: Array


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClosedJacobian:
    """The Jacobian of a tool link by the input velocities while all loops stay closed, at one configuration.

    `Mechanism.closed_jacobian` computes it.

    Attributes:
        link: name of the tool link.
        inputs: names of the input dofs.
        matrix: (6, inputs), world velocity (linear, angular) of the tool per input velocity.
        transmission: (nv, inputs), velocities of all dofs per input velocity; idle motions are zero, except those of
            the tool.
        dependent: inputs that cannot move on their own here: at a dead point, or because earlier inputs determine them.
            Impossible input velocities are left out of `matrix` and `transmission`.
        undetermined: dofs that can move while all inputs are at rest, without idle motions; `transmission` has the
            motion of least norm.
        characteristic_length: m, the unit of length of `condition` and `singular_directions`: the longest fixed length
            between two joints of a link, or the extent of the closure points if that is larger.

    Example:
        >>> jacobian = mk.gallery.four_bar().closed_jacobian("rocker", "crank_joint")
        >>> jacobian.transmission.shape, jacobian.dependent
        ((3, 1), ())
    """

    link: str
    inputs: tuple[str, ...]
    matrix: Array
    transmission: Array
    dependent: tuple[str, ...]
    undetermined: tuple[str, ...]
    characteristic_length: float
    _scaled: Array

    def __repr__(self) -> str:
        text = f"{', '.join(self.inputs) or 'no drive'} to {self.link!r}, condition {self.condition:.3g}"
        for what, names in (("dependent", self.dependent), ("undetermined", self.undetermined)):
            text += f"; {what}: {', '.join(names)}" if names else ""
        return f"<closed Jacobian: {text}>"

    @property
    def condition(self) -> float:
        """The condition number of `matrix`, with lengths in characteristic lengths; infinite if it is singular.

        It is the ratio of the largest to the smallest of min(6, inputs) singular values. It is infinite if inputs can
        move while the tool is at rest, and if an input is dependent.
        """
        sizes = np.linalg.svd(self._scaled, compute_uv=False)
        if not len(sizes):
            return 1.0
        return (
            float(sizes[0] / sizes[-1]) if sizes[-1] > MIN_PARTICIPATION * sizes[0] and not self.dependent else np.inf
        )

    @property
    def singular_directions(self) -> SingularDirections:
        """The tool twists that no input produces, and the input velocities that do not move the tool.

        A planar tool always has the three twists out of its plane.
        """
        u, sizes, vt = np.linalg.svd(self._scaled)
        rank = int((sizes > MIN_PARTICIPATION * max(float(sizes.max(initial=0.0)), 1e-12)).sum())
        return SingularDirections(read_only(u[:, rank:].T.copy()), read_only(vt[rank:].copy()))


def closed_jacobian(
    mechanism: Mechanism,
    link: str,
    inputs: Iterable[str] | str | None = None,
    q: ArrayLike | None = None,
    point: ArrayLike | None = None,
) -> ClosedJacobian:
    """Compute `Mechanism.closed_jacobian`; arguments and errors as there."""
    p_link = np.zeros(3) if point is None else as_vector(point, 3, "point")
    here = closed_first_order_motions(mechanism, mechanism.q if q is None else mechanism._single_q(q))
    check_loops_closed(mechanism, here)
    placed = NumpyKinematics(mechanism.kinematics, here.q)
    tool = placed.link_kinematics(link)
    J_tree = tool.jacobian_at(apply(tool.X, p_link))
    ways = here.basis()
    if inputs is None:
        seen = analyse_structure(mechanism, here.q, tool=link)
        names = [mechanism.space.v_names[k] for k in seen.inputs]
        rows, units = np.eye(mechanism.nv)[seen.inputs], here.unit[seen.inputs]
        ways = remove_directions(ways, seen.idle_basis(here))
    else:
        names, rows, units = _drive_rows(mechanism, placed, _as_names(inputs), here)
    driven = rows * here.unit / units[:, None] @ ways
    rest = null_space(driven, _strong(driven))
    if inputs is not None and rest.shape[1]:  # the undetermined motions may be idle motions, which are removed
        spins = analyse_structure(mechanism, here.q, tool=link).idle_basis(here)
        turned = rows * here.unit / units[:, None] @ spins  # an idle motion that moves an input is not idle here
        ways = remove_directions(ways, spins @ null_space(turned, _strong(turned)))
        driven = rows * here.unit / units[:, None] @ ways
        rest = null_space(driven, _strong(driven))
    free = np.abs(ways @ rest).max(axis=1, initial=0.0) > MIN_PARTICIPATION
    led = independent_rows(driven, range(len(names)), MIN_PARTICIPATION, 1.0)
    scaled = ways @ _inverse(driven)
    lengths = np.array([here.characteristic_length] * 3 + [1.0] * 3)
    return ClosedJacobian(
        link=link,
        inputs=tuple(names),
        matrix=read_only(J_tree @ (here.unit[:, None] * scaled / units)),
        transmission=read_only(here.unit[:, None] * scaled / units),
        dependent=tuple(name for k, name in enumerate(names) if k not in led),
        undetermined=tuple(name for name, is_free in zip(mechanism.space.v_names, free, strict=True) if is_free),
        characteristic_length=here.characteristic_length,
        _scaled=read_only(J_tree / lengths[:, None] @ (here.unit[:, None] * scaled)),
    )


def _drive_rows(
    mechanism: Mechanism, placed: NumpyKinematics, drive: list[str], here: FirstOrderMotions
) -> tuple[list[str], Array, Array]:
    """Return the names of single dofs, the map from v to the velocity of each (inputs, nv), and the unit of each."""
    names: list[str] = []
    rows: list[Array] = []
    units: list[float] = []
    slots = mechanism.kinematics.joint_indices
    for given in drive:
        joint, dofs = joint_and_dofs(given, mechanism.joints)
        if not dofs:
            raise DoFError(f"{joint} is fixed and cannot drive")
        name = mechanism.name_of(joint)
        for dof in dofs:
            label = name if len(joint.dof) == 1 else f"{name}.{dof.name}"
            if label in names:
                raise StructureError(f"{label!r} is named twice among the drives")
            names.append(label)
            units.append(1.0 if dof.is_rotation else here.characteristic_length)
            if joint.closure is not None:
                rows.append(_closing_row(mechanism, joint.closure, dof, placed))
                continue
            if joint not in slots:
                raise StructureError(f"{joint} holds no link and cannot drive")
            row = np.zeros(mechanism.nv)
            column, ratio = dof_column(joint, dof, mechanism)
            row[column] = ratio
            rows.append(row)
    if not rows:
        raise StructureError("no input is named; leave `inputs` out to have the inputs chosen")
    return names, np.array(rows), np.array(units)


def _as_names(drive: Iterable[str] | str) -> list[str]:
    """Validate the input names and return them as a list."""
    if not isinstance(drive, Iterable):
        raise InvalidArgument(f"drives are given by name, as 'crank_joint' or ['left', 'base.X'], not as {drive!r}")
    names: list[str] = [drive] if isinstance(drive, str) else list(drive)
    for name in names:
        if not isinstance(name, str):
            raise InvalidArgument(f"a drive is given by the name of a joint or freedom, not as {name!r}")
    return names


def dof_column(joint: Joint, dof: DoF, mechanism: Mechanism) -> tuple[int, float]:
    """Return the index in v that moves a dof, and its ratio."""
    slots = mechanism.kinematics.joint_indices
    if dof in joint._couplings:
        leader, leader_dof, ratio, _ = joint._couplings[dof].resolve()
        return slots[leader].v[leader_dof], ratio
    slot = slots[joint]
    if slot.quaternion_v is not None and dof.is_rotation:  # v of a spherical joint is the rotation about its own axes
        return slot.quaternion_v + dof.axis_index, 1.0
    return slot.v[dof], 1.0


def _closing_row(mechanism: Mechanism, closure: Closure, dof: DoF, placed: NumpyKinematics) -> Array:
    """Return the rate of a value of a closing joint per unit of v, (nv,)."""
    if dof.is_rotation and sum(one.is_rotation for one in closure.free_dof) > 1:
        raise DoFError(f"{closure.joint} closes a loop and turns in several ways; only single turns can drive")
    axes, apart = closure_axes_and_twists(mechanism, closure, placed)
    return axes[:, dof.axis_index] @ (apart[3:] if dof.is_rotation else apart[:3])


def _strong(driven: Array) -> int:
    """Return the rank of the input velocities on the basis of motions, which have unit norm."""
    return int((np.linalg.svd(driven, compute_uv=False) > MIN_PARTICIPATION).sum()) if driven.size else 0


def _inverse(driven: Array) -> Array:
    """Return the pseudo-inverse without the singular values up to `MIN_PARTICIPATION`."""
    if not driven.size:
        return np.zeros(driven.shape[::-1])
    u, sizes, vt = np.linalg.svd(driven, full_matrices=False)
    strong = sizes > MIN_PARTICIPATION
    return (vt[strong].T / sizes[strong]) @ u[:, strong].T
