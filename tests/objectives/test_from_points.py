"""Goals from lists of points: Klampt's results, general properties, and lists that do not determine a pose."""

from __future__ import annotations

import klampt_data
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_link_goals import body_configuration, random_pose_matrix, two_bodies
from random_mechanisms import seeds

from mechanik import errors
from mechanik.objectives.pose_goals import HingeGoal, PoseGoal, PositionGoal, from_points
from mechanik.spatial import apply, rotation

BODIES = two_bodies()
CASES = [case for case in klampt_data.cases("objective_algebra.json") if case["op"] == "set_from_points"]
KINDS = {0: PositionGoal, 2: HingeGoal, 3: PoseGoal}


def squared_error(R: np.ndarray, case: dict) -> float:
    """Return the sum of squared distances after a rotation about the means."""
    local, target = (np.array(case[key]) - np.mean(case[key], axis=0) for key in ("local", "world"))
    return float(np.sum((local @ R.T - target) ** 2))


def test_there_are_72_cases_of_nine_lists() -> None:
    assert len(CASES) == 72
    assert len({case["case"] for case in CASES}) == 9


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_from_points_gives_the_objective_of_klampt(case: dict) -> None:
    result, objective = case["result"], from_points("body", case["local"], case["world"])
    assert type(objective) is KINDS[result["rot_dims"]]
    assert np.abs(objective.position.local - result["local"]).max() < 1e-9
    assert np.abs(objective.position.target - result["target"]).max() < 1e-9
    if isinstance(objective, PoseGoal):
        R = objective.rotation.link_rotation
        assert np.abs(R - case["kabsch_R"]).max() < 1e-9
        # Klampt has an error of up to 2.5e-6 for points in a plane, as the sum of squares shows
        assert np.abs(R - result["R"]).max() < 1e-9 + case["max_abs_R_minus_kabsch"]
        assert squared_error(R, case) <= squared_error(np.array(result["R"]), case) + 1e-15
    elif isinstance(objective, HingeGoal):
        # both axes may be reversed
        axes = np.stack([objective.rotation.local, objective.rotation.target])
        expected = np.stack([result["local_axis"], result["target_axis"]])
        assert min(np.abs(axes - expected).max(), np.abs(axes + expected).max()) < 1e-9


@given(seed=seeds, count=st.integers(1, 12), width=st.integers(0, 3), size=st.sampled_from([1e-6, 1e-3, 1, 1e3, 1e6]))
@settings(max_examples=200, deadline=None)
def test_moved_points_are_matched_as_far_as_they_determine_a_pose(
    seed: int, count: int, width: int, size: float
) -> None:
    """Lists in a point, on a line, in a plane and in space, small and large, far from the origin and near."""
    rng = np.random.default_rng(seed)
    axes = rng.standard_normal((width, 3))
    local = size * (rng.standard_normal(3) + rng.uniform(-1, 1, (count, width)) @ axes)
    X = random_pose_matrix(rng)
    X[:3, 3] *= size
    objective = from_points("body", local, apply(X, local))
    determined = min(width, count - 1)
    if determined == 1 or determined == 0:
        assert type(objective) is (PositionGoal, HingeGoal)[determined]
    q = body_configuration(BODIES, X) if size <= 1 else None
    if q is not None:
        assert objective.error(BODIES, q).position < 1e-12
        assert objective.error(BODIES, q).rotation < 1e-6
    pose = objective.closest_match(X)
    assert np.abs(apply(pose, local) - apply(X, local)).max() < 1e-7 * size


