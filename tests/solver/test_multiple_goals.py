"""Several goals on the fast path: the same solutions as on the general path, whatever the earlier calls."""

from __future__ import annotations

import numpy as np
import pytest

import mechanik as mk
from mechanik.errors import MechanikError
from mechanik.spatial import make_pose, rotation

FEET_AND_HANDS = ("left_foot", "right_foot", "left_hand", "right_hand")


def body_goals() -> list[mk.Objective]:
    body = mk.gallery.humanoid()
    return [mk.PoseGoal(link, body.pose(link), name=link) for link in FEET_AND_HANDS]


def perturbed(targets, rng, far=0.03):
    return [
        make_pose(X[:3, :3] @ rotation.exp(far * rng.normal(size=3)), X[:3, 3] + far * rng.normal(size=3))
        for X in targets
    ]


def is_short(solver, targets, q0) -> bool:
    return solver.pipeline.call is not None and solver.pipeline.call(targets, q0) is not None


def driven_chain(count: int) -> mk.Mechanism:
    """Four-bars, each on the coupler of the previous one."""
    b = mk.Builder("chain")
    ground, at = "ground", np.zeros(3)
    for k in range(count):
        b.revolute(f"crank{k}", ground, f"crank{k}", at=at, value=1.0)
        b.revolute(f"knee{k}", f"crank{k}", f"coupler{k}", at=(0.5, 0, 0), value=-0.4)
        b.revolute(f"rocker{k}", ground, f"rocker{k}", at=at + np.array([2.0, 0.0, 0.0]), value=1.9)
        b.close(f"pin{k}", f"coupler{k}", f"rocker{k}", "pin", at=(1.8, 0, 0))
        ground, at = f"coupler{k}", np.array([0.2, 0.5, 0.0])
    return b.build()


@pytest.mark.parametrize("form", ["list", "array", "names"])
def test_four_goals_of_a_body_are_solved_as_on_the_general_path(form):
    body, goals = mk.gallery.humanoid(), body_goals()
    solver, rng, q = mk.Solver(body, goals), np.random.default_rng(1), body.q
    home = [body.pose(link) for link in FEET_AND_HANDS]
    for _ in range(20):
        targets = perturbed(home, rng)
        given = {"list": targets, "array": np.array(targets), "names": dict(zip(FEET_AND_HANDS, targets, strict=True))}
        assert is_short(solver, given[form], q)
        short = solver.solve(given[form], q)
        long = solver.solve(targets, q, history=True)
        assert (short.q == long.q).all()
        assert short.success == long.success
        assert short.iterations == long.iterations
        for name, target in zip(FEET_AND_HANDS, targets, strict=True):
            apart = np.linalg.norm(body.pose(name, short.q)[:3, 3] - target[:3, 3])
            assert short.errors[name].position == pytest.approx(apart, abs=1e-12)


def test_points_poses_and_unchanged_targets_can_be_mixed():
    body = mk.gallery.humanoid()
    place = body.pose("left_hand")[:3, 3]
    goals = [
        mk.PoseGoal("left_foot", body.pose("left_foot")),
        mk.PoseGoal("right_foot", body.pose("right_foot")),
        mk.PositionGoal("left_hand", place),
        mk.OrientationGoal("head", body.pose("head")[:3, :3]),
    ]
    solver, q = mk.Solver(body, goals), body.q
    targets = [body.pose("left_foot"), body.pose("right_foot"), place + np.array([0.0, 0.05, 0.1]), None]
    assert is_short(solver, targets, q)
    short = solver.solve(targets, q)
    assert short.success
    assert (short.q == solver.solve(targets, q, history=True).q).all()
    assert np.abs(body.pose("left_hand", short.q)[:3, 3] - targets[2]).max() < 1e-5

    # a call gives the head another rotation; the next call without a target has the first again
    turned = rotation.exp(np.array([0.0, 0.0, 0.3])) @ body.pose("head")[:3, :3]
    assert is_short(solver, [*targets[:3], turned], q)
    assert solver.solve([*targets[:3], turned], q).success
    assert (solver.solve(targets, q).q == short.q).all()


