"""Goals along a path are followed without a jump."""

from __future__ import annotations

import numpy as np
import pytest
from near_singular_paths import panda_stretched, stewart_near_singularity, ur5_near_wrist_singularity

import mechanik as mk
from mechanik.errors import (
    InvalidArgument,
    MechanikError,
    NotARotation,
    NotFinite,
    ObjectiveError,
    ShapeError,
    UnknownName,
)
from mechanik.motion.follow import Line, Path, follow
from mechanik.spatial import make_pose, rotation

PANDA, UR5, STEWART = mk.gallery.panda(), mk.gallery.ur5(), mk.gallery.stewart_platform()
TIP = "panda_hand_tcp"
EXACT = 1e-6


def max_pose_error(path: Path, link: str, poses: np.ndarray) -> float:
    """Largest error of a link pose, m or rad."""
    X = path.mechanism.pose(link, path.q)
    rotation_vectors = rotation.log(np.swapaxes(X[:, :3, :3], 1, 2) @ poses[:, :3, :3])
    return max(
        float(np.abs(X[:, :3, 3] - poses[:, :3, 3]).max()), float(np.linalg.norm(rotation_vectors, axis=1).max())
    )


def assert_valid(path: Path, link: str, poses: np.ndarray) -> None:
    space = path.mechanism.space
    assert max_pose_error(path, link, poses) < EXACT
    assert space.within_limits(path.q, 1e-9).all()
    assert path.largest_step <= 3.0 * path.median_step


def test_panda_passes_a_stretched_configuration_and_joint_limits():
    cartesian_path = panda_stretched()
    path = follow(PANDA, TIP, cartesian_path, 1000).require()
    assert_valid(path, TIP, cartesian_path.sample(1000))
    smallest = np.linalg.svd(PANDA.jacobian(TIP, path.q)[..., :7], compute_uv=False)[:, -1]
    limit_distance = np.minimum(path.q - PANDA.space.lower, PANDA.space.upper - path.q)[:, :7]
    assert smallest.min() < 0.05
    assert limit_distance.min() < 0.02


@pytest.mark.parametrize("tilt", [0.0, 0.3])
def test_ur5_passes_its_wrist_singularity(tilt):
    cartesian_path = ur5_near_wrist_singularity(tilt)
    path = follow(UR5, "tool0", cartesian_path, 1000).require()
    assert_valid(path, "tool0", cartesian_path.sample(1000))
    assert np.abs(np.sin(path.q[:, 4])).min() == pytest.approx(np.sin(tilt), abs=2e-3)


def test_ur5_approaches_a_limit_without_crossing_it():
    cartesian_path = ur5_near_wrist_singularity(0.0)
    free = follow(UR5, "tool0", cartesian_path, 300).require()
    pan = free.q[:, 0]
    limits = {"shoulder_pan_joint": (pan.min() - 0.01, pan.max() + 1e-3)}
    path = follow(UR5, "tool0", cartesian_path, 1000, limits=limits).require()
    assert_valid(path, "tool0", cartesian_path.sample(1000))
    assert path.q[:, 0].max() <= pan.max() + 1e-3


def test_stewart_platform_passes_a_singular_configuration():
    cartesian_path = stewart_near_singularity(STEWART.pose("platform"))
    path = follow(STEWART, "platform", cartesian_path, 300).require()
    assert_valid(path, "platform", cartesian_path.sample(300))
    assert path.closure_error() < 1e-9
    assert path.q[:, 9::3].max() > 0.48


def test_twice_as_many_waypoints_halve_the_largest_step():
    largest = [
        follow(UR5, "tool0", ur5_near_wrist_singularity(0.2), n).require().largest_step for n in (251, 501, 1001)
    ]
    assert largest[1] / largest[0] == pytest.approx(0.5, rel=0.05)
    assert largest[2] / largest[1] == pytest.approx(0.5, rel=0.05)


def test_path_is_smooth_to_rounding_error():
    """Third differences fall with the cube of the distance between waypoints: no noise of tolerances."""
    cartesian_path = ur5_near_wrist_singularity(0.3)
    third = [np.abs(np.diff(follow(UR5, "tool0", cartesian_path, n).require().q, 3, axis=0)).max() for n in (501, 1001)]
    assert third[1] < third[0] / 7.0


def test_path_starts_with_the_configuration_reached_from_q0():
    X = UR5.pose("tool0")
    Y = X.copy()
    Y[:3, 3] += -0.2, 0.3, -0.1
    for q0 in mk.Solver(UR5, mk.PoseGoal("tool0", X)).solve_all().q[:4]:
        path = follow(UR5, "tool0", Line(X, Y), 100, q0=q0).require()
        np.testing.assert_allclose(path.q[0], q0, atol=1e-5)


def test_windings_are_chosen_for_the_whole_path():
    """The wrist rotates 12.4 of its 12.566 rad: only one winding at the start leaves enough range."""
    X = UR5.pose("tool0")

    def rotating(t: float) -> np.ndarray:
        return X @ make_pose(rotation.exp([0.0, 0.0, 12.4 * t]), np.zeros(3))

    path = follow(UR5, mk.PoseGoal("tool0", X), rotating, 400).require()
    assert UR5.space.within_limits(path.q).all()
    assert np.ptp(path.q[:, 5]) == pytest.approx(12.4, abs=1e-5)


