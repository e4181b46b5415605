"""The rover on terrain: given x, y and heading, its height, tilt, rockers and bogies are solved."""

import math
from functools import cache

import numpy as np
import pytest
from robot_poses import CLOSED, apart, openness, solve_circle

import mechanik as mk
from mechanik import gallery
from mechanik.gallery.mobile_robots import WHEELS
from mechanik.model import mobility
from mechanik.model.mobility import closure_jacobian
from mechanik.spatial import make_pose, rotation

RADIUS = 0.25
ARM, ASIDE, ROD = 0.24, 0.36 * 2.2, 0.55  # the rockers' upper arms, half the bar, a rod
LEFT, RIGHT = "left_rocker_joint", "right_rocker_joint"
CELL = 0.2


def rolling(height, far=2.6):
    """Where the middles of wheels roll on ground given by a function of x and y, out to `far` from the origin."""
    x, y = np.meshgrid(np.arange(-far, far + CELL / 2, CELL), np.arange(-far, far + CELL / 2, CELL))
    return mk.Terrain(height(x, y), cell=CELL, origin=(-far, -far)).offset_by(RADIUS)


@cache
def rough_terrain():
    return rolling(lambda x, y: 0.25 * np.sin(1.3 * x + 0.4) * np.cos(1.1 * y) + 0.1 * np.sin(2.3 * y + x), far=6.0)


def settler(rover, rolls):
    """Held to x, y and heading first; then each wheel on the ground."""
    wheels = [mk.OnTerrain(wheel, rolls, name=wheel) for wheel in WHEELS]
    drag = mk.PoseGoal("body", np.eye(4), dof=("X", "Y", "EZ"), level=0, name="drag")
    return mk.Solver(rover, [drag, *wheels])


def place(x, y, heading):
    return make_pose(rotation.about_z(heading), (x, y, 0.0))


def dropped(rover, X):
    """Level, above a place and with its heading: from half a turn away the other heading is as near."""
    home = rover.pose("body")[2, 3]
    return rover.configuration({"base": (*X[:2, 3], home, 0.0, 0.0, math.atan2(X[1, 0], X[0, 0]))})


def heights(rover, rolls, q):
    """How far each wheel's middle is above where it would roll."""
    centres = [rover.pose(wheel, q)[:3, 3] for wheel in WHEELS]
    return np.array([p[2] - rolls.height(p[0], p[1]) for p in centres])


def rocker_angle(bar, side):
    """Of the left rocker (side 1) or the right one (-1), by the length of the rod between it and the bar."""
    ahead = ROD + side * ASIDE * math.sin(bar)
    c = ROD**2 - ahead**2 - (ASIDE * (1 - math.cos(bar))) ** 2 - 2 * ARM**2
    return min(solve_circle(-2 * ARM**2, 2 * ahead * ARM, c), key=abs)


def circle_path(ticks):
    for angle in np.linspace(0, 2.0, ticks):
        yield place(3 * math.cos(angle) - 1, 3 * math.sin(angle), angle + math.pi / 2)


def test_the_rover_stands_on_six_wheels_and_has_the_dofs_to_adapt_to_terrain():
    rover = gallery.rover()
    counts = mobility(rover)
    assert (counts.tree_dof, counts.constraints, counts.dof, counts.redundant_constraints) == (21, 6, 15, 0)
    for wheel in WHEELS:
        assert rover.pose(wheel)[2, 3] == pytest.approx(RADIUS, abs=1e-12)
    # of x, y, heading and six heights, none follows from the others
    rows = np.concatenate([rover.jacobian("body")[[0, 1, 5]], *(rover.jacobian(wheel)[2:3] for wheel in WHEELS)])
    loops = np.concatenate([closure_jacobian(rover, closure) for closure in rover.closures.values()])
    assert np.linalg.matrix_rank(np.concatenate([rows, loops]), tol=1e-6) == 15


def test_the_differential_bar_rotates_the_rockers_in_opposite_directions():
    rover = gallery.rover()
    ik = mk.Solver(rover, mk.JointValues({"bar_joint": 0.0}))
    for bar in np.linspace(-0.19, 0.19, 20):
        solution = ik.solve(float(bar), rover.q)
        assert solution.success, solution
        assert openness(solution) < CLOSED
        left, right = solution[LEFT], solution[RIGHT]
        assert left == pytest.approx(rocker_angle(solution["bar_joint"], 1), abs=1e-8)
        assert right == pytest.approx(rocker_angle(solution["bar_joint"], -1), abs=1e-8)
        assert abs(left + right) < 0.15 * max(abs(left), abs(right)) ** 4, "opposite, but for terms of fourth order"


def test_on_flat_ground_it_stands_level():
    rover = gallery.rover()
    solution = settler(rover, rolling(lambda x, y: 0 * x + 0.4)).solve({"drag": place(0.4, -0.3, 0.7)}, rover.q)
    assert solution.success, solution
    X = rover.pose("body", solution.q)
    assert apart(X, make_pose(rotation.about_z(0.7), (0.4, -0.3, rover.pose("body")[2, 3] + 0.4))) < 3e-6
    for joint in (LEFT, RIGHT, "left_bogie_joint", "right_bogie_joint", "bar_joint"):
        assert abs(solution[joint]) < 1e-5, joint


