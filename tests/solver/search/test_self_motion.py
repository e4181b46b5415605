"""Self-motions: curves of solutions, cut by limits, sampled, and connected by paths."""

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
"""rad: the largest distance between consecutive configurations of a path."""


def distance_between(a, b):
    """The distance (...) between configurations of revolute joints, modulo full turns."""
    return np.linalg.norm((a - b + np.pi) % (2 * np.pi) - np.pi, axis=-1)


def path_configurations(solutions, component):
    """All configurations on the paths from the first sample of a component to the others."""
    i, *others = np.flatnonzero(solutions.component == component).tolist()
    paths = [path for j in others if (path := solutions.path(i, j)) is not None]
    return np.concatenate([solutions.q[solutions.component == component], *paths])


@pytest.mark.parametrize("name", REDUNDANT)
def test_the_generating_configuration_lies_on_one_of_the_self_motions(name):
    """Of 550 other poses of either arm none was missed."""
    arm, link = gallery.make(name), REDUNDANT[name]
    solver = mk.Solver(arm, mk.PoseGoal(link, np.eye(4)))
    rng = np.random.default_rng(11)
    for q, q0 in zip(arm.random(rng, 5), arm.random(rng, 5), strict=True):
        solutions = solve_all(solver, arm.pose(link, q), q0)
        assert solutions.redundancy == 1
        q[7:] = q0[7:]  # a gripper does not matter
        assert (
            min(distance_between(path_configurations(solutions, k), q).min() for k in set(solutions.component.tolist()))
            < SPACING
        )


@pytest.mark.parametrize("seed", range(4))
def test_the_generating_configuration_of_a_limited_s_r_s_arm_lies_on_a_self_motion(seed):
    """Its axes intersect at any angle, so the hand cannot take every orientation."""
    arm = random_arm(seed, "S-R-S")
    q = arm.random(np.random.default_rng(seed))
    solutions = solve_all(mk.Solver(arm, mk.PoseGoal("tool", arm.pose("tool", q))), None, np.zeros(7))
    assert "S-R-S" in solutions.explanation
    assert (
        min(distance_between(path_configurations(solutions, k), q).min() for k in set(solutions.component.tolist()))
        < SPACING
    )


def test_neighbouring_self_motions_are_distinguished():
    """The elbow of an S-R-S arm is nearly straight, so that both elbow branches are 0.01 rad from each other."""
    arm, link = gallery.iiwa14(), REDUNDANT["iiwa14"]
    q = np.array([1.5, 1.2, -1.8, 0.003, -0.4, 1.4, 1.5])
    solutions = solve_all(mk.Solver(arm, mk.PoseGoal(link, arm.pose(link, q))), None, q)
    straight = {k: np.sign(solutions.q[solutions.component == k][:, 3]) for k in set(solutions.component.tolist())}
    assert all(len(set(signs.tolist())) == 1 for signs in straight.values())
    assert {int(signs[0]) for signs in straight.values()} == {-1, 1}
    assert solutions.distance[0] < 1e-6


@pytest.mark.parametrize("name", [*REDUNDANT, "general 7R"])
def test_a_path_on_a_self_motion_keeps_pose_and_limits_in_short_steps(name):
    arm = general_arm(5, 7) if name == "general 7R" else gallery.make(name)
    link = REDUNDANT.get(name, "tool")
    rng = np.random.default_rng(12)
    X = arm.pose(link, arm.random(rng))
    solutions = solve_all(mk.Solver(arm, mk.PoseGoal(link, X)), None, arm.random(rng), samples=5)
    paths = 0
    for i in range(min(len(solutions), 12)):
        for j in range(min(len(solutions), 12)):
            path = solutions.path(i, j)
            if solutions.component[i] != solutions.component[j]:
                assert path is None
            if path is None:
                continue
            paths += i != j
            np.testing.assert_array_equal(path[0], solutions[i])
            assert distance_between(path[-1], solutions[j]) < 1e-9
            assert np.abs(arm.pose(link, path) - X).max() < 1e-6
            assert arm.space.within_limits(path, 1e-9).all()
            assert np.linalg.norm(np.diff(path, axis=0), axis=1).max(initial=0.0) < SPACING
    assert paths > 10


def test_samples_are_evenly_spaced_along_a_self_motion_and_include_the_nearest():
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
        lengths = sorted(
            np.linalg.norm(np.diff(path, axis=0), axis=1).sum()
            for q in ring[1:]
            if (path := few.path(_at(few, ring[0]), _at(few, q))) is not None
        )
        # by the shorter arc: a quarter, a quarter, a half
        np.testing.assert_allclose(lengths, np.array([1, 1, 2]) * lengths[0], rtol=0.05)