@given(seed=seeds, noise=st.sampled_from([0.0, 1e-3, 0.1, 1.0]))
@settings(max_examples=100, deadline=None)
def test_no_pose_has_a_smaller_squared_error(seed: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    local = rng.uniform(-1, 1, (6, 3))
    target = apply(random_pose_matrix(rng), local) + noise * rng.standard_normal((6, 3))
    best = from_points("body", local, target).closest_match(np.eye(4))
    smallest = np.sum((apply(best, local) - target) ** 2)
    for step in (1e-3, 0.1, 1.0):
        for _ in range(10):
            other_pose = best.copy()
            other_pose[:3, :3] = rotation.exp(step * rng.standard_normal(3)) @ best[:3, :3]
            other_pose[:3, 3] = (
                target.mean(axis=0) - other_pose[:3, :3] @ local.mean(axis=0) + step * rng.standard_normal(3)
            )
            assert np.sum((apply(other_pose, local) - target) ** 2) >= smallest - 1e-12


@given(seed=seeds, count=st.integers(3, 8), flat=st.booleans())
@settings(max_examples=100, deadline=None)
def test_mirrored_points_give_a_rotation_and_no_reflection(seed: int, count: int, flat: bool) -> None:
    rng = np.random.default_rng(seed)
    local = rng.uniform(-1, 1, (count, 3)) * ([1, 1, 0] if flat else [1, 1, 1])
    target = apply(random_pose_matrix(rng), local * [1, 1, -1])
    objective = from_points("body", local, target)
    R = objective.rotation.link_rotation
    assert np.abs(R.T @ R - np.eye(3)).max() < 1e-12
    assert np.linalg.det(R) > 0
    if flat or count == 3:  # the mirror image of three points, or of points in a plane, is a rotation of them
        assert np.abs(apply(objective.closest_match(np.eye(4)), local) - target).max() < 1e-6


@pytest.mark.parametrize(
    ("local", "target", "kind"),
    [
        (
            [[1, 2, 3]] * 4,
            [[0, 0, 0], [1, 0, 0], [0, 1, 0], [5, 5, 5]],
            PositionGoal,
        ),  # one point onto several: their mean
        ([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[1, 1, 1]] * 3, PositionGoal),  # several onto one
        ([[0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0, 0, 0], [0, 1, 0], [1, 0, 0]], HingeGoal),  # a line onto a triangle
        ([[0, 0, 0], [0, 1, 0], [1, 0, 0]], [[0, 0, 0], [1, 0, 0], [2, 0, 0]], HingeGoal),  # a triangle onto a line
        ([[0, 0, 0], [1, 0, 0]], [[0, 0, 0], [0, 0, 9]], HingeGoal),  # of another length
        ([[-1, 0, 0], [1, 0, 0], [0, 0, 0]], [[1, 0, 0], [1, 0, 0], [-1, 0, 0]], PositionGoal),  # nothing in common
        ([[1e6, 0, 0], [1e6 + 1, 0, 0], [1e6, 1, 0]], [[0, 0, 0], [1, 0, 0], [0, 1, 0]], PoseGoal),
        ([[1e-9, 0, 0], [0, 1e-9, 0], [0, 0, 0]], [[1e-9, 0, 0], [0, 1e-9, 0], [0, 0, 0]], PoseGoal),
        ([1, 2, 3], [4, 5, 6], PositionGoal),  # a single point needs no list around it
    ],
)
def test_points_that_determine_no_full_pose_give_a_weaker_goal(local: list, target: list, kind: type) -> None:
    objective = from_points("body", local, target)
    assert type(objective) is kind
    assert np.allclose(objective.position.local, np.mean(np.atleast_2d(local), axis=0), rtol=1e-15)
    assert np.allclose(objective.position.target, np.mean(np.atleast_2d(target), axis=0), rtol=1e-15)


def test_collinear_threshold_makes_measured_points_on_a_line_a_hinge() -> None:
    rng = np.random.default_rng(0)
    local = np.outer(np.arange(5), (0, 0, 1)) + 1e-3 * rng.standard_normal((5, 3))
    target = np.outer(np.arange(5), (1, 0, 0)) + 1e-3 * rng.standard_normal((5, 3))
    assert type(from_points("body", local, target)) is PoseGoal
    hinge = from_points("body", local, target, collinear=0.01)
    assert type(hinge) is HingeGoal
    sign = hinge.rotation.local[2]
    assert np.allclose(hinge.rotation.local * np.sign(sign), (0, 0, 1), rtol=0, atol=2e-3)
    assert np.allclose(hinge.rotation.target * np.sign(sign), (1, 0, 0), rtol=0, atol=2e-3)


def test_objective_options_are_passed_on() -> None:
    for count in (1, 2, 3):
        points = np.eye(3)[:count]
        objective = from_points("body", points, points, relative_to="anchor", weight=3, level=0, name="grasp")
        assert (objective.relative_to, objective.weight, objective.level) == ("anchor", 3, 0)
        assert objective.name == "grasp"


@pytest.mark.parametrize(
    ("local", "target", "error", "message"),
    [
        ([], [], errors.ObjectiveError, "no points"),
        (np.zeros((0, 3)), np.zeros((0, 3)), errors.ObjectiveError, "no points"),
        ([[0, 0, 0]], [[0, 0, 0], [1, 1, 1]], errors.ShapeError, "1 local points but 2 target points"),
        ([[0, 0]], [[0, 0]], errors.ShapeError, "local points"),
        ([[0, 0, 0]], [[0, 0, np.nan]], errors.NotFinite, "target points"),
        (["a"], ["b"], errors.ShapeError, "local points"),
        ([[0, 0, 0], [1, 1]], [[0, 0, 0], [1, 1]], errors.ShapeError, "local points"),
    ],
)
def test_wrong_lists_of_points_are_refused(local: object, target: object, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        from_points("body", local, target)