def test_goals_without_a_new_target_use_their_own_again():
    body, goals = mk.gallery.humanoid(), body_goals()
    solver, q = mk.Solver(body, goals), body.q
    home = [body.pose(link) for link in FEET_AND_HANDS]
    hand = make_pose(home[2][:3, :3], home[2][:3, 3] + np.array([0.05, 0.02, 0.1]))
    assert solver.solve(perturbed(home, np.random.default_rng(0)), q).success
    for given in ({"left_hand": hand}, [None, None, hand, None]):
        if isinstance(given, dict):
            assert is_short(solver, given, q)
        solution = solver.solve(given, q)
        assert (solution.q == solver.solve([home[0], home[1], hand, home[3]], q).q).all()
        assert solution.success
    with pytest.raises(MechanikError, match="left_hnad"):
        solver.solve({"left_hnad": hand}, q)


@pytest.mark.parametrize("dof", ["X Y EZ", "X Y Z EX EY", "Z EX", "EX EY EZ", "X Y Z"])
@pytest.mark.parametrize("axes", ["goal", "world"])
def test_partial_poses_are_solved_as_on_the_general_path(dof, axes):
    body, rng = mk.gallery.humanoid(), np.random.default_rng(5)
    feet = [mk.PoseGoal(link, body.pose(link)) for link in FEET_AND_HANDS[:2]]
    turned = make_pose(rotation.exp(np.array([0.2, -0.3, 0.4])), body.pose("left_hand")[:3, 3])
    hand = mk.PoseGoal("left_hand", turned, dof=dof.split(), axes=axes)
    solver, q = mk.Solver(body, [*feet, hand]), body.q
    for _ in range(5):
        targets = perturbed([body.pose("left_foot"), body.pose("right_foot"), turned], rng, 0.02)
        short, long = solver.solve(targets, q), solver.solve(targets, q, history=True)
        assert short.success == long.success
        assert np.abs(short.q - long.q).max() < 1e-6
        assert short.errors["PoseGoal 2"].position == pytest.approx(long.errors["PoseGoal 2"].position, abs=1e-6)
    assert solver.pipeline.call is not None


def test_every_crank_of_a_chain_of_loops_is_driven_and_each_loop_is_a_subproblem():
    chain = driven_chain(5)
    solver, q = mk.Solver(chain, mk.JointValues({f"crank{k}": 1.0 for k in range(5)})), chain.q
    for i in range(1, 40):
        targets = {f"crank{k}": 1.0 + 0.1 * i + 0.3 * k for k in range(5)}
        assert is_short(solver, targets, q)
        short, long = solver.solve(targets, q), solver.solve(targets, q, history=True)
        assert (short.q == long.q).all()
        assert len(short.subproblems) == 5
        assert short.success
        assert all(max(gap.position, gap.rotation) < 1e-9 for gap in short.closure_errors.values())
        for k in range(5):
            turns = (short[f"crank{k}"] - targets[f"crank{k}"]) / (2 * np.pi)
            assert turns == pytest.approx(round(turns), abs=1e-6)
        q = short.q


def test_goals_out_of_reach_end_as_on_the_general_path():
    body, goals = mk.gallery.humanoid(), body_goals()
    solver, q = mk.Solver(body, goals), body.q
    targets = [body.pose(link) for link in FEET_AND_HANDS]
    targets[2] = make_pose(targets[2][:3, :3], targets[2][:3, 3] + (3.0, 0.0, 0.0))
    short, long = solver.solve(targets, q), solver.solve(targets, q, history=True)
    assert not short.success
    assert (short.q == long.q).all()
    assert short.status == long.status


@pytest.mark.parametrize("spoil", ["nan", "mirror", "few", "text", "ragged"])
def test_invalid_targets_are_rejected_as_on_the_general_path(spoil):
    body, goals = mk.gallery.humanoid(), body_goals()
    solver, q = mk.Solver(body, goals), body.q
    targets = [body.pose(link).copy() for link in FEET_AND_HANDS]
    match spoil:
        case "nan":
            targets[1][0, 3] = np.nan
        case "mirror":
            targets[1][:3, 0] *= -1
        case "few":
            targets = targets[:3]
        case "text":
            targets[0] = "there"
        case _:
            targets[0] = np.zeros((3, 4))
    with pytest.raises(MechanikError):
        solver.solve(targets, q)
    fine = [body.pose(link) for link in FEET_AND_HANDS]
    assert (solver.solve(fine, q).q == mk.Solver(body, goals).solve(fine, q).q).all()


