"""Strict levels: a level moves only in the null space of those above; compared with the exact constrained problem."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from whole_body import whole_body

import mechanik as mk
from mechanik.spatial import rotation

SIDES = ("left", "right")


def feet(mechanism, level=0):
    return [
        mk.PoseGoal(
            f"{side}_foot",
            mechanism.pose(f"{side}_foot"),
            level=level,
            tolerance=1e-9,
            angle_tolerance=1e-9,
            name=f"{side} foot",
        )
        for side in SIDES
    ]


def lexicographic(mechanism, levels, q0):
    """The solution level by level: minimise each level's sum of squares with all above held; by SLSQP in v about q0.

    Args:
        levels: lists of objectives. Those that can be met are equalities, the others a bound on their sum of squares.
    """
    space = mechanism.space
    scalars = dict(zip(space.scalars_v.tolist(), space.scalars_q.tolist(), strict=True))
    bounds = [
        (space.lower[scalars[v]] - q0[scalars[v]], space.upper[scalars[v]] - q0[scalars[v]])
        if v in scalars
        else (None, None)
        for v in range(space.nv)
    ]

    def residual(objectives, v):
        return mk.objectives.residual(objectives, mechanism, mechanism.integrate(q0, v))

    def jacobian(objectives, v):
        J = mk.objectives.jacobian(objectives, mechanism, mechanism.integrate(q0, v))
        for k in space.quaternions_v:  # v is a chart about q0, and Jacobians are taken at q
            J[:, k : k + 3] @= np.linalg.inv(rotation.right_jacobian_inverse(v[k : k + 3]))
        return J

    v, constraints, costs = np.zeros(space.nv), [], []
    for objectives in levels:

        def cost(v, objectives=objectives):
            return 0.5 * float(np.sum(residual(objectives, v) ** 2))

        def gradient(v, objectives=objectives):
            return jacobian(objectives, v).T @ residual(objectives, v)

        optimum = minimize(
            cost,
            v,
            jac=gradient,
            method="SLSQP",
            bounds=bounds,
            constraints=constraints,
            options={"maxiter": 500, "ftol": 1e-15},
        )
        v = optimum.x
        costs.append(2 * cost(v))
        if costs[-1] < 1e-10:
            constraints.append(
                {
                    "type": "eq",
                    "fun": lambda v, o=objectives: residual(o, v),
                    "jac": lambda v, o=objectives: jacobian(o, v),
                }
            )
        else:
            # not above the cost that was reached, with a little slack: SLSQP needs an interior
            cost_limit = 0.5 * costs[-1] * (1 + 1e-7)
            constraints.append(
                {
                    "type": "ineq",
                    "fun": lambda v, o=objectives, cost_limit=cost_limit: np.array(
                        [cost_limit - 0.5 * np.sum(residual(o, v) ** 2)]
                    ),
                    "jac": lambda v, o=objectives: -(jacobian(o, v).T @ residual(o, v))[None],
                }
            )
    return mechanism.integrate(q0, v), costs


def squares(mechanism, objectives, q):
    return float(np.sum(mk.objectives.residual(objectives, mechanism, q) ** 2))


# ---- feet, hand, head ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reach", [(2.0, -0.2, 1.2), (0.9, 2.5, 0.3), (-1.8, -1.6, 1.8), (0.3, -0.3, 4.0), (10.0, 0.0, 1.0)]
)
def test_feet_hold_the_hand_is_closest_and_the_head_uses_the_remaining_dofs(reach):
    mechanism = whole_body()
    q0, focus = mechanism.q, (3.0, 1.0, 0.5)
    stand = feet(mechanism)
    hand = mk.PositionGoal("right_hand", reach, level=1, name="hand")
    gaze = mk.LookAt("head", focus, axis=(1, 0, 0), level=2, name="look")
    solution = mk.Solver(mechanism, [*stand, hand, gaze], max_iterations=1000).solve(q0=q0)
    for side in SIDES:
        error = solution.errors[f"{side} foot"]
        assert error.position < 1e-9
        assert error.rotation < 1e-9
    q_exact, (_, closest, _) = lexicographic(mechanism, [stand, [hand], [gaze]], q0)
    hand_cost = squares(mechanism, [hand], solution.q)
    assert hand_cost <= closest * (1 + 1e-5) + 1e-11
    # the head looks at its point with its own two joints, whatever the other joints do
    assert squares(mechanism, [gaze], solution.q) <= squares(mechanism, [gaze], q_exact) + 1e-6
    assert squares(mechanism, [gaze], solution.q) < 1e-10
    assert not solution.success
    assert solution.unmet == ("hand",)


@pytest.mark.parametrize("seed", range(4))
def test_two_levels_in_conflict_are_solved_as_by_scipy(seed):
    """The hands are on the lower level; the pose of the trunk, above, leaves only the arms to reach their points."""
    mechanism, rng = whole_body(), np.random.default_rng(seed)
    q0 = mechanism.q
    stand = feet(mechanism)
    trunk = mk.PoseGoal("trunk", mechanism.pose("trunk"), level=1, tolerance=1e-9, angle_tolerance=1e-9, name="trunk")
    targets = np.array([0.4, 0, 1.2]) + rng.normal(scale=0.6, size=(2, 3))
    hands = [mk.PositionGoal(f"{side}_hand", p, level=2, name=side) for side, p in zip(SIDES, targets, strict=True)]
    solution = mk.Solver(mechanism, [*stand, trunk, *hands], max_iterations=1000).solve(q0=q0)
    _, costs = lexicographic(mechanism, [[*stand, trunk], hands], q0)
    assert squares(mechanism, [*stand, trunk], solution.q) < 1e-17
    assert squares(mechanism, hands, solution.q) <= costs[1] * (1 + 1e-5) + 1e-11


def test_a_higher_level_is_unaffected_by_the_levels_below():
    """The error of a level does not depend on the levels below it."""
    mechanism = whole_body()
    stand = feet(mechanism)
    hand = mk.PositionGoal("right_hand", (1.2, -0.4, 1.6), level=1)
    below = [mk.PositionGoal("left_hand", (-1, 1, 1), level=2), mk.LookAt("head", (0, 5, 0), axis=(1, 0, 0), level=3)]
    alone = mk.Solver(mechanism, [*stand, hand], max_iterations=1000).solve(q0=mechanism.q)
    both = mk.Solver(mechanism, [*stand, hand, *below], max_iterations=1000).solve(q0=mechanism.q)
    for objective in (*stand, hand):
        alone_cost, both_cost = (squares(mechanism, [objective], solution.q) for solution in (alone, both))
        assert both_cost <= alone_cost * (1 + 1e-7) + 1e-17


def test_only_the_order_of_levels_matters():
    arm = mk.gallery.planar_3r()
    left, right = (mk.PositionGoal("tool", (1.0, y, 0)) for y in (-0.5, 0.5))
    q0 = arm.q
    for above, below in ((left, right), (right, left)):
        goals = [
            mk.PositionGoal("tool", above.relations(arm)[0].X_a[:3, 3], level=3),
            mk.PositionGoal("tool", below.relations(arm)[0].X_a[:3, 3], level=7),
        ]
        solution = mk.Solver(arm, goals).solve(q0=q0)
        assert goals[0].error(arm, solution.q).position < 1e-6
        assert abs(goals[1].error(arm, solution.q).position - 1.0) < 1e-5


def test_objectives_of_one_level_are_traded_off_by_weight():
    arm = mk.gallery.planar_3r()
    a, b = np.array([1.0, -0.3, 0.0]), np.array([1.0, 0.3, 0.0])
    for weight in (0.25, 1.0, 3.0):
        goals = [mk.PositionGoal("tool", a, weight=weight), mk.PositionGoal("tool", b)]
        solution = mk.Solver(arm, goals).solve(q0=arm.q)
        share = weight**2 / (1 + weight**2)
        np.testing.assert_allclose(arm.pose("tool", solution.q)[:3, 3], share * a + (1 - share) * b, atol=1e-6)
        assert solution.status is mk.Status.CLOSEST


def test_a_weight_of_the_solver_multiplies_the_weight_of_the_objective():
    arm = mk.gallery.planar_3r()
    a, b = np.array([1.0, -0.3, 0.0]), np.array([1.0, 0.3, 0.0])
    goals = [mk.PositionGoal("tool", a, name="a", weight=0.5), mk.PositionGoal("tool", b, name="b")]
    solution = mk.Solver(arm, goals, weights={"a": 6.0}).solve(q0=arm.q)
    np.testing.assert_allclose(arm.pose("tool", solution.q)[:3, 3], 0.9 * a + 0.1 * b, atol=1e-6)


def test_a_lower_level_moves_only_inside_the_band_of_a_higher_level():
    """The tool stays in its box, level 0; a lower level has a point outside: the tool ends on the face of the box."""
    arm = mk.arm_2d([1.0, 0.8, 0.5])
    box = mk.InBox("tool", (0.6, -0.2, -1), (1.2, 0.4, 1), level=0, tolerance=1e-9)
    rng = np.random.default_rng(0)
    solver = mk.Solver(arm, [box, mk.PositionGoal("tool", (0, 0, 0), level=1, name="point")])
    q = mk.Solver(arm, box).solve(q0=np.array([0.4, 0.7, 0.6])).q
    for _ in range(50):
        goal = np.append(rng.uniform(-2, 2, 2), 0.0)
        solution = solver.solve({"point": goal}, q)
        p = arm.pose("tool", solution.q)[:3, 3]
        assert box.error(arm, solution.q).position < 1e-9
        # which point of the box, its own reach besides, is nearest
        np.testing.assert_allclose(p, np.clip(goal, (0.6, -0.2, -1), (1.2, 0.4, 1)), atol=1e-5)
        q = solution.q


def test_the_reference_jacobian_agrees_with_finite_differences():
    """The reference that solutions are compared with has correct derivatives."""
    mechanism, rng = whole_body(), np.random.default_rng(0)
    goals, q0, v = feet(mechanism), mechanism.random(rng), rng.normal(size=mechanism.nv)
    k = int(mechanism.space.quaternions_v[0])
    q = mechanism.integrate(q0, v)
    J = mk.objectives.jacobian(goals, mechanism, q)
    J[:, k : k + 3] @= np.linalg.inv(rotation.right_jacobian_inverse(v[k : k + 3]))
    for e in np.eye(mechanism.nv)[k : k + 4]:
        ahead, behind = (
            mk.objectives.residual(goals, mechanism, mechanism.integrate(q0, v + t * e)) for t in (1e-6, -1e-6)
        )
        np.testing.assert_allclose((ahead - behind) / 2e-6, J @ e, atol=1e-6)


def test_the_centre_of_mass_stays_over_the_feet_while_the_hand_reaches_out():
    mechanism = whole_body()
    stand = feet(mechanism)
    support = [(x, y) for x in (-0.1, 0.1) for y in (-0.2, 0.2)]
    balance = mk.CentreOfMass(support=support, level=0, tolerance=1e-9, name="balance")
    hand = mk.PositionGoal("right_hand", (1.5, -0.3, 0.6), level=1, name="hand")
    free = mk.Solver(mechanism, [*stand, hand], max_iterations=1000).solve(q0=mechanism.q)
    balanced = mk.Solver(mechanism, [*stand, balance, hand], max_iterations=1000).solve(q0=mechanism.q)
    assert balanced.errors["balance"].position < 1e-9
    assert balance.error(mechanism, free.q).position > 1e-3, "else there is nothing to show"
    assert all(balanced.errors[f"{side} foot"].position < 1e-9 for side in SIDES)
    assert balanced.errors["hand"].position >= free.errors["hand"].position - 1e-9
    _, costs = lexicographic(mechanism, [stand], mechanism.q)
    assert costs[0] < 1e-12


def test_loops_have_priority_over_every_level():
    mechanism = mk.gallery.five_bar()
    goals = [mk.PositionGoal("tool", (5, 5, 0), level=0), mk.JointValues({"left_crank_joint": 1.0}, level=1)]
    solution = mk.Solver(mechanism, goals).solve(q0=mechanism.q)
    assert max(error.position for error in solution.closure_errors.values()) < 1e-9


def test_a_soft_objective_does_not_affect_success():
    arm = mk.gallery.planar_2r()
    goals = [mk.PositionGoal("tool", (1.0, 0.5, 0)), mk.JointValues({"joint1": 3.0}, level=2, required=False)]
    solution = mk.Solver(arm, goals).solve(q0=arm.q)
    assert solution.success
    assert solution.status is mk.Status.CONVERGED
    assert math.isclose(goals[0].error(arm, solution.q).position, 0, abs_tol=1e-6)


def test_levels_are_any_integers():
    arm = mk.arm_2d([1.0, 0.8, 0.5])
    goals = [mk.PositionGoal("tool", (0.9, 0.9, 0), level=5), mk.JointValues({"joint1": 0.2}, level=1000)]
    solution = mk.Solver(arm, goals).solve(q0=np.array([0.4, 0.7, 0.6]))
    assert solution.success, solution
    assert abs(solution["joint1"] - 0.2) < 1e-6
