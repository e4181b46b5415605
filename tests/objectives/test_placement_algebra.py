"""The algebra of placements: against Klampt's results, and as laws."""

from __future__ import annotations

import json
from pathlib import Path

import klampt_data
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import seeds
from random_placements import GENERAL, NAMED, PARTIAL, random_matrix, random_placement, stand, two_bodies

from mechanik import errors
from mechanik.objectives.objective import Objective
from mechanik.objectives.objective_file import load_objectives, objective_from_dict, objective_to_dict, save_objectives
from mechanik.objectives.pose_goals import LinkGoal, PoseGoal, PositionGoal
from mechanik.objectives.pose_rules import FixedRotation, PlaneConstraint
from mechanik.spatial import inverse, make_pose, rotation, translation

BODIES = two_bodies()
CASES = [case for case in klampt_data.cases("objective_algebra.json") if case["op"] != "set_from_points"]
KINDS = NAMED + GENERAL
every_kind = st.sampled_from(KINDS + PARTIAL)
in_goal_axes = st.sampled_from(KINDS + tuple(kind for kind in PARTIAL if " goal " in kind))


def matrix(case: dict) -> np.ndarray:
    return make_pose(case["R"], case["t"])


def apart(objective: LinkGoal, X: np.ndarray) -> np.ndarray:
    """How far the objective is from fulfilled with the link at X, in m and rad."""
    error = objective.error(BODIES, stand(BODIES, X))
    return np.array([error.position, error.rotation])


# ---- Klampt -------------------------------------------------------------------------------------


def test_there_are_280_cases_of_three_operations() -> None:
    counts = {op: sum(case["op"] == op for case in CASES) for op in {case["op"] for case in CASES}}
    assert counts == {"transform": 104, "match_destination": 104, "closest_match": 72}


@pytest.mark.parametrize("case", [case for case in CASES if case["op"] != "closest_match"], ids=lambda c: c["type"])
def test_transform_and_match_destination_are_klampts(case: dict) -> None:
    result = getattr(klampt_data.placement(case["objective"]), case["op"])(matrix(case))
    expected = dict(case["result"])
    place, turn = result._effective_constraints()
    (relation, *more) = result.relations(klampt_data.robot("panda_nogeom"))
    rows = sum(len(one.rows) for one in (relation, *more))
    assert rows == expected.pop("pos_dims") + expected.pop("rot_dims")
    found = {}
    if place is not None:
        found |= {"local": place.local, "target": place.target}
        found |= {"direction": place.direction} if "direction" in expected else {}
    if isinstance(turn, FixedRotation):
        found |= {"R": turn.link_rotation}
    elif turn is not None:
        found |= {"local_axis": turn.local, "target_axis": turn.target}
    assert found.keys() == expected.keys()
    if case["op"] == "transform" and isinstance(place, PlaneConstraint):
        # a plane may be given by any of its points; Klampt goes on with the one nearest to the origin
        assert abs(place.direction @ (found.pop("target") - expected.pop("target"))) < 1e-9
    for key, value in found.items():
        assert np.abs(value - expected[key]).max() < 1e-9, key


@pytest.mark.parametrize("case", [case for case in CASES if case["op"] == "closest_match"], ids=lambda c: c["type"])
def test_the_closest_match_is_klampts(case: dict) -> None:
    X = klampt_data.placement(case["objective"]).closest_match(matrix(case))
    assert np.abs(X - make_pose(case["result_R"], case["result_t"])).max() < 1e-9


# ---- laws ---------------------------------------------------------------------------------------


