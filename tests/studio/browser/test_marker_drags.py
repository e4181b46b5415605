"""Markers of joints are taken with the mouse, also of those that close a loop."""

import numpy as np
import pytest
from browser_checks import check_loops_closed, named, value_of

MARKER = """((name) => {
  const { view, store } = m, graph = view.sceneGraph, box = view.canvas.getBoundingClientRect();
  const number = store.model.dofs.findIndex((one) => one.name === name);
  const found = [];
  graph.markers.forEachGrip(number, graph.dofFrames, store.frame.values, store.display.markerScale, (place) => {
    const seen = place.clone().project(view.camera);
    const x = Math.round(box.left + (seen.x + 1) / 2 * box.width);
    const y = Math.round(box.top + (1 - seen.y) / 2 * box.height);
    if (document.elementFromPoint(x, y) !== view.canvas) return;
    const hit = view.pick(x, y);
    if (hit?.kind === 'dof' && hit.dof === number) found.push([x, y]);
  });
  return found[0] ?? null; })(a)"""


def marker(studio, dof: str) -> tuple[float, float]:
    """A pixel where a hand takes the marker of this freedom, and nothing else."""
    studio.eval("(m.store.select({ kind: 'none' }), 1)")  # no handle lies over it
    studio.drawn()
    place = studio.eval(MARKER, dof)
    assert place, f"nothing of the marker of {dof} is seen"
    return tuple(place)


@pytest.mark.parametrize(
    ("name", "joint", "by"),
    [
        ("four_bar", "closing_joint", (-30, 5)),
        ("slider_crank", "closing_joint", (-25, 0)),
        ("jansen_leg", "upper_rod_shoulder", (12, 18)),
        ("panda", "panda_joint4", (15, 20)),
    ],
)
def test_a_marker_is_dragged_also_that_of_a_joint_that_closes_a_loop(studio, name, joint, by):
    studio.show("gallery", name)
    before, undo = studio.at_rest(), studio.eval("m.store.history.undo")
    is_closing = studio.eval("m.store.model.closures.some((one) => one.name === a)", joint)
    assert is_closing == (name != "panda")
    x, y = marker(studio, joint)
    studio.drag((x, y), (x + by[0], y + by[1]), follows=True)
    after = studio.at_rest()
    assert abs(value_of(studio, joint, after) - value_of(studio, joint, before)) > 0.02, "the joint has moved"
    check_loops_closed(after)
    assert after["status"] in ("CONVERGED", "IDLE"), "and it was no way that cannot be gone"
    studio.page.keyboard.press("Control+z")
    studio.wait("m.store.history.redo")
    assert studio.at_rest()["values"] == before["values"]
    assert studio.eval("m.store.history.undo") == undo, "one drag is one step"


def test_a_click_on_a_marker_selects_its_dof(studio):
    studio.show("gallery", "four_bar")
    before = studio.at_rest()
    studio.page.mouse.click(*marker(studio, "closing_joint"))
    chosen = studio.eval("m.store.selection")
    assert chosen["kind"] == "dof"
    assert studio.eval("m.store.model.dofs[a].name", chosen["dof"]) == "closing_joint"
    np.testing.assert_array_equal(studio.frame()["values"], before["values"])


ON_A_LINK = """((link) => {
  const { view, store } = m, box = view.canvas.getBoundingClientRect();
  for (let y = box.top + 40; y < box.bottom - 40; y += 3)
    for (let x = box.left + 20; x < box.right - 20; x += 3) {
      const behind = view.pick(x, y, 'link');
      const isMarker = view.pick(x, y)?.kind === 'dof';
      if (isMarker && behind?.kind === 'link' && store.model.links[behind.link].name === link) return [x, y];
    }
  return null; })(a)"""


def marker_on(studio, link: str) -> tuple[float, float]:
    """A pixel where a hand takes a marker that stands before a link or in it."""
    studio.eval("(m.store.select({ kind: 'none' }), 1)")
    studio.drawn()
    place = studio.eval(ON_A_LINK, link)
    assert place, f"no marker stands on {link}"
    return tuple(place)


def test_shift_pulls_the_link_on_which_a_marker_stands(studio):
    # the markers of a free base cover the pelvis: it was slid by one of them, feet and all
    studio.show("gallery", "humanoid")
    before = studio.at_rest()
    x, y = marker_on(studio, "pelvis")
    at = studio.eval("m.view.pick(...a, 'link')", [x, y])
    local = studio.eval(
        "(({ link, point }) => m.view.linkObject(link).worldToLocal(point).toArray())(m.view.pick(...a, 'link'))",
        [x, y],
    )
    studio.drag((x, y), (x + 6, y + 12), keys=["Shift"], follows=True)
    after = studio.at_rest()
    moved = np.abs(np.subtract(after["values"], before["values"]))
    assert np.count_nonzero(moved > 1e-4) > 3, "knees and hips give way"
    there = studio.on_screen(
        studio.eval(
            "m.view.linkObject(a[0]).localToWorld(m.view.target.clone().set(...a[1])).toArray()", [at["link"], local]
        )
    )
    assert np.hypot(there[0] - (x + 6), there[1] - (y + 12)) < 2, "it hangs on the pointer"


def test_the_menu_of_a_marker_offers_what_its_link_offers(studio):
    studio.show("gallery", "humanoid")
    count = studio.eval("m.store.goals.length")
    x, y = marker_on(studio, "pelvis")
    studio.page.mouse.click(x, y, button="right")
    studio.page.wait_for_selector(named("menu"))
    for entry in ("lock", "rest", "pin", "goal-point", "goal-look_at", "hide"):
        assert studio.page.locator(named(f"menu-{entry}")).count() == 1, entry
    studio.page.click(named("menu-pin"))
    studio.wait("m.store.goals.length === a", count + 1)
    goal = studio.eval("m.store.goals.at(-1)")
    assert goal["pinned"]
    assert studio.eval("m.store.model.links[a].name", goal["link"]) == "pelvis"


def test_the_menu_of_a_marker_beside_all_links_offers_the_link_that_it_moves(studio):
    studio.eval("(m.store.setDisplay({ bodies: false }), 1)")
    try:
        studio.page.mouse.click(*marker(studio, "panda_joint4"), button="right")
        studio.page.click(named("menu-hide"))
        studio.wait("m.store.model.links.some((link) => !link.visible)")
    finally:
        studio.eval("(m.store.setDisplay({ bodies: true }), 1)")
    assert studio.eval("m.store.model.links.filter((link) => !link.visible).map((link) => link.name)") == [
        "panda_link4"
    ]