def test_list_path_and_function_of_objectives_give_the_same_result():
    X = UR5.pose("tool0")
    Y = X.copy()
    Y[:3, 3] += 0.0, 0.3, -0.1
    line = Line(X, Y)
    q0 = UR5.q
    by_path = follow(UR5, "tool0", line, 60, q0=q0).require()
    by_list = follow(UR5, mk.PoseGoal("tool0", X), list(line.sample(60)), q0=q0).require()
    by_objectives = follow(UR5, lambda s: [mk.PoseGoal("tool0", line(s))], s=60, q0=q0).require()
    np.testing.assert_allclose(by_list.q, by_path.q, atol=1e-5)
    np.testing.assert_allclose(by_objectives.q, by_path.q, atol=1e-5)


def test_redundant_mechanism_follows_with_even_steps():
    def at(s: float) -> np.ndarray:
        return np.array([0.5, -0.4 + 0.8 * s, 0.4])

    path = follow(PANDA, mk.PositionGoal(TIP, at(0.0)), at, 300).require()
    expected = np.array([at(s) for s in path.s])
    assert np.abs(PANDA.pose(TIP, path.q)[:, :3, 3] - expected).max() < EXACT
    assert path.largest_step <= 3.0 * path.median_step


def test_driven_loop_makes_a_full_rotation():
    bar = mk.gallery.four_bar()
    crank = next(iter(bar.joints))
    start = float(bar.values()[crank])
    goal = mk.JointValues({crank: start}, angle_mode="exact")
    path = follow(bar, goal, lambda s: {crank: start + 2 * np.pi * s}, 200, q0=bar.q, limits={crank: (-9, 9)}).require()
    assert path.closure_error() < 1e-9
    rotations = (path.q[-1] - path.q[0]) / (2 * np.pi)
    np.testing.assert_allclose(rotations, np.round(rotations), atol=1e-5)
    assert path.largest_step < 0.1


def test_follow_is_deterministic_and_does_not_move_the_mechanism():
    before = PANDA.q.copy()
    first, again = (follow(PANDA, TIP, panda_stretched(), 100).require().q for _ in range(2))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(PANDA.q, before)


LINE = Line(UR5.pose("tool0"), UR5.pose("tool0"))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: follow("ur5", "tool0", LINE), InvalidArgument),
        (lambda: follow(UR5, "tool1", LINE), UnknownName),
        (lambda: follow(UR5, "tool0"), ObjectiveError),
        (lambda: follow(UR5, [], LINE), ObjectiveError),
        (lambda: follow(UR5, "tool0", [UR5.pose("tool0")]), ShapeError),
        (lambda: follow(UR5, "tool0", [np.eye(4), np.full((4, 4), np.nan)]), NotFinite),
        (lambda: follow(UR5, "tool0", [np.eye(4), None, np.eye(4)]), ShapeError),
        (lambda: follow(UR5, "tool0", [np.eye(4), np.eye(3)]), ShapeError),
        (lambda: follow(UR5, "tool0", np.array([np.eye(4), 2.0 * np.eye(4)])), NotARotation),
        (lambda: follow(UR5, "tool0", lambda s: np.diag([1.0 + s, 1.0, 1.0, 1.0])), NotARotation),
        (lambda: follow(UR5, "tool0", LINE, 1), ShapeError),
        (lambda: follow(UR5, "tool0", LINE, [0.0, 2.0]), ShapeError),
        (lambda: follow(UR5, "tool0", LINE, [0.5, 0.2]), ShapeError),
        (lambda: follow(UR5, "tool0", LINE, "many"), ShapeError),
        (lambda: follow(UR5, "tool0", [np.eye(4)] * 3, 5), ShapeError),
        (lambda: follow(UR5, "tool0", LINE, q0=[0.0, 1.0]), ShapeError),
        (lambda: follow(UR5, "tool0", LINE, q0=np.full(6, np.nan)), NotFinite),
        (lambda: follow(UR5, "tool0", LINE, max_step=0.0), ShapeError),
        (lambda: follow(UR5, "tool0", LINE, limits={"elbw": (0, 1)}), UnknownName),
        (lambda: follow(UR5, "tool0", LINE, speed=3), UnknownName),
        (lambda: follow(UR5, "tool0", 3.0), MechanikError),
        (lambda: follow(UR5, lambda s: mk.PositionGoal("tool0", (s, 0, 0)), LINE), ObjectiveError),
    ],
)
def test_invalid_arguments_raise(call, error):
    with pytest.raises(error):
        call()


def test_number_of_waypoints_may_be_any_integer_type():
    assert len(follow(UR5, "tool0", LINE, np.int64(5)).require()) == 5


@pytest.mark.parametrize("robot", [UR5, STEWART])
@pytest.mark.parametrize("factor", [np.nan, 2.0])
def test_error_for_an_invalid_target_names_its_s(robot, factor):
    link = list(robot.links)[-1] if robot is UR5 else "platform"
    X = robot.pose(link)
    with pytest.raises((NotFinite, NotARotation), match=r"the target at s = 0\.75"):
        follow(robot, link, lambda s: X * (factor if s > 0.5 else 1.0), 5)


def test_error_of_a_target_function_names_its_s():
    X = UR5.pose("tool0")

    def failing(s: float) -> np.ndarray:
        if s > 0.5:
            raise RuntimeError("no signal")
        return X

    with pytest.raises(RuntimeError, match="no signal") as caught:
        follow(UR5, "tool0", failing, 5)
    assert "s = 0.75" in caught.value.__notes__[0]
