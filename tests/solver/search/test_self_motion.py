"""Self-motions: curves on which all goes on to hold, cut by limits, sampled, and walked."""

from __future__ import annotations

import numpy as np
import pytest
from general_arms import general_arm, solve_all, solve_nearest
from random_arms import random_arm

import mechanik as mk
from mechanik import gallery
from mechanik.solver.search.closed_form import closed_form

REDUNDANT = {"panda": "panda_hand_tcp", "iiwa14": "iiwa_link_ee"}
SPACING = 0.03
"""rad: how far apart the rows of a path may be, at most."""


def apart(a, b):
    """The distance (...) between configurations of turning joints, full turns aside."""
    return np.linalg.norm((a - b + np.pi) % (2 * np.pi) - np.pi, axis=-1)


def walked(found, component):
    """All configurations on the ways from the first sample of a component to the others."""
    i, *others = np.flatnonzero(found.component == component).tolist()
    ways = [way for j in others if (way := found.path(i, j)) is not None]
    return np.concatenate([found.q[found.component == component], *ways])


@pytest.mark.parametrize("name", REDUNDANT)
def test_the_branch_that_made_a_pose_lies_on_one_of_the_self_motions(name):
    """Of 550 other poses of either arm none was missed."""
    arm, link = gallery.make(name), REDUNDANT[name]
    solver = mk.Solver(arm, mk.PoseGoal(link, np.eye(4)))
    rng = np.random.default_rng(11)
    for q, q0 in zip(arm.random(rng, 5), arm.random(rng, 5), strict=True):
        found = solve_all(solver, arm.pose(link, q), q0)
        assert found.redundant == 1
        q[7:] = q0[7:]  # a gripper does not matter
        assert min(apart(walked(found, k), q).min() for k in set(found.component.tolist())) < SPACING


@pytest.mark.parametrize("seed", range(4))
def test_so_it_is_where_an_s_r_s_arm_cannot_turn_its_elbow_all_the_way(seed):
    """Its axes meet at any angle, so a hand cannot be turned anyhow."""
    arm = random_arm(seed, "S-R-S")
    q = arm.random(np.random.default_rng(seed))
    found = solve_all(mk.Solver(arm, mk.PoseGoal("tool", arm.pose("tool", q))), None, np.zeros(7))
    assert "S-R-S" in found.why
    assert min(apart(walked(found, k), q).min() for k in set(found.component.tolist())) < SPACING


def test_self_motions_that_run_side_by_side_are_told_apart():
    """The elbow of an S-R-S arm is nearly straight, so that both ways to bend it are 0.01 rad from each other."""
    arm, link = gallery.iiwa14(), REDUNDANT["iiwa14"]
    q = np.array([1.5, 1.2, -1.8, 0.003, -0.4, 1.4, 1.5])
    found = solve_all(mk.Solver(arm, mk.PoseGoal(link, arm.pose(link, q))), None, q)
    straight = {k: np.sign(found.q[found.component == k][:, 3]) for k in set(found.component.tolist())}
    assert all(len(set(signs.tolist())) == 1 for signs in straight.values())
    assert {int(signs[0]) for signs in straight.values()} == {-1, 1}
    assert found.distance[0] < 1e-6


@pytest.mark.parametrize("name", [*REDUNDANT, "general 7R"])
def test_on_a_path_the_pose_is_held_the_limits_too_and_no_step_is_long(name):
    arm = general_arm(5, 7) if name == "general 7R" else gallery.make(name)
    link = REDUNDANT.get(name, "tool")
    rng = np.random.default_rng(12)
    X = arm.pose(link, arm.random(rng))
    found = solve_all(mk.Solver(arm, mk.PoseGoal(link, X)), None, arm.random(rng), samples=5)
    paths = 0
    for i in range(min(len(found), 12)):
        for j in range(min(len(found), 12)):
            way = found.path(i, j)
            if found.component[i] != found.component[j]:
                assert way is None
            if way is None:
                continue
            paths += i != j
            np.testing.assert_array_equal(way[0], found[i])
            assert apart(way[-1], found[j]) < 1e-9
            assert np.abs(arm.pose(link, way) - X).max() < 1e-6
            assert arm.space.within_limits(way, 1e-9).all()
            assert np.linalg.norm(np.diff(way, axis=0), axis=1).max(initial=0.0) < SPACING
    assert paths > 10


def test_samples_are_even_along_a_self_motion_and_the_nearest_is_among_them():
    arm = general_arm(5, 7)
    q, q0 = arm.random(np.random.default_rng(13), 2)
    X = arm.pose("tool", q)
    solver = mk.Solver(arm, mk.PoseGoal("tool", X))
    few, many = (solve_all(solver, None, q0, samples=count) for count in (4, 400))
    assert set(np.bincount(few.component).tolist()) == {4}
    assert few.distance[0] == pytest.approx(many.distance[0], abs=1e-9)
    assert few.distance[0] == pytest.approx(many.distance.min(), abs=1e-9)
    assert np.linalg.norm(solve_nearest(solver, None, q0) - q0) == pytest.approx(few.distance[0], abs=1e-5)
    for k in set(few.component.tolist()):
        ring = few.q[few.component == k]
        ways = sorted(
            np.linalg.norm(np.diff(way, axis=0), axis=1).sum()
            for other in ring[1:]
            if (way := few.path(_at(few, ring[0]), _at(few, other))) is not None
        )
        # by the shorter way round: a quarter, a quarter, a half
        np.testing.assert_allclose(ways, np.array([1, 1, 2]) * ways[0], rtol=0.05)


