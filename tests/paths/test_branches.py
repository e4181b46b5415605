"""Branches at one place, and how they are carried along: of loops there can be very many."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import mechanik as mk
from mechanik.motion.follow import follow
from mechanik.motion.follow.branch_tracing import branches_at, trace_branches
from mechanik.motion.follow.follow_problem import FollowProblem, PathTargets

HEXAPOD, STEWART, DELTA = mk.gallery.hexapod(), mk.gallery.stewart_platform(), mk.gallery.delta_robot()


def lifted(mechanism: mk.Mechanism, link: str, height: float, aside: float = 0.0):
    """Poses of a link, for s from 0 to 1 up by `height` (m), and once to and fro."""
    X = mechanism.pose(link)

    def pose(s: float) -> np.ndarray:
        there = X.copy()
        there[:3, 3] += aside * np.sin(2.0 * np.pi * s), 0.0, height * s
        return there

    return pose


def course_of(mechanism: mk.Mechanism, link: str, poses, count: int) -> FollowProblem:
    return FollowProblem(
        mechanism, PathTargets(link, poses, count), limits=None, collider=None, clearance=0.0, settings={}
    )


@pytest.mark.parametrize("samples", [2, 16, 32])
def test_of_many_branches_some_are_given_that_all_hold_and_the_nearest_is_one(samples):
    """Each of six struts can stand turned by half a turn: 64."""
    course = course_of(HEXAPOD, "platform", lifted(HEXAPOD, "platform", 0.001), 5)
    found = branches_at(course, 0.0, HEXAPOD.q, samples)
    assert len(found) == samples // 2
    np.testing.assert_allclose(
        HEXAPOD.pose("platform", found), np.tile(HEXAPOD.pose("platform"), (len(found), 1, 1)), atol=1e-6
    )
    assert mk.Path(HEXAPOD, found).closure_error() < 1e-6
    assert (HEXAPOD.space.lower <= found).all()
    assert (found <= HEXAPOD.space.upper).all()
    np.testing.assert_allclose(course.wrapped_difference(HEXAPOD.q, found[0]), 0.0, atol=1e-5)
    for k, one in enumerate(found):
        assert (
            np.abs(course.wrapped_difference(one, np.delete(found, k, axis=0)))
            .max(axis=1, initial=0.0)
            .min(initial=1.0)
            > 0.1
        )


def test_of_few_branches_all_are_given():
    bar = mk.gallery.four_bar()
    crank = next(iter(bar.joints))
    wanted = PathTargets(mk.JointValues({crank: bar.values()[crank]}), lambda s: {crank: bar.values()[crank] + s}, 5)
    course = FollowProblem(bar, wanted, limits=None, collider=None, clearance=0.0, settings={})
    every = course.solver.solve_all({crank: bar.values()[crank]}, q0=bar.q).q
    found = branches_at(course, 0.0, bar.q, 16)
    assert len(found) == len(every) == 2
    for one in every:
        assert np.abs(course.wrapped_difference(one, found)).max(axis=1).min() < 1e-5


@pytest.mark.parametrize(("mechanism", "height"), [(HEXAPOD, 0.02), (STEWART, 0.3)], ids=["hexapod", "stewart"])
def test_branches_carried_together_go_as_each_alone(mechanism, height):
    course = course_of(mechanism, "platform", lifted(mechanism, "platform", height, 0.1 * height), 12)
    q = branches_at(course, 0.0, mechanism.q, 8)
    for one, track in zip(q, trace_branches(course, q, course.s), strict=True):
        alone = trace_branches(course, one[None], course.s)[0]
        assert track.code == alone.code
        assert track.end == alone.end
        np.testing.assert_allclose(track.q, alone.q, atol=1e-12)
        np.testing.assert_allclose(track.last, alone.last, atol=1e-12)


def test_a_platform_that_is_lifted_too_high_breaks_where_all_its_legs_are_longest():
    found = follow(STEWART, "platform", lifted(STEWART, "platform", 0.5), 60, q0=STEWART.q)
    assert not found.success
    legs = [f"leg{k}_slide" for k in range(1, 7)]
    assert found.why == f"at a limit of joint {', '.join(legs)}"
    at = [STEWART.space.q_names.index(name) for name in legs]
    np.testing.assert_allclose(found.last_q[at], STEWART.space.upper[at], atol=1e-5)


def test_a_platform_that_is_too_high_at_the_start_can_be_followed_once_it_is_lower():
    """Once a limit of a joint that has none, in the middle of it, was a warning."""
    up, down = (lifted(STEWART, "platform", 0.5), lambda s: lifted(STEWART, "platform", 0.5)(1.0 - s))
    high, low = follow(STEWART, "platform", down, 60), follow(STEWART, "platform", up, 60, q0=STEWART.q)
    assert high.path is None
    assert "leg1_slide" in high.why
    assert high.segments[-1] == pytest.approx((1.0 - low.broken_at, 1.0), abs=1e-3)


def test_where_it_stands_one_branch_leads_on_and_no_other_is_looked_for(monkeypatch):
    def none(*_):
        raise AssertionError("branches were looked for")

    monkeypatch.setattr(sys.modules["mechanik.motion.follow.follow_goals"], "branches_at", none)
    fast = lifted(HEXAPOD, "platform", 0.003)
    path = follow(HEXAPOD, "platform", lambda s: fast(s**6), 50, q0=HEXAPOD.q).require()
    assert path.largest_step > 3.0 * path.median_step  # as uneven as the poses are


def test_a_robot_with_three_loops_says_where_it_is_out_of_reach():
    link = list(DELTA.links)[-1] if "platform" not in DELTA.links else "platform"
    X = DELTA.pose(link)[:3, 3]
    found = follow(DELTA, mk.PositionGoal(link, X), lambda s: X + 2.0 * s * np.eye(3)[0], 40, q0=DELTA.q)
    assert not found.success
    assert 0.0 < found.broken_at < 0.5
    assert found.path.closure_error() < 1e-6
