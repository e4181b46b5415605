"""Branches at one s, and their continuation; mechanisms with loops can have very many."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import mechanik as mk
from mechanik.motion.follow import follow
from mechanik.motion.follow.branch_tracing import branches_at, trace_branches
from mechanik.motion.follow.follow_problem import FollowProblem, PathTargets

HEXAPOD, STEWART, DELTA = mk.gallery.hexapod(), mk.gallery.stewart_platform(), mk.gallery.delta_robot()


def lifted_poses(mechanism: mk.Mechanism, link: str, height: float, aside: float = 0.0):
    """Poses of a link by s from 0 to 1: up by `height` (m), with one sideways oscillation of `aside` (m)."""
    X = mechanism.pose(link)

    def pose(s: float) -> np.ndarray:
        there = X.copy()
        there[:3, 3] += aside * np.sin(2.0 * np.pi * s), 0.0, height * s
        return there

    return pose


def make_problem(mechanism: mk.Mechanism, link: str, poses, count: int) -> FollowProblem:
    return FollowProblem(
        mechanism, PathTargets(link, poses, count), limits=None, collider=None, clearance=0.0, settings={}
    )


@pytest.mark.parametrize("samples", [2, 16, 32])
def test_selection_of_many_branches_contains_the_nearest_and_meets_the_goals(samples):
    """Each of six struts can be rotated by pi, which makes 64 branches."""
    problem = make_problem(HEXAPOD, "platform", lifted_poses(HEXAPOD, "platform", 0.001), 5)
    branches = branches_at(problem, 0.0, HEXAPOD.q, samples)
    assert len(branches) == samples // 2
    np.testing.assert_allclose(
        HEXAPOD.pose("platform", branches), np.tile(HEXAPOD.pose("platform"), (len(branches), 1, 1)), atol=1e-6
    )
    assert mk.Path(HEXAPOD, branches).closure_error() < 1e-6
    assert (HEXAPOD.space.lower <= branches).all()
    assert (branches <= HEXAPOD.space.upper).all()
    np.testing.assert_allclose(problem.wrapped_difference(HEXAPOD.q, branches[0]), 0.0, atol=1e-5)
    for k, row in enumerate(branches):
        assert (
            np.abs(problem.wrapped_difference(row, np.delete(branches, k, axis=0)))
            .max(axis=1, initial=0.0)
            .min(initial=1.0)
            > 0.1
        )


def test_all_branches_are_returned_if_there_are_few():
    bar = mk.gallery.four_bar()
    crank = next(iter(bar.joints))
    wanted = PathTargets(mk.JointValues({crank: bar.values()[crank]}), lambda s: {crank: bar.values()[crank] + s}, 5)
    problem = FollowProblem(bar, wanted, limits=None, collider=None, clearance=0.0, settings={})
    every = problem.solver.solve_all({crank: bar.values()[crank]}, q0=bar.q).q
    branches = branches_at(problem, 0.0, bar.q, 16)
    assert len(branches) == len(every) == 2
    for row in every:
        assert np.abs(problem.wrapped_difference(row, branches)).max(axis=1).min() < 1e-5


@pytest.mark.parametrize(("mechanism", "height"), [(HEXAPOD, 0.02), (STEWART, 0.3)], ids=["hexapod", "stewart"])
def test_branches_traced_together_equal_those_traced_alone(mechanism, height):
    problem = make_problem(mechanism, "platform", lifted_poses(mechanism, "platform", height, 0.1 * height), 12)
    q = branches_at(problem, 0.0, mechanism.q, 8)
    for row, branch in zip(q, trace_branches(problem, q, problem.s), strict=True):
        alone = trace_branches(problem, row[None], problem.s)[0]
        assert branch.code == alone.code
        assert branch.s_end == alone.s_end
        np.testing.assert_allclose(branch.q, alone.q, atol=1e-12)
        np.testing.assert_allclose(branch.q_end, alone.q_end, atol=1e-12)


def test_lifted_platform_breaks_where_all_legs_are_longest():
    branches = follow(STEWART, "platform", lifted_poses(STEWART, "platform", 0.5), 60, q0=STEWART.q)
    assert not branches.success
    legs = [f"leg{k}_slide" for k in range(1, 7)]
    assert branches.reason == f"at a limit of joint {', '.join(legs)}"
    at = [STEWART.space.q_names.index(name) for name in legs]
    np.testing.assert_allclose(branches.last_q[at], STEWART.space.upper[at], atol=1e-5)


def test_platform_out_of_reach_at_the_start_is_followed_from_where_it_is_in_reach():
    """The middle of the range of a joint without limits once raised a warning."""
    up, down = (lifted_poses(STEWART, "platform", 0.5), lambda s: lifted_poses(STEWART, "platform", 0.5)(1.0 - s))
    high, low = follow(STEWART, "platform", down, 60), follow(STEWART, "platform", up, 60, q0=STEWART.q)
    assert high.path is None
    assert "leg1_slide" in high.reason
    assert high.segments[-1] == pytest.approx((1.0 - low.broken_at, 1.0), abs=1e-3)


def test_no_branches_are_searched_if_q0_is_given_without_redundancy(monkeypatch):
    def none(*_):
        raise AssertionError("branches were searched")

    monkeypatch.setattr(sys.modules["mechanik.motion.follow.follow_goals"], "branches_at", none)
    fast = lifted_poses(HEXAPOD, "platform", 0.003)
    path = follow(HEXAPOD, "platform", lambda s: fast(s**6), 50, q0=HEXAPOD.q).require()
    assert path.largest_step > 3.0 * path.median_step  # as uneven as the poses are


def test_robot_with_three_loops_reports_where_it_is_out_of_reach():
    link = list(DELTA.links)[-1] if "platform" not in DELTA.links else "platform"
    X = DELTA.pose(link)[:3, 3]
    branches = follow(DELTA, mk.PositionGoal(link, X), lambda s: X + 2.0 * s * np.eye(3)[0], 40, q0=DELTA.q)
    assert not branches.success
    assert 0.0 < branches.broken_at < 0.5
    assert branches.path.closure_error() < 1e-6
