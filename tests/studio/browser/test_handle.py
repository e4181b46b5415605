"""The handle at a goal: W moves, E rotates, R does both, Q turns its axes, Ctrl goes in steps, Esc puts back."""

import numpy as np
import pytest
from browser_checks import camera, choose_goal, goal_row, metres_per_pixel, move_goal

from mechanik.spatial import quaternion, rotation

ARROW, RING = 36, 56
"""px from the middle to where an arrow and a ring are taken, seen from the side."""
AXES = dict(zip("xyz", np.eye(3), strict=True))


def turned(row: np.ndarray, was: np.ndarray) -> np.ndarray:
    """By which rotation vector (world, rad) a goal was turned."""
    return rotation.log(quaternion.to_matrix(row[3:7]) @ quaternion.to_matrix(was[3:7]).T)


def drag_arrow(studio, number: int, axis: np.ndarray, by: float = 40, size: float = 1.0, keys=()) -> None:
    """Take the arrow along a direction of the world and drag it by so many pixels along itself."""
    place = goal_row(studio, number)[:3]
    unit = metres_per_pixel(studio, place) * size
    start, end = (studio.on_screen(place + axis * unit * d) for d in (ARROW, ARROW + by / size))
    studio.drag(start, end, keys=keys)


def drag_ring(studio, number: int, axis: np.ndarray, angle: float, size: float = 1.0, keys=()) -> None:
    """Take the ring around a direction of the world on its near side and drag it by an angle."""
    place = goal_row(studio, number)[:3]
    toward = camera(studio)[0] - place
    near = toward - axis * (toward @ axis)
    near = rotation.exp(axis * 0.35) @ near / np.linalg.norm(near)
    radius = RING * size * metres_per_pixel(studio, place)
    path = [place + radius * rotation.exp(axis * angle * k / 3) @ near for k in range(4)]
    start, *ends = (studio.on_screen(point) for point in path)
    studio.drag(start, *ends, keys=keys, steps=3)


def step_of(radius: float) -> float:
    """m: of 1, 2 and 5 times a power of ten the one that is nearest to a twentieth of the radius."""
    power = 10 ** np.floor(np.log10(radius / 20))
    return min((power * k for k in (1, 2, 5, 10)), key=lambda step: abs(step - radius / 20))


@pytest.fixture
def goal(studio) -> int:
    """A goal of a Panda, turned so that none of its axes is one of the world's."""
    number = choose_goal(studio)
    row = goal_row(studio, number)
    turn = quaternion.multiply(quaternion.exp(np.array([0.25, 0.3, 0.2])), row[3:7])
    move_goal(studio, number, [row[0] + 0.01, *row[1:3], *turn])
    studio.drawn()
    return number


@pytest.mark.parametrize("name", "xz")
def test_w_moves_along_an_axis_of_the_world(studio, goal, name):
    was = goal_row(studio, goal)
    studio.page.keyboard.press("w")
    drag_arrow(studio, goal, AXES[name])
    row = goal_row(studio, goal, studio.at_rest())
    moved = row[:3] - was[:3]
    assert moved @ AXES[name] > 0.02
    np.testing.assert_allclose(moved - AXES[name] * (moved @ AXES[name]), 0, atol=1e-9)
    np.testing.assert_allclose(turned(row, was), 0, atol=1e-9)
    assert max(row[7:]) < 1e-5, "the tool is on its goal"


def test_e_rotates_around_an_axis_of_the_world(studio, goal):
    was = goal_row(studio, goal)
    studio.page.keyboard.press("e")
    studio.drawn()
    drag_ring(studio, goal, AXES["z"], 0.5)
    row = goal_row(studio, goal, studio.at_rest())
    np.testing.assert_allclose(row[:3], was[:3], atol=1e-12)
    by = turned(row, was)
    np.testing.assert_allclose(by[:2], 0, atol=1e-9)
    assert by[2] == pytest.approx(0.5, abs=0.15), "what was taken stays under the pointer"
    assert max(row[7:]) < 1e-5, "the tool is on its goal"


