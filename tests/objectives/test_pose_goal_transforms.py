"""Transforms, matches and samples of link goals, against Klampt and as general properties; saving and loading."""

from __future__ import annotations

import json
from pathlib import Path

import klampt_data
import numpy as np
import pytest
from hypothesis import given, settings
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
from random_mechanisms import seeds

from mechanik import errors
from mechanik.objectives.objective import Objective
from mechanik.objectives.objective_file import load_objectives, objective_from_dict, objective_to_dict, save_objectives
from mechanik.objectives.pose_constraints import FixedRotation, PlaneConstraint
from mechanik.objectives.pose_goals import LinkGoal, PoseGoal, PositionGoal
from mechanik.spatial import inverse, make_pose, rotation, translation

BODIES = two_bodies()
CASES = [case for case in klampt_data.cases("objective_algebra.json") if case["op"] != "set_from_points"]
KINDS = NAMED + GENERAL
every_kind = st.sampled_from(KINDS + PARTIAL)
in_goal_axes = st.sampled_from(KINDS + tuple(kind for kind in PARTIAL if " goal " in kind))


def matrix(case: dict) -> np.ndarray:
    return make_pose(case["R"], case["t"])


def error_at(objective: LinkGoal, X: np.ndarray) -> np.ndarray:
    """Return the error of the objective with the link at X, in m and rad."""
    error = objective.error(BODIES, body_configuration(BODIES, X))
    return np.array([error.position, error.rotation])


# ---- Klampt -------------------------------------------------------------------------------------


def test_there_are_280_cases_of_three_operations() -> None:
    counts = {op: sum(case["op"] == op for case in CASES) for op in {case["op"] for case in CASES}}
    assert counts == {"transform": 104, "match_destination": 104, "closest_match": 72}


@pytest.mark.parametrize("case", [case for case in CASES if case["op"] != "closest_match"], ids=lambda c: c["type"])
def test_transform_and_match_destination_equal_those_of_klampt(case: dict) -> None:
    result = getattr(klampt_data.link_goal(case["objective"]), case["op"])(matrix(case))
    expected = dict(case["result"])
    position, rotation_constraint = result._effective_constraints()
    (relation, *more_relations) = result.relations(klampt_data.robot("panda_nogeom"))
    rows = sum(len(item.rows) for item in (relation, *more_relations))
    assert rows == expected.pop("pos_dims") + expected.pop("rot_dims")
    actual = {}
    if position is not None:
        actual |= {"local": position.local, "target": position.target}
        actual |= {"direction": position.direction} if "direction" in expected else {}
    if isinstance(rotation_constraint, FixedRotation):
        actual |= {"R": rotation_constraint.link_rotation}
    elif rotation_constraint is not None:
        actual |= {"local_axis": rotation_constraint.local, "target_axis": rotation_constraint.target}
    assert actual.keys() == expected.keys()
    if case["op"] == "transform" and isinstance(position, PlaneConstraint):
        # a plane may be given by any of its points; Klampt takes the one nearest to the origin
        assert abs(position.direction @ (actual.pop("target") - expected.pop("target"))) < 1e-9
    for key, value in actual.items():
        assert np.abs(value - expected[key]).max() < 1e-9, key


@pytest.mark.parametrize("case", [case for case in CASES if case["op"] == "closest_match"], ids=lambda c: c["type"])
def test_the_closest_match_equals_that_of_klampt(case: dict) -> None:
    X = klampt_data.link_goal(case["objective"]).closest_match(matrix(case))
    assert np.abs(X - make_pose(case["result_R"], case["result_t"])).max() < 1e-9


# ---- general properties -------------------------------------------------------------------------


