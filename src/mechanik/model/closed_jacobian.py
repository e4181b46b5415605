"""The Jacobian of a mechanism with closed loops: velocities of a tool and of all dofs per input velocity.

A basis of the null space of the constraint Jacobian describes all motions that keep the loops closed. The input
velocities are linear in the coefficients of this basis; the pseudo-inverse of this linear map gives the motion for
given input velocities.
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
    LinearizedSystem,
    closure_axes_and_jacobian,
    independent_rows,
    linearize_closed_system,
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
        inputs: (j, inputs), orthonormal input velocities (translations in characteristic lengths) that do not move the
            tool.
    """

    twists: Array
    inputs: Array


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClosedJacobian:
    """The Jacobian of a tool link with respect to the input velocities at one configuration with closed loops.

    `Mechanism.closed_jacobian` computes it.

    Attributes:
        link: name of the tool link.
        inputs: names of the input dofs.
        matrix: (6, inputs), world velocity (linear, angular) of the tool per input velocity.
        transmission: (nv, inputs), velocities of all dofs per input velocity, without idle motions (motions of a part
            that move nothing else) that no input drives. A motion of the tool is never idle.
        dependent: inputs that cannot move independently in this configuration: they are at a dead point, or earlier
            inputs determine them. `matrix` and `transmission` ignore the part of the input velocities that the loops
            do not allow.
        undetermined: dofs that can move while all inputs are at rest, idle motions excluded; `transmission` contains
            the motion of least norm.
        characteristic_length: m, the unit of length of `condition` and `singular_directions`: the longest fixed
            translation from the world or a joint to the next joint or link, or the extent of the closure points if the
            extent is larger.

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
    _scaled_matrix: Array

    def __repr__(self) -> str:
        text = f"{', '.join(self.inputs) or 'no input'} to {self.link!r}, condition {self.condition:.3g}"
        for label, names in (("dependent", self.dependent), ("undetermined", self.undetermined)):
            text += f"; {label}: {', '.join(names)}" if names else ""
        return f"<closed Jacobian: {text}>"

    @property
    def condition(self) -> float:
        """The condition number of `matrix`, with lengths in characteristic lengths.

        The condition number is the ratio of the largest to the smallest of the min(6, inputs) singular values; 1
        without inputs. It is infinite if the smallest singular value is zero, or if an input is dependent.
        """
        singular_values = np.linalg.svd(self._scaled_matrix, compute_uv=False)
        if not len(singular_values):
            return 1.0
        return (
            float(singular_values[0] / singular_values[-1])
            if singular_values[-1] > MIN_PARTICIPATION * singular_values[0] and not self.dependent
            else np.inf
        )

    @property
    def singular_directions(self) -> SingularDirections:
        """The tool twists that no input produces, and the input velocities that do not move the tool.

        For a tool that moves in a plane, the twists always include the three twists out of this plane.
        """
        u, singular_values, vt = np.linalg.svd(self._scaled_matrix)
        rank = int((singular_values > MIN_PARTICIPATION * max(float(singular_values.max(initial=0.0)), 1e-12)).sum())
        return SingularDirections(read_only(u[:, rank:].T.copy()), read_only(vt[rank:].copy()))


def closed_jacobian(
    mechanism: Mechanism,
    link: str,
    inputs: Iterable[str] | str | None = None,
    q: ArrayLike | None = None,
    point: ArrayLike | None = None,
) -> ClosedJacobian:
    """Compute the closed Jacobian; see `Mechanism.closed_jacobian` for arguments and errors."""
    p_link_point = np.zeros(3) if point is None else as_vector(point, 3, "point")
    system = linearize_closed_system(mechanism, mechanism.q if q is None else mechanism._single_q(q))
    check_loops_closed(mechanism, system)
    kinematics = NumpyKinematics(mechanism.kinematics, system.q)
    tool_kinematics = kinematics.link_kinematics(link)
    J_tree = tool_kinematics.jacobian_at(apply(tool_kinematics.X_world_link, p_link_point))
    basis = system.basis()
    if inputs is None:
        analysis = analyse_structure(mechanism, system.q, tool=link)
        names = [mechanism.space.v_names[k] for k in analysis.inputs]
        input_rows, input_units = np.eye(mechanism.nv)[analysis.inputs], system.unit[analysis.inputs]
        basis = remove_directions(basis, analysis.idle_basis(system))
    else:
        names, input_rows, input_units = _input_rows(mechanism, kinematics, _input_names(inputs), system)
    input_rates = input_rows * system.unit / input_units[:, None] @ basis
    undriven_coefficients = null_space(input_rates, _rank_of_inputs(input_rates))
    if inputs is not None and undriven_coefficients.shape[1]:  # idle motions do not count as undetermined
        idle_basis = analyse_structure(mechanism, system.q, tool=link).idle_basis(system)
        # an idle motion that moves an input is not removed
        idle_input_rates = input_rows * system.unit / input_units[:, None] @ idle_basis
        basis = remove_directions(basis, idle_basis @ null_space(idle_input_rates, _rank_of_inputs(idle_input_rates)))
        input_rates = input_rows * system.unit / input_units[:, None] @ basis
        undriven_coefficients = null_space(input_rates, _rank_of_inputs(input_rates))
    is_undetermined = np.abs(basis @ undriven_coefficients).max(axis=1, initial=0.0) > MIN_PARTICIPATION
    independent_inputs = independent_rows(input_rates, range(len(names)), MIN_PARTICIPATION, 1.0)
    scaled_transmission = basis @ _truncated_inverse(input_rates)
    twist_units = np.array([system.characteristic_length] * 3 + [1.0] * 3)
    return ClosedJacobian(
        link=link,
        inputs=tuple(names),
        matrix=read_only(J_tree @ (system.unit[:, None] * scaled_transmission / input_units)),
        transmission=read_only(system.unit[:, None] * scaled_transmission / input_units),
        dependent=tuple(name for k, name in enumerate(names) if k not in independent_inputs),
        undetermined=tuple(
            name for name, is_free in zip(mechanism.space.v_names, is_undetermined, strict=True) if is_free
        ),
        characteristic_length=system.characteristic_length,
        _scaled_matrix=read_only(J_tree / twist_units[:, None] @ (system.unit[:, None] * scaled_transmission)),
    )


def _input_rows(
    mechanism: Mechanism, kinematics: NumpyKinematics, inputs: list[str], system: LinearizedSystem
) -> tuple[list[str], Array, Array]:
    """Return the names of the input dofs, the matrix (inputs, nv) that maps v to their velocities, and their units."""
    names: list[str] = []
    rows: list[Array] = []
    units: list[float] = []
    joint_indices = mechanism.kinematics.joint_indices
    for input_name in inputs:
        joint, dofs = joint_and_dofs(input_name, mechanism.joints)
        if not dofs:
            raise DoFError(f"{joint} is fixed, so it cannot be an input")
        name = mechanism.name_of(joint)
        for dof in dofs:
            label = name if len(joint.dof) == 1 else f"{name}.{dof.name}"
            if label in names:
                raise StructureError(f"{label!r} is repeated in the inputs; name it once")
            names.append(label)
            units.append(1.0 if dof.is_rotation else system.characteristic_length)
            if joint.closure is not None:
                rows.append(_closure_input_row(mechanism, joint.closure, dof, kinematics))
                continue
            if joint not in joint_indices:
                raise StructureError(f"{joint} has no child link, so it cannot be an input")
            row = np.zeros(mechanism.nv)
            column, ratio = dof_column(joint, dof, mechanism)
            row[column] = ratio
            rows.append(row)
    if not rows:
        raise StructureError("`inputs` is empty; omit it to use the inputs that mk.structure chooses")
    return names, np.array(rows), np.array(units)


def _input_names(inputs: Iterable[str] | str) -> list[str]:
    """Validate the input names and return them as a list."""
    if not isinstance(inputs, Iterable):
        raise InvalidArgument(f"inputs must be names, such as 'crank_joint' or ['left', 'base.X'], not {inputs!r}")
    names: list[str] = [inputs] if isinstance(inputs, str) else list(inputs)
    for name in names:
        if not isinstance(name, str):
            raise InvalidArgument(f"an input must be the name of a joint or dof, not {name!r}")
    return names


def dof_column(joint: Joint, dof: DoF, mechanism: Mechanism) -> tuple[int, float]:
    """Return the index in v of the independent dof that determines a dof, and the ratio of their velocities.

    The ratio is the velocity of the dof per unit of velocity of the independent dof.
    """
    joint_indices = mechanism.kinematics.joint_indices
    if dof in joint._couplings:
        leader, leader_dof, ratio, _ = joint._couplings[dof].resolve()
        return joint_indices[leader].v[leader_dof], ratio
    indices = joint_indices[joint]
    # for a joint with a quaternion, v is the angular velocity about the axes of motion, which rotate with the child
    if indices.quaternion_v is not None and dof.is_rotation:
        return indices.quaternion_v + dof.axis_index, 1.0
    return indices.v[dof], 1.0


def _closure_input_row(mechanism: Mechanism, closure: Closure, dof: DoF, kinematics: NumpyKinematics) -> Array:
    """Return the rate of change of a dof of a closing joint per unit of v, (nv,)."""
    if dof.is_rotation and sum(free_dof.is_rotation for free_dof in closure.free_dof) > 1:
        raise DoFError(
            f"{closure.joint} closes a loop and has several rotations; only a single rotation can be an input"
        )
    axes, J_relative = closure_axes_and_jacobian(mechanism, closure, kinematics)
    return axes[:, dof.axis_index] @ (J_relative[3:] if dof.is_rotation else J_relative[:3])


def _rank_of_inputs(input_rates: Array) -> int:
    """Return the rank of the map from coefficients of the basis of motions to input velocities.

    The tolerance is absolute, since the basis is orthonormal.
    """
    return int((np.linalg.svd(input_rates, compute_uv=False) > MIN_PARTICIPATION).sum()) if input_rates.size else 0


def _truncated_inverse(input_rates: Array) -> Array:
    """Return the pseudo-inverse; singular values up to `MIN_PARTICIPATION` count as zero."""
    if not input_rates.size:
        return np.zeros(input_rates.shape[::-1])
    u, singular_values, vt = np.linalg.svd(input_rates, full_matrices=False)
    is_significant = singular_values > MIN_PARTICIPATION
    return (vt[is_significant].T / singular_values[is_significant]) @ u[:, is_significant].T
