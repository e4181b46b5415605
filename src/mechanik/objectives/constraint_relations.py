"""Relations of the constraints of a mechanism: loop closures, joint constraints, swing cones, limits of closing joints.

A loop is closed, or a goal frame is reached, where the residual of its closure is zero. Cones and limits are relations
with a band.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from mechanik.errors import DoFError, StructureError
from mechanik.model import Closure, Goal, Joint, JointConstraint, Link, Mechanism
from mechanik.model.dof import ROTATIONS, TRANSLATIONS, DoF
from mechanik.model.joint import Cone
from mechanik.model.kinematics import Z_TO_AXIS
from mechanik.objectives.pose_constraints import partial_pose_relations
from mechanik.objectives.relation import Relation, RelationKind, evaluate_relation
from mechanik.spatial import euler, inverse, make_pose, quaternion, rotation, translation
from mechanik.spatial.array import Array
from mechanik.validation import read_only


def cone_relations(mechanism: Mechanism) -> dict[str, tuple[Relation, ...]]:
    """Return the relations of the swing cones of all joints in the kinematic tree, by joint name.

    For joints that close a loop see `closure_cone_relations`.
    """
    relations: dict[str, tuple[Relation, ...]] = {}
    for name, joint in mechanism.joints.items():
        if joint.cone is None or not joint.children:
            continue
        a, X_a, X_joint_axes = joint_base_frame(mechanism, joint)
        child = joint.children[0]
        relations[name] = make_cone_relations(
            joint.cone, a, X_a, mechanism.name_of(child), inverse(child.matrix) @ X_joint_axes
        )
    return relations


def make_cone_relations(
    cone: Cone, a: str | None, X_a: Array, b: str, X_b: Array, weight: float = 1.0
) -> tuple[Relation, ...]:
    """Return one COSINE relation for each axis of a cone; z of A and z of B coincide where the joint is at zero.

    Args:
        cone: swing limit of the joint.
        a, b: parent and child link of the joint; `a` None is the world.
        X_a, X_b: (4, 4), the joint's motion axes in these links.
        weight: factor of the residual inside the solver.
    """
    # rounding may make the cosine of an aligned axis larger than 1, so there is no upper bound
    lower, upper = read_only(np.array([math.cos(cone.angle)])), read_only(np.array([math.inf]))
    return tuple(
        Relation(
            RelationKind.COSINE, (0,), a, b, read_only(X_a @ Z_TO_AXIS[k]), read_only(X_b @ Z_TO_AXIS[k]),
            lower=lower, upper=upper, weight=weight,
        )
        for k in cone.axis_indices
    )  # fmt: skip


def joint_base_frame(mechanism: Mechanism, joint: Joint | Goal) -> tuple[str | None, Array, Array]:
    """Return the parent link of a joint (None: the world) and the joint's motion axes in two frames.

    Returns:
        Name of the link; pose of the motion axes in this link, (4, 4); their pose in the joint frame, (4, 4), which is
        a pure rotation.
    """
    X_a, parent = joint.matrix, joint.parent
    while parent is not None and not isinstance(parent, Link):
        X_a, parent = parent.matrix @ X_a, parent.parent
    X_joint_axes = make_pose(quaternion.to_matrix(joint.axes_wxyz), np.zeros(3))
    return None if parent is None else mechanism.name_of(parent), X_a @ X_joint_axes, X_joint_axes


def closure_relations(mechanism: Mechanism, closure: Closure, weight: float = 1.0) -> tuple[Relation, ...]:
    """Return the relations of a closure, or of a goal frame closed onto its link; limits are not included."""
    a, X_a, b, X_b = _ends(mechanism, closure)
    axes = "world" if closure.joint._is_in_world_axes() else "goal"
    return partial_pose_relations(closure.constrained_dof, a=a, X_a=X_a, b=b, X_b=X_b, axes=axes, weight=weight)


def closure_limit_relations(mechanism: Mechanism, closure: Closure, weight: float = 1.0) -> tuple[Relation, ...]:
    """Return the limits and the cone of a joint that closes a loop, as relations with bands.

    The relations measure the joint correctly only where the loop is closed. They contain the limits of translations,
    and the limits of a rotation if it is the only rotation of the joint and its range is below a full rotation. No
    relation can express limits of one among two or three rotations.
    """
    limits = [relation for _, relation in limit_relations_with_dofs(mechanism, closure, weight)]
    return (*limits, *closure_cone_relations(mechanism, closure, weight))


def limit_relations_with_dofs(
    mechanism: Mechanism, closure: Closure, weight: float = 1.0
) -> list[tuple[tuple[DoF, ...], Relation]]:
    """Return the limits of a joint that closes a loop as relations, each with the dofs that it measures.

    These are the relations of `closure_limit_relations` without the cone. The angle of a rotation is measured from the
    middle of its limits.
    """
    joint = closure.joint
    if not isinstance(joint, Joint):
        return []
    a, X_a, b, X_b = _ends(mechanism, closure)
    limits = {dof: joint.limits(dof) for dof in joint.dof if np.isfinite(joint.limits(dof)).any()}
    relations: list[tuple[tuple[DoF, ...], Relation]] = []

    def add_relation(
        dofs: list[DoF], rows: tuple[int, ...], X_a: Array, X_b: Array, lower: list[float], upper: list[float]
    ) -> None:
        lower_array, upper_array = read_only(np.array(lower)), read_only(np.array(upper))
        frames = read_only(X_a), read_only(X_b)
        relation = Relation(RelationKind.POSE, rows, a, b, *frames, lower=lower_array, upper=upper_array, weight=weight)
        relations.append((tuple(dofs), relation))

    translations = [dof for dof in TRANSLATIONS if dof in limits]
    if translations:
        lower, upper = zip(*(limits[dof] for dof in translations), strict=True)
        add_relation(
            translations,
            tuple(dof.axis_index for dof in translations),
            X_a.copy(),
            X_b.copy(),
            list(lower),
            list(upper),
        )
    rotations = [dof for dof in ROTATIONS if dof in joint.dof]
    if len(rotations) == 1 and rotations[0] in limits:
        k, (lower, upper) = rotations[0].axis_index, limits[rotations[0]]
        if upper - lower < 2 * math.pi:  # a range of a full rotation or more does not limit the angle
            # a rotation vector covers half a rotation to each side, so the angle is measured from the middle
            X_middle = make_pose(rotation.exp(0.5 * (lower + upper) * np.eye(3)[k]), np.zeros(3))
            half_range = 0.5 * (upper - lower)
            add_relation(
                rotations, (5,), X_a @ X_middle @ Z_TO_AXIS[k], X_b @ Z_TO_AXIS[k], [-half_range], [half_range]
            )
    return relations


def limits_reached(mechanism: Mechanism, q: Array, margin: float) -> dict[str, str]:
    """Return the dofs of closing joints that are within `margin` (m or rad) of a limit, or beyond it, at q (nq,).

    Only the limits in `limit_relations_with_dofs` are considered, and only if the lower limit is below the upper limit.

    Returns:
        "lower" or "upper" by joint or dof name.
    """
    sides: dict[str, str] = {}
    for name, closure in mechanism.closures.items():
        for dofs, relation in limit_relations_with_dofs(mechanism, closure):
            values, lower, upper = evaluate_relation(mechanism, relation, q)[0], relation.lower, relation.upper
            assert lower is not None
            assert upper is not None
            for dof, value, lower_limit, upper_limit in zip(dofs, values, lower, upper, strict=True):
                label = name if len(closure.free_dof) == 1 else f"{name}.{dof.name}"
                if lower_limit < upper_limit and value <= lower_limit + margin:
                    sides[label] = "lower"
                elif lower_limit < upper_limit and value >= upper_limit - margin:
                    sides[label] = "upper"
    return sides


def limit_violations(mechanism: Mechanism, q: Array) -> dict[str, float]:
    """Return by how much closing joints violate their limits, and joints their cones, at q (nq,); m or rad, by name."""
    violations: dict[str, float] = {}
    for name, tilt in swing_angles(mechanism, q).items():
        cone = mechanism.joints[name].cone
        if cone is not None and tilt > cone.angle:
            violations[name] = tilt - cone.angle
    for name, closure in mechanism.closures.items():
        gap = mechanism.closure_gap(name, q)
        joint = closure.joint
        if isinstance(joint, Joint) and any(np.isfinite(joint.limits(dof)).any() for dof in closure.free_dof):
            # the values that belong to the gap are inside the limits
            size = max(float(np.linalg.norm(gap.position)), float(np.linalg.norm(gap.rotation)))
            if size > 0.0:
                violations[name] = max(size, violations.get(name, 0.0))
    return violations


def closure_cone_relations(mechanism: Mechanism, closure: Closure, weight: float = 1.0) -> tuple[Relation, ...]:
    """Return the cone of a joint that closes a loop, as relations with bands; empty if the joint has no cone."""
    joint = closure.joint
    if not isinstance(joint, Joint) or joint.cone is None:
        return ()
    return make_cone_relations(joint.cone, *_ends(mechanism, closure), weight)


def swing_angles(mechanism: Mechanism, q: Array) -> dict[str, float]:
    """Return the swing angle (rad) at q (nq,) of each joint with a cone, by name: the largest among the cone's axes."""
    relations = {**cone_relations(mechanism)}
    for name, closure in mechanism.closures.items():
        if cone_relations_of_joint := closure_cone_relations(mechanism, closure):
            relations[name] = cone_relations_of_joint
    cosines = {
        name: min(float(evaluate_relation(mechanism, relation, q)[0][0]) for relation in cone_relations_of_joint)
        for name, cone_relations_of_joint in relations.items()
    }
    return {name: math.acos(min(max(cosine, -1.0), 1.0)) for name, cosine in cosines.items()}