def test_r_moves_and_rotates_with_one_handle(studio, goal):
    studio.page.keyboard.press("r")
    studio.drawn()
    was = goal_row(studio, goal)
    drag_arrow(studio, goal, AXES["z"], size=0.8)
    row = goal_row(studio, goal, studio.at_rest())
    assert row[2] - was[2] > 0.02
    np.testing.assert_allclose(turned(row, was), 0, atol=1e-9)
    studio.drawn()
    drag_ring(studio, goal, AXES["z"], 0.5, size=1.05 / 0.9)
    again = goal_row(studio, goal, studio.at_rest())
    np.testing.assert_allclose(again[:3], row[:3], atol=1e-12)
    assert turned(again, row)[2] > 0.3


def test_q_moves_along_the_goals_own_axes_and_back_to_the_worlds(studio, goal):
    was = goal_row(studio, goal)
    own = quaternion.to_matrix(was[3:7])[:, 0]
    studio.page.keyboard.press("q")
    assert studio.eval("m.controller.space") == "local"
    studio.drawn()
    drag_arrow(studio, goal, own)
    moved = goal_row(studio, goal, studio.at_rest())[:3] - was[:3]
    assert moved @ own > 0.02
    np.testing.assert_allclose(moved - own * (moved @ own), 0, atol=1e-9)
    studio.page.keyboard.press("q")
    assert studio.eval("m.controller.space") == "world"


def test_with_ctrl_a_goal_ends_on_multiples_of_the_step(studio, goal):
    was = goal_row(studio, goal)
    drag_arrow(studio, goal, AXES["x"], by=52, keys=["Control"])
    x = goal_row(studio, goal, studio.at_rest())[0]
    assert x != pytest.approx(was[0], abs=1e-3)
    steps = x / step_of(studio.eval("m.store.model.radius"))
    assert steps == pytest.approx(round(steps), abs=1e-9)


def test_with_ctrl_a_goal_turns_in_steps_of_fifteen_degrees(studio, goal):
    was = goal_row(studio, goal)
    studio.page.keyboard.press("e")
    studio.drawn()
    drag_ring(studio, goal, AXES["z"], 0.6, keys=["Control"])
    by = turned(goal_row(studio, goal, studio.at_rest()), was)
    np.testing.assert_allclose(by, [0, 0, np.radians(30)], atol=1e-9)


def test_esc_in_the_midst_of_a_drag_puts_everything_back(studio, goal):
    before, undo = studio.at_rest(), studio.eval("m.store.history.undo")
    x, y = studio.goal_on_screen(goal)
    mouse = studio.page.mouse
    mouse.move(x, y)
    mouse.down()
    for k in range(1, 7):
        mouse.move(x + 8 * k, y)
    studio.wait("Math.abs(m.store.frame.values[0] - a) > 1e-3", before["values"][0])
    studio.page.keyboard.press("Escape")
    studio.wait("m.store.frame.isAtRest && m.store.frame.values.every((value, k) => value === a[k])", before["values"])
    after = studio.at_rest()
    mouse.up()
    assert after["values"] == before["values"]
    np.testing.assert_array_equal(goal_row(studio, goal, after)[:7], goal_row(studio, goal, before)[:7])
    assert studio.eval("m.store.history.undo") == undo
    assert not studio.eval("m.controller.isDragging")


def test_one_drag_is_one_step_back_and_one_forth(studio, goal):
    before, undo = studio.at_rest(), studio.eval("m.store.history.undo")
    x, y = studio.goal_on_screen(goal)
    studio.drag((x, y), (x + 30, y - 20), (x - 10, y - 30), steps=5)
    studio.wait("m.store.history.undo && m.store.history.undo !== a", undo)
    after = studio.at_rest()
    studio.page.keyboard.press("Control+z")
    studio.wait("m.store.history.redo")
    assert studio.at_rest()["values"] == before["values"]
    assert studio.eval("m.store.history.undo") == undo
    studio.page.keyboard.press("Control+Shift+Z")
    studio.wait("!m.store.history.redo")
    assert studio.at_rest()["values"] == pytest.approx(after["values"], abs=1e-9)
    studio.page.keyboard.press("Control+z")
    studio.wait("m.store.history.redo")
    studio.page.keyboard.press("Control+y")
    studio.wait("!m.store.history.redo")
