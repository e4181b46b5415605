"""Swing limits of spherical joints: every solution keeps them as it keeps loops closed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from closure_error import largest_closure_error
from scipy.optimize import minimize

import mechanik as mk
from mechanik.objectives.constraint_relations import swing_angles
from mechanik.solver.methods.method_registry import METHODS, find_method
from mechanik.spatial import make_pose, rotation

OUTSIDE = 2e-9  # rad; the closure tolerance over the sine of the smallest swing limit here
ANGLES = {"shoulder": 0.6, "elbow": 0.8, "wrist": 0.3}


def arm(axes="z"):
    """Three spherical joints in series, each with a swing limit, stretched upwards at zero; a hand of 0.5 m."""
    builder = mk.Builder("arm")
    builder.spherical("shoulder", "base", "upper")
    builder.spherical("elbow", "upper", "fore", at=(0, 0, 1))
    builder.spherical("wrist", "fore", "hand", at=(0, 0, 1))
    builder.fixed("tip", "hand", "tool", at=(0, 0, 0.5))
    mechanism = builder.build()
    for name, angle in ANGLES.items():
        mechanism.joint(name).set_cone(angle, axes)
    return mechanism


def platform(angle=None, closing_angle=None):
    """A Stewart platform: universal joints below, prismatic legs, and spherical joints that close the loops above."""
    builder, tops = mk.Builder("platform"), []
    builder.free("floating", "base", "top", value=(0, 0, 0.3, 0, 0, 0))
    for k in range(6):
        low, high = (math.radians(120 * (k // 2) + side * (1 if k % 2 else -1)) for side in (15, 45))
        foot = np.array([0.2 * math.cos(low), 0.2 * math.sin(low), 0.0])
        top = np.array([0.12 * math.cos(high), 0.12 * math.sin(high), 0.0])
        leg_vector = top + np.array([0, 0, 0.3]) - foot
        length = float(np.linalg.norm(leg_vector))
        z = leg_vector / length
        x = np.cross((0, 1, 0), z) / np.linalg.norm(np.cross((0, 1, 0), z))
        frame = np.stack([x, np.cross(z, x), z], axis=1)
        builder.universal(f"hip{k}", "base", f"lower{k}", at=make_pose(frame, foot))
        builder.prismatic(f"leg{k}", f"lower{k}", f"upper{k}", limits=(0.2, 0.5), value=length)
        tops.append(builder.close(f"ball{k}", f"upper{k}", "top", "ball"))
    mechanism = builder.build()
    for k in range(6):
        if angle is not None:
            mechanism.joint(f"hip{k}").set_cone(angle)
        if closing_angle is not None:
            mechanism.joint(f"ball{k}").set_cone(closing_angle)
    return mechanism


def farthest_outside(mechanism, q):
    """How far an axis is outside its cone, at worst, rad."""
    return max(tilt - mechanism.joint(name).cone.angle for name, tilt in swing_angles(mechanism, q).items())


def best_nearby(mechanism, solution, cost):
    """The optimum of SLSQP for the same problem from there."""

    def margins(v):
        angles = swing_angles(mechanism, mechanism.integrate(solution.q, v))
        return [math.cos(tilt) - math.cos(mechanism.joint(name).cone.angle) for name, tilt in angles.items()]

    return minimize(
        lambda v: cost(mechanism.integrate(solution.q, v)), np.zeros(mechanism.nv), method="SLSQP",
        constraints=[{"type": "ineq", "fun": margins}], options={"ftol": 1e-13, "maxiter": 200},
    )  # fmt: skip


# ---- in the tree --------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", ["z", "xyz"])
def test_no_solution_violates_a_swing_limit_wherever_the_goal_is(axes):
    mechanism, rng = arm(axes), np.random.default_rng(0)
    solver, q = mk.Solver(mechanism, mk.PositionGoal("tool", (0, 0, 2))), mechanism.q
    met = 0
    for k in range(200):
        # far out of reach and nearby in turn
        target = rng.uniform(-3, 3, 3) if k % 2 else mechanism.pose("tool", q)[:3, 3] + rng.uniform(-0.1, 0.1, 3)
        solution = solver.solve(target, q)
        assert farthest_outside(mechanism, solution.q) < OUTSIDE
        met += solution.success
        q = solution.q
    assert met > 20


def test_with_all_axes_the_total_rotation_exceeds_the_limit_by_at_most_a_quarter():
    mechanism = arm("xyz")
    solver = mk.Solver(mechanism, mk.PoseGoal("tool", np.eye(4)))
    rng, largest_ratio = np.random.default_rng(3), 0.0
    links = ("base", "upper", "fore", "hand")
    for _ in range(60):
        solution = solver.solve(make_pose(rotation.exp(rng.uniform(-2, 2, 3)), rng.uniform(-2, 2, 3)))
        rotations = [mechanism.pose(link, solution.q)[:3, :3] for link in links]
        for before, behind, angle in zip(rotations, rotations[1:], ANGLES.values(), strict=False):
            largest_ratio = max(largest_ratio, float(np.linalg.norm(rotation.log(before.T @ behind))) / angle)
    assert 1.0 < largest_ratio < 1.25


@pytest.mark.parametrize("seed", range(8))
def test_out_of_reach_the_solution_is_the_optimum_of_slsqp(seed):
    mechanism, rng = arm(), np.random.default_rng(seed)
    target = rng.uniform(-3, 3, 3)
    solution = mk.Solver(mechanism, mk.PositionGoal("tool", target)).solve(q0=mechanism.q)
    if solution.success:
        return

    def cost(q):
        return float(np.sum((mechanism.pose("tool", q)[:3, 3] - target) ** 2))

    best = best_nearby(mechanism, solution, cost)
    assert cost(solution.q) <= best.fun + 1e-7
    assert set(solution.active_limits.values()) == {"cone"}
    assert set(solution.active_limits) <= set(ANGLES)
    assert "at a limit" in solution.message


def test_a_joint_leaves_its_swing_limit_when_the_goal_comes_back():
    mechanism = arm()
    solver = mk.Solver(mechanism, mk.PositionGoal("tool", (0.3, 0.2, 2.3)))
    first = solver.solve(q0=mechanism.q)
    assert first.success
    for far in ((3, 0, 0), (-2, 2, 0), (0, 0, -3)):
        away = solver.solve(far, first.q)
        assert "cone" in away.active_limits.values()
        back = solver.solve((0.3, 0.2, 2.3), away.q)
        assert back.success, back


def test_a_start_outside_a_swing_limit_is_brought_inside():
    mechanism = arm()
    mechanism.joint("shoulder").set_values(0.5, 1.5, 0.2)
    mechanism.joint("elbow").set_values(2.5, 0.0, 0.0)
    assert farthest_outside(mechanism, mechanism.q) > 0.5
    solution = mk.Solver(mechanism, mk.PositionGoal("tool", (0.3, 0.2, 2.3))).solve(q0=mechanism.q)
    assert solution.success
    assert farthest_outside(mechanism, solution.q) < OUTSIDE


def test_a_swing_limit_is_enforced_without_any_goal():
    mechanism = arm()
    mechanism.joint("elbow").set_values(2.5, 0.0, 0.0)
    solution = mk.solve(mechanism, None)
    assert solution.success
    assert farthest_outside(mechanism, solution.q) < OUTSIDE


@pytest.mark.parametrize("method", [name for name in METHODS if find_method(name).supports_loops])
def test_every_method_that_closes_loops_keeps_swing_limits(method):
    mechanism = arm()
    solution = mk.Solver(mechanism, mk.PositionGoal("tool", (0.5, 0.4, 2.2)), solver=method).solve(q0=mechanism.q)
    assert solution.success, solution
    assert farthest_outside(mechanism, solution.q) < OUTSIDE


def test_a_solver_notices_new_and_removed_swing_limits():
    mechanism = arm()
    solver = mk.Solver(mechanism, mk.PositionGoal("tool", (1.9, 0.0, 0.5)))
    assert not solver.solve(q0=mechanism.q).success
    for name in ANGLES:
        mechanism.joint(name).set_cone(None)
    assert solver.solve(q0=mechanism.q).success
    mechanism.joint("shoulder").set_cone(0.1)
    solution = solver.solve(q0=mechanism.q)
    assert farthest_outside(mechanism, solution.q) < OUTSIDE


def test_a_universal_joint_keeps_its_swing_limit_and_has_no_closed_form():
    builder = mk.Builder()
    builder.universal("hip", "base", "leg")
    builder.fixed("ankle", "leg", "foot", at=(0, 0, -1))
    mechanism = builder.build()
    mechanism.joint("hip").set_cone(0.4)
    solver = mk.Solver(mechanism, mk.PositionGoal("foot", (0, 0, -1)))
    for target in ((1, 0, -0.5), (0, 1, 0), (-1, 1, 1)):
        solution = solver.solve(target, mechanism.q)
        assert swing_angles(mechanism, solution.q)["hip"] == pytest.approx(0.4, abs=1e-7)
    solutions = solver.solve_all((0.2, 0.1, -math.sqrt(1 - 0.05)))
    assert len(solutions) == 2  # half a turn of both lead to the same tilt
    for q in solutions:
        assert swing_angles(mechanism, q)["hip"] == pytest.approx(math.asin(math.sqrt(0.05)), abs=1e-6)
    assert len(solver.solve_all((0.6, 0.0, -0.8))) == 0
    batch = solver.solve_batch([(1, 0, -0.5), (0.2, 0.1, -math.sqrt(1 - 0.05))])
    assert batch.success.tolist() == [False, True]
    for q in batch.q:
        assert swing_angles(mechanism, q)["hip"] < 0.4 + OUTSIDE


# ---- closing a loop -----------------------------------------------------------------------------


@pytest.mark.parametrize(("hips", "balls"), [(None, 0.35), (0.3, None), (0.3, 0.35)])
def test_a_platform_keeps_loops_legs_and_swing_limits_while_its_goal_jumps(hips, balls):
    mechanism, rng = platform(hips, balls), np.random.default_rng(5)
    solver, q = mk.Solver(mechanism, mk.PoseGoal("top", np.eye(4))), mechanism.q
    home = mechanism.pose("top")
    edges = 0
    for k in range(120):
        target = make_pose(rotation.exp(rng.uniform(-1, 1, 3)), rng.uniform(-1, 1, 3))
        solution = solver.solve(home if k % 10 == 9 else target, q)
        assert farthest_outside(mechanism, solution.q) < OUTSIDE
        assert largest_closure_error(solution) < 1e-9
        assert mechanism.space.within_limits(solution.q)
        edges += "cone" in solution.active_limits.values()
        if k % 10 == 9:
            assert solution.success, "it comes back"
        q = solution.q
    assert edges > 20


@pytest.mark.parametrize("seed", range(4))
def test_a_platform_at_its_swing_limits_is_as_close_as_the_optimum_of_slsqp(seed):
    mechanism, rng = platform(None, 0.25), np.random.default_rng(seed)
    X = make_pose(np.eye(3), rng.uniform(-0.3, 0.3, 3) + np.array([0, 0, 0.3]))
    solution = mk.Solver(mechanism, mk.PositionGoal("top", X[:3, 3])).solve(q0=mechanism.q)
    assert farthest_outside(mechanism, solution.q) < OUTSIDE
    if solution.success:
        return
    closures = list(mechanism.closures.values())
    before = mechanism.q

    def gaps(v):
        mechanism.q = mechanism.integrate(solution.q, v)
        positions = np.concatenate([closure.gap().position for closure in closures])
        mechanism.q = before
        return positions

    def margins(v):
        q = mechanism.integrate(solution.q, v)
        legs = [q[mechanism.space.q_names.index(f"leg{k}")] for k in range(6)]
        cones = [math.cos(tilt) - math.cos(0.25) for tilt in swing_angles(mechanism, q).values()]
        return np.array([*cones, *(leg - 0.2 for leg in legs), *(0.5 - leg for leg in legs)])

    def cost(v):
        q = mechanism.integrate(solution.q, v)
        return float(np.sum((mechanism.pose("top", q)[:3, 3] - X[:3, 3]) ** 2))

    best = minimize(
        cost, np.zeros(mechanism.nv), method="SLSQP", options={"ftol": 1e-12, "maxiter": 60},
        constraints=[{"type": "eq", "fun": gaps}, {"type": "ineq", "fun": margins}],
    )  # fmt: skip
    assert cost(np.zeros(mechanism.nv)) <= best.fun + 1e-6
