"""The lane backend: its input, and how its results are read."""

from __future__ import annotations

import numpy as np
import pytest
from batch_backends import solve_batch, solve_in_lanes
from fake_chain import FakeChain

import mechanik as mk
from mechanik.kernels.chain_layout import FROM_SEED, FROM_TABLE
from mechanik.solver.batch import supports_lanes
from mechanik.solver.solution import Status
from mechanik.spatial import inverse, rotation, to_position_wxyz

ARM = mk.gallery.ur5()
RNG = np.random.default_rng(0)
X = ARM.pose("tool0", ARM.random(RNG, 10))
P, WXYZ = to_position_wxyz(X)
NAMES = ("q", "status", "errors", "iterations")
GOAL = mk.PoseGoal("tool0", X[3])


class Recorder(FakeChain):
    def solve_rows(self, X, q0, mode, key, q, report) -> None:
        self.X, self.q0, self.mode, self.key = X.copy(), q0.copy(), mode, key
        super().solve_rows(X, q0, mode, key, q, report)


def run(goal, targets, q0=None, **how):
    recorder = Recorder()
    return solve_in_lanes(mk.Solver(ARM, goal), targets, q0, recorder, threads=1, **how), recorder


@pytest.mark.parametrize("form", ["poses", "position and wxyz", "points"])
def test_every_form_of_target_becomes_a_pose(form):
    targets = {"poses": X, "position and wxyz": np.concatenate([P, WXYZ], axis=1), "points": P}[form]
    wanted = np.tile(X[3], (10, 1, 1)) if form == "points" else X.copy()
    wanted[:, :3, 3] = P
    assert np.abs(run(GOAL, targets)[1].X - wanted).max() < 1e-15


def test_positions_and_rotations_are_poses_with_the_other_part_neutral():
    turns = run(mk.PositionGoal("tool0", (0, 0, 1)), P)[1].X[:, :3, :3]
    assert np.array_equal(turns, np.tile(np.eye(3), (10, 1, 1)))
    for targets in (X[:, :3, :3], WXYZ):
        X_chain = run(mk.OrientationGoal("tool0", np.eye(3)), targets)[1].X
        assert np.abs(X_chain[:, :3, :3] - X[:, :3, :3]).max() < 1e-15
        assert not X_chain[:, :3, 3].any()


def test_without_starts_the_seed_table_is_used_and_with_starts_the_starts():
    _, recorder = run(GOAL, X)
    assert (recorder.mode, recorder.key) == (FROM_TABLE, 0.0)
    assert np.array_equal(recorder.q0, np.tile(ARM.q, (10, 1)))
    starts = ARM.random(RNG, 10)
    _, recorder = run(GOAL, X, starts, rng=np.random.default_rng(3))
    assert (recorder.mode, recorder.key) == (FROM_SEED, np.random.default_rng(3).integers(2**63) % 2**31)
    assert np.array_equal(recorder.q0, starts)


@pytest.mark.parametrize("form", ["poses", "position and wxyz"])
def test_bad_rows_are_reported_equally_by_the_chain_and_before_it(form):
    targets = X.copy() if form == "poses" else np.concatenate([P, WXYZ], axis=1)
    clean, _ = run(GOAL, targets)
    spoiled = targets.copy()
    spoiled[[2, 6]] = np.nan
    spoiled[4] = 0.0
    result, _ = run(GOAL, spoiled, chunk=4)
    bad, good = [2, 4, 6], [0, 1, 3, 5, 7, 8, 9]
    assert all(result.status_of(row) is Status.BAD_TARGET for row in bad)
    assert np.isnan(result.errors[bad]).all()
    assert np.array_equal(result.q[bad], np.tile(ARM.q, (3, 1)))
    assert not result.iterations[bad].any()
    assert all(np.array_equal(getattr(result, name)[good], getattr(clean, name)[good]) for name in NAMES)


# ---- with the chain kernel itself ---------------------------------------------------------------

SOLVER = mk.Solver(ARM, GOAL)


