"""The camera: plain drags beside the mechanism, Alt as in Maya wherever it begins, wheel, F; nothing else happens."""

import numpy as np
import pytest
from browser_checks import camera, choose_goal, pixel_of


@pytest.fixture
def _nothing_else_happens(studio):
    """Whatever the camera does, joints and selection stay, and no menu opens."""
    choose_goal(studio)
    before, chosen = studio.at_rest(), studio.eval("m.store.selection")
    undo = studio.eval("m.store.history.undo")
    yield
    assert studio.frame()["values"] == before["values"]
    assert studio.eval("m.store.selection") == chosen
    assert not studio.eval("m.controller.menu.isOpen")
    assert studio.eval("m.store.history.undo") == undo


def starts(studio) -> dict[str, tuple[float, float]]:
    """On the handle, on a link, and beside everything."""
    number = studio.eval("m.store.selection.goal")
    return {
        "handle": studio.goal_on_screen(number),
        "link": pixel_of(studio, "panda_link2"),
        "nothing": pixel_of(studio, None),
    }


def check_orbit(before, after) -> None:
    (eye, target), (eye_now, target_now) = before, after
    np.testing.assert_allclose(target_now, target, atol=1e-12)
    a, b = eye - target, eye_now - target
    assert np.linalg.norm(b) == pytest.approx(np.linalg.norm(a), rel=1e-9), "as far away as before"
    assert np.degrees(np.arccos(a @ b / (a @ a))) > 5, "seen from another side"


def check_pan(before, after) -> None:
    (eye, target), (eye_now, target_now) = before, after
    np.testing.assert_allclose(eye_now - target_now, eye - target, atol=1e-9)
    moved = target_now - target
    assert np.linalg.norm(moved) > 0.02
    assert moved @ (eye - target) == pytest.approx(0, abs=1e-9), "across the line of sight"


def check_dolly(before, after, nearer: bool) -> None:
    (eye, target), (eye_now, target_now) = before, after
    np.testing.assert_allclose(target_now, target, atol=1e-12)
    ratio = np.linalg.norm(eye_now - target) / np.linalg.norm(eye - target)
    assert ratio < 0.9 if nearer else ratio > 1.1
    np.testing.assert_allclose((eye_now - target) / ratio, eye - target, atol=1e-9)


@pytest.mark.usefixtures("_nothing_else_happens")
@pytest.mark.parametrize("where", ["handle", "link", "nothing"])
def test_alt_moves_the_camera_wherever_it_begins(studio, where):
    x, y = starts(studio)[where]
    before = camera(studio)
    studio.drag((x, y), (x + 40, y + 15), keys=["Alt"], steps=4)
    check_orbit(before, orbited := camera(studio))
    studio.drag((x, y), (x + 40, y + 15), keys=["Alt"], button="middle", steps=4)
    check_pan(orbited, panned := camera(studio))
    studio.drag((x, y), (x + 40, y), keys=["Alt"], button="right", steps=4)
    check_dolly(panned, camera(studio), nearer=True)


@pytest.mark.usefixtures("_nothing_else_happens")
def test_plain_drags_beside_the_mechanism_orbit_and_pan(studio):
    x, y = pixel_of(studio, None)
    before = camera(studio)
    studio.drag((x, y), (x + 30, y + 20), steps=4)
    check_orbit(before, orbited := camera(studio))
    x, y = pixel_of(studio, None)
    studio.drag((x, y), (x + 30, y + 20), button="right", steps=4)
    check_pan(orbited, panned := camera(studio))
    studio.drag((x, y), (x + 30, y + 20), button="middle", steps=4)
    check_pan(panned, camera(studio))


@pytest.mark.usefixtures("_nothing_else_happens")
def test_the_wheel_zooms_at_the_pointer(studio):
    x, y = pixel_of(studio, "panda_link2")
    point = studio.eval("m.view.pick(...a).point.toArray()", [x, y])
    studio.page.mouse.move(x, y)
    far = np.linalg.norm(np.subtract(*camera(studio)))
    studio.page.mouse.wheel(0, -200)
    studio.wait("m.view.camera.position.distanceTo(m.view.target) < a", 0.9 * far)
    seen = studio.on_screen(point)
    assert np.hypot(seen[0] - x, seen[1] - y) < 25, "what was under the pointer is still there"
    studio.page.mouse.wheel(0, 400)
    studio.wait("m.view.camera.position.distanceTo(m.view.target) > a", 1.1 * far)


@pytest.mark.usefixtures("_nothing_else_happens")
def test_f_frames_the_selection_and_digits_set_the_view_direction(studio):
    number = studio.eval("m.store.selection.goal")
    place = studio.frame()["goals"][:3]
    far = np.linalg.norm(np.subtract(*camera(studio)))
    studio.page.keyboard.press("f")
    eye, target = camera(studio)
    np.testing.assert_allclose(target, place, atol=1e-6)
    assert np.linalg.norm(eye - target) < far
    studio.eval("(m.store.select({ kind: 'none' }), 1)")
    studio.page.keyboard.press("f")
    eye, target = camera(studio)
    assert np.linalg.norm(eye - target) > 0.5 * far, "all of it"
    for key, direction in {"1": [0, -1, 0], "2": [1, 0, 0], "4": [0, 1, 0], "5": [-1, 0, 0]}.items():
        studio.page.keyboard.press(key)
        eye, target = camera(studio)
        np.testing.assert_allclose((eye - target) / np.linalg.norm(eye - target), direction, atol=1e-6)
    choose_goal(studio, number)


def test_a_planar_mechanism_is_moved_and_zoomed_without_perspective(studio):
    studio.show("gallery", "planar_3r")
    choose_goal(studio)
    assert studio.eval("m.view.camera.isOrthographicCamera")
    x, y = pixel_of(studio, None)
    before, zoom = camera(studio), studio.eval("m.view.camera.zoom")
    studio.drag((x, y), (x + 30, y + 20), button="middle", steps=4)
    check_pan(before, camera(studio))
    studio.page.mouse.wheel(0, -200)
    studio.wait("m.view.camera.zoom > a", 1.1 * zoom)
