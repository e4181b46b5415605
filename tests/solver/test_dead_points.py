"""Dead points that are left without a jump, competing tight limits, and loops that start far from closed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from closure_error import largest_closure_error
from platform_optimum import PlatformOptimum
from scipy.optimize import least_squares

import mechanik as mk
from mechanik.spatial import from_position_wxyz, quaternion

CLOSURE_TOL = 1e-9


def out_and_back(start, end, beyond, step):
    """Values from start to end and on by `beyond`, and back again."""
    values = np.arange(0.0, abs(end - start) + beyond, step)
    values = start + math.copysign(1.0, end - start) * values
    return np.concatenate([values, values[::-1]])


def follow_targets(solver, targets, q):
    """The solutions along the targets, each started from its predecessor."""
    path = []
    for target in targets:
        solution = solver.solve(target, q)
        assert largest_closure_error(solution) < CLOSURE_TOL, (target, solution)
        assert solution.status in (mk.Status.CONVERGED, mk.Status.CLOSEST), (target, solution)
        q = solution.q
        path.append(q)
    return np.array(path)


def assert_as_smooth_as(angles, exact, slack):
    """Both are angles over time; each may leave a dead point to either side, and stays on it."""
    np.testing.assert_allclose(np.abs(angles), np.abs(exact), atol=slack)
    largest = np.abs(np.diff(np.abs(exact))).max()
    assert np.abs(np.diff(angles)).max() <= largest + 2 * slack


# ---- dead points --------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [1e-2, 1e-3, 1e-4])
def test_a_slider_at_the_end_of_its_stroke_returns_by_its_closed_form(step):
    """There the crank angle grows as the root of the slider's travel: 0.23 rad for the first centimetre."""
    crank, rod = 0.3, 1.0
    mechanism = mk.gallery.slider_crank(crank=crank, rod=rod)
    goal = mk.JointValues({"slider_joint": 1.0}, angle_mode="exact", tolerance=1e-10)
    targets = out_and_back(1.3 - 25 * step, crank + rod, 10 * step, step).tolist()
    path = follow_targets(mk.Solver(mechanism, goal), targets, mechanism.q)
    x = np.minimum(targets, crank + rod)
    exact = np.arccos(np.minimum((crank**2 + x**2 - rod**2) / (2 * crank * x), 1.0))
    # angle errors are the root of the tolerance, 1e-10, and of the gradient tolerance of a closest pose, 1e-8
    assert_as_smooth_as(path[:, 0], exact, 5e-5)
    np.testing.assert_allclose(path[:, 2], x, atol=1e-9)


@pytest.mark.parametrize("step", [1e-2, 1e-3])
@pytest.mark.parametrize("side", [1, -1])
def test_a_rocker_at_its_extreme_returns_by_its_closed_form(step, side):
    ground, crank, coupler, rocker = 2.0, 0.5, 1.8, 1.2
    mechanism = mk.gallery.four_bar(ground, crank, coupler, rocker)
    # at an extreme the knee lies on the line to the elbow, and the elbow is coupler + crank or coupler - crank away
    away = coupler + side * crank
    end = math.pi - math.acos((ground**2 + rocker**2 - away**2) / (2 * ground * rocker))
    goal = mk.JointValues({"rocker_joint": 0.0}, angle_mode="exact", angle_tolerance=1e-10)
    targets = out_and_back(end + side * 25 * step, end, 10 * step, step).tolist()
    path = follow_targets(mk.Solver(mechanism, goal), targets, mechanism.q)
    inside = np.maximum(targets, end) if side > 0 else np.minimum(targets, end)
    elbow = np.column_stack([ground + rocker * np.cos(inside), rocker * np.sin(inside)])
    far = np.linalg.norm(elbow, axis=1)
    cosine = (crank**2 + far**2 - coupler**2) / (2 * crank * far)
    bend = np.arccos(np.clip(cosine, -1.0, 1.0))  # 0, or half a turn, at the extremes
    bend = bend if side > 0 else math.pi - bend
    crank_angles = path[:, 0] - np.arctan2(elbow[:, 1], elbow[:, 0]) - (0.0 if side > 0 else math.pi)
    angles = np.array([math.remainder(angle, 2 * math.pi) for angle in crank_angles])
    assert_as_smooth_as(angles, bend, 5e-5)


@pytest.mark.parametrize("step", [1e-2, 1e-3])
def test_a_stretched_arm_inside_a_loop_bends_again_by_its_closed_form(step):
    crank, rod, ground = 0.5, 0.8, 0.6
    mechanism = mk.gallery.five_bar(ground, crank, rod)
    solver = mk.Solver(mechanism, mk.PositionGoal("tool", (0, 0, 0), tolerance=1e-10))
    along, pivot = np.array([math.cos(0.9), math.sin(0.9), 0.0]), np.array([-ground / 2, 0.0, 0.0])
    reach = crank + rod
    distances = out_and_back(reach - 25 * step, reach, 10 * step, step)
    path = follow_targets(solver, [pivot + distance * along for distance in distances], mechanism.q)
    far = np.minimum(distances, reach)
    exact = np.arccos(np.clip((far**2 - crank**2 - rod**2) / (2 * crank * rod), -1.0, 1.0))
    assert_as_smooth_as(path[:, list(mechanism.joints).index("left_rod_joint")], exact, 5e-5)