@given(kind=in_goal_axes, seed=seeds)
@settings(max_examples=150, deadline=None)
def test_a_transform_of_target_and_link_alike_changes_nothing(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    objective, X, link = random_placement(kind, seed), random_matrix(rng), random_matrix(rng)
    moved = objective.transform(X)
    assert type(moved) is type(objective)
    assert np.abs(apart(moved, X @ link) - apart(objective, link)).max() < 1e-7


@given(kind=every_kind, seed=seeds)
@settings(max_examples=150, deadline=None)
def test_a_local_transform_undone_by_the_link_changes_nothing(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    objective, X, link = random_placement(kind, seed), random_matrix(rng), random_matrix(rng)
    assert np.abs(apart(objective.transform_local(X), link @ inverse(X)) - apart(objective, link)).max() < 1e-7


@given(kind=in_goal_axes, seed=seeds)
@settings(max_examples=100, deadline=None)
def test_transforms_compose_and_undo_each_other(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    objective, X, Y, link = random_placement(kind, seed), *(random_matrix(rng) for _ in range(3))
    back = objective.transform(X).transform(inverse(X)).transform_local(Y).transform_local(inverse(Y))
    assert np.abs(apart(back, link) - apart(objective, link)).max() < 1e-7
    steps, once = objective.transform(X).transform(Y), objective.transform(Y @ X)
    assert np.abs(apart(steps, link) - apart(once, link)).max() < 1e-7


@given(kind=every_kind, seed=seeds)
@settings(max_examples=150, deadline=None)
def test_a_matched_destination_is_fulfilled(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    objective, link = random_placement(kind, seed), random_matrix(rng)
    matched = objective.match_destination(link)
    assert type(matched) is type(objective)
    assert apart(matched, link).max() < 1e-7


@given(kind=every_kind, seed=seeds)
@settings(max_examples=200, deadline=None)
def test_the_closest_match_fulfils_and_stays(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    objective, link = random_placement(kind, seed), random_matrix(rng)
    closest = objective.closest_match(link)
    assert apart(objective, closest).max() < 1e-7
    assert np.abs(objective.closest_match(closest) - closest).max() < 1e-9


@given(kind=every_kind, seed=seeds)
@settings(max_examples=150, deadline=None)
def test_no_sample_is_turned_less_than_the_closest_match_nor_shifted_less_at_its_turn(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    objective, link = random_placement(kind, seed), random_matrix(rng)
    closest = objective.closest_match(link)
    turned = np.linalg.norm(rotation.log(link[:3, :3].T @ closest[:3, :3]))
    place, _ = objective._effective_constraints()
    for _ in range(20):
        other = objective.sample(rng, radius=0.3)
        assert np.linalg.norm(rotation.log(link[:3, :3].T @ other[:3, :3])) > turned - 1e-7
        if place is not None:
            shift = place.sample(rng, 0.3) - closest[:3, :3] @ place.local - link[:3, 3]
            assert np.linalg.norm(shift) > np.linalg.norm(closest[:3, 3] - link[:3, 3]) - 1e-9


@given(kind=every_kind, seed=seeds)
@settings(max_examples=200, deadline=None)
def test_samples_fulfil_the_objective(kind: str, seed: int) -> None:
    objective = random_placement(kind, seed)
    assert apart(objective, objective.sample(np.random.default_rng(seed))).max() < 1e-7


@given(kind=st.sampled_from(KINDS), seed=seeds)
@settings(max_examples=80, deadline=None)
def test_relative_samples_are_seen_from_the_other_link(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    objective, anchor = random_placement(kind, seed, relative_to="anchor"), random_matrix(rng)
    q = stand(BODIES, anchor @ objective.sample(rng), anchor)
    assert np.abs(objective.residual(BODIES, q)).max() < 1e-7


@pytest.mark.parametrize("kind", KINDS)
def test_samples_reach_all_that_is_free_and_repeat_with_the_generator(kind: str) -> None:
    objective = random_placement(kind, 0)
    poses = [objective.sample(np.random.default_rng(k), radius=0.5) for k in range(400)]
    assert np.array_equal(poses[7], objective.sample(np.random.default_rng(7), radius=0.5))
    place, turn = objective.position, objective.rotation
    free_turns = {"NoneType": 3, "PerpendicularAxes": 2, "AlignedAxes": 1, "FixedRotation": 0}[type(turn).__name__]
    free_shifts = {"NoneType": 3, "PlaneConstraint": 2, "LineConstraint": 1, "PointConstraint": 0}[type(place).__name__]
    # how the samples spread about the first, in the freedoms of a small motion
    near = sorted((rotation.log(poses[0][:3, :3].T @ X[:3, :3]) for X in poses), key=np.linalg.norm)
    spread = np.linalg.svd([w for w in near if 0 < np.linalg.norm(w) < 3][:400] or np.zeros((3, 3)))[1]
    assert (spread > 1e-3).sum() >= free_turns
    local = np.zeros(3) if place is None else place.local
    points = np.array([X[:3, :3] @ local + X[:3, 3] for X in poses])
    assert (np.linalg.svd(points - points[0])[1] > 1e-3).sum() == free_shifts
    centre = np.zeros(3) if place is None else place.target
    farthest = np.linalg.norm(points - centre, axis=1).max()
    assert farthest <= 0.5 + 1e-12
    assert farthest > 0.4 or not free_shifts


def test_directions_along_the_worlds_axes_are_not_turned() -> None:
    goal = PoseGoal("body", np.eye(4), dof=("X", "EZ"), axes="world")
    turn = make_pose(rotation.about_x(0.3), np.zeros(3))
    with pytest.raises(errors.ObjectiveError, match="axes of the world"):
        goal.transform(turn)
    assert np.array_equal(goal.transform(translation([1, 2, 3])).target[:3, 3], (1, 2, 3))
    whole = PoseGoal("body", np.eye(4), dof=("X", "Y", "Z"), axes="world")
    assert np.allclose(whole.transform(turn).target, turn, rtol=0, atol=0)
    carried = PoseGoal("body", np.eye(4), dof=("X", "EZ"), axes="world", relative_to="anchor")
    with pytest.raises(errors.ObjectiveError, match="'anchor'"):
        carried.sample(np.random.default_rng(0))


def test_bad_arguments_of_the_algebra_are_refused() -> None:
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
def test_data_come_back_as_the_same_objective_to_the_bit(kind: str, seed: int, relative: bool) -> None:
    objective = random_placement(kind, seed, relative_to="anchor" if relative else None)
    data = objective_to_dict(objective)
    again = objective_from_dict(json.loads(json.dumps(data)))
    assert type(again) is type(objective)
    assert objective_to_dict(again) == data
    q = BODIES.random(np.random.default_rng(seed))
    assert np.array_equal(again.residual(BODIES, q), objective.residual(BODIES, q))


def test_a_file_holds_a_list_and_replaces_an_older_one(tmp_path: Path) -> None:
    objectives = [random_placement(kind, 1) for kind in KINDS]
    file = tmp_path / "goals.json"
    file.write_text("older")
    save_objectives(objectives, file)
    assert [objective_to_dict(one) for one in load_objectives(file)] == [objective_to_dict(one) for one in objectives]
    save_objectives(objectives[0], str(file))
    assert len(load_objectives(str(file))) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["goals.json"]


def test_a_file_that_cannot_be_written_leaves_the_older_one(tmp_path: Path) -> None:
    class Wish(Objective):
        def relations(self, mechanism: object) -> tuple:
            return ()

    file = tmp_path / "goals.json"
    save_objectives(PositionGoal("body", (0, 0, 0)), file)
    before = file.read_text()
    with pytest.raises(errors.ObjectiveError, match="cannot be saved"):
        save_objectives([PositionGoal("body", (1, 0, 0)), Wish()], file)
    assert file.read_text() == before
    for path in (tmp_path / "nowhere" / "goals.json", tmp_path, "a\0b", 3):
        with pytest.raises(errors.CannotSave, match="cannot be written"):
            save_objectives(PositionGoal("body", (0, 0, 0)), path)
    assert [path.name for path in tmp_path.iterdir()] == ["goals.json"]


GOOD = objective_to_dict(PositionGoal("body", (1, 2, 3)))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([], "expected an object"),
        ({**GOOD, "kind": "PositionGoall"}, "Did you mean 'PositionGoal'"),
        ({**GOOD, "kind": ["PositionGoal"]}, "no kind of objective"),
        ({**GOOD, "wieght": 1}, "Did you mean 'weight'"),
        ({**GOOD, "dof": ["X"]}, "no key is called 'dof'"),
        ({key: value for key, value in GOOD.items() if key != "link"}, "'link' is missing"),
        ({**GOOD, "link": 3}, "link"),
        ({**GOOD, "weight": -1}, "above zero"),
        ({**GOOD, "weight": "heavy"}, "not a number"),
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
        ({**objective_to_dict(PoseGoal("body", np.eye(4))), "dof": ["Q"]}, "no degree of freedom"),
    ],
)
def test_data_that_do_not_fit_are_named_with_their_place(data: object, says: str) -> None:
    with pytest.raises(errors.JsonError, match=says):
        objective_from_dict(data)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not valid JSON"),
        ("[]", "expected an object"),
        ("{}", "format is None"),
        ('{"format": "mechanik objectives", "version": 2}', "version is 2"),
        ('{"format": "mechanik objectives", "version": 1, "objectives": {}}', "must be a list"),
        ('{"format": "mechanik objectives", "version": 1, "objectives": [{}]}', r"objectives\[0\]"),
    ],
)
def test_files_that_do_not_fit_are_refused(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "goals.json"
    file.write_text(text)
    with pytest.raises(errors.JsonError, match=says):
        load_objectives(file)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.FileMissing, match="there is no file"):
        load_objectives(tmp_path / "none.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\xff")
    for path in (tmp_path, tmp_path / "bytes.json", 3):
        with pytest.raises(errors.JsonError, match="cannot be read"):
            load_objectives(path)
