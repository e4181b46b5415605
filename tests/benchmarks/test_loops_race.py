"""The race on loops: its mechanisms, its judge and its arithmetic, as far as they run without the other libraries."""
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
from contest import MISS, Result, result  # noqa: E402
from drive_mechanik import Driver, build  # noqa: E402
from judge import apart, judge, motion, poses  # noqa: E402
from tables import Goal, best, goals, markdown  # noqa: E402
from urdf import rpy, write_urdf  # noqa: E402

EVERY_CASE = pytest.mark.parametrize("name", list(CASES))


def still(case: Case) -> np.ndarray:
    return np.tile(case.start, (len(case.targets), 1))


# ---- mechanisms -----------------------------------------------------------------------------


@EVERY_CASE
def test_every_loop_is_shut_and_every_limit_kept_at_the_start(name: str):
    case = CASES[name](3)
    errors = judge(case, still(case))
    assert errors.closure.max() < 1e-14
    assert errors.outside.max() == 0.0


@EVERY_CASE
def test_a_path_begins_where_the_mechanism_stands(name: str):
    case = CASES[name](3)
    if not case.skip:
        assert judge(case, still(case)).goal[0] < 1e-14


@EVERY_CASE
def test_a_case_comes_back_from_its_file(name: str, tmp_path: Path):
    case = CASES[name](3)
    case.save(tmp_path / "case.json")
    back = load(tmp_path / "case.json")
    assert np.array_equal(back.start, case.start)
    assert np.array_equal(back.limits(), case.limits())
    assert np.array_equal(back.targets, case.targets)
    assert [one.name for one in back.closures] == [one.name for one in case.closures]
    assert np.array_equal(judge(back, still(back)).goal, judge(case, still(case)).goal)


def test_a_joint_split_into_single_freedoms_moves_alike():
    case = CASES["platform_multi_weld"](1)
    joint = case.joints[0]
    values = np.random.default_rng(0).uniform(-1.0, 1.0, (5, 6))
    parts = single(joint)
    X = np.broadcast_to(np.eye(4), (5, 4, 4))
    for part in parts:
        X = X @ part.place @ motion(part.dof, values[:, [DOFS.index(part.dof[0])]])
    assert np.abs(X - motion(joint.dof, values)).max() < 1e-15


@EVERY_CASE
def test_our_mechanism_is_the_judges(name: str):
    case = CASES[name](1)
    mechanism = build(case)
    by_judge = poses(case, case.start[None])
    for link, X in by_judge.items():
        assert np.abs(mechanism.pose(link) - X[0]).max() < 1e-12


def test_the_urdf_that_peers_read_has_the_same_tree(tmp_path: Path):
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


# ---- the judge ------------------------------------------------------------------------------


def test_the_judge_finds_the_gap_of_a_four_bar_by_its_closed_form():
    case = CASES["four_bar"](1)
    q = case.start + np.array([[0.1, -0.2, 0.05]])
    tip = CRANK * np.exp(1j * q[0, 0]) + COUPLER * np.exp(1j * (q[0, 0] + q[0, 1]))
    gap = abs(tip - (GROUND + ROCKER * np.exp(1j * q[0, 2])))
    assert judge(case, q).closure[0] == pytest.approx(gap, rel=1e-12)
    assert judge(case, q).goal[0] == pytest.approx(0.1, rel=1e-12)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-4, 1.0, 3.0, math.pi])
def test_two_frames_are_apart_by_the_angle_between_them(angle: float):
    X, Y = np.eye(4)[None], np.eye(4)[None].copy()
    Y[0, :3, :3] = rotation.exp(angle * np.array([2.0, -1.0, 2.0]) / 3)
    assert apart(X, Y, turned=True)[0] == pytest.approx(angle, abs=1e-15, rel=1e-12)
    assert apart(X, Y, turned=False)[0] == 0.0


def test_no_answer_and_a_broken_limit_are_misses():
    case = CASES["platform_single_point"](4)
    case = replace(case, targets=np.repeat(case.targets[:1], 4, axis=0))
    q = still(case)
    q[1] = np.nan
    q[2, [joint.name for joint in case.joints].index("leg0_slide")] = 0.6
    assert judge(case, q).missed(MISS).tolist() == [False, True, True, False]


