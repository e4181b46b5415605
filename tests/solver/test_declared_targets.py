"""Declared targets: what an objective says about its target holds for single solves, batches and several goals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from whole_body import whole_body

import mechanik as mk
from mechanik import errors
from mechanik.objectives.pose_constraints import (
    AlignedAxes,
    FixedRotation,
    LineConstraint,
    PerpendicularAxes,
    PlaneConstraint,
    random_rotation,
)
from mechanik.objectives.relation import Relation, RelationKind
from mechanik.problem import write_targets
from mechanik.solver.backends.prepared_kernel import compiled_target_writer
from mechanik.solver.compiled_problem import compile_definition
from mechanik.solver.target_writer import with_targets
from mechanik.spatial import make_pose, quaternion, translation

ARM = mk.arm_2d([0.5, 0.4, 0.3])


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PlanarReach(mk.Objective):
    """An objective of a user: a plain `with_target` that takes two numbers, and no declaration."""

    x: float = 0.6
    y: float = 0.2

    def relations(self, mechanism: mk.Mechanism) -> tuple[Relation, ...]:
        X_a = translation((self.x, self.y, 0.0))
        return (Relation(RelationKind.POSE, (0, 1), None, "tool", X_a),)

    def with_target(self, target: object) -> PlanarReach:
        x, y = target  # type: ignore[misc]
        return replace(self, x=float(x), y=float(y))


POINTS = np.array([[0.6, 0.2], [0.5, 0.5], [-0.3, 0.6], [3.0, 0.0]])


def test_an_objective_with_a_plain_with_target_works_in_batches_as_in_single_solves():
    solver = mk.Solver(ARM, PlanarReach())
    q0 = np.array([0.3, 0.4, 0.2])
    batch = solver.solve_batch(POINTS, q0)
    singles = [solver.solve(point, q0) for point in POINTS]
    assert batch.success.tolist() == [True, True, True, False]
    assert all(np.array_equal(batch.q[i], solution.q) for i, solution in enumerate(singles))


def test_rows_of_an_objective_with_a_plain_with_target_may_have_any_form():
    solver = mk.Solver(ARM, PlanarReach())
    q0 = np.array([0.3, 0.4, 0.2])
    assert np.array_equal(solver.solve_batch(POINTS.tolist(), q0).q, solver.solve_batch(POINTS, q0).q)


def test_an_objective_without_a_target_refuses_targets_of_a_batch():
    solver = mk.Solver(ARM, mk.Custom(lambda mechanism, q: q[0] - 0.1, name="custom"))
    with pytest.raises(errors.ShapeError, match="targets of Custom 'custom'"):
        solver.solve_batch(np.zeros((3, 2)), ARM.q)


# ---- declarations and relations agree --------------------------------------------------------------


BODY = whole_body()
HAND, FOOT, TRUNK = "left_hand", "right_foot", "trunk"
LINE, PLANE = LineConstraint((0, 0, 0), (1, 2, 3)), PlaneConstraint((0, 0, 0), (3, 1, 2))


def random_pose(rng: np.random.Generator) -> np.ndarray:
    return make_pose(random_rotation(rng), rng.normal(size=3))


def random_joint_values(names: list[str]) -> Callable[[np.random.Generator], dict[str, float]]:
    return lambda rng: {name: float(rng.uniform(-9.0, 9.0)) for name in names}


def geared_mechanism() -> mk.Mechanism:
    builder = mk.Builder("gears")
    builder.revolute("drive", "world", "wheel", axis="z", limits=(-7.0, 9.0))
    builder.prismatic("slide", "wheel", "carriage", axis="x", limits=(-1.0, 1.0))
    builder.revolute("follower", "carriage", "pinion", at=(0.3, 0, 0), axis="z")
    builder.couple("follower", "drive", -2.5, 0.3)
    builder.spherical("ball", "carriage", "pointer", at=(0, 0, 0.2))
    return builder.build()


GEARS = geared_mechanism()
POINT_TARGET = lambda rng: rng.normal(size=3)  # noqa: E731
DISTANCE_TARGET = lambda rng: float(rng.uniform(0.1, 2.0))  # noqa: E731
WXYZ_TARGET = lambda rng: quaternion.from_matrix(random_rotation(rng))  # noqa: E731
Case = tuple[mk.Objective, Callable[[np.random.Generator], Any]]
CASES: dict[str, Case] = {
    "pose": (mk.PoseGoal(HAND, np.eye(4), at=(0.1, 0.2, 0.3)), random_pose),
    "pose as a Pose": (mk.PoseGoal(HAND, np.eye(4)), lambda rng: mk.Pose.from_matrix(random_pose(rng))),
    "pose, a point as target": (mk.PoseGoal(HAND, random_pose(np.random.default_rng(5))), POINT_TARGET),
    "pose relative to a link": (mk.PoseGoal(HAND, np.eye(4), relative_to=FOOT), random_pose),
    "pose with dofs X Y EZ": (mk.PoseGoal(HAND, np.eye(4), dof=["X", "Y", "EZ"]), random_pose),
    "pose with dofs EX EY": (mk.PoseGoal(HAND, np.eye(4), dof=["EX", "EY"]), random_pose),
    "pose with dofs X EX EZ": (mk.PoseGoal(HAND, np.eye(4), dof=["X", "EX", "EZ"], relative_to=FOOT), random_pose),
    "pose with dof EY": (mk.PoseGoal(HAND, np.eye(4), dof="EY"), random_pose),
    "pose in world axes": (
        mk.PoseGoal(HAND, np.eye(4), at=random_pose(np.random.default_rng(6)), dof=("X", "Z", "EX", "EZ"),
                    axes="world"), random_pose),
    "pose with one rotation in world axes": (mk.PoseGoal(HAND, np.eye(4), dof=["Y", "EX"], axes="world"), random_pose),
    "pose in world axes, relative to a link": (
        mk.PoseGoal(HAND, np.eye(4), dof=["X", "Y", "EZ"], axes="world", relative_to=FOOT), random_pose),
    "position": (mk.PositionGoal(HAND, (0, 0, 0), (0.1, 0.2, 0.3)), POINT_TARGET),
    "position relative to a link": (mk.PositionGoal(HAND, (0, 0, 0), relative_to=TRUNK), POINT_TARGET),
    "orientation": (mk.OrientationGoal(HAND, np.eye(3)), random_rotation),
    "orientation as wxyz": (mk.OrientationGoal(HAND, np.eye(3), relative_to=FOOT), WXYZ_TARGET),
    "axis": (mk.AxisGoal(HAND, (0, 0, 1)), POINT_TARGET),
    "hinge": (mk.HingeGoal(HAND, (0, 0, 0), (1, 0, 1)), POINT_TARGET),
    "surface": (mk.SurfaceGoal(HAND, (0, 0, 0), (1, 0, 1)), POINT_TARGET),
    "line": (mk.OnLine(HAND, (0, 0, 0), (1, 0, 1)), POINT_TARGET),
    "plane": (mk.OnPlane(HAND, (0, 0, 0), (1, 0, 1)), POINT_TARGET),
    "line and rotation": (mk.LinkGoal(HAND, LINE, FixedRotation((1, 0, 0, 0)), relative_to=FOOT), random_pose),
    "line and axis": (mk.LinkGoal(HAND, LINE, AlignedAxes((1, 0, 0))), POINT_TARGET),
    "perpendicular axes": (mk.LinkGoal(HAND, None, PerpendicularAxes((1, 0, 0), (0, 1, 1))), POINT_TARGET),
    "plane and perpendicular axes": (mk.LinkGoal(HAND, PLANE, PerpendicularAxes((1, 0, 0), (0, 1, 1))), POINT_TARGET),
    "box": (mk.InBox(HAND, (-1, -1, -np.inf), (1, 1, 1), relative_to=TRUNK), random_pose),
    "band": (mk.InBand(HAND, "rx", -0.1, 0.1), random_pose),
    "band at a point": (mk.InBand(HAND, "x", -0.1, 0.1, random_pose(np.random.default_rng(7))), POINT_TARGET),
    "cone": (mk.InCone(HAND, (1, 0, 0), (0, 1, 0), 0.4, relative_to=TRUNK), POINT_TARGET),
    "equal distance": (mk.Distance(HAND, FOOT, equal=0.5), DISTANCE_TARGET),
    "minimum distance": (mk.Distance(HAND, FOOT, at_least=0.5), DISTANCE_TARGET),
    "maximum distance": (mk.Distance(HAND, FOOT, at_most=0.5), DISTANCE_TARGET),
    "line of sight": (mk.LookAt("head", (1, 0, 0), at=(0.1, 0, 0)), POINT_TARGET),
    "line of sight to a link": (mk.LookAt("head", (1, 0, 0), relative_to=HAND), POINT_TARGET),
    "centre of mass": (mk.CentreOfMass((0, 0, 0), dof=("X", "Y"), relative_to=FOOT), POINT_TARGET),
    "joint value": (mk.JointValues({"left_knee": 0.1}), random_joint_values(["left_knee"])),
    "some of several joint values": (
        mk.JointValues({"left_knee": 0.1, "left_elbow": 0.2, "neck_yaw": 0.0}), random_joint_values(["left_elbow"])),
    "exact joint values": (
        mk.JointValues({"left_knee": 0.1, "neck_yaw": 0.0}, angle_mode="exact"),
        random_joint_values(["left_knee", "neck_yaw"])),
    "rest pose": (mk.RestPose(BODY.q), lambda rng: BODY.random(rng) + 7.0 * (np.arange(BODY.nq) >= 7)),
    "rest pose by name": (
        mk.RestPose({"left_knee": 0.1, "neck_yaw": 0.0}), random_joint_values(["left_knee", "neck_yaw"])),
    "mimic joint": (mk.JointValues({"follower": 0.1, "slide": 0.2}), random_joint_values(["follower", "slide"])),
    "spherical joint": (mk.JointValues({"ball": (1, 0, 0, 0), "slide": 0.1}), lambda rng: {"ball": WXYZ_TARGET(rng)}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=10, deadline=None)
def test_a_declared_target_writes_the_numbers_that_new_relations_have(name, seed):
    objective, draw_target = CASES[name]
    mechanism = GEARS if name in ("mimic joint", "spherical joint") else BODY
    rng = np.random.default_rng(seed)
    compiled = compile_definition(
        mk.Solver(mechanism, objective).definition if seed % 2 else mk.Solver(mechanism, [objective]).definition
    )
    writer, reason = compiled_target_writer(compiled)
    assert writer is not None, reason
    target, q0 = draw_target(rng), mechanism.random(rng)
    values = writer.pack(target)
    assert values is not None
    written, expected = ([item.packed.copy() for item in compiled.problem.subproblems] for _ in range(2))
    assert writer.write(written, values, q0)
    new_objectives = with_targets(compiled.objectives, target)
    write_targets(compiled.problem, 0, compiled.relations_of(new_objectives, q0)[0], expected)
    for a, b in zip(written, expected, strict=True):
        assert np.array_equal(np.isfinite(a.floats), np.isfinite(b.floats))
        is_finite = np.isfinite(b.floats)
        assert np.abs(a.floats[is_finite] - b.floats[is_finite]).max(initial=0.0) < 1e-12
    # and the objectives of a solution are those with the target
    for a, b in zip(writer.objectives(compiled.objectives, values), new_objectives, strict=True):
        assert a.target_spec is not None
        assert b.target_spec is not None
        assert np.abs(np.asarray(a.target_spec.value) - np.asarray(b.target_spec.value)).max() < 1e-14


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("pose", np.diag([1.0, 1.0, -1.0, 1.0])),
        ("pose", np.diag([1.0, 1.0, 2.0, 1.0])),
        ("pose", np.full((4, 4), np.nan)),
        ("orientation", np.diag([1.0, 1.0, 1.1])),
        ("axis", np.zeros(3)),
        ("position", np.array([0.0, np.inf, 0.0])),
        ("equal distance", -0.1),
        ("joint value", {"left_knee": np.nan}),
        ("joint value", {"right_knee": 0.1}),
        ("spherical joint", {"ball": (1.0, 1.0, 0.0, 0.0)}),
    ],
)
def test_an_invalid_target_raises_although_the_call_is_prepared(name, target):
    objective, _ = CASES[name]
    mechanism = GEARS if name == "spherical joint" else BODY
    solver = mk.Solver(mechanism, objective)
    with pytest.raises(errors.MechanikError):
        solver.solve(target, mechanism.q)
    assert solver.solve(None, mechanism.q).seconds >= 0.0


def test_a_mixed_call_gives_the_solution_of_single_targets():
    """14 goals of one kind, or several kinds at once, took a hundred times as long as poses."""
    rng = np.random.default_rng(0)
    q = BODY.random(rng)
    goals = [
        mk.PoseGoal("left_foot", np.eye(4), name="foot"),
        mk.PositionGoal(HAND, (0, 0, 0), name="hand"),
        mk.OrientationGoal("head", np.eye(3), name="head"),
        mk.AxisGoal("trunk", (0, 0, 1), name="trunk"),
        mk.JointValues({"right_elbow": 0.0}, name="elbow"),
        mk.RestPose(BODY.q, name="rest"),
    ]
    X = {link: BODY.pose(link, q) for link in ("left_foot", HAND, "head", "trunk")}
    targets = {
        "foot": X["left_foot"],
        "hand": X[HAND][:3, 3].tolist(),
        "head": quaternion.from_matrix(X["head"][:3, :3]),
        "trunk": X["trunk"][:3, 2],
        "elbow": float(BODY.values(q)["right_elbow"]),
    }
    solver = mk.Solver(BODY, goals)
    q0 = BODY.integrate(q, 0.02 * rng.normal(size=BODY.nv))
    solution = solver.solve(targets, q0)
    assert solution.success
    retargeted = [goal if goal.name == "rest" else goal.with_target(targets[goal.name]) for goal in goals]
    assert np.abs(solution.q - mk.Solver(BODY, retargeted).solve(None, q0).q).max() < 1e-9
    assert np.array_equal(solution.q, solver.solve([*targets.values(), None], q0).q)