def closure_value_relations(
    mechanism: Mechanism, closure: Closure, values: Mapping[DoF, float], weight: float = 1.0
) -> tuple[Relation, ...]:
    """Return the relations that are zero where the closing joint has the given values (m, rad).

    They measure the joint correctly only where the loop is closed.

    Raises:
        DoFError: only some of several rotations are given; no relation can express a single rotation among several.
    """
    a, X_a, b, X_b = _ends(mechanism, closure)
    relations: list[Relation] = []
    targets = np.array([values.get(dof, 0.0) for dof in DoF])
    translation_rows = tuple(dof.axis_index for dof in TRANSLATIONS if dof in values)
    if translation_rows:
        frames = read_only(X_a @ translation(targets[:3])), read_only(X_b.copy())
        relations.append(Relation(RelationKind.POSE, translation_rows, a, b, *frames, weight=weight))
    rotations = [dof for dof in ROTATIONS if dof in closure.free_dof]
    targeted_rotations = [dof for dof in ROTATIONS if dof in values]
    if targeted_rotations and targeted_rotations != rotations:
        names = " ".join(dof.name for dof in rotations)
        raise DoFError(f"{closure.joint} closes a loop and rotates about {names}: give all of these values, or none")
    if targeted_rotations:
        X_rotation = make_pose(euler.matrix_from_euler(targets[[5, 4, 3]], order="zyx", axes="moving"), np.zeros(3))
        z_to_axis, rows = (Z_TO_AXIS[rotations[0].axis_index], (5,)) if len(rotations) == 1 else (np.eye(4), (3, 4, 5))
        frames = read_only(X_a @ X_rotation @ z_to_axis), read_only(X_b @ z_to_axis)
        relations.append(Relation(RelationKind.POSE, rows, a, b, *frames, weight=weight))
    return tuple(relations)