@given(kind=in_goal_axes, seed=seeds)
@settings(max_examples=150, deadline=None)
def test_transforming_target_and_link_alike_keeps_the_error(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    objective, X, link = random_link_goal(kind, seed), random_pose_matrix(rng), random_pose_matrix(rng)
    moved = objective.transform(X)
    assert type(moved) is type(objective)
    assert np.abs(error_at(moved, X @ link) - error_at(objective, link)).max() < 1e-7


@given(kind=every_kind, seed=seeds)
@settings(max_examples=150, deadline=None)
def test_a_local_transform_undone_by_the_link_keeps_the_error(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    objective, X, link = random_link_goal(kind, seed), random_pose_matrix(rng), random_pose_matrix(rng)
    assert np.abs(error_at(objective.transform_local(X), link @ inverse(X)) - error_at(objective, link)).max() < 1e-7


@given(kind=in_goal_axes, seed=seeds)
@settings(max_examples=100, deadline=None)
def test_transforms_compose_and_invert(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    objective, X, Y, link = random_link_goal(kind, seed), *(random_pose_matrix(rng) for _ in range(3))
    restored = objective.transform(X).transform(inverse(X)).transform_local(Y).transform_local(inverse(Y))
    assert np.abs(error_at(restored, link) - error_at(objective, link)).max() < 1e-7
    steps, once = objective.transform(X).transform(Y), objective.transform(Y @ X)
    assert np.abs(error_at(steps, link) - error_at(once, link)).max() < 1e-7


@given(kind=every_kind, seed=seeds)
@settings(max_examples=150, deadline=None)
def test_a_matched_destination_is_met(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    objective, link = random_link_goal(kind, seed), random_pose_matrix(rng)
    matched = objective.match_destination(link)
    assert type(matched) is type(objective)
    assert error_at(matched, link).max() < 1e-7


@given(kind=every_kind, seed=seeds)
@settings(max_examples=200, deadline=None)
def test_the_closest_match_meets_the_goal_and_is_idempotent(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    objective, link = random_link_goal(kind, seed), random_pose_matrix(rng)
    closest = objective.closest_match(link)
    assert error_at(objective, closest).max() < 1e-7
    assert np.abs(objective.closest_match(closest) - closest).max() < 1e-9


@given(kind=every_kind, seed=seeds)
@settings(max_examples=150, deadline=None)
def test_no_sample_is_closer_than_the_closest_match(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    objective, link = random_link_goal(kind, seed), random_pose_matrix(rng)
    closest = objective.closest_match(link)
    smallest_angle = np.linalg.norm(rotation.log(link[:3, :3].T @ closest[:3, :3]))
    position, _ = objective._effective_constraints()
    for _ in range(20):
        sample = objective.sample(rng, radius=0.3)
        assert np.linalg.norm(rotation.log(link[:3, :3].T @ sample[:3, :3])) > smallest_angle - 1e-7
        if position is not None:
            shift = position.sample(rng, 0.3) - closest[:3, :3] @ position.local - link[:3, 3]
            assert np.linalg.norm(shift) > np.linalg.norm(closest[:3, 3] - link[:3, 3]) - 1e-9


@given(kind=every_kind, seed=seeds)
@settings(max_examples=200, deadline=None)
def test_samples_meet_the_goal(kind: str, seed: int) -> None:
    objective = random_link_goal(kind, seed)
    assert error_at(objective, objective.sample(np.random.default_rng(seed))).max() < 1e-7


@given(kind=st.sampled_from(KINDS), seed=seeds)
@settings(max_examples=80, deadline=None)
def test_relative_samples_are_poses_in_the_reference_link(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    objective, anchor = random_link_goal(kind, seed, relative_to="anchor"), random_pose_matrix(rng)
    q = body_configuration(BODIES, anchor @ objective.sample(rng), anchor)
    assert np.abs(objective.residual(BODIES, q)).max() < 1e-7


@pytest.mark.parametrize("kind", KINDS)
def test_samples_span_all_free_dofs_and_repeat_with_the_generator(kind: str) -> None:
    objective = random_link_goal(kind, 0)
    poses = [objective.sample(np.random.default_rng(k), radius=0.5) for k in range(400)]
    assert np.array_equal(poses[7], objective.sample(np.random.default_rng(7), radius=0.5))
    position, rotation_constraint = objective.position, objective.rotation
    free_rotations = {"NoneType": 3, "PerpendicularAxes": 2, "AlignedAxes": 1, "FixedRotation": 0}[
        type(rotation_constraint).__name__
    ]
    free_translations = {"NoneType": 3, "PlaneConstraint": 2, "LineConstraint": 1, "PointConstraint": 0}[
        type(position).__name__
    ]
    # rotation vectors of the samples relative to the first
    near = sorted((rotation.log(poses[0][:3, :3].T @ X[:3, :3]) for X in poses), key=np.linalg.norm)
    spread = np.linalg.svd([w for w in near if 0 < np.linalg.norm(w) < 3][:400] or np.zeros((3, 3)))[1]
    assert (spread > 1e-3).sum() >= free_rotations
    local = np.zeros(3) if position is None else position.local
    points = np.array([X[:3, :3] @ local + X[:3, 3] for X in poses])
    assert (np.linalg.svd(points - points[0])[1] > 1e-3).sum() == free_translations
    centre = np.zeros(3) if position is None else position.target
    farthest = np.linalg.norm(points - centre, axis=1).max()
    assert farthest <= 0.5 + 1e-12
    assert farthest > 0.4 or not free_translations


def test_goals_in_world_axes_refuse_rotations() -> None:
    goal = PoseGoal("body", np.eye(4), dof=("X", "EZ"), axes="world")
    X_rotation = make_pose(rotation.about_x(0.3), np.zeros(3))
    with pytest.raises(errors.ObjectiveError, match="axes of the world"):
        goal.transform(X_rotation)
    assert np.array_equal(goal.transform(translation([1, 2, 3])).target[:3, 3], (1, 2, 3))
    whole = PoseGoal("body", np.eye(4), dof=("X", "Y", "Z"), axes="world")
    assert np.allclose(whole.transform(X_rotation).target, X_rotation, rtol=0, atol=0)
    carried = PoseGoal("body", np.eye(4), dof=("X", "EZ"), axes="world", relative_to="anchor")
    with pytest.raises(errors.ObjectiveError, match="'anchor'"):
        carried.sample(np.random.default_rng(0))


def test_wrong_arguments_of_transforms_are_refused() -> None:
    point = PositionGoal("body", (0, 0, 0))
    for operation in (point.transform, point.transform_local, point.match_destination, point.closest_match):
        with pytest.raises(errors.NotARotation):
            operation(2 * np.eye(4))
        with pytest.raises(errors.ShapeError):
            operation(np.eye(3))
        with pytest.raises(errors.NotFinite):
            operation(np.full((4, 4), np.nan))
    with pytest.raises(errors.InvalidArgument, match="default_rng"):
        point.sample(7)
    with pytest.raises(errors.ObjectiveError, match="radius"):
        point.sample(np.random.default_rng(0), radius=-1)


# ---- saving -------------------------------------------------------------------------------------


@given(kind=every_kind, seed=seeds, relative=st.booleans())
@settings(max_examples=150, deadline=None)
def test_a_link_goal_survives_a_round_trip_exactly(kind: str, seed: int, relative: bool) -> None:
    objective = random_link_goal(kind, seed, relative_to="anchor" if relative else None)
    data = objective_to_dict(objective)
    loaded = objective_from_dict(json.loads(json.dumps(data)))
    assert type(loaded) is type(objective)
    assert objective_to_dict(loaded) == data
    q = BODIES.random(np.random.default_rng(seed))
    assert np.array_equal(loaded.residual(BODIES, q), objective.residual(BODIES, q))


def test_saving_replaces_an_older_file(tmp_path: Path) -> None:
    objectives = [random_link_goal(kind, 1) for kind in KINDS]
    file = tmp_path / "goals.json"
    file.write_text("older")
    save_objectives(objectives, file)
    assert [objective_to_dict(goal) for goal in load_objectives(file)] == [
        objective_to_dict(goal) for goal in objectives
    ]
    save_objectives(objectives[0], str(file))
    assert len(load_objectives(str(file))) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["goals.json"]


def test_a_failed_save_keeps_the_older_file(tmp_path: Path) -> None:
    class UnsavableObjective(Objective):
        def relations(self, mechanism: object) -> tuple:
            return ()

    file = tmp_path / "goals.json"
    save_objectives(PositionGoal("body", (0, 0, 0)), file)
    before = file.read_text()
    with pytest.raises(errors.ObjectiveError, match="cannot be saved"):
        save_objectives([PositionGoal("body", (1, 0, 0)), UnsavableObjective()], file)
    assert file.read_text() == before
    for path in (tmp_path / "nowhere" / "goals.json", tmp_path, "a\0b", 3):
        with pytest.raises(errors.CannotSave, match="cannot be written"):
            save_objectives(PositionGoal("body", (0, 0, 0)), path)
    assert [path.name for path in tmp_path.iterdir()] == ["goals.json"]


GOOD = objective_to_dict(PositionGoal("body", (1, 2, 3)))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "expected an object"),
        ({**GOOD, "kind": "PositionGoall"}, "Did you mean 'PositionGoal'"),
        ({**GOOD, "kind": ["PositionGoal"]}, "no kind of objective"),
        ({**GOOD, "wieght": 1}, "Did you mean 'weight'"),
        ({**GOOD, "dof": ["X"]}, "no key is called 'dof'"),
        ({key: value for key, value in GOOD.items() if key != "link"}, "'link' is missing"),
        ({**GOOD, "link": 3}, "link"),
        ({**GOOD, "weight": -1}, "above zero"),
        ({**GOOD, "weight": "heavy"}, "must be a number"),
        ({**GOOD, "kind": "OnLine"}, "a OnLine has the position LineConstraint"),
        ({**GOOD, "kind": "LinkGoal", "position": None}, "has no constraint"),
        ({**GOOD, "position": 3}, "objective.position: expected an object"),
        ({**GOOD, "position": {"rule": "PointConstrain"}}, "Did you mean 'PointConstraint'"),
        ({**GOOD, "position": {"rule": "PointConstraint", "target": [0, 0, 0]}}, "'local' is missing"),
        (
            {**GOOD, "position": {"rule": "PointConstraint", "target": [0, 0], "local": [0, 0, 0]}},
            "objective.position: target",
        ),
        ({**GOOD, "position": {**GOOD["position"], "direction": [0, 0, 1]}}, "no key is called 'direction'"),
        ({**GOOD, "position": None, "rotation": GOOD["position"]}, "a PositionGoal has the position PointConstraint"),
        ({**objective_to_dict(PoseGoal("body", np.eye(4))), "dof": ["Q"]}, "not a degree of freedom"),
    ],
)
def test_wrong_data_of_a_link_goal_are_refused_with_their_position(data: object, message: str) -> None:
    with pytest.raises(errors.FormatError, match=message):
        objective_from_dict(data)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", "expected an object"),
        ("{}", "format is None"),
        ('{"format": "mechanik objectives", "version": 2}', "version is 2"),
        ('{"format": "mechanik objectives", "version": 1, "objectives": {}}', "must be a list"),
        ('{"format": "mechanik objectives", "version": 1, "objectives": [{}]}', r"objectives\[0\]"),
    ],
)
def test_wrong_objective_files_are_refused(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "goals.json"
    file.write_text(text)
    with pytest.raises(errors.FormatError, match=message):
        load_objectives(file)


def test_unreadable_objective_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.FileMissing, match="there is no file"):
        load_objectives(tmp_path / "none.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\xff")
    for path in (tmp_path, tmp_path / "bytes.json", 3):
        with pytest.raises(errors.FormatError, match="cannot be read"):
            load_objectives(path)
