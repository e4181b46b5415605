"""Every scene is opened by its card and played: it moves, its loops stay shut, nobody complains."""

import time

import pytest
from browser_checks import changed_share, check_number, check_quiet, is_blank, named, open_tab
from studio_driving import PATIENCE

from mechanik.studio.scenes import SCENES

STILL = ("drag", "stand")
"""Motions of a scene in which the person moves it."""
MOVING_CLOSURE_TOLERANCE = 1e-6
"""m and rad, for states on their way."""
MOVED = 0.001
"""Share of the view that is another when a joint has moved by some hundredths."""
WATCH = """(() => {
  const seen = window.watched = { count: 0, gap: 0, low: [], high: [] };
  if (!window.isWatching) m.store.on('frame', (frame) => {
    const w = window.watched;
    w.count += 1;
    w.gap = Math.max(w.gap, ...frame.closures);
    frame.values.forEach((value, k) => {
      w.low[k] = Math.min(w.low[k] ?? value, value);
      w.high[k] = Math.max(w.high[k] ?? value, value);
    });
  });
  window.isWatching = true;
  return 1; })()"""


@pytest.fixture
def studio(shared_page):
    """One page for all of them: nothing of a scene may stay behind when the next is opened."""
    yield shared_page
    check_quiet(shared_page)


def test_a_slider_of_a_scene_that_is_dragged_is_one_step_of_undo(studio):
    studio.show("scene", "hexapod")
    studio.wait("m.store.scene?.name === 'hexapod'")
    open_tab(studio, "scene")
    before, undo = studio.at_rest(), studio.eval("m.store.history.undo")
    box = studio.page.locator(named("control-tilt_x")).bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    studio.drag(middle, (middle[0] + 20, middle[1]), (middle[0] + 35, middle[1]), steps=6)
    tilt = "m.store.scene.controls.find((one) => one.name === 'tilt_x').value"
    studio.wait(f"m.store.history.undo !== a && {tilt} > 2", undo)
    studio.wait("m.store.frame.values.some((value, k) => Math.abs(value - a[k]) > 1e-6)", before["values"])
    studio.at_rest()
    studio.page.keyboard.press("Control+z")
    studio.wait(f"m.store.history.redo && {tilt} === 0")
    assert studio.at_rest()["values"] == before["values"]
    assert studio.eval("m.store.history.undo") == undo, "and no second step is left"
    check_number(studio, named("control-tilt_x"), 0.0, 0.0)
    studio.page.keyboard.press("Control+Shift+Z")
    studio.wait(f"!m.store.history.redo && {tilt} > 2")


@pytest.mark.parametrize("name", SCENES)
def test_a_scene_is_opened_and_played(studio, name):
    if not studio.page.is_visible(named("start")):
        studio.page.click(named("home"))
    revision = studio.eval("m.store.model?.revision ?? -1")
    studio.page.click(named(f"open-scene-{name}"))
    studio.wait(
        "m.store.model?.revision > a[0] && m.store.scene?.name === a[1] && m.store.frame?.order === m.store.order",
        [revision, name],
    )
    assert not studio.page.is_visible(named("start"))
    assert studio.page.inner_text(named("scene-about"))
    controls = {control["name"]: control for control in studio.eval("m.store.scene.controls")}
    motion = controls.get("motion")
    if motion and motion["value"] in STILL:
        choice = next(control for control in motion["choices"] if control not in STILL)
        studio.page.select_option(named("control-motion"), choice)
    elif "circle" in controls:
        studio.page.locator(named("control-circle")).locator("..").click()
    studio.drawn()
    studio.eval("(m.view.quality.isFixed = true)")  # what changes in the picture is what moves
    studio.eval(WATCH)
    before, end = studio.picture(), time.monotonic() + PATIENCE
    studio.wait("window.watched.count > 12 && window.watched.high.some((h, k) => h - window.watched.low[k] > 0.03)")
    assert studio.eval("window.watched.gap") < MOVING_CLOSURE_TOLERANCE, "the loops are closed all the way"
    after = studio.picture()
    while changed_share(before, after) <= MOVED and time.monotonic() < end:
        after = studio.picture()  # what goes in circles comes by where it was
    assert not is_blank(after)
    assert changed_share(before, after) > MOVED, "and it is seen to move"
    assert not studio.page.is_visible(named("toast-error"))
    assert studio.eval("m.store.frame.status") not in ("PROBLEM", "DIVERGED")
