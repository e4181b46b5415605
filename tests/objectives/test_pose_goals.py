"""Link goals: residuals, relations, errors in metres and radians, targets, and invalid arguments."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_link_goals import (
    GENERAL,
    NAMED,
    PARTIAL,
    body_configuration,
    random_link_goal,
    random_pose_matrix,
    two_bodies,
)
from random_mechanisms import random_mechanism, seeds

from mechanik import Link, Pose, errors
from mechanik.objectives.objective import jacobian, residual
from mechanik.objectives.pose_constraints import (
    AlignedAxes,
    FixedRotation,
    LineConstraint,
    PerpendicularAxes,
    PlaneConstraint,
    PointConstraint,
)
from mechanik.objectives.pose_goals import (
    AxisGoal,
    HingeGoal,
    LinkGoal,
    OnLine,
    OnPlane,
    OrientationGoal,
    PoseGoal,
    PositionGoal,
    SurfaceGoal,
)
from mechanik.objectives.relation import RelationKind
from mechanik.spatial import apply, inverse, quaternion, rotation

BODIES = two_bodies()
every_kind = st.sampled_from(NAMED + GENERAL)
ROWS = {
    "PositionGoal": 3,
    "OnLine": 2,
    "OnPlane": 1,
    "AxisGoal": 2,
    "OrientationGoal": 3,
    "HingeGoal": 5,
    "SurfaceGoal": 3,
    "PoseGoal": 6,
}


def angle(a: np.ndarray, b: np.ndarray) -> float:
    return 2 * np.arctan2(np.linalg.norm(a - b), np.linalg.norm(a + b))


# ---- relations ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", NAMED)
@pytest.mark.parametrize("relative_to", [None, "anchor"])
def test_named_goals_are_one_relation_with_klampts_number_of_rows(kind: str, relative_to: str | None) -> None:
    objective = random_link_goal(kind, 5, relative_to=relative_to)
    (relation,) = objective.relations(BODIES)
    assert len(relation.rows) == ROWS[kind]
    assert (relation.a, relation.b) == (relative_to, "body")
    assert relation.weight == objective.weight


@pytest.mark.parametrize("kind", GENERAL)
def test_goals_have_as_few_relations_as_their_constraints_allow(kind: str) -> None:
    position, rotation = kind.split()
    relations = random_link_goal(kind, 3).relations(BODIES)
    # a cosine needs its own relation, and so does an axis along another direction than that of the line or plane
    separate = position != "anywhere" and (rotation == "square" or (rotation == "aligned" and position != "fixed"))
    assert len(relations) == (2 if separate else 1)
    rows = {"anywhere": 0, "fixed": 3, "linear": 2, "planar": 1}[position]
    rows += {"any": 0, "fixed": 3, "aligned": 2, "square": 1}[rotation]
    assert sum(len(relation.rows) for relation in relations) == rows


@pytest.mark.parametrize("constraint_class", [LineConstraint, PlaneConstraint])
@pytest.mark.parametrize("direction", [(1, 2, 2), (-1, -2, -2), (2, -1, 0), (0, 1, -1)])
@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_an_axis_parallel_or_perpendicular_to_the_direction_shares_its_relation(
    constraint_class: type, direction: tuple, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    target, local, axis = rng.uniform(-1, 1, (3, 3))
    combined = LinkGoal("body", constraint_class(target, direction, local), AlignedAxes((1, 2, 2), axis))
    assert len(combined.relations(BODIES)) == 1
    separate = [
        LinkGoal("body", constraint_class(target, direction, local)),
        LinkGoal("body", rotation=AlignedAxes((1, 2, 2), axis)),
    ]
    q = body_configuration(BODIES, random_pose_matrix(rng))
    together, split = combined.residual(BODIES, q), residual(separate, BODIES, q)
    assert len(together) == len(split)
    assert np.isclose(np.linalg.norm(together), np.linalg.norm(split), rtol=0, atol=1e-12)
    error, errors_of_parts = combined.error(BODIES, q), [goal.error(BODIES, q) for goal in separate]
    assert np.isclose(error.position, errors_of_parts[0].position, rtol=0, atol=1e-12)
    assert np.isclose(error.rotation, errors_of_parts[1].rotation, rtol=0, atol=1e-12)


def test_a_full_pose_is_one_relation_whose_frame_a_equals_the_target_exactly() -> None:
    X, tool = random_pose_matrix(np.random.default_rng(1)), random_pose_matrix(np.random.default_rng(2))
    (relation,) = PoseGoal("body", X, at=tool).relations(BODIES)
    assert relation.kind is RelationKind.POSE
    assert relation.rows == (0, 1, 2, 3, 4, 5)
    assert np.array_equal(relation.X_a, X)
    assert np.array_equal(relation.X_b, tool)
    (relation,) = PositionGoal("body", X[:3, 3], tool[:3, 3]).relations(BODIES)
    assert relation.rows == (0, 1, 2)
    assert np.array_equal(relation.X_a[:3], np.column_stack([np.eye(3), X[:3, 3]]))
    assert np.array_equal(relation.X_b[:3], np.column_stack([np.eye(3), tool[:3, 3]]))


# ---- errors -------------------------------------------------------------------------------------


@given(kind=every_kind, seed=seeds, relative=st.booleans())
@settings(max_examples=200, deadline=None)
def test_the_error_is_the_geometric_distance_and_angle(kind: str, seed: int, relative: bool) -> None:
    rng = np.random.default_rng(seed + 1)
    objective = random_link_goal(kind, seed, relative_to="anchor" if relative else None)
    body, anchor = random_pose_matrix(rng), random_pose_matrix(rng)
    error = objective.error(BODIES, body_configuration(BODIES, body, anchor))
    X = inverse(anchor) @ body if relative else body
    distance = expected_angle = 0.0
    if (position := objective.position) is not None:
        difference = apply(X, position.local) - position.target
        along = 0.0 if isinstance(position, PointConstraint) else difference @ position.direction
        distance = {
            PointConstraint: np.linalg.norm(difference),
            LineConstraint: np.sqrt(max(difference @ difference - along**2, 0)),
            PlaneConstraint: abs(along),
        }[type(position)]
    constraint = objective.rotation
    if isinstance(constraint, FixedRotation):
        expected_angle = np.linalg.norm(rotation.log(constraint.target.T @ X[:3, :3] @ constraint.local))
    elif isinstance(constraint, AlignedAxes):
        expected_angle = angle(X[:3, :3] @ constraint.local, constraint.target)
    elif isinstance(constraint, PerpendicularAxes):
        expected_angle = abs(X[:3, :3] @ constraint.local @ constraint.target)
    assert np.isclose(error.position, distance, rtol=0, atol=1e-9)
    assert np.isclose(error.rotation, expected_angle, rtol=0, atol=1e-7)


@given(kind=every_kind, seed=seeds, joints=st.integers(1, 14), relative=st.booleans())
@settings(max_examples=120, deadline=None)
def test_the_jacobian_is_the_derivative_of_the_residual(kind: str, seed: int, joints: int, relative: bool) -> None:
    """With spherical joints, free bodies, joints of several dofs and mimic joints; links share joints above both."""
    mechanism = random_mechanism(seed, joints)
    rng = np.random.default_rng(seed)
    b, a = rng.permutation(list(mechanism.links))[:2]
    objective = random_link_goal(kind, seed, str(b), str(a) if relative else None)
    q = mechanism.random(rng)
    values, J = objective.residual(mechanism, q), objective.jacobian(mechanism, q)
    assert J.shape == (len(values), mechanism.nv)
    # near half a revolution the rotation vector jumps
    assume(objective.error(mechanism, q).rotation < 3.0)
    h = 1e-6
    for k, step in enumerate(h * np.eye(mechanism.nv)):
        ahead, behind = (objective.residual(mechanism, mechanism.integrate(q, s * step)) for s in (1, -1))
        # lengths grow with the number of links, and the difference loses as many digits
        assert np.abs((ahead - behind) / (2 * h) - J[:, k]).max() < 1e-6 * (1 + np.abs(J[:, k]).max() + joints)


def test_residuals_of_several_objectives_are_stacked_in_order() -> None:
    objectives = [random_link_goal(kind, 4) for kind in NAMED]
    q = BODIES.random(np.random.default_rng(0))
    values, J = residual(objectives, BODIES, q), jacobian(objectives, BODIES, q)
    assert values.shape == (sum(ROWS.values()),)
    assert J.shape == (sum(ROWS.values()), BODIES.nv)
    first = 0
    for objective, kind in zip(objectives, NAMED, strict=True):
        assert np.array_equal(values[first : first + ROWS[kind]], objective.residual(BODIES, q))
        assert np.array_equal(J[first : first + ROWS[kind]], objective.jacobian(BODIES, q))
        first += ROWS[kind]
    assert residual([], BODIES, q).shape == (0,)
    assert jacobian([], BODIES, q).shape == (0, BODIES.nv)


# ---- targets ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["PositionGoal", "OnLine", "OnPlane", "HingeGoal", "SurfaceGoal", "linear fixed", "planar square"]
)
def test_with_target_changes_only_the_target_point(kind: str) -> None:
    old = random_link_goal(kind, 8, relative_to="anchor")
    new = old.with_target((1, 2, 3))
    assert type(new) is type(old)
    assert np.array_equal(new.position.target, (1, 2, 3))
    for field in ("link", "relative_to", "rotation", "weight", "level", "tolerance", "angle_tolerance", "name"):
        assert getattr(new, field) is getattr(old, field)
    assert np.array_equal(new.position.local, old.position.local)
    if not isinstance(old.position, PointConstraint):
        assert np.array_equal(new.position.direction, old.position.direction)


def test_with_target_takes_poses_rotations_and_directions() -> None:
    rng = np.random.default_rng(0)
    X, tool = random_pose_matrix(rng), random_pose_matrix(rng)
    goal = random_link_goal("PoseGoal", 1).with_target(X)
    assert np.array_equal(goal.target, X)
    assert np.array_equal(goal.tool, random_link_goal("PoseGoal", 1).tool)
    assert goal.weight == 2.5
    assert np.allclose(goal.with_target(Pose.from_matrix(tool)).target, tool, rtol=0, atol=1e-15)
    assert np.array_equal(goal.with_target((1, 2, 3)).target[:3], np.column_stack([X[:3, :3], (1, 2, 3)]))
    partial = PoseGoal("body", X, at=tool, dof="X", axes="world").with_target(tool)
    assert (partial.dof, partial.axes) == ((0,), "world")
    orientation = OrientationGoal("body", np.eye(3), tool)
    assert np.array_equal(orientation.with_target(X[:3, :3]).rotation.target, X[:3, :3])
    assert np.allclose(
        orientation.with_target(quaternion.from_matrix(X[:3, :3])).rotation.target, X[:3, :3], rtol=0, atol=1e-14
    )
    assert np.array_equal(orientation.with_target(X).rotation.local, tool[:3, :3])
    assert np.array_equal(AxisGoal("body", (0, 0, 1), (1, 0, 0)).with_target((0, 2, 0)).rotation.target, (0, 1, 0))


@pytest.mark.parametrize(
    ("objective", "target"),
    [
        (PositionGoal("body", (0, 0, 0)), np.eye(4)),
        (PositionGoal("body", (0, 0, 0)), (1, 2)),
        (HingeGoal("body", (0, 0, 0), (0, 0, 1)), np.eye(4)),
        (AxisGoal("body", (0, 0, 1)), np.eye(4)),
        (PoseGoal("body", np.eye(4)), np.eye(3)),
    ],
)
def test_with_target_refuses_a_target_of_another_kind(objective: LinkGoal, target: object) -> None:
    with pytest.raises(errors.ObjectiveError, match="target of"):
        objective.with_target(target)


def test_a_pose_goal_takes_position_and_quaternion_separately() -> None:
    wxyz = quaternion.normalize(np.array([1.0, 2.0, 3.0, 4.0]))
    goal = PoseGoal("body", position=(1, 2, 3), wxyz=wxyz)
    assert np.allclose(goal.target, Pose((1, 2, 3), wxyz).matrix, rtol=0, atol=1e-15)
    assert np.array_equal(PoseGoal("body", position=(1, 2, 3)).target[:3, :3], np.eye(3))
    assert np.array_equal(PoseGoal("body", wxyz=wxyz).target[:3, 3], np.zeros(3))
    assert np.array_equal(PoseGoal("body", np.eye(4), at=(1, 2, 3)).tool[:3, 3], (1, 2, 3))


@given(kind=st.sampled_from(PARTIAL), seed=seeds)
@settings(max_examples=150, deadline=None)
def test_a_partial_pose_goal_is_equivalent_to_its_constraints(kind: str, seed: int) -> None:
    """The residual of the partial pose is zero exactly where the constraints hold."""
    rng = np.random.default_rng(seed)
    goal = random_link_goal(kind, seed)
    general = LinkGoal("body", *goal._effective_constraints())
    for X in (goal.sample(rng), general.sample(rng)):
        q = body_configuration(BODIES, X)
        assert np.abs(goal.residual(BODIES, q)).max() < 1e-7
        assert np.abs(general.residual(BODIES, q)).max() < 1e-7
    q = body_configuration(BODIES, random_pose_matrix(rng))
    partial_error, general_error = goal.error(BODIES, q), general.error(BODIES, q)
    assert np.isclose(partial_error.position, general_error.position, rtol=0, atol=1e-9)
    assert np.isclose(partial_error.rotation, general_error.rotation, rtol=0, atol=1e-6)


# ---- validation ---------------------------------------------------------------------------------


def test_links_are_given_by_name_or_as_link_objects() -> None:
    body, anchor = BODIES.link("body"), BODIES.link("anchor")
    objective = PositionGoal(body, (0, 0, 0), relative_to=anchor)
    assert (objective.link, objective.relative_to) == ("body", "anchor")


def test_an_unknown_link_is_reported_with_the_nearest_name() -> None:
    q = BODIES.neutral()
    with pytest.raises(errors.UnknownName, match="Did you mean 'body'"):
        PositionGoal("bodi", (0, 0, 0)).residual(BODIES, q)
    with pytest.raises(errors.UnknownName, match="Did you mean 'anchor'"):
        PositionGoal("body", (0, 0, 0), relative_to="ancor").relations(BODIES)
    with pytest.raises(errors.UnknownName, match="Did you mean 'body'"):
        PoseGoal("bodi", np.eye(4), dof="X").relations(BODIES)


NAN = float("nan")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: PositionGoal("body", (0, 0, NAN)), errors.NotFinite, "target point"),
        (lambda: PositionGoal("body", (0, 0)), errors.ShapeError, "target point must have 3 numbers"),
        (lambda: PositionGoal("body", (0, 0, 0), (0, NAN, 0)), errors.NotFinite, "point of the link"),
        (lambda: PositionGoal("body", "here"), errors.ShapeError, "target point"),
        (lambda: OnLine("body", (0, 0, 0), (0, 0, 0)), errors.NotARotation, "zero"),
        (lambda: OnPlane("body", (0, 0, 0), (0, NAN, 0)), errors.NotFinite, "direction"),
        (lambda: AxisGoal("body", (0, 0, 0)), errors.NotARotation, "target axis is zero"),
        (lambda: AxisGoal("body", (0, 0, 1), (0, 0, 0)), errors.NotARotation, "axis of the link is zero"),
        (lambda: HingeGoal("body", (0, 0, 0), (0, 0, 1), local_axis=(0, 0)), errors.ShapeError, "axis of the link"),
        (lambda: SurfaceGoal("body", (0, 0, 0), (0, 0, 0)), errors.NotARotation, "zero"),
        (lambda: OrientationGoal("body", (1, 1, 0, 0)), errors.NotARotation, "norm 1.414"),
        (lambda: OrientationGoal("body", np.diag([1, 1, -1])), errors.NotARotation, "right-handed"),
        (lambda: OrientationGoal("body", (1, 0)), errors.ShapeError, "target rotation"),
        (lambda: OrientationGoal("body", np.full((3, 3), NAN)), errors.NotFinite, "target rotation"),
        (lambda: PoseGoal("body", np.zeros((4, 4))), errors.NotARotation, "target of a PoseGoal"),
        (lambda: PoseGoal("body", np.eye(4)[None]), errors.ShapeError, "batch"),
        (lambda: PoseGoal("body"), errors.ObjectiveError, "needs a target"),
        (lambda: PoseGoal("body", np.eye(4), position=(0, 0, 0)), errors.ObjectiveError, "not both"),
        (lambda: PoseGoal("body", wxyz=(2, 0, 0, 0)), errors.NotARotation, "norm 2"),
        (lambda: PoseGoal("body", np.eye(4), dof=()), errors.DoFError, "dof of PoseGoal is empty"),
        (lambda: PoseGoal("body", np.eye(4), dof=("EX", "X")), errors.DoFError, "order"),
        (lambda: PoseGoal("body", np.eye(4), axes="tool"), errors.DoFError, "'goal' or 'world'"),
        (lambda: PoseGoal("body", np.eye(4), at=(1, 2)), errors.ShapeError, "tool"),
        (lambda: LinkGoal("body"), errors.ObjectiveError, "has no constraint"),
        (lambda: LinkGoal("body", (0, 0, 0)), errors.InvalidArgument, "PointConstraint"),
        (lambda: LinkGoal("body", rotation=np.eye(3)), errors.InvalidArgument, "FixedRotation"),
        (lambda: PositionGoal("", (0, 0, 0)), errors.ObjectiveError, "no name"),
        (lambda: PositionGoal(Link(), (0, 0, 0)), errors.ObjectiveError, "no name"),
        (lambda: PositionGoal(3, (0, 0, 0)), errors.InvalidArgument, "3"),
        (lambda: PositionGoal("body", (0, 0, 0), relative_to="body"), errors.ObjectiveError, "itself"),
        (
            lambda: PositionGoal("body", (0, 0, 0), weight=0),
            errors.ObjectiveError,
            "weight of PositionGoal must be above zero",
        ),
        (
            lambda: PositionGoal("body", (0, 0, 0), weight=-1, name="p"),
            errors.ObjectiveError,
            "weight of PositionGoal 'p'",
        ),
        (lambda: PositionGoal("body", (0, 0, 0), weight=NAN), errors.NotFinite, "weight"),
        (lambda: PositionGoal("body", (0, 0, 0), level=-1), errors.ObjectiveError, "must be 0"),
        (lambda: PositionGoal("body", (0, 0, 0), level=0.5), errors.ObjectiveError, "must be an integer"),
        (lambda: PositionGoal("body", (0, 0, 0), tolerance=0), errors.ObjectiveError, "tolerance"),
        (lambda: PositionGoal("body", (0, 0, 0), angle_tolerance=-1), errors.ObjectiveError, "angle_tolerance"),
        (lambda: PositionGoal("body", (0, 0, 0), name=3), errors.InvalidArgument, "name"),
    ],
)
def test_wrong_arguments_of_link_goals_are_refused_by_name(make: object, error: type, message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        make()
    assert isinstance(caught.value, errors.MechanikError)


def test_unknown_definitions_and_wrong_configurations_are_refused() -> None:
    point = PositionGoal("body", (0, 0, 0))
    with pytest.raises(errors.ObjectiveError, match="'mechanik' or 'klampt'"):
        point.residual(BODIES, BODIES.neutral(), definition="ours")
    for definition in ("mechanik", "klampt"):
        with pytest.raises(errors.ShapeError):
            point.residual(BODIES, np.zeros(3), definition=definition)
        with pytest.raises(errors.NotFinite):
            point.jacobian(BODIES, np.full(BODIES.nq, NAN), definition=definition)
    with pytest.raises(errors.InvalidArgument, match="not an objective"):
        residual([point, "point"], BODIES, BODIES.neutral())


def test_directions_and_quaternions_nearly_of_length_one_are_normalised() -> None:
    line = OnLine("body", (0, 0, 0), (0, 0, 1e-200))
    assert np.array_equal(line.position.direction, (0, 0, 1))
    orientation = OrientationGoal("body", (1.0005, 0, 0, 0))
    assert np.array_equal(orientation.rotation.target, np.eye(3))


@pytest.mark.parametrize("kind", NAMED)
def test_link_goals_are_immutable(kind: str) -> None:
    objective = random_link_goal(kind, 0)
    for field in ("link", "position", "rotation", "weight", *(("dof", "axes") if kind == "PoseGoal" else ())):
        with pytest.raises(FrozenInstanceError):
            setattr(objective, field, None)
    for constraint in (objective.position, objective.rotation):
        if constraint is not None:
            with pytest.raises(ValueError, match="read-only"):
                constraint.target[0] = 1.0
            with pytest.raises(ValueError, match="read-only"):
                constraint.local[0] = 1.0
            with pytest.raises(FrozenInstanceError):
                constraint.target = np.zeros(3)


def test_the_array_of_the_caller_is_copied() -> None:
    target = np.array([1.0, 2.0, 3.0])
    point = PositionGoal("body", target)
    target[:] = 0.0
    assert np.array_equal(point.position.target, (1, 2, 3))
    target[:] = 5.0  # it can still be written into


@pytest.mark.parametrize("kind", NAMED)
def test_link_goals_survive_copying_and_pickling(kind: str) -> None:
    objective = random_link_goal(kind, 0)
    q = BODIES.random(np.random.default_rng(0))
    for duplicate in (copy.copy(objective), copy.deepcopy(objective), pickle.loads(pickle.dumps(objective))):
        assert type(duplicate) is type(objective)
        assert np.array_equal(duplicate.residual(BODIES, q), objective.residual(BODIES, q))
        assert (duplicate.weight, duplicate.name) == (objective.weight, objective.name)


def test_the_repr_of_a_link_goal_is_one_line() -> None:
    assert repr(random_link_goal("HingeGoal", 0, relative_to="anchor")) == (
        "<HingeGoal 'it' of link 'body' relative to 'anchor': PointConstraint, AlignedAxes>"
    )
    goal = PoseGoal("body", np.eye(4), dof=("X", "EZ"), axes="world")
    assert repr(goal) == "<PoseGoal of link 'body': X EZ in world axes>"