def _ends(mechanism: Mechanism, closure: Closure) -> tuple[str | None, Array, str, Array]:
    """Return the two links that a closing joint connects, each followed by the pose (4, 4) of the motion axes in it."""
    a, X_a, X_joint_axes = joint_base_frame(mechanism, closure.joint)
    return a, X_a, mechanism.name_of(closure.link), closure.at.matrix @ X_joint_axes


def joint_constraint_relation(mechanism: Mechanism, constraint: JointConstraint, weight: float = 1.0) -> Relation:
    """Return the relation of a joint constraint in terms of independent dofs; mimic joints are resolved.

    Raises:
        StructureError: the constraint contains a joint without a child link.
    """
    coefficients_by_dof, constant = constraint.resolve_couplings()
    space, indices_by_joint = mechanism.space, mechanism.kinematics.joint_indices
    polynomials: list[tuple[str, Array]] = []
    for (joint, dof), coefficients in coefficients_by_dof.items():
        indices = indices_by_joint.get(joint)
        if indices is None or dof not in indices.q:
            raise StructureError(
                f"{constraint} contains {joint}, which has no child link and therefore no value: attach a link "
                f"to this joint, or remove the constraint"
            )
        polynomials.append((space.q_names[indices.q[dof]], read_only(coefficients.copy())))
    target = read_only(np.array([constant]))
    return Relation(RelationKind.JOINT_CONSTRAINT, (0,), polynomials=tuple(polynomials), target=target, weight=weight)


def joint_constraint_relations(mechanism: Mechanism) -> dict[str, Relation]:
    """Return the relations of all joint constraints of a mechanism, by name."""
    return {
        name: joint_constraint_relation(mechanism, constraint)
        for name, constraint in mechanism.joint_constraints.items()
    }


def joint_constraint_residuals(mechanism: Mechanism, relation: Relation, q: Array) -> Array:
    """Return the residuals (...) of a JOINT_CONSTRAINT relation at configurations q (..., nq)."""
    total = np.full(q.shape[:-1], -float(relation.target[0]))
    for dof_name, coefficients in relation.polynomials:
        values = q[..., mechanism.space.q_names.index(dof_name)]
        for power, coefficient in enumerate(coefficients.tolist(), start=1):
            total = total + coefficient * values**power
    return total