def test_targets_can_be_modified_by_the_caller_after_the_call():
    body, goals = mk.gallery.humanoid(), body_goals()
    solver = mk.Solver(body, goals)
    targets = np.array([body.pose(link) for link in FEET_AND_HANDS])
    solution = solver.solve(targets, body.q)
    targets[:, :3, 3] += 1.0
    assert all(error.position < 1e-5 for error in solution.errors.values())


def limited_ball() -> mk.Mechanism:
    """Two arms joined by a spherical joint with limits: its angles are extra state after q."""
    b = mk.Builder("held")
    for side, x in (("left", -0.4), ("right", 0.4)):
        above, at = "ground", (x, 0.0, 0.0)
        for k, axis in enumerate("zyyx"):
            b.revolute(f"{side}{k}", above, f"{side}_link{k}", at=at, axis=axis, value=0.3 if side == "left" else -0.3)
            above, at = f"{side}_link{k}", (0.3, 0.0, 0.0)
    b.close("grip", "left_link3", "right_link3", "ball", at=(0.3, 0.0, 0.0), onto=(0.3, 0.0, 0.0))
    held = b.build()
    held.joint("grip").set_limits([-2.5] * 3, [2.5] * 3)
    return held


@pytest.mark.parametrize("several", [False, True])
def test_a_call_does_not_depend_on_earlier_calls(several):
    """The extra state after q, angles of limited closing joints and slacks, was once left from the previous call."""
    held = limited_ball()
    q = mk.solve(held, mk.PositionGoal("left_link3", (0.1, 0.5, 0.2)), restarts=20).q
    goals = [mk.PositionGoal("left_link2", held.pose("left_link2", q)[:3, 3])]
    if several:
        goals.append(mk.InBox("right_link2", (-2, -2, -2), (2, 2, 2)))
    solver, rng = mk.Solver(held, goals), np.random.default_rng(2)
    places = held.pose("left_link2", q)[:3, 3] + 0.1 * rng.normal(size=(12, 3))
    given = [[place, None] if several else place for place in places]
    first = [solver.solve(targets, q).q for targets in given]
    for targets, before in zip(reversed(given), reversed(first), strict=True):
        assert (solver.solve(targets, q).q == before).all()


def test_a_read_only_start_is_accepted():
    body, goals = mk.gallery.humanoid(), body_goals()
    solver, q = mk.Solver(body, goals), body.q
    targets = [body.pose(link) for link in FEET_AND_HANDS]
    frozen = q.copy()
    frozen.setflags(write=False)
    assert (solver.solve(targets, frozen).q == solver.solve(targets, q).q).all()
    assert (solver.solve(targets, np.repeat(q, 2)[::2]).q == solver.solve(targets, q).q).all()


def test_an_idle_quaternion_is_normalized():
    b = mk.Builder("two")
    b.spherical("idle", "ground", "arm")
    for name, y in (("a", 0.0), ("b", 1.0)):
        b.revolute(f"{name}1", "ground", f"{name}_upper", at=(0, y, 1))
        b.revolute(f"{name}2", f"{name}_upper", f"{name}_lower", at=(0.5, 0, 0), value=0.5)
    two = b.build()
    goals = [
        mk.PositionGoal(f"{name}_lower", two.pose(f"{name}_lower")[:3, 3], at=(0, 0, 0), name=name) for name in "ab"
    ]
    q = two.q.copy()
    q[:4] *= 3.0
    targets = [two.pose("a_lower")[:3, 3], two.pose("b_lower")[:3, 3]]
    assert np.linalg.norm(mk.Solver(two, goals).solve(targets, q).q[:4]) == pytest.approx(1.0, abs=1e-15)


def test_ambiguous_goal_names_are_rejected_as_on_the_general_path():
    body = mk.gallery.humanoid()
    twice = [mk.PoseGoal(link, body.pose(link), name="a") for link in FEET_AND_HANDS[:2]]
    X = body.pose("left_foot")
    with pytest.raises(MechanikError):
        mk.Solver(body, twice).solve({"a": X, "zz": X}, body.q)
    joints = mk.Solver(body, mk.JointValues(dict.fromkeys(body.space.q_names[8:10], 0.1)))
    with pytest.raises(MechanikError, match="by name"):
        joints.solve([0.3, 0.4], body.q)