def test_lanes_solve_reachable_targets_and_report_errors():
    targets = ARM.pose("tool0", ARM.random(RNG, 300))
    for starts in (None, ARM.random(RNG, 300)):
        result = solve_in_lanes(SOLVER, targets, starts).require()
        ends = ARM.pose("tool0", result.q)
        away = np.linalg.norm(ends[:, :3, 3] - targets[:, :3, 3], axis=1)
        turned = np.linalg.norm(rotation.log(np.swapaxes(ends[:, :3, :3], 1, 2) @ targets[:, :3, :3]), axis=1)
        assert max(away.max(), turned.max()) < 1e-6
        assert np.abs(result.errors[:, 0] - np.stack([away, turned], axis=1)).max() < 1e-9
        assert ARM.space.within_limits(result.q).all()


@pytest.mark.parametrize("goal", [mk.PositionGoal("tool0", (0, 0, 1), (0.1, 0.2, 0.3)), mk.OrientationGoal("tool0",
    np.eye(3)),
                                  mk.PoseGoal("tool0", X[0], relative_to="upper_arm_link", at=X[1])])  # fmt: skip
def test_goals_for_a_position_or_a_rotation_or_relative_to_a_link(goal):
    solver = mk.Solver(ARM, goal)
    q = ARM.random(RNG, 20)
    shown = (
        ARM.pose("tool0", q)
        if goal.relative_to is None
        else inverse(ARM.pose(goal.relative_to, q)) @ ARM.pose("tool0", q)
    )
    targets = {"PositionGoal": shown[:, :3, 3], "OrientationGoal": shown, "PoseGoal": shown @ X[1]}[type(goal).__name__]
    result = solve_in_lanes(solver, targets)
    assert result.success.all()
    for i in range(20):
        error = goal.with_target(targets[i]).error(ARM, result.q[i])
        assert max(error.position, error.rotation) < 1e-6
        assert result.errors[i, 0] == pytest.approx([error.position, error.rotation], abs=1e-9)


@pytest.mark.parametrize("seeded", [True, False])
def test_lanes_and_single_solves_agree(seeded):
    targets = ARM.pose("tool0", ARM.random(RNG, 60))
    targets[::6, :3, 3] += 3.0
    starts = ARM.random(RNG, 60) if seeded else None
    in_lanes, one_by_one = solve_in_lanes(SOLVER, targets, starts), solve_batch(SOLVER, targets, starts)
    assert np.array_equal(in_lanes.status, one_by_one.status)
    assert not in_lanes.success[::6].any()
    assert in_lanes.success.sum() == 50
    assert np.abs(in_lanes.errors[~in_lanes.success] - one_by_one.errors[~in_lanes.success]).max() < 1e-6


def test_rows_that_the_chain_kernel_rejects_are_solved_by_the_general_path():
    targets = X.copy()
    targets[1, :3, 0] *= 1 + 4e-7  # accepted as a rotation by the validation
    starts = np.tile(ARM.q, (10, 1))
    starts[5] += 2e5
    result = solve_in_lanes(SOLVER, targets, starts)
    solution = SOLVER.solve(targets[1], starts[1])
    assert np.abs(result.q[1] - solution.q).max() < 1e-12  # eight lanes round otherwise than one
    assert result.status_of(5) is SOLVER.solve(targets[5], starts[5]).status
    clean = solve_in_lanes(SOLVER, X, np.tile(ARM.q, (10, 1)))
    rest = [0, 2, 3, 4, 6, 7, 8, 9]
    assert np.array_equal(result.q[rest], clean.q[rest])


@pytest.mark.parametrize(
    ("goal", "fits"),
    [
        (GOAL, True),
        (mk.PoseGoal("tool0", X[0], at=X[1]), True),
        (mk.PoseGoal("tool0", X[0], relative_to="base_link"), True),
        (mk.PositionGoal("tool0", (0, 0, 1), (0.1, 0.2, 0.3)), True),
        (mk.OrientationGoal("tool0", np.eye(3)), True),
        (mk.PoseGoal("tool0", np.eye(4), dof=("X", "Y", "Z", "EX"), axes="world"), False),
        (mk.AxisGoal("tool0", (0, 0, 1), (1, 0, 0)), False),
        (mk.JointValues({"elbow_joint": 0.0}), False),
    ],
)
def test_lanes_are_for_goals_whose_target_is_a_pose(goal, fits):
    assert supports_lanes(ARM, goal) == fits
