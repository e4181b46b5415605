"""Jacobian of every objective against finite differences on the manifold, on mechanisms of all kinds of joints."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from derivatives import by_differences
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from random_mechanisms import random_mechanism, random_pose, random_turn, seeds

from mechanik import Builder, DoF, Inertial, Pose, objectives
from mechanik.model.dof import ALL_DOFS, TRANSLATIONS
from mechanik.objectives import (
    AxisGoal,
    CentreOfMass,
    Clearance,
    Custom,
    Distance,
    HingeGoal,
    InBand,
    InBox,
    InCone,
    JointValues,
    LineConstraint,
    LinkGoal,
    LookAt,
    Manipulability,
    Objective,
    OnLine,
    OnPlane,
    OnTerrain,
    OrientationGoal,
    PerpendicularAxes,
    PlaneConstraint,
    PointConstraint,
    PoseGoal,
    PositionGoal,
    RestPose,
    SurfaceGoal,
    Terrain,
    from_points,
)
from mechanik.objectives.joint_goals import JointObjective
from mechanik.objectives.relation import Relation, RelationKind, evaluate_relation

# ---- random objectives of every kind ------------------------------------------------------------


def point(rng):
    return rng.uniform(-1, 1, 3)


def direction(rng):
    return rng.standard_normal(3)


def random_dofs(rng, dofs):
    return [dof for dof in dofs if rng.random() < 0.5] or [dofs[rng.integers(len(dofs))]]


def joint_values(rng, mechanism, link, reference):
    return JointValues(mechanism.values(mechanism.random(rng)))


def curved_residual(mechanism, q):
    """A nonlinear residual that no other objective has."""
    X, Y = mechanism.pose("link0", q), mechanism.pose(list(mechanism.links)[-1], q)
    return np.array([np.sin(X[:3, 3] @ Y[:3, 3]) + X[0, 0] * Y[0, 0], np.trace(X[:3, :3].T @ Y[:3, :3])])


# so large that all points are well inside, where its third derivatives have no jumps
BOWL = Terrain(0.01 * np.outer(np.arange(-100, 101), np.arange(-100, 101)), 1.0, (-100, -100))

# each takes a generator, a mechanism, a link, and the reference link (None: the world)
OBJECTIVES = {
    "point": lambda rng, m, link, reference: PositionGoal(link, point(rng), point(rng), relative_to=reference),
    "pose": lambda rng, m, link, reference: PoseGoal(
        link, Pose(point(rng), random_turn(rng)), at=Pose(point(rng), random_turn(rng)), relative_to=reference
    ),
    "partial pose": lambda rng, m, link, reference: PoseGoal(
        link,
        Pose(point(rng), random_turn(rng)),
        at=Pose(point(rng), random_turn(rng)),
        dof=random_dofs(rng, ALL_DOFS),
        axes=("goal", "world")[rng.integers(2)],
        relative_to=reference,
    ),
    "hinge": lambda rng, m, link, reference: HingeGoal(
        link, point(rng), direction(rng), point(rng), direction(rng), relative_to=reference
    ),
    "surface": lambda rng, m, link, reference: SurfaceGoal(
        link, point(rng), direction(rng), point(rng), direction(rng), relative_to=reference
    ),
    "on a line": lambda rng, m, link, reference: OnLine(
        link, point(rng), direction(rng), point(rng), relative_to=reference
    ),
    "on a plane": lambda rng, m, link, reference: OnPlane(
        link, point(rng), direction(rng), point(rng), relative_to=reference
    ),
    "on a terrain": lambda rng, m, link, reference: OnTerrain(link, BOWL, point(rng), relative_to=reference),
    "axis": lambda rng, m, link, reference: AxisGoal(link, direction(rng), direction(rng), relative_to=reference),
    "orientation": lambda rng, m, link, reference: OrientationGoal(link, random_turn(rng), relative_to=reference),
    "position and rotation constraint": lambda rng, m, link, reference: LinkGoal(
        link,
        [
            PointConstraint(point(rng), point(rng)),
            LineConstraint(point(rng), direction(rng)),
            PlaneConstraint(point(rng), direction(rng)),
        ][rng.integers(3)],
        PerpendicularAxes(direction(rng), direction(rng)),
        relative_to=reference,
    ),
    "from points": lambda rng, m, link, reference: from_points(
        link, rng.uniform(-1, 1, (3, 3)), rng.uniform(-1, 1, (3, 3)), relative_to=reference
    ),
    "joint values": joint_values,
    "rest pose": lambda rng, m, link, reference: RestPose(m.random(rng)),
    "centre of mass": lambda rng, m, link, reference: CentreOfMass(
        point(rng), relative_to=reference, dof=random_dofs(rng, TRANSLATIONS)
    ),
    "centre of mass above a support": lambda rng, m, link, reference: CentreOfMass(
        support=rng.uniform(-2, 2, (rng.integers(1, 6), 2)), relative_to=reference
    ),
    "look at": lambda rng, m, link, reference: LookAt(
        link, point(rng), direction(rng), point(rng), relative_to=reference
    ),
    "distance": lambda rng, m, link, reference: Distance(
        link, reference, at=point(rng), other_at=point(rng), equal=0.5
    ),
    "distance at most": lambda rng, m, link, reference: Distance(link, reference, at=point(rng), at_most=rng.random()),
    "distance zero": lambda rng, m, link, reference: Distance(link, reference, at=point(rng), equal=0),
    "in a box": lambda rng, m, link, reference: InBox(
        link, -rng.random(3), rng.random(3), Pose(point(rng), random_turn(rng)), point(rng), relative_to=reference
    ),
    "in a cone": lambda rng, m, link, reference: InCone(
        link, direction(rng), direction(rng), rng.uniform(0.1, 2), relative_to=reference
    ),
    "in a band": lambda rng, m, link, reference: InBand(
        link,
        ("x", "y", "z", "rx", "ry", "rz")[rng.integers(6)],
        -0.2,
        0.1,
        Pose(point(rng), random_turn(rng)),
        relative_to=reference,
    ),
    "manipulability": lambda rng, m, link, reference: Manipulability(
        link, random_dofs(rng, ALL_DOFS), point(rng), reference=0.5
    ),
    "custom": lambda rng, m, link, reference: Custom(curved_residual),
}

BETWEEN_LINKS = [
    name for name in OBJECTIVES if name not in ("joint values", "rest pose", "manipulability", "custom", "partial pose")
]  # a partial pose along the axes of the world depends on joints that move both links


def random_mechanism_with_masses(seed, joints):
    """Return a random mechanism whose links have masses, and its generator."""
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(seed, joints)
    for link in mechanism.links.values():
        link.inertial = Inertial(rng.uniform(0.1, 2), Pose(**random_pose(rng)))
    return mechanism, rng


def is_smooth(mechanism, objective, q):
    """Whether no residual is near half a revolution, where it jumps, or near a kink at the edge of its band."""
    is_joint_objective = isinstance(objective, JointObjective)
    relations = objective.nearest_relations(mechanism, q) if is_joint_objective else objective.relations(mechanism)
    for relation in relations:
        values, _ = evaluate_relation(mechanism, relation, q)
        angle = 0.0
        if relation.kind is RelationKind.POSE and relation.rows[-1] > 2:
            ends = relation.a, relation.b, relation.X_a, relation.X_b, relation.world_axes
            angle = np.linalg.norm(evaluate_relation(mechanism, Relation(RelationKind.POSE, (3, 4, 5), *ends), q)[0])
        elif relation.kind is RelationKind.AXIS and relation.rows[-1] > 2:
            ends = relation.a, relation.b, relation.X_a, relation.X_b, relation.world_axes
            angle = np.linalg.norm(evaluate_relation(mechanism, Relation(RelationKind.AXIS, (3, 4), *ends), q)[0])
        elif relation.kind in (RelationKind.LOOK_AT, RelationKind.SPHERICAL_JOINT):
            angle = np.linalg.norm(values)
        elif relation.kind is RelationKind.JOINT_VALUE and mechanism.space.rotates.any():
            angle = np.abs(values).max()
        if relation.kind in (RelationKind.LOOK_AT, RelationKind.DISTANCE):
            ends = relation.a, relation.b, relation.X_a, relation.X_b
            if evaluate_relation(mechanism, Relation(RelationKind.DISTANCE, (0,), *ends), q)[0] < 0.05:
                return False
        if angle > 2.9:
            return False
        for bound in (relation.lower, relation.upper):
            if bound is not None and bool((np.abs(values - bound) < 1e-2).any()):
                return False
    return not isinstance(objective, Manipulability) or objective.measure(mechanism, q) > 1e-2


def make_objective(name, rng, mechanism, link, reference):
    objective = OBJECTIVES[name](rng, mechanism, link, reference)
    if isinstance(objective, Manipulability) and len(objective.dof) > mechanism.nv:
        objective = Manipulability(link, DoF.X, reference=0.5)
    return objective


# ---- properties ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OBJECTIVES)
@settings(max_examples=12, suppress_health_check=[HealthCheck.filter_too_much])
@given(seeds, st.integers(3, 7), st.booleans())
def test_the_jacobian_is_the_derivative_of_the_residual(name, seed, joints, between_links):
    mechanism, rng = random_mechanism_with_masses(seed, joints)
    assume(0 < mechanism.nv <= 20)
    links = list(mechanism.links)
    link, reference = (links[k] for k in rng.choice(len(links), 2, replace=False))
    objective = make_objective(name, rng, mechanism, link, reference if between_links else None)
    q = mechanism.random(rng)
    assume(is_smooth(mechanism, objective, q))
    residual, J = objective.residual(mechanism, q), objective.jacobian(mechanism, q)
    assert J.shape == (len(residual), mechanism.nv)
    differences = by_differences(mechanism, lambda other_q: objective.residual(mechanism, other_q), q, step=1e-4)
    np.testing.assert_allclose(J, differences, atol=2e-7, rtol=1e-6)


@pytest.mark.parametrize("name", BETWEEN_LINKS)
@pytest.mark.parametrize("seed", range(3))
def test_joints_that_move_both_links_have_zero_columns(name, seed):
    rng = np.random.default_rng(seed)
    builder = Builder()
    builder.free("base", "world", "body")
    builder.spherical("hip", "body", "trunk", at=(0, 0, 1))
    builder.revolute("left", "trunk", "arm", at=(0, 1, 0), axis=(1, 2, 3))
    builder.revolute("right", "trunk", "leg", at=(0, -1, 0), axis=(3, 2, 1))
    for link in ("trunk", "arm", "leg"):
        builder.link(link, inertial=Inertial(1.0, Pose(point(rng))))
    mechanism = builder.build()
    objective = OBJECTIVES[name](rng, mechanism, "arm", "leg")
    q = mechanism.random(rng)
    jacobians = [evaluate_relation(mechanism, relation, q)[1] for relation in objective.relations(mechanism)]
    assert not np.concatenate(jacobians)[:, :9].any()
    assert np.concatenate(jacobians)[:, 9:].any()


def test_every_public_objective_is_covered():
    rng = np.random.default_rng(0)
    mechanism, _ = random_mechanism_with_masses(1, 6)
    covered = {type(make_objective(name, rng, mechanism, "link2", None)) for name in OBJECTIVES}
    public = {
        member
        for name in objectives.__all__
        if inspect.isclass(member := getattr(objectives, name))
        and issubclass(member, Objective)
        and member is not Objective
    }
    # a clearance needs links with shapes; test_clearance.py checks its derivative
    assert public - {Clearance} == covered
