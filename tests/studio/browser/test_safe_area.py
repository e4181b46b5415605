"""What a drawer or a sheet covers of the picture counts as not there: the mechanism is looked at in the rest."""

import base64

import numpy as np
import pytest
from browser_checks import choose_goal, named, open_tab, pixels

PLACES = """(() => {
  const { view, store } = m, { frame } = store, box = view.canvas.getBoundingClientRect(), places = [];
  view.camera.updateMatrixWorld();
  for (let k = 0; k < frame.links.length; k += 7) places.push(view.target.clone().fromArray(frame.links, k));
  return places.map((place) => place.project(view.camera))
    .map(({ x, y }) => [box.left + (x + 1) / 2 * box.width, box.top + (1 - y) / 2 * box.height]); })()"""
UNDER = 'a.filter(([x, y]) => document.elementFromPoint(x, y)?.closest(".side, .top, .status")).length'
SIZES = [(800, 500), (390, 844)]
"""px; a drawer at the side, a sheet from below."""


def free_middle(studio) -> np.ndarray:
    """Of the part of the picture that is not covered, px."""
    left, top, right, bottom = studio.eval(
        "((v, s) => s.left > v.left + 1 ? [v.left, v.top, s.left, v.bottom] : [v.left, v.top, v.right, s.top])"
        "(m.view.canvas.getBoundingClientRect(), document.querySelector(a).getBoundingClientRect())",
        named("side"),
    )
    return np.array([(left + right) / 2, (top + bottom) / 2])


def check_uncovered(studio) -> None:
    """All frames are seen, and what is looked at is in the middle of what is free."""
    studio.drawn()
    assert studio.eval(UNDER, studio.eval(PLACES)) == 0
    looked_at = studio.on_screen(studio.eval("m.view.target.toArray()"))
    np.testing.assert_allclose(looked_at, free_middle(studio), atol=1.5)


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("name", ["panda", "planar_3r"])
def test_what_is_framed_lies_beside_the_open_drawer(open_studio, width, height, name):
    studio = open_studio("gallery", name, width=width, height=height)
    open_tab(studio, "joints")
    studio.eval("(m.store.select({ kind: 'none' }), m.view.canvas.focus(), 1)")
    studio.page.keyboard.press("f")
    check_uncovered(studio)
    studio.show("gallery", "ur5")  # and so does what is opened beside it
    assert studio.eval("m.panels.sidebar.current") == "joints"
    check_uncovered(studio)


def test_what_is_looked_at_goes_to_the_free_middle_and_back_with_the_drawer(open_studio):
    studio = open_studio("gallery", "panda", width=800, height=500)
    number = choose_goal(studio)
    before = studio.goal_on_screen(number)
    open_tab(studio, "solve")
    looked_at = studio.on_screen(studio.eval("m.view.target.toArray()"))
    np.testing.assert_allclose(looked_at, free_middle(studio), atol=1.5)
    studio.page.click(named("tab-solve"))
    studio.drawn()
    np.testing.assert_allclose(studio.goal_on_screen(number), before, atol=0.5)


def test_a_hand_takes_what_is_under_it_also_beside_a_drawer(open_studio):
    studio = open_studio("gallery", "panda", width=800, height=500)
    open_tab(studio, "solve")
    number = choose_goal(studio)
    x, y = studio.goal_on_screen(number)
    studio.eval("(m.store.select({ kind: 'none' }), 1)")  # without its handle, which would be taken first
    studio.drawn()
    studio.drag((x, y), (x - 20, y + 10))
    studio.at_rest()
    there = studio.goal_on_screen(number)
    assert np.hypot(there[0] - (x - 20), there[1] - (y + 10)) < 1.5, "and it follows the pointer"


def test_compared_methods_lie_beside_the_drawer(open_studio):
    studio = open_studio("gallery", "panda", width=800, height=500)
    open_tab(studio, "compare")
    studio.page.click(named("compare"))
    studio.wait("m.store.comparison?.rows.length > 1")
    studio.drawn()
    left = studio.eval("document.querySelector(a).getBoundingClientRect().left", named("side"))
    titles = studio.eval("[...document.querySelectorAll('.view-title')].map((e) => e.getBoundingClientRect().right)")
    assert len(titles) == studio.eval("m.store.comparison.rows.length")
    assert max(titles) < left


def test_a_picture_that_is_saved_knows_of_no_drawer(open_studio):
    studio = open_studio("gallery", "panda", width=800, height=500)
    studio.eval("(m.store.setDisplay({ grid: false, shadows: false }), m.store.select({ kind: 'none' }), 1)")
    open_tab(studio, "record")
    before = studio.goal_on_screen(1)
    url = studio.eval(
        "m.view.screenshot().then((blob) => new Promise((done) => { const reader = new FileReader();"
        " reader.onload = () => done(reader.result); reader.readAsDataURL(blob); }))"
    )
    picture = pixels(base64.b64decode(url.split(",")[1]))
    drawn = np.abs(picture - picture[0, 0]).max(axis=2) > 40
    assert drawn.any()
    assert 0.4 < np.nonzero(drawn)[1].mean() / picture.shape[1] < 0.6, "the arm is in its middle"
    assert studio.goal_on_screen(1) == before, "and on the screen it stays where it was"
