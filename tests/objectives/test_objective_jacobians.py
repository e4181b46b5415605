"""The Jacobian of every objective against differences along the manifold, on mechanisms of all kinds of joints."""

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
from mechanik.objectives.relation import Relation, RelationKind, evaluate_relation

# ---- one of each, at random ---------------------------------------------------------------------


def point(rng):
    return rng.uniform(-1, 1, 3)


def way(rng):
    return rng.standard_normal(3)


def some(rng, dofs):
    return [dof for dof in dofs if rng.random() < 0.5] or [dofs[rng.integers(len(dofs))]]


def joint_values(rng, mechanism, link, other):
    return JointValues(mechanism.values(mechanism.random(rng)))


def two_parts(mechanism, q):
    """Something curved that no kind of row says."""
    X, Y = mechanism.pose("link0", q), mechanism.pose(list(mechanism.links)[-1], q)
    return np.array([np.sin(X[:3, 3] @ Y[:3, 3]) + X[0, 0] * Y[0, 0], np.trace(X[:3, :3].T @ Y[:3, :3])])


# so large that all is well inside: there its third derivatives have no jumps
BOWL = Terrain(0.01 * np.outer(np.arange(-100, 101), np.arange(-100, 101)), 1.0, (-100, -100))

# each takes a generator, a mechanism, a link of it, and another one or None for the world
OBJECTIVES = {
    "point": lambda rng, m, link, other: PositionGoal(link, point(rng), point(rng), relative_to=other),
    "pose": lambda rng, m, link, other: PoseGoal(
        link, Pose(point(rng), random_turn(rng)), at=Pose(point(rng), random_turn(rng)), relative_to=other
    ),
    "part of a pose": lambda rng, m, link, other: PoseGoal(
        link, Pose(point(rng), random_turn(rng)), at=Pose(point(rng), random_turn(rng)), dof=some(rng, ALL_DOFS),
        axes=("goal", "world")[rng.integers(2)], relative_to=other,
    ),
    "hinge": lambda rng, m, link, other: HingeGoal(
        link, point(rng), way(rng), point(rng), way(rng), relative_to=other
    ),
    "surface": lambda rng, m, link, other: SurfaceGoal(
        link, point(rng), way(rng), point(rng), way(rng), relative_to=other
    ),
    "on a line": lambda rng, m, link, other: OnLine(link, point(rng), way(rng), point(rng), relative_to=other),
    "on a plane": lambda rng, m, link, other: OnPlane(link, point(rng), way(rng), point(rng), relative_to=other),
    "on ground": lambda rng, m, link, other: OnTerrain(link, BOWL, point(rng), relative_to=other),
    "axis": lambda rng, m, link, other: AxisGoal(link, way(rng), way(rng), relative_to=other),
    "orientation": lambda rng, m, link, other: OrientationGoal(link, random_turn(rng), relative_to=other),
    "placement by rules": lambda rng, m, link, other: LinkGoal(
        link,
        [PointConstraint(point(rng), point(rng)), LineConstraint(point(rng), way(rng)), PlaneConstraint(point(rng),
            way(rng))][rng.integers(3)],
        PerpendicularAxes(way(rng), way(rng)),
        relative_to=other,
    ),
    "from points": lambda rng, m, link, other: from_points(
        link, rng.uniform(-1, 1, (3, 3)), rng.uniform(-1, 1, (3, 3)), relative_to=other
    ),
    "joint values": joint_values,
    "rest pose": lambda rng, m, link, other: RestPose(m.random(rng)),
    "centre of mass": lambda rng, m, link, other: CentreOfMass(
        point(rng), relative_to=other, dof=some(rng, TRANSLATIONS)
    ),
    "centre of mass over": lambda rng, m, link, other: CentreOfMass(
        support=rng.uniform(-2, 2, (rng.integers(1, 6), 2)), relative_to=other
    ),
    "look at": lambda rng, m, link, other: LookAt(link, point(rng), way(rng), point(rng), relative_to=other),
    "distance": lambda rng, m, link, other: Distance(link, other, at=point(rng), other_at=point(rng), equal=0.5),
    "distance at most": lambda rng, m, link, other: Distance(link, other, at=point(rng), at_most=rng.random()),
    "distance zero": lambda rng, m, link, other: Distance(link, other, at=point(rng), equal=0),
    "in a box": lambda rng, m, link, other: InBox(
        link, -rng.random(3), rng.random(3), Pose(point(rng), random_turn(rng)), point(rng), relative_to=other
    ),
    "in a cone": lambda rng, m, link, other: InCone(link, way(rng), way(rng), rng.uniform(0.1, 2), relative_to=other),
    "in a band": lambda rng, m, link, other: InBand(
        link, ("x", "y", "z", "rx", "ry", "rz")[rng.integers(6)], -0.2, 0.1, Pose(point(rng), random_turn(rng)),
        relative_to=other,
    ),
    "manipulability": lambda rng, m, link, other: Manipulability(link, some(rng, ALL_DOFS), point(rng), reference=0.5),
    "custom": lambda rng, m, link, other: Custom(two_parts),
}  # fmt: skip