# ---- tight limits -------------------------------------------------------------------------------


def test_competing_tight_limits_end_at_a_minimum():
    """Bounds that alternated between active and released used to stop some of these early; compared with polishing."""
    arm, rng = mk.gallery.iiwa14(), np.random.default_rng(7)
    tool, names = list(arm.links)[-1], [name for name, joint in arm.joints.items() if joint.dof]
    for number in range(140):  # 18 and 132 did not end
        lower, upper = -rng.uniform(0.2, 1.0, 7), rng.uniform(0.2, 1.0, 7)
        q0, goal = rng.uniform(lower, upper), rng.normal(size=3) * 0.6 + (0, 0, 0.5)
        limits = {name: (low, high) for name, low, high in zip(names, lower, upper, strict=True)}
        solution = mk.Solver(arm, mk.PositionGoal(tool, goal), limits=limits, restarts=0).solve(goal, q0)
        q = solution.q
        assert (q >= lower).all()
        assert (q <= upper).all()
        assert solution.status in (mk.Status.CONVERGED, mk.Status.CLOSEST), (number, solution)
        if number % 6:  # polishing takes a hundred times as long
            continue

        def tip_error(q, goal=goal):
            return arm.pose(tool, q)[:3, 3] - goal

        nearly = np.clip(q, lower + 1e-9, upper - 1e-9)
        polished = least_squares(tip_error, nearly, bounds=(lower, upper), xtol=1e-15, ftol=1e-15, gtol=1e-12)
        assert np.sum(tip_error(q) ** 2) <= 2 * polished.cost + 1e-7, number


def test_a_platform_with_tight_legs_and_universals_ends_at_a_minimum():
    mechanism, rng = mk.gallery.stewart_platform(), np.random.default_rng(4)
    space = mechanism.space
    lengths = mechanism.q[(space.lower == 0.2) & (space.upper == 0.5)]
    for number in range(20):
        limits = {}
        for k, length in enumerate(lengths, start=1):
            limits[f"leg{k}_slide"] = (length - rng.uniform(0.005, 0.05), length + rng.uniform(0.005, 0.05))
            for dof in ("EX", "EY"):
                limits[f"leg{k}_universal.{dof}"] = (-rng.uniform(0.03, 0.3), rng.uniform(0.03, 0.3))
        X = from_position_wxyz(0.1 * rng.normal(size=3) + (0, 0, 0.3), quaternion.exp(0.4 * rng.normal(size=3)))
        solver = mk.Solver(mechanism, mk.PoseGoal("platform", X), limits=limits)
        solution = solver.solve(X, mechanism.q)
        exact = PlatformOptimum(mechanism, limits)
        pose = exact.pose(solution.q)
        values = exact.joints(pose)
        assert (values >= exact.lower - 1e-8).all()
        assert (values <= exact.upper + 1e-8).all()
        assert largest_closure_error(solution) < CLOSURE_TOL
        assert solution.status in (mk.Status.CONVERGED, mk.Status.CLOSEST), (number, solution)
        _, best = exact.best(X, pose, rng)
        assert exact.cost(pose, X) <= best * (1 + 1e-6) + 1e-9, number
        assert solver.solve(mechanism.pose("platform"), solution.q).success


# ---- far-open starts ----------------------------------------------------------------------------

LOOPS = {
    "four-bar": mk.gallery.four_bar,
    "slider-crank": mk.gallery.slider_crank,
    "five-bar": mk.gallery.five_bar,
    "platform, balls as closures": mk.gallery.stewart_platform,
    "platform, balls as joints": lambda: mk.gallery.stewart_platform(ends="joint"),
    "delta robot": mk.gallery.delta_robot,
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_is_closed_from_any_values_of_its_joints(name):
    """Of a delta robot 27 of 1,000 used to stay open."""
    mechanism, rng = LOOPS[name](), np.random.default_rng(1)
    solver = mk.Solver(mechanism)
    for number in range(400):
        solution = solver.solve(q0=mechanism.random(rng), restarts=0)
        assert np.isfinite(solution.q).all()
        assert largest_closure_error(solution) < CLOSURE_TOL, (number, solution)
        assert (solution.q >= mechanism.space.lower).all()
        assert (solution.q <= mechanism.space.upper).all()


@pytest.mark.parametrize("away", [10.0, 1e3])
def test_a_platform_with_a_distant_start_returns_home_without_overflow(away):
    mechanism, rng = mk.gallery.stewart_platform(), np.random.default_rng(2)
    solver = mk.Solver(mechanism)
    for _ in range(50):
        q0 = mechanism.random(rng)
        q0[:3] *= away
        solution = solver.solve(q0=q0)
        assert np.isfinite(solution.q).all()
        assert largest_closure_error(solution) < CLOSURE_TOL, solution