@pytest.mark.parametrize(("slope_x", "slope_y"), [(0.2, 0.0), (0.0, 0.25), (-0.15, 0.1)])
@pytest.mark.parametrize("heading", [0.0, 1.1, -2.5])
def test_on_a_slope_it_is_parallel_to_the_slope(slope_x, slope_y, heading):
    rover = gallery.rover()
    rolls = rolling(lambda x, y: slope_x * x + slope_y * y)
    X = place(0.5, 0.3, heading)
    solution = settler(rover, rolls).solve({"drag": X}, dropped(rover, X))
    assert solution.success, solution
    X = rover.pose("body", solution.q)
    normal = np.array([-slope_x, -slope_y, 1.0]) / math.hypot(slope_x, slope_y, 1.0)
    np.testing.assert_allclose(X[:3, 2], normal, rtol=0, atol=1e-5)
    np.testing.assert_allclose(X[:2, 3], (0.5, 0.3), rtol=0, atol=1e-6)
    assert math.atan2(X[1, 0], X[0, 0]) == pytest.approx(heading, abs=1e-6)
    for joint in (LEFT, RIGHT, "left_bogie_joint", "right_bogie_joint"):
        assert abs(solution[joint]) < 1e-5, joint
    for wheel in WHEELS:
        p = rover.pose(wheel, solution.q)[:3, 3]
        assert normal @ p == pytest.approx(RADIUS, abs=2e-6), "as far from the slope as the wheel's radius"


def test_on_rough_terrain_all_six_wheels_touch_while_it_is_dragged_without_jumps():
    rover, rolls = gallery.rover(), rough_terrain()
    ik, q, before, most = settler(rover, rolls), None, None, 0.0
    for X in circle_path(120):
        solution = ik.solve({"drag": X}, dropped(rover, X) if q is None else q)
        assert solution.success, solution
        assert openness(solution) < CLOSED
        assert np.abs(heights(rover, rolls, solution.q)).max() < 1e-6
        np.testing.assert_allclose(rover.pose("body", solution.q)[:2, 3], X[:2, 3], rtol=0, atol=1e-6)
        left, right = solution[LEFT], solution[RIGHT]
        assert left == pytest.approx(rocker_angle(solution["bar_joint"], 1), abs=1e-7)
        assert abs(left + right) < 0.15 * max(abs(left), abs(right)) ** 4 + CLOSED
        if q is not None:
            dragged = np.linalg.norm(X[:2, 3] - before)
            # m and rad; its arms are about 1 m long, and the ground is nowhere steeper than 1 in 2
            assert np.abs(rover.difference(q, solution.q)).max() < 1.5 * dragged
        q, before, most = solution.q, X[:2, 3], max(most, abs(left))
    assert most > 0.1, "the ground was not flat"


def test_dropped_anywhere_it_settles_and_a_second_solve_changes_nothing():
    rover, rolls, rng = gallery.rover(), rough_terrain(), np.random.default_rng(31)
    ik = settler(rover, rolls)
    for _ in range(30):
        X = place(*rng.uniform(-4, 4, 2), rng.uniform(-3, 3))
        solution = ik.solve({"drag": X}, dropped(rover, X))
        assert solution.success, solution
        assert np.abs(heights(rover, rolls, solution.q)).max() < 1e-6
        again = ik.solve({"drag": X}, solution.q)
        assert np.abs(rover.difference(solution.q, again.q)).max() < 1e-5


def test_over_a_pit_that_is_too_deep_it_comes_as_near_as_possible_and_names_the_hanging_wheels():
    rover = gallery.rover()
    middle = rover.pose("middle_left")[:2, 3]
    # flat at the bottom, with walls 0.7 m around the wheel
    rolls = rolling(lambda x, y: -2.5 / (1 + np.exp((np.hypot(x - middle[0], y - middle[1]) - 0.7) / 0.06)))
    solution = settler(rover, rolls).solve({"drag": place(0.0, 0.0, 0.0)}, rover.q)
    assert not solution.success
    assert "middle_left" in solution.unmet
    assert "drag" not in solution.unmet
    assert "middle_left" in solution.message
    assert openness(solution) < CLOSED
    assert rover.space.within_limits(solution.q)
    assert solution.active_limits, "a joint is at its end, which is why"
    above = heights(rover, rolls, solution.q)
    assert np.abs(above).max() > 0.1
    # nearest in the sense of least squares: no small motion that the limits allow brings the wheels nearer
    ik = settler(rover, rolls)
    for k in range(rover.nv):
        for push in (-0.02, 0.02):
            nudge = np.zeros(rover.nv)
            nudge[k] = push
            nearby = ik.solve({"drag": place(0.0, 0.0, 0.0)}, rover.clamp(rover.integrate(solution.q, nudge)))
            assert np.sum(heights(rover, rolls, nearby.q) ** 2) > np.sum(above**2) * (1 - 1e-6)


@pytest.mark.parametrize("sizes", [{}, {"wheelbase": 1.4, "track": 1.6, "wheel": 0.15, "clearance": 0.45}])
def test_rovers_of_other_sizes_stand_level_too(sizes):
    rover = gallery.rover(**sizes)
    for wheel in WHEELS:
        assert rover.pose(wheel)[2, 3] == pytest.approx(sizes.get("wheel", RADIUS), abs=1e-12)
    assert all(closure.gap().is_closed(1e-12) for closure in rover.closures.values())
