"""Batches through `Solver.solve_batch`: the same solutions as single solves, whatever the other rows."""

from __future__ import annotations

import numpy as np
import pytest

import mechanik as mk
from mechanik.spatial import to_position_wxyz

CASES = {
    "panda": lambda: (mk.gallery.panda(), "panda_link8"),
    "ur5": lambda: (mk.gallery.ur5(), "tool0"),
    "two arms on one torso": lambda: (two_arms(), "left_hand"),
    "a loop": lambda: (mk.gallery.stewart_platform(), "platform"),
}


def two_arms():
    b = mk.Builder("two arms")
    b.revolute("torso", "base", "chest", limits=(-2, 2))
    for side, y in (("left", 0.2), ("right", -0.2)):
        parent = "chest"
        for k, axis in enumerate("yxyzyx"):
            name = f"{side}_hand" if k == 5 else f"{side}{k}"
            at = (0.0, y, 0.4) if k == 0 else (0.15, 0.02, 0.0)
            b.revolute(f"{side}_{k}", parent, name, at=at, axis=axis, limits=(-2.5, 2.5))
            parent = name
    return b.build()


def case(name, count=64):
    mechanism, link = CASES[name]()
    rng = np.random.default_rng(0)
    if mechanism.closures:
        X = np.tile(mechanism.pose(link), (count, 1, 1))
        X[:, :3, 3] += rng.uniform(-0.02, 0.02, (count, 3))
    else:
        X = mechanism.pose(link, mechanism.random(rng, count))
    return mechanism, mk.Solver(mechanism, mk.PoseGoal(link, X[0])), X


@pytest.mark.parametrize("name", CASES)
def test_rows_of_a_batch_equal_single_solves(name):
    mechanism, solver, X = case(name)
    starts = np.tile(mechanism.q, (len(X), 1))
    for q0 in (None, starts):
        result = solver.solve_batch(X, q0)
        alone = [solver.solve(x, None if q0 is None else q) for x, q in zip(X, starts, strict=True)]
        assert result.success.tolist() == [solution.success for solution in alone]
        assert [result.status_of(k) for k in range(len(X))] == [solution.status for solution in alone]
        # the lanes add up in another order, so the last bits may differ
        np.testing.assert_allclose(result.q, [solution.q for solution in alone], atol=2e-6)
        assert all(result.errors[result.success].max(axis=(0, 1)) <= 1e-6)


@pytest.mark.parametrize("name", ["panda", "a loop"])
def test_bad_rows_and_rows_out_of_reach_do_not_change_the_others(name):
    _, solver, X = case(name)
    sound = solver.solve_batch(X)
    spoilt = X.copy()
    spoilt[[3, 9], 0, 3], spoilt[17, 2, 2], spoilt[20:24, :3, 3] = np.nan, np.inf, 50.0
    spoilt[40, :3, :3] = 0.0
    result = solver.solve_batch(spoilt, threads=2, chunk=7)
    bad, far = [3, 9, 17, 40], [20, 21, 22, 23]
    others = np.setdiff1d(np.arange(len(X)), [*bad, *far])
    np.testing.assert_array_equal(result.q[others], sound.q[others])
    np.testing.assert_array_equal(result.status[others], sound.status[others])
    assert all(result.status_of(k) is mk.Status.BAD_TARGET for k in bad)
    assert all(result.status_of(k) in (mk.Status.CLOSEST, mk.Status.STALLED, mk.Status.TIMEOUT) for k in far)
    assert not result.success[[*bad, *far]].any()


def test_poses_and_positions_with_quaternions_are_equivalent():
    mechanism, solver, X = case("ur5")
    position, wxyz = to_position_wxyz(X)
    by_pose, by_wxyz = solver.solve_batch(X), solver.solve_batch(np.hstack([position, wxyz]))
    np.testing.assert_allclose(by_pose.q, by_wxyz.q, atol=1e-6)
    points = mk.Solver(mechanism, mk.PositionGoal("tool0", position[0])).solve_batch(position)
    assert points.success.all()
    np.testing.assert_allclose(mechanism.pose("tool0", points.q)[:, :3, 3], position, atol=1e-6)


def test_results_depend_on_the_generator_and_not_on_the_threads():
    _, solver, X = case("panda", 500)
    single_thread = solver.solve_batch(X, rng=np.random.default_rng(1), threads=1)
    two_threads = solver.solve_batch(X, rng=np.random.default_rng(1), threads=2, chunk=33)
    np.testing.assert_array_equal(single_thread.q, two_threads.q)
    np.testing.assert_array_equal(single_thread.iterations, two_threads.iterations)


def test_locked_joints_stay_in_batches():
    arm = mk.gallery.panda()
    rng = np.random.default_rng(3)
    lock = ["panda_joint3"]
    q = arm.random(rng, 40)
    q[:, 2] = 0.7
    solver = mk.Solver(arm, mk.PoseGoal("panda_link8", np.eye(4)), lock=lock)
    start = arm.q.copy()
    start[2] = 0.7
    result = solver.solve_batch(arm.pose("panda_link8", q), start)
    assert result.success.all()
    assert (result.q[:, 2] == 0.7).all()
    each = np.tile(start, (40, 1))
    each[:, 2] = np.linspace(0.6, 0.8, 40)
    q[:, 2] = each[:, 2]
    result = solver.solve_batch(arm.pose("panda_link8", q), each)
    np.testing.assert_array_equal(result.q[:, 2], each[:, 2])
    assert result.success.mean() > 0.9  # from one start each, by the general kernel


def test_an_empty_batch_has_an_empty_result():
    _, solver, X = case("ur5")
    result = solver.solve_batch(X[:0])
    assert len(result) == 0
    assert result.q.shape == (0, 6)
    with pytest.raises(mk.errors.ShapeError):
        solver.solve_batch(np.zeros((5, 5)))


def test_lists_of_single_targets_are_solved():
    _, solver, X = case("ur5")
    result = solver.solve_batch([X[0], mk.Pose.from_matrix(X[1]), "nothing"])
    assert [result.status_of(k).name for k in range(3)] == ["CONVERGED", "CONVERGED", "BAD_TARGET"]


def test_with_a_locked_joint_a_bad_start_is_a_bad_row():
    arm = mk.gallery.panda()
    solver = mk.Solver(arm, mk.PoseGoal("panda_link8", arm.pose("panda_link8")), lock=["panda_joint3"])
    starts = np.tile(arm.q, (3, 1))
    starts[1, 0] = np.nan
    result = solver.solve_batch(np.tile(arm.pose("panda_link8"), (3, 1, 1)), starts)
    assert [result.status_of(k).name for k in range(3)] == ["CONVERGED", "BAD_START", "CONVERGED"]


def test_a_folder_is_rejected_when_a_single_target_differs(tmp_path):
    _, solver, X = case("ur5", 2000)
    solver.solve_batch(X, out=tmp_path / "answers")
    assert solver.solve_batch(X, out=tmp_path / "answers").success.all()
    X_changed = X.copy()
    X_changed[777, 0, 3] += 0.01
    with pytest.raises(mk.errors.BatchMismatch, match="targets"):
        solver.solve_batch(X_changed, out=tmp_path / "answers")