def _at(found, q):
    return int(np.argmin(np.linalg.norm(found.q - q, axis=1)))


def test_an_s_r_s_arm_without_limits_has_eight_and_each_takes_every_elbow_angle():
    arm = gallery.iiwa14()
    link = REDUNDANT["iiwa14"]
    for joint in arm.joints.values():
        if joint.dof:
            joint.set_limits(-np.inf, np.inf)
    form = closed_form(arm, link)
    found = solve_all(mk.Solver(arm, mk.PoseGoal(link, arm.pose(link, np.full(7, 0.6)))), None, np.zeros(7), samples=60)
    assert found.complete
    assert set(found.component.tolist()) == set(range(8))
    for k in range(8):
        elbows = np.sort(form.elbow_angle(found.q[found.component == k]))
        assert np.diff(elbows).max() < 0.6
        assert elbows[0] + 2 * np.pi - elbows[-1] < 0.6


def circuits(*lengths):
    """Of a four-bar: two if the shortest and the longest are together less than the others, else one (Grashof)."""
    shortest, one, other, longest = sorted(lengths)
    return 2 if shortest + longest < one + other else 1


@pytest.mark.parametrize("lengths", [(2.0, 0.5, 1.8, 1.2), (2.0, 1.0, 1.6, 1.1)])
def test_a_four_bar_has_as_many_circuits_as_grashof_says(lengths):
    found = solve_all(mk.Solver(gallery.four_bar(*lengths), None))
    assert found.redundant == 1
    assert len(set(found.component.tolist())) == circuits(*lengths)


@pytest.mark.parametrize("reach", [0.1, 0.5, 1.0, 2.2])
def test_a_planar_3r_arm_has_the_self_motions_that_a_four_bar_of_its_size_has(reach):
    """Between a point and its base it is one; its links are 1, 0.8 and 0.5 m."""
    arm = gallery.planar_3r()
    limits = {f"joint{k}": (-np.inf, np.inf) for k in (1, 2, 3)}
    found = solve_all(mk.Solver(arm, mk.PositionGoal("tool", (reach, 0.0, 0.0)), limits=limits))
    assert len(set(found.component.tolist())) == circuits(1.0, 0.8, 0.5, reach)


def test_limits_cut_a_self_motion_into_arcs_that_end_on_them():
    arm = gallery.planar_3r()
    goal = mk.PositionGoal("tool", (1.2, 0.3, 0.0))
    whole = solve_all(mk.Solver(arm, goal, limits={f"joint{k}": (-np.inf, np.inf) for k in (1, 2, 3)}), samples=400)
    limits = {"joint1": (-1.0, 1.2), "joint2": (-1.5, 1.5), "joint3": (-2.0, 2.0)}
    cut = solve_all(mk.Solver(arm, goal, limits=limits), samples=400)
    lower, upper = np.array([-1.0, -1.5, -2.0]), np.array([1.2, 1.5, 2.0])
    assert ((cut.q >= lower) & (cut.q <= upper)).all()
    # every point of the whole that is well inside is next to one of an arc
    turned = (whole.q + np.pi) % (2 * np.pi) - np.pi
    inside = turned[((turned > lower + 0.06) & (turned < upper - 0.06)).all(axis=1)]
    assert len(inside) > 5
    assert apart(inside[:, None], cut.q).min(axis=1).max() < 0.12
    for k in set(cut.component.tolist()):
        arc = cut.q[cut.component == k]
        i, j = np.unravel_index(np.argmax(apart(arc[:, None], arc)), (len(arc), len(arc)))
        for end in (arc[i], arc[j]):
            assert np.minimum(end - lower, upper - end).min() < 1e-6


def test_with_two_and_more_freedoms_samples_are_spread_and_some_ways_between_them_are_found():
    arm = gallery.grippy10()
    X = arm.pose("tool", arm.random(np.random.default_rng(14)))
    found = solve_all(mk.Solver(arm, mk.PoseGoal("tool", X)), None, np.zeros(10), samples=12)
    assert found.redundant == 4
    assert len(found) == 12
    assert set(found.component.tolist()) == {0}
    ways = [way for j in range(1, 12) if (way := found.path(0, j)) is not None]
    assert ways
    for way in ways:
        assert np.abs(arm.pose("tool", way) - X).max() < 1e-6
        assert arm.space.within_limits(way, 1e-9).all()
        assert np.linalg.norm(np.diff(way, axis=0), axis=1).max() < 2 * SPACING
        np.testing.assert_array_equal(way[0], found[0])


def test_balls_and_floating_bases_move_too():
    body = gallery.humanoid()
    goals = [mk.PositionGoal(f"{side}_hand", body.pose(f"{side}_hand")[:3, 3] + 0.05) for side in ("left", "right")]
    found = solve_all(mk.Solver(body, goals), samples=3, tries=24)
    J = np.concatenate([body.jacobian(goal.link, found[1])[:3] for goal in goals])
    assert found.redundant == (np.abs(J).max(axis=0) > 1e-9).sum() - 6  # a wrist turns a hand in its place
    assert len(found) == 3
    assert found.errors.max() < 1e-6
