"""All solutions: each is correct and returned once, the nearest first, and none is missing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from general_arms import angle_difference, from_graph, general_arm, sliding_arm, solve_all, solve_nearest
from hypothesis import given, settings
from random_mechanisms import seeds

import mechanik as mk
from mechanik import gallery
from mechanik.errors import LimitsError, StructureError
from mechanik.solver.nearest import NEAREST_MAX_WORK
from mechanik.solver.search.closed_form import closed_form
from mechanik.spatial import translation

ARMS = {
    "ur5": (gallery.ur5, "tool0"),
    "puma560": (gallery.puma560, "tool"),
    "planar 2R": (gallery.planar_2r, "tool"),
    "planar 3R": (gallery.planar_3r, "tool"),
    "scara": (gallery.scara, "tool"),
    "general 6R": (lambda: general_arm(3), "tool"),
    "with a slide": (sliding_arm, "tool"),
    "panda": (gallery.panda, "panda_hand_tcp"),
    "iiwa14": (gallery.iiwa14, "iiwa_link_ee"),
    "10R": (gallery.grippy10, "tool"),
}


def solver_of(name):
    make, link = ARMS[name]
    arm = make()
    return mk.Solver(arm, mk.PoseGoal(link, np.eye(4))), arm, link


@pytest.mark.parametrize("name", ARMS)
def test_every_solution_reaches_the_target_within_limits_once_and_the_nearest_comes_first(name):
    solver, arm, link = solver_of(name)
    rng = np.random.default_rng(1)
    for _ in range(2):
        q0, X = arm.random(rng), arm.pose(link, arm.random(rng))
        solutions = solve_all(solver, X, q0)
        assert len(solutions) >= 1
        for q in solutions:
            assert np.abs(from_graph(arm, link, q) - X).max() < 1e-8
        assert arm.space.within_limits(solutions.q).all()
        assert solutions.errors.max() < 1e-8
        moved = np.flatnonzero(np.abs(solutions.q - q0).max(axis=0))
        np.testing.assert_allclose(solutions.distance, np.linalg.norm((solutions.q - q0)[:, moved], axis=1), atol=1e-12)
        assert (np.diff(solutions.distance) >= 0).all()
        for a, b in itertools.combinations(solutions.q, 2):
            assert angle_difference(a, b) > 1e-3
        assert solutions.redundancy == {"panda": 1, "iiwa14": 1, "10R": 4}.get(name, 0)


@pytest.mark.parametrize("seed", range(30))
def test_the_generating_configuration_of_arms_without_a_closed_form_is_found(seed):
    """Of 2,000 poses of 200 others none was missed, and every number of solutions was even."""
    arm = general_arm(seed)
    solver = mk.Solver(arm, mk.PoseGoal("tool", np.eye(4)))
    q, q0 = arm.random(np.random.default_rng(seed), 2)
    solutions = solve_all(solver, arm.pose("tool", q), q0)
    assert not solutions.complete
    assert angle_difference(solutions.q, q).min() < 1e-6
    # an equation with real coefficients: solutions come in pairs, and at most 16 of them
    assert len(solutions) % 2 == 0
    assert len(solutions) <= 16


@pytest.mark.parametrize("name", ["scara", "with a slide"])
def test_the_generating_configuration_is_found_with_prismatic_joints_and_limits(name):
    solver, arm, link = solver_of(name)
    rng = np.random.default_rng(2)
    for q in arm.random(rng, 8):
        solutions = solve_all(solver, arm.pose(link, q), arm.random(rng))
        assert angle_difference(solutions.q, q).min() < 1e-6


@pytest.mark.parametrize("seed", [3, 8, 17])
def test_the_number_of_solutions_does_not_change_when_the_tries_are_doubled(seed):
    arm = general_arm(seed)
    solver = mk.Solver(arm, mk.PoseGoal("tool", np.eye(4)))
    X = arm.pose("tool", arm.random(np.random.default_rng(seed)))
    once = solve_all(solver, X, np.zeros(6), max_attempts=1000)
    twice = solve_all(solver, X, np.zeros(6), max_attempts=2000, rng=np.random.default_rng(1))
    assert len(once) == len(twice)
    assert angle_difference(once.q[:, None], twice.q).min(axis=1).max() < 1e-8


def test_a_ur5_reaches_a_pose_by_eight_closed_form_branches():
    solver, arm, link = solver_of("ur5")
    q = np.array([0.3, -1.2, 1.4, -0.7, 0.9, 0.2])
    solutions = solve_all(solver, arm.pose(link, q), q)
    assert len(solutions) == 8
    assert solutions.complete
    assert solutions.attempts == 0
    assert "closed form" in solutions.explanation
    np.testing.assert_allclose(solutions[0], q, atol=1e-9)
    assert solutions.distance[0] < 1e-8
    np.testing.assert_allclose(solutions.q, closed_form(arm, link).branches(arm.pose(link, q), q), atol=1e-8)


@settings(max_examples=5)
@given(seed=seeds)
def test_multi_start_descents_find_the_closed_form_solutions(seed):
    """Split into a position and an orientation goal, the same pose has no closed form."""
    arm = gallery.puma560()
    q, q0 = arm.random(np.random.default_rng(seed), 2)
    X = arm.pose("tool", q)
    by_formula = solve_all(mk.Solver(arm, mk.PoseGoal("tool", X)), None, q0)
    goals = [mk.PositionGoal("tool", X[:3, 3]), mk.OrientationGoal("tool", X)]
    for order in (goals, goals[::-1]):
        by_search = solve_all(mk.Solver(arm, order), None, q0)
        assert by_formula.complete
        assert not by_search.complete
        assert angle_difference(by_search.q[:, None], by_formula.q).min(axis=1).max() < 1e-6
        assert angle_difference(by_formula.q[:, None], by_search.q).min(axis=1).max() < 1e-6


@pytest.mark.parametrize("name", ["ur5", "general 6R", "scara"])
def test_from_another_start_the_solutions_are_the_same_in_another_order(name):
    solver, arm, link = solver_of(name)
    rng = np.random.default_rng(4)
    X = arm.pose(link, arm.random(rng))
    sets = [solve_all(solver, X, q0) for q0 in arm.random(rng, 3)]
    for solutions in sets[1:]:
        assert len(solutions) == len(sets[0])
        assert angle_difference(solutions.q[:, None], sets[0].q).min(axis=1).max() < 1e-6
    again = solve_all(solver, X, sets[0][0])
    assert again.distance[0] < 1e-7


def test_a_call_is_reproducible_and_a_generator_chooses_the_starts():
    solver, arm, link = solver_of("general 6R")
    X = arm.pose(link, np.ones(6))
    first, second = (solve_all(solver, X, np.zeros(6)) for _ in range(2))
    np.testing.assert_array_equal(first.q, second.q)
    drawn = [solve_all(solver, X, np.zeros(6), rng=np.random.default_rng(k)) for k in (0, 0, 1)]
    np.testing.assert_array_equal(drawn[0].q, drawn[1].q)
    assert angle_difference(drawn[2].q[:, None], first.q).min(axis=1).max() < 1e-8


# ---- limits, locks, turns ---------------------------------------------------------------------


def test_limits_of_the_solver_and_of_the_call_exclude_solutions():
    arm = gallery.ur5()
    q = np.array([0.3, -1.2, 1.4, -0.7, 0.9, 0.2])
    X = arm.pose("tool0", q)
    every = solve_all(mk.Solver(arm, mk.PoseGoal("tool0", X)), None, q)
    goal = mk.PoseGoal("tool0", X)
    by_solver = solve_all(mk.Solver(arm, goal, limits={"elbow_joint": (0.0, 3.0)}), None, q)
    by_call = solve_all(mk.Solver(arm, goal), None, q, limits={"elbow_joint": (0.0, 3.0)})
    np.testing.assert_array_equal(by_solver.q, by_call.q)
    elbow = np.array([q_row[2] % (2 * np.pi) for q_row in every])
    assert len(by_call) == ((elbow > 0) & (elbow < 3)).sum() == 4
    none = solve_all(mk.Solver(arm, goal), None, q, limits={"elbow_joint": (0.1, 0.2)})
    assert len(none) == 0
    assert "none inside the limits" in none.explanation


def test_locked_and_uninvolved_joints_stay():
    arm = gallery.panda()
    link, q = "panda_hand_tcp", arm.random(np.random.default_rng(5))
    solver = mk.Solver(arm, mk.PoseGoal(link, arm.pose(link, q)), lock="panda_joint3", rest=True)
    solutions = solve_all(solver, None, q)
    assert solutions.redundancy == 0  # six joints are left
    assert angle_difference(solutions.q, q).min() < 1e-6
    assert (solutions.q[:, [2, 7]] == q[[2, 7]]).all()
    again = solve_all(mk.Solver(arm, mk.PoseGoal(link, arm.pose(link, q))), None, q, lock=["panda_joint3"])
    assert angle_difference(again.q[:, None], solutions.q).min(axis=1).max() < 1e-6


@pytest.mark.parametrize("seed", range(6))
def test_locked_joints_outside_their_limits_stay(seed):
    # the point of a self-motion nearest to q0 had both locked joints at their limits
    arm, rng = gallery.scara(), np.random.default_rng(seed)
    q = np.array([2.2486, rng.uniform(-2, 2), 0.9609, rng.uniform(-3, 3)])
    assert (q[[0, 2]] > arm.space.upper[[0, 2]]).all()
    goal = mk.InCone("tool", axis=(-0.3144, 0.7954, -0.5181), direction=(0.5597, -0.0162, 0.6361), angle=1.31)
    solver = mk.Solver(arm, goal, lock=["shoulder", "quill"])
    assert (solve_all(solver, None, q).q[:, [0, 2]] == q[[0, 2]]).all()
    nearest = solver.solve(q0=q, nearest=True)
    assert nearest.success
    assert (nearest.q[[0, 2]] == q[[0, 2]]).all()


def test_a_joint_that_rotates_the_goal_about_its_own_point_stays():
    arm = gallery.ur5()
    q = arm.random(np.random.default_rng(9))
    solutions = solve_all(mk.Solver(arm, mk.PositionGoal("tool0", arm.pose("tool0", q)[:3, 3])), None, q)
    assert solutions.redundancy == 2
    assert (solutions.q[:, 5] == q[5]).all()


def test_each_joint_takes_the_full_turn_nearest_to_q0_or_all_within_limits():
    limits = {"joint1": (-2 * np.pi, 2 * np.pi), "joint2": (-np.pi, np.pi)}
    solver = mk.Solver(gallery.planar_2r(), mk.PositionGoal("tool", (1.2, 0.5, 0.0)), limits=limits)
    nearest = solve_all(solver, None, np.array([5.0, 0.0]))
    assert len(nearest) == 2
    every = solve_all(solver, None, np.array([5.0, 0.0]), windings=True)
    assert len(every) == 4
    assert (np.abs(every.q[:, 0]) <= 2 * np.pi).all()
    np.testing.assert_array_equal(every[0], nearest[0])
    np.testing.assert_allclose(np.sort(np.unique(np.round(every.q % (2 * np.pi), 9), axis=0)[:, 0]),
                               np.sort(np.round(nearest.q[:, 0] % (2 * np.pi), 9)))  # fmt: skip
    assert len(solve_all(solver, None, np.array([5.0, 0.0]), windings=True, limit=3)) == 3


def test_full_turns_are_distinguished_where_the_target_does():
    arm = gallery.planar_3r()
    place = mk.PositionGoal("tool", arm.pose("tool", [-2.5, 0.5, 0.7])[:3, 3])
    for turns, value in (("exact", -2.5 + 2 * np.pi), ("nearest", -2.5)):
        goals = [place, mk.JointValues({"joint1": -2.5 + 2 * np.pi}, angle_mode=turns)]
        solutions = solve_all(mk.Solver(arm, goals, limits={"joint1": (-9, 9)}), None, np.array([-2.0, 0.0, 0.0]))
        assert len(solutions) == 2
        np.testing.assert_allclose(solutions.q[:, 0], value, atol=1e-6)


# ---- special poses ----------------------------------------------------------------------------


def test_out_of_reach_there_is_no_solution_and_the_message_says_so():
    arm = gallery.ur5()
    far = translation((5.0, 0.0, 0.0))
    by_formula = solve_all(mk.Solver(arm, mk.PoseGoal("tool0", far)))
    by_search = solve_all(mk.Solver(arm, mk.PositionGoal("tool0", far[:3, 3])), max_attempts=100)
    assert "out of reach" in by_formula.explanation
    assert "not reached from 100 starts" in by_search.explanation
    for solutions in (by_formula, by_search):
        assert len(solutions) == 0
        assert solutions.q.shape == (0, 6)
        assert solutions.errors.shape == (0, 2)
        assert "no solution" in repr(solutions)
    assert by_formula.complete
    assert solve_nearest(mk.Solver(arm, mk.PoseGoal("tool0", far))) is None
    assert solve_nearest(mk.Solver(arm, mk.PositionGoal("tool0", far[:3, 3]))) is None


@pytest.mark.parametrize("gap", [0.0, 1e-9, 1e-6, 1e-4])
def test_two_coincident_solutions_are_one_and_separate_nearby(gap):
    """An arm that is stretched, but for a gap."""
    arm = gallery.planar_2r()
    for goal in (mk.PositionGoal("tool", (1.8 - gap, 0.0, 0.0)), mk.OnLine("tool", (1.8 - gap, 0, 0), (0, 0, 1))):
        solutions = solve_all(mk.Solver(arm, goal), None, np.array([0.3, 0.2]))
        assert len(solutions) == (1 if gap < 1e-9 else 2)


def test_of_three_nearly_coincident_solutions_the_middle_one_is_found():
    """One start in a thousand leads to it."""
    arm, rng = general_arm(608), np.random.default_rng(6081)
    X = arm.pose("tool", arm.random(rng))
    solutions = solve_all(mk.Solver(arm, mk.PoseGoal("tool", X)), None, np.zeros(6))
    assert len(solutions) == 4


def test_at_a_singular_pose_connected_solutions_are_a_curve():
    """A straight wrist: only the sum of the angles of joints 4 and 6 matters."""
    arm = gallery.puma560()
    q = np.array([0.3, 0.9, -2.0, 0.4, 0.0, -0.5])
    solutions = solve_all(mk.Solver(arm, mk.PoseGoal("tool", arm.pose("tool", q))), None, q)
    assert solutions.redundancy == 1
    assert not solutions.complete
    on_curve = solutions.component == solutions.component[0]
    assert on_curve.sum() > 3
    np.testing.assert_allclose(solutions.q[on_curve][:, [3, 5]].sum(axis=1), q[3] + q[5], atol=1e-6)
    np.testing.assert_allclose(solutions[0], q, atol=1e-6)


def test_a_loop_has_all_its_assembly_modes():
    four_bar = gallery.four_bar()
    solutions = solve_all(mk.Solver(four_bar, mk.JointValues({"crank_joint": 0.7})))
    assert len(solutions) == 2
    five_bar = gallery.five_bar()
    goal = mk.PositionGoal("tool", five_bar.pose("tool")[:3, 3])
    assert len(solve_all(mk.Solver(five_bar, goal))) == 4  # either elbow in or out


def test_two_goals_on_a_tree_have_the_combined_solutions():
    tree = mk.Builder("tree")
    for side, y in (("left", 0.5), ("right", -0.5)):
        tree.revolute(f"{side}_shoulder", "trunk", f"{side}_arm", at=(0.0, y, 0.0))
        tree.revolute(f"{side}_elbow", f"{side}_arm", f"{side}_forearm", at=(0.4, 0.0, 0.0))
        tree.fixed(f"{side}_wrist", f"{side}_forearm", f"{side}_hand", at=(0.3, 0.0, 0.0))
    body = tree.build()
    q = np.array([0.4, 0.8, -0.3, 1.1])
    goals = [mk.PositionGoal(f"{side}_hand", body.pose(f"{side}_hand", q)[:3, 3]) for side in ("left", "right")]
    solutions = solve_all(mk.Solver(body, goals), None, np.zeros(4))
    assert len(solutions) == 4
    assert angle_difference(solutions.q, q).min() < 1e-6


def test_invalid_arguments_are_rejected_by_name():
    solver, arm, link = solver_of("ur5")
    for bad in ({"max_attempts": 0}, {"samples": -1}, {"limit": 0}, {"limit": True}):
        with pytest.raises(LimitsError, match=next(iter(bad))):
            solve_all(solver, arm.pose(link), **bad)
    solutions = solve_all(solver, arm.pose(link))
    arm.joint("elbow_joint").set_limits(-1.0, 1.0)
    with pytest.raises(StructureError, match="has changed"):
        solutions.path(0, 0)


# ---- the nearest ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ur5", "puma560", "scara", "general 6R"])
def test_the_nearest_solution_is_the_first_of_all_solutions(name):
    solver, arm, link = solver_of(name)
    rng = np.random.default_rng(6)
    for q0, q in zip(arm.random(rng, 3), arm.random(rng, 3), strict=True):
        X = arm.pose(link, q)
        np.testing.assert_allclose(solve_nearest(solver, X, q0), solve_all(solver, X, q0)[0], atol=1e-7)


def test_the_nearest_solution_of_a_redundant_arm_equals_that_of_a_scan():
    """A planar arm of three joints and a point: for each angle of the first joint two triangles."""
    arm = gallery.planar_3r()
    solver = mk.Solver(arm, mk.PositionGoal("tool", np.zeros(3)))
    rng = np.random.default_rng(7)
    for q, q0 in zip(arm.random(rng, 4), arm.random(rng, 4), strict=True):
        p = arm.pose("tool", q)[:3, 3]
        q1 = np.linspace(-np.pi, np.pi, 200_001)
        to = p[:2] - np.stack([np.cos(q1), np.sin(q1)], axis=1)
        cosine = ((to**2).sum(axis=1) - 0.8**2 - 0.5**2) / (2 * 0.8 * 0.5)
        q1, to, bend = q1[np.abs(cosine) <= 1], to[np.abs(cosine) <= 1], np.arccos(cosine[np.abs(cosine) <= 1])
        scan = []
        for q3 in (bend, -bend):
            q2 = np.arctan2(to[:, 1], to[:, 0]) - np.arctan2(0.5 * np.sin(q3), 0.8 + 0.5 * np.cos(q3)) - q1
            scan.append(np.stack([q1, (q2 + np.pi) % (2 * np.pi) - np.pi, q3], axis=1))
        least = np.linalg.norm(np.concatenate(scan) - q0, axis=1).min()
        nearest = solve_nearest(solver, p, q0)
        assert arm.space.within_limits(nearest)
        assert np.abs(arm.pose("tool", nearest)[:3, 3] - p).max() < 1e-8
        assert abs(np.linalg.norm(nearest - q0) - least) < 1e-4
        assert abs(solve_all(solver, p, q0).distance[0] - least) < 1e-4


def test_with_many_dofs_the_nearest_solution_is_locally_nearest():
    solver, arm, link = solver_of("10R")
    rng = np.random.default_rng(8)
    q, q0 = arm.random(rng, 2)
    X = arm.pose(link, q)
    nearest = solve_nearest(solver, X, q0)
    least = np.linalg.norm(nearest - q0)
    for start in nearest + rng.uniform(-0.3, 0.3, (30, 10)):
        solution = solver.solve(X, np.clip(start, arm.space.lower, arm.space.upper))
        assert not solution.success or np.linalg.norm(solution.q - q0) > least - 1e-6
    assert solve_all(solver, X, q0).distance[0] < np.linalg.norm(q - q0)


def test_the_search_for_the_nearest_solution_is_bounded_and_says_so():
    """With a function in Python as objective, a search without any success took seconds."""
    arm, link = gallery.panda(), "panda_hand_tcp"
    calls: list[int] = []

    def impossible(mechanism, q):
        calls.append(1)
        return np.array([2.0 + np.sin(q[0])])

    solver = mk.Solver(arm, [mk.PositionGoal(link, (0.4, 0.2, 0.5)), mk.Custom(impossible)])
    solution = solver.solve(q0=arm.q, nearest=True)
    assert len(calls) < NEAREST_MAX_WORK  # there were 290,000
    assert not solution.success
    assert "ended early and found none" in solution.message


def test_a_bounded_search_returns_the_nearest_solution_that_it_found(monkeypatch):
    monkeypatch.setattr("mechanik.solver.nearest.NEAREST_MAX_WORK", 4_000.0)
    builder = mk.Builder("tree")
    for side, y in (("left", 0.2), ("right", -0.2)):
        above = "base"
        for k in range(5):
            name, axis = f"{side}{k}", ("z", "y", "x")[k % 3]
            at = (0.0, y, 0.0) if k == 0 else (0.3, 0.0, 0.0)
            builder.revolute(f"{name}_joint", above, name, at=at, axis=axis, limits=(-2.5, 2.5))
            above = name
    tree, rng = builder.build(), np.random.default_rng(4)
    solver = mk.Solver(tree, [mk.PositionGoal(f"{side}4", (0, 0, 0)) for side in ("left", "right")])
    q, q0 = tree.random(rng), tree.random(rng)
    targets = [tree.pose(f"{side}4", q)[:3, 3] for side in ("left", "right")]
    first, second = (solver.solve(targets, q0, nearest=True) for _ in range(2))
    assert first.success
    assert "ended early and may have missed a nearer one" in first.message
    np.testing.assert_array_equal(first.q, second.q)
    monkeypatch.undo()
    full = solver.solve(targets, q0, nearest=True)
    assert full.success
    assert "early" not in full.message
    assert np.linalg.norm(full.q - q0) <= np.linalg.norm(first.q - q0) + 1e-6


def test_every_solution_satisfies_the_joint_constraints_also_over_several_revolutions():
    """Once a solution was shifted by a full rotation of one joint only, which broke the joint constraint."""
    builder = mk.Builder("coupled arm")
    builder.revolute("shoulder", "base", "upper", limits=(-20, 20))
    builder.revolute("elbow", "upper", "lower", at=(1, 0, 0), limits=(-20, 20))
    builder.fixed("wrist", "lower", "tool", at=(1, 0, 0))
    builder.joint_constraint("ratio", {"shoulder": 1.0, "elbow": -2.5})
    arm = builder.build()
    target = arm.pose("tool", np.array([1.0, 0.4]))[:3, 3]
    solutions = mk.Solver(arm, mk.PositionGoal("tool", target)).solve_all(q0=np.array([9.0, 4.0]))
    assert len(solutions) >= 1
    for q in solutions:
        assert abs(q[0] - 2.5 * q[1]) < 1e-9
        assert np.abs(arm.pose("tool", q)[:3, 3] - target).max() < 1e-8


def mirrored_arms(limits=(-np.pi, np.pi)):
    """Two arms in one joint constraint: the elbows mirror each other."""
    builder = mk.Builder("mirrored arms")
    for side, y in (("left", 0.5), ("right", -0.5)):
        builder.revolute(f"{side} shoulder", "base", f"{side} upper", at=(0, y, 0), limits=limits)
        builder.revolute(f"{side} elbow", f"{side} upper", f"{side} lower", at=(1, 0, 0), limits=limits)
        builder.fixed(f"{side} wrist", f"{side} lower", f"{side} hand", at=(1, 0, 0))
    builder.joint_constraint("mirror", {"left elbow": 1.0, "right elbow": 1.0})
    mechanism = builder.build()
    goals = [mk.PositionGoal("left hand", (1.2, 1.5, 0)), mk.PositionGoal("right hand", (1.2, -1.5, 0))]
    return mechanism, mk.Solver(mechanism, goals)


@pytest.mark.parametrize("limits", [None, (-np.pi, np.pi), (-9, 9)])
@pytest.mark.parametrize("revolutions", [0, 1])
def test_solutions_that_differ_by_full_rotations_of_constrained_joints_are_one_solution(limits, revolutions):
    """Once each combination of full rotations that a descent ended at was a solution of its own."""
    mechanism, solver = mirrored_arms(limits)
    q0 = np.zeros(4)
    names = mechanism.space.q_names
    if limits != (-np.pi, np.pi):
        q0[names.index("left elbow")], q0[names.index("right elbow")] = 6.0 * revolutions, -6.0 * revolutions
    solutions = solver.solve_all(q0=q0, rng=np.random.default_rng(0))
    assert len(solutions) == 2
    for q in solutions:
        assert abs(q[names.index("left elbow")] + q[names.index("right elbow")]) < 1e-9
        assert np.abs(q - q0)[[names.index("left elbow"), names.index("right elbow")]].max() < np.pi + 1e-9
        assert (q >= mechanism.space.lower).all()
        assert (q <= mechanism.space.upper).all()


def test_all_full_rotations_of_constrained_joints_keep_the_joint_constraint():
    mechanism, solver = mirrored_arms((-9, 9))
    left, right = (mechanism.space.q_names.index(f"{side} elbow") for side in ("left", "right"))
    q = np.array(list(solver.solve_all(windings=True, rng=np.random.default_rng(0))))
    assert np.abs(q[:, left] + q[:, right]).max() < 1e-9
    assert {round(float(angle) / (2 * np.pi)) for angle in q[:, left]} == {-1, 0, 1}
    assert len(np.unique(q.round(6), axis=0)) == len(q)


def test_solutions_of_a_custom_objective_that_counts_revolutions_are_not_shifted():
    """Once joint1 = 7 was returned as 7 - 2 pi, with an error of 6.28 rad."""
    goals = [mk.Custom(lambda m, q: np.array([q[0] - 7.0])), mk.Custom(lambda m, q: np.array([q[1] - 0.5]))]
    (q,) = mk.Solver(mk.arm_2d([1.0, 1.0]), goals).solve_all(q0=[0.0, 0.3])
    np.testing.assert_allclose(q, [7.0, 0.5], atol=1e-6)


def test_solutions_of_a_custom_objective_of_poses_are_shifted_towards_the_start():
    goal = mk.Custom(lambda m, q: m.pose("tool", q)[:2, 3] - np.array([1.2, 0.5]))
    solutions = mk.Solver(mk.arm_2d([1.0, 1.0]), goal).solve_all(q0=[6.0, 0.3])
    assert len(solutions) == 2
    assert np.abs(np.array(list(solutions)) - [6.0, 0.3]).max() < np.pi