def test_ticks_before_the_clock_count_as_missed_but_not_as_time():
    case = replace(CASES["four_bar"](3), skip=1)
    q = still(case)
    q[:, 0] = np.nan
    it = result(case, judge(case, q), np.array([[9.0, 2e-6, 4e-6], [9.0, 3e-6, 3e-6]]), [6e-6, 9e-6])
    assert (it.missed, it.ticks) == (3, 3)
    assert it.us == pytest.approx(2.5)  # the best of the rounds of each
    assert it.cpu_us == pytest.approx(2.0)
    assert it.closure == math.inf


# ---- ours -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in CASES if name != "arm_100"])
def test_we_miss_no_tick_and_keep_loops_shut(name: str, tmp_path: Path):
    case = CASES[name](40)
    driver = Driver(case, "", tmp_path)
    driver.begin()
    answers = [driver.tick(driver.target(target)) for target in case.targets]
    errors = judge(case, np.array([driver.values(answer) for answer in answers]))
    assert errors.closure.max() <= 1e-9
    assert errors.goal.max() <= 1e-5 * (1 + 1e-6)
    assert not errors.missed(MISS).any()


def test_the_arm_of_a_hundred_joints_is_uncoiled_and_misses_none(tmp_path: Path):
    case = CASES["arm_100"](5)
    driver = Driver(case, "", tmp_path)
    driver.begin()
    answers = [driver.tick(driver.target(target)) for target in case.targets]
    errors = judge(case, np.array([driver.values(answer) for answer in answers]))
    assert errors.goal.max() <= 1e-5 * (1 + 1e-6)


@pytest.mark.parametrize(("make", "storeys"), [(tower_pose_run, 5), (tower_drive_run, 20)])
def test_a_tower_of_four_bars_misses_no_tick(make: Callable[[int, int], Run], storeys: int):
    # loops open by 1.0e-10 to 1.7e-10 were shut for the kernel and open for the check after it: STALLED at the goal
    run = make(storeys, 300)
    run.follow()
    wrong, _, loop = run.errors()
    assert wrong == 0
    assert loop <= 1e-9


# ---- tables ---------------------------------------------------------------------------------


def row(us: float, missed: int = 0, closure: float = 1e-12) -> Result:
    return Result(us, us, closure, 1e-6, missed, 10)


def test_the_best_of_a_library_misses_nothing_if_any_row_does():
    table = {"placo": row(3.0, missed=1), "placo, by hand": row(5.0), "Klampt": row(9.0), "Mechanik": row(1.0)}
    found = best(table, ("placo", "Klampt"))
    assert found is not None
    assert found[0] == "placo, by hand"
    assert best({"placo": row(3.0, missed=1)}, "placo") is not None
    assert best({"placo": "not installed"}, "placo") is None


def test_goals_compare_with_each_row_of_the_original_and_what_is_absent_is_not_measured():
    table = {"Mechanik": row(2.0), "closed-chain-ik, own": row(20.0), "closed-chain-ik, best": row(10.0)}
    found = {goal.name: goal for goal in goals({"four_bar": table}, {"four_bar": "four-bar"})}
    assert found["four-bar: times as fast as closed-chain-ik, own"].measured == pytest.approx(10.0)
    against = found["four-bar: times as fast as closed-chain-ik, best"]
    assert against.measured == pytest.approx(5.0)
    assert against.is_met
    assert found["four-bar: times as fast as the better of placo and Klampt"].measured is None
    assert found["four-bar: ticks missed"].is_met


def test_a_loop_that_is_open_too_far_or_a_missed_tick_misses_a_goal():
    found = {goal.name: goal for goal in goals({"four_bar": {"Mechanik": row(2.0, 1, 2e-9)}}, {"four_bar": "it"})}
    assert not found["it: ticks missed"].is_met
    assert not found["it: largest closure error"].is_met


def test_the_page_names_what_is_not_there():
    table = {"Mechanik": row(2.0), "Klampt": "not installed: no wheel"}
    page = markdown({"four_bar": table}, {"four_bar": "four-bar"}, "a machine", "versions", [Goal("speed", 2.0, None)])
    assert "| Klampt | not installed: no wheel |" in page
    assert "not measured" in page
