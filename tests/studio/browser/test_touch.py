"""Fingers: one orbits, two pinch, one on a goal drags it, one that rests asks for the menu."""

import numpy as np
import pytest
from browser_checks import camera, choose_goal, goal_row, named, pixel_of


@pytest.fixture
def studio(open_studio):
    return open_studio("gallery", "panda", has_touch=True)


class Fingers:
    """Real touches, through the browser's own input."""

    def __init__(self, studio) -> None:
        self.studio, self.wire = studio, studio.page.context.new_cdp_session(studio.page)

    def put(self, kind: str, *places) -> None:
        points = [{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(places)]
        self.wire.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def drag(self, *paths: tuple[tuple[float, float], tuple[float, float]], steps: int = 6) -> None:
        """Each finger from a place to another."""
        self.put("touchStart", *(start for start, _ in paths))
        for k in range(1, steps + 1):
            share = k / steps
            self.put("touchMove", *((a + (c - a) * share, b + (d - b) * share) for (a, b), (c, d) in paths))
        self.put("touchEnd")


def test_fingers_move_the_camera_drag_a_goal_and_open_the_menu(studio):
    fingers, number = Fingers(studio), choose_goal(studio)
    before = studio.at_rest()

    x, y = pixel_of(studio, None)
    eye, target = camera(studio)
    fingers.drag(((x, y), (x + 40, y + 10)))
    eye_now, target_now = camera(studio)
    np.testing.assert_allclose(target_now, target, atol=1e-12)
    assert np.linalg.norm(eye_now - eye) > 0.1, "one finger orbits"

    fingers.drag(((x, y), (x - 30, y)), ((x + 60, y), (x + 90, y)))
    eye_near, target_near = camera(studio)
    assert np.linalg.norm(eye_near - target_near) < 0.8 * np.linalg.norm(eye_now - target_now), "two fingers zoom"
    assert studio.frame()["values"] == before["values"]

    studio.page.keyboard.press("f")
    studio.drawn()
    x, y = studio.goal_on_screen(number)
    was = goal_row(studio, number)
    fingers.drag(((x, y), (x + 40, y - 20)))
    after = studio.at_rest()
    goal = goal_row(studio, number, after)
    assert np.linalg.norm(goal[:3] - was[:3]) > 1e-3, "a finger on a goal drags it"
    assert goal[7] < 1e-5
    assert studio.eval("m.store.selection") == {"kind": "goal", "goal": number}

    studio.page.keyboard.press("Escape")
    studio.page.keyboard.press("f")
    studio.drawn()
    fingers.put("touchStart", pixel_of(studio, "panda_link2"))
    studio.page.wait_for_selector(named("menu"))
    fingers.put("touchEnd")
    assert studio.page.is_visible(named("menu")), "it stays when the finger goes"
    studio.page.tap(named("menu-pin"))
    studio.wait("m.store.goals.some((goal) => goal.pinned)")
