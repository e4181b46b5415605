"""Loop benchmarks: mechanisms, verification and tables, as far as they run without the other libraries."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mechanik as mk
from mechanik.spatial import rotation

LOOPS = Path(__file__).parents[2] / "benchmarks" / "loops"
sys.path[:0] = [str(LOOPS), str(LOOPS.parent)]

from big_loops import Run, tower_drive_run, tower_pose_run  # noqa: E402
from case import DOFS, Case, load  # noqa: E402
from cases import CASES, COUPLER, CRANK, GROUND, ROCKER, single  # noqa: E402
from drive_mechanik import Driver, build  # noqa: E402
from loop_race import MISS, Result, result  # noqa: E402
from solution_errors import frame_distance, motion, poses, solution_errors  # noqa: E402
from tables import Goal, best, goals, markdown  # noqa: E402
from urdf import rpy, write_urdf  # noqa: E402

EVERY_CASE = pytest.mark.parametrize("name", list(CASES))


def still(case: Case) -> np.ndarray:
    return np.tile(case.start, (len(case.targets), 1))


# ---- mechanisms -----------------------------------------------------------------------------


@EVERY_CASE
def test_every_start_is_closed_and_within_limits(name: str):
    case = CASES[name](3)
    errors = solution_errors(case, still(case))
    assert errors.closure.max() < 1e-14
    assert errors.outside.max() == 0.0


@EVERY_CASE
def test_path_begins_at_the_start_configuration(name: str):
    case = CASES[name](3)
    if not case.skip:
        assert solution_errors(case, still(case)).goal[0] < 1e-14


@EVERY_CASE
def test_case_is_equal_after_saving_and_loading(name: str, tmp_path: Path):
    case = CASES[name](3)
    case.save(tmp_path / "case.json")
    back = load(tmp_path / "case.json")
    assert np.array_equal(back.start, case.start)
    assert np.array_equal(back.limits(), case.limits())
    assert np.array_equal(back.targets, case.targets)
    assert [closure.name for closure in back.closures] == [closure.name for closure in case.closures]
    assert np.array_equal(solution_errors(back, still(back)).goal, solution_errors(case, still(case)).goal)


def test_joint_split_into_single_dofs_has_the_same_motion():
    case = CASES["platform_multi_weld"](1)
    joint = case.joints[0]
    values = np.random.default_rng(0).uniform(-1.0, 1.0, (5, 6))
    parts = single(joint)
    X = np.broadcast_to(np.eye(4), (5, 4, 4))
    for part in parts:
        X = X @ part.pose @ motion(part.dof, values[:, [DOFS.index(part.dof[0])]])
    assert np.abs(X - motion(joint.dof, values)).max() < 1e-15


@EVERY_CASE
def test_mechanism_has_the_poses_of_the_verification(name: str):
    case = CASES[name](1)
    mechanism = build(case)
    expected_poses = poses(case, case.start[None])
    for link, X in expected_poses.items():
        assert np.abs(mechanism.pose(link) - X[0]).max() < 1e-12


def test_urdf_for_peers_has_the_same_tree(tmp_path: Path):
    case = CASES["platform_single_point"](1)
    frames = write_urdf(case, tmp_path / "platform.urdf")
    robot = mk.load(tmp_path / "platform.urdf")
    names = [joint.name for joint in case.joints]
    q = robot.configuration(dict(zip(names, case.start.tolist(), strict=True)))
    X = poses(case, case.start[None])
    assert np.abs(robot.pose("platform", q) - X["platform"][0]).max() < 1e-12
    for a, b in frames.values():
        assert np.abs(robot.pose(a, q)[:3, 3] - robot.pose(b, q)[:3, 3]).max() < 1e-12
    R = X["leg3"][0, :3, :3]
    roll, pitch, yaw = rpy(X["leg3"][0])
    assert np.abs(rotation.about_z(yaw) @ rotation.about_y(pitch) @ rotation.about_x(roll) - R).max() < 1e-14


# ---- verification ------------------------------------------------------------------------------


def test_closure_error_of_a_four_bar_equals_its_closed_form():
    case = CASES["four_bar"](1)
    q = case.start + np.array([[0.1, -0.2, 0.05]])
    tip = CRANK * np.exp(1j * q[0, 0]) + COUPLER * np.exp(1j * (q[0, 0] + q[0, 1]))
    gap = abs(tip - (GROUND + ROCKER * np.exp(1j * q[0, 2])))
    assert solution_errors(case, q).closure[0] == pytest.approx(gap, rel=1e-12)
    assert solution_errors(case, q).goal[0] == pytest.approx(0.1, rel=1e-12)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-4, 1.0, 3.0, math.pi])
def test_frame_distance_is_the_angle_between_the_frames(angle: float):
    X, Y = np.eye(4)[None], np.eye(4)[None].copy()
    Y[0, :3, :3] = rotation.exp(angle * np.array([2.0, -1.0, 2.0]) / 3)
    assert frame_distance(X, Y, with_rotation=True)[0] == pytest.approx(angle, abs=1e-15, rel=1e-12)
    assert frame_distance(X, Y, with_rotation=False)[0] == 0.0


def test_missing_solution_and_violated_limit_are_misses():
    case = CASES["platform_single_point"](4)
    case = replace(case, targets=np.repeat(case.targets[:1], 4, axis=0))
    q = still(case)
    q[1] = np.nan
    q[2, [joint.name for joint in case.joints].index("leg0_slide")] = 0.6
    assert solution_errors(case, q).missed(MISS).tolist() == [False, True, True, False]


def test_untimed_ticks_can_be_missed():
    case = replace(CASES["four_bar"](3), skip=1)
    q = still(case)
    q[:, 0] = np.nan
    outcome = result(case, solution_errors(case, q), np.array([[9.0, 2e-6, 4e-6], [9.0, 3e-6, 3e-6]]), [6e-6, 9e-6])
    assert (outcome.missed, outcome.ticks) == (3, 3)
    assert outcome.us == pytest.approx(2.5)  # the best of the rounds of each
    assert outcome.cpu_us == pytest.approx(2.0)
    assert outcome.closure == math.inf


# ---- Mechanik -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in CASES if name != "arm_100"])
def test_mechanik_misses_no_tick_and_closes_all_loops(name: str, tmp_path: Path):
    case = CASES[name](40)
    driver = Driver(case, "", tmp_path)
    driver.begin()
    solutions = [driver.tick(driver.target(target)) for target in case.targets]
    errors = solution_errors(case, np.array([driver.values(solution) for solution in solutions]))
    assert errors.closure.max() <= 1e-9
    assert errors.goal.max() <= 1e-5 * (1 + 1e-6)
    assert not errors.missed(MISS).any()


def test_arm_of_100_joints_uncoils_and_misses_no_tick(tmp_path: Path):
    case = CASES["arm_100"](5)
    driver = Driver(case, "", tmp_path)
    driver.begin()
    solutions = [driver.tick(driver.target(target)) for target in case.targets]
    errors = solution_errors(case, np.array([driver.values(solution) for solution in solutions]))
    assert errors.goal.max() <= 1e-5 * (1 + 1e-6)


@pytest.mark.parametrize(("make", "storeys"), [(tower_pose_run, 5), (tower_drive_run, 20)])
def test_tower_of_four_bars_misses_no_tick(make: Callable[[int, int], Run], storeys: int):
    # loops with an error of 1.0e-10 to 1.7e-10 were closed for the kernel, but open for the check after it: STALLED
    run = make(storeys, 300)
    run.follow()
    wrong, _, loop = run.errors()
    assert wrong == 0
    assert loop <= 1e-9


# ---- tables ---------------------------------------------------------------------------------


def row(us: float, missed: int = 0, closure: float = 1e-12) -> Result:
    return Result(us, us, closure, 1e-6, missed, 10)


def test_best_row_of_a_library_misses_no_tick_if_possible():
    table = {"placo": row(3.0, missed=1), "placo, by hand": row(5.0), "Klampt": row(9.0), "Mechanik": row(1.0)}
    best_row = best(table, ("placo", "Klampt"))
    assert best_row is not None
    assert best_row[0] == "placo, by hand"
    assert best({"placo": row(3.0, missed=1)}, "placo") is not None
    assert best({"placo": "not installed"}, "placo") is None


def test_goals_compare_with_each_row_of_the_original_and_missing_rows_are_not_measured():
    table = {"Mechanik": row(2.0), "closed-chain-ik, own": row(20.0), "closed-chain-ik, best": row(10.0)}
    by_name = {goal.name: goal for goal in goals({"four_bar": table}, {"four_bar": "four-bar"})}
    assert by_name["four-bar: times as fast as closed-chain-ik, own"].measured == pytest.approx(10.0)
    against = by_name["four-bar: times as fast as closed-chain-ik, best"]
    assert against.measured == pytest.approx(5.0)
    assert against.is_met
    assert by_name["four-bar: times as fast as the better of placo and Klampt"].measured is None
    assert by_name["four-bar: ticks missed"].is_met


def test_closure_error_or_missed_tick_misses_a_goal():
    table = {"Mechanik": row(2.0, 1, 2e-9)}
    by_name = {goal.name: goal for goal in goals({"four_bar": table}, {"four_bar": "four-bar"})}
    assert not by_name["four-bar: ticks missed"].is_met
    assert not by_name["four-bar: largest closure error"].is_met


def test_page_names_missing_libraries():
    table = {"Mechanik": row(2.0), "Klampt": "not installed: no wheel"}
    page = markdown({"four_bar": table}, {"four_bar": "four-bar"}, "a machine", "versions", [Goal("speed", 2.0, None)])
    assert "| Klampt | not installed: no wheel |" in page
    assert "not measured" in page