BETWEEN_LINKS = [
    name
    for name in OBJECTIVES
    if name not in ("joint values", "rest pose", "manipulability", "custom", "part of a pose")
]  # a part of a pose along axes of the world does see what carries both ends


def heavy(seed, joints):
    """A random mechanism whose links weigh something."""
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(seed, joints)
    for link in mechanism.links.values():
        link.inertial = Inertial(rng.uniform(0.1, 2), Pose(**random_pose(rng)))
    return mechanism, rng


def is_smooth(mechanism, wish, q):
    """Whether no row is near a half turn, where it jumps, or near the edge of its band, where it bends."""
    relations = wish.nearest(mechanism, q) if hasattr(wish, "nearest") else wish.relations(mechanism)
    for relation in relations:
        rows, _ = evaluate_relation(mechanism, relation, q)
        angle = 0.0
        if relation.kind is RelationKind.POSE and relation.rows[-1] > 2:
            ends = relation.a, relation.b, relation.X_a, relation.X_b, relation.world_axes
            angle = np.linalg.norm(evaluate_relation(mechanism, Relation(RelationKind.POSE, (3, 4, 5), *ends), q)[0])
        elif relation.kind is RelationKind.AXIS and relation.rows[-1] > 2:
            ends = relation.a, relation.b, relation.X_a, relation.X_b, relation.world_axes
            angle = np.linalg.norm(evaluate_relation(mechanism, Relation(RelationKind.AXIS, (3, 4), *ends), q)[0])
        elif relation.kind in (RelationKind.LOOK_AT, RelationKind.SPHERICAL_JOINT):
            angle = np.linalg.norm(rows)
        elif relation.kind is RelationKind.JOINT_VALUE and mechanism.space.rotates.any():
            angle = np.abs(rows).max()
        if relation.kind in (RelationKind.LOOK_AT, RelationKind.DISTANCE):
            ends = relation.a, relation.b, relation.X_a, relation.X_b
            if evaluate_relation(mechanism, Relation(RelationKind.DISTANCE, (0,), *ends), q)[0] < 0.05:
                return False
        if angle > 2.9:
            return False
        for bound in (relation.lower, relation.upper):
            if bound is not None and bool((np.abs(rows - bound) < 1e-2).any()):
                return False
    return not isinstance(wish, Manipulability) or wish.measure(mechanism, q) > 1e-2


def made(name, rng, mechanism, link, other):
    wish = OBJECTIVES[name](rng, mechanism, link, other)
    if isinstance(wish, Manipulability) and len(wish.dof) > mechanism.nv:
        wish = Manipulability(link, DoF.X, reference=0.5)
    return wish


# ---- the laws -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OBJECTIVES)
@settings(max_examples=12, suppress_health_check=[HealthCheck.filter_too_much])
@given(seeds, st.integers(3, 7), st.booleans())
def test_the_jacobian_is_the_derivative_of_the_residual(name, seed, joints, between_links):
    mechanism, rng = heavy(seed, joints)
    assume(0 < mechanism.nv <= 20)
    links = list(mechanism.links)
    link, other = (links[k] for k in rng.choice(len(links), 2, replace=False))
    wish = made(name, rng, mechanism, link, other if between_links else None)
    q = mechanism.random(rng)
    assume(is_smooth(mechanism, wish, q))
    residual, J = wish.residual(mechanism, q), wish.jacobian(mechanism, q)
    assert J.shape == (len(residual), mechanism.nv)
    differences = by_differences(mechanism, lambda at: wish.residual(mechanism, at), q, step=1e-4)
    np.testing.assert_allclose(J, differences, atol=2e-7, rtol=1e-6)


@pytest.mark.parametrize("name", BETWEEN_LINKS)
@pytest.mark.parametrize("seed", range(3))
def test_what_carries_both_links_does_not_count(name, seed):
    rng = np.random.default_rng(seed)
    builder = Builder()
    builder.free("base", "world", "body")
    builder.spherical("hip", "body", "trunk", at=(0, 0, 1))
    builder.revolute("left", "trunk", "arm", at=(0, 1, 0), axis=(1, 2, 3))
    builder.revolute("right", "trunk", "leg", at=(0, -1, 0), axis=(3, 2, 1))
    for link in ("trunk", "arm", "leg"):
        builder.link(link, inertial=Inertial(1.0, Pose(point(rng))))
    mechanism = builder.build()
    wish = OBJECTIVES[name](rng, mechanism, "arm", "leg")
    q = mechanism.random(rng)
    rows = [evaluate_relation(mechanism, relation, q)[1] for relation in wish.relations(mechanism)]
    assert not np.concatenate(rows)[:, :9].any()
    assert np.concatenate(rows)[:, 9:].any()


def test_every_objective_is_among_them():
    rng = np.random.default_rng(0)
    mechanism, _ = heavy(1, 6)
    mine = {type(made(name, rng, mechanism, "link2", None)) for name in OBJECTIVES}
    public = {
        one
        for name in objectives.__all__
        if inspect.isclass(one := getattr(objectives, name)) and issubclass(one, Objective) and one is not Objective
    }
    # a clearance is one of links that have shapes: its derivative is held in test_clearance.py
    assert public - {Clearance} == mine