def _at(solutions, q):
    return int(np.argmin(np.linalg.norm(solutions.q - q, axis=1)))


def test_an_s_r_s_arm_without_limits_has_eight_self_motions_with_every_elbow_angle():
    arm = gallery.iiwa14()
    link = REDUNDANT["iiwa14"]
    for joint in arm.joints.values():
        if joint.dof:
            joint.set_limits(-np.inf, np.inf)
    form = closed_form(arm, link)
    solutions = solve_all(
        mk.Solver(arm, mk.PoseGoal(link, arm.pose(link, np.full(7, 0.6)))), None, np.zeros(7), samples=60
    )
    assert solutions.complete
    assert set(solutions.component.tolist()) == set(range(8))
    for k in range(8):
        elbows = np.sort(form.elbow_angle(solutions.q[solutions.component == k]))
        assert np.diff(elbows).max() < 0.6
        assert elbows[0] + 2 * np.pi - elbows[-1] < 0.6


def circuits(*lengths):
    """Of a four-bar: two if the shortest and the longest are together less than the others, else one (Grashof)."""
    shortest, second, third, longest = sorted(lengths)
    return 2 if shortest + longest < second + third else 1


@pytest.mark.parametrize("lengths", [(2.0, 0.5, 1.8, 1.2), (2.0, 1.0, 1.6, 1.1)])
def test_a_four_bar_has_the_circuits_of_grashof(lengths):
    solutions = solve_all(mk.Solver(gallery.four_bar(*lengths), None))
    assert solutions.redundancy == 1
    assert len(set(solutions.component.tolist())) == circuits(*lengths)


@pytest.mark.parametrize("reach", [0.1, 0.5, 1.0, 2.2])
def test_a_planar_3r_arm_has_the_self_motions_of_the_equivalent_four_bar(reach):
    """Between a point and its base it is one; its links are 1, 0.8 and 0.5 m."""
    arm = gallery.planar_3r()
    limits = {f"joint{k}": (-np.inf, np.inf) for k in (1, 2, 3)}
    solutions = solve_all(mk.Solver(arm, mk.PositionGoal("tool", (reach, 0.0, 0.0)), limits=limits))
    assert len(set(solutions.component.tolist())) == circuits(1.0, 0.8, 0.5, reach)


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
    assert distance_between(inside[:, None], cut.q).min(axis=1).max() < 0.12
    for k in set(cut.component.tolist()):
        arc = cut.q[cut.component == k]
        i, j = np.unravel_index(np.argmax(distance_between(arc[:, None], arc)), (len(arc), len(arc)))
        for end in (arc[i], arc[j]):
            assert np.minimum(end - lower, upper - end).min() < 1e-6


def test_with_several_dofs_samples_are_spread_and_paths_between_them_are_found():
    arm = gallery.grippy10()
    X = arm.pose("tool", arm.random(np.random.default_rng(14)))
    solutions = solve_all(mk.Solver(arm, mk.PoseGoal("tool", X)), None, np.zeros(10), samples=12)
    assert solutions.redundancy == 4
    assert len(solutions) == 12
    assert set(solutions.component.tolist()) == {0}
    paths = [path for j in range(1, 12) if (path := solutions.path(0, j)) is not None]
    assert paths
    for path in paths:
        assert np.abs(arm.pose("tool", path) - X).max() < 1e-6
        assert arm.space.within_limits(path, 1e-9).all()
        assert np.linalg.norm(np.diff(path, axis=0), axis=1).max() < 2 * SPACING
        np.testing.assert_array_equal(path[0], solutions[0])


def test_spherical_joints_and_floating_bases_have_self_motions():
    body = gallery.humanoid()
    goals = [mk.PositionGoal(f"{side}_hand", body.pose(f"{side}_hand")[:3, 3] + 0.05) for side in ("left", "right")]
    solutions = solve_all(mk.Solver(body, goals), samples=3, max_attempts=24)
    J = np.concatenate([body.jacobian(goal.link, solutions[1])[:3] for goal in goals])
    assert solutions.redundancy == (np.abs(J).max(axis=0) > 1e-9).sum() - 6  # a wrist only rotates its hand
    assert len(solutions) == 3
    assert solutions.errors.max() < 1e-6
