"""Methods that are compared are drawn side by side: each tile shows what its own method does."""

import numpy as np
from browser_checks import changed_share, choose_goal, goal_row, is_blank, move_goal, named, open_tab

METHODS = ("lm", "ccd")
ALIKE, MOVED = 0.0005, 0.005
"""Share of a tile that is another: of the same posture, at most; of one that is tenths of a radian off, at least."""
TITLE = 40
"""px at the upper edge of a tile, where the name of the method stands."""
AREAS = """(() => {
  const { left, top, right, bottom } = m.view.canvas.getBoundingClientRect();
  return [[left + 5, top + 5], [right - 15, bottom - 15]].map(([x, y]) => {
    const here = m.view.pointer(x, y).clone(), there = m.view.pointer(x + 10, y + 10).clone();
    const [width, height] = [20 / (there.x - here.x), 20 / (here.y - there.y)];
    return [x - (here.x + 1) / 2 * width, y - (1 - here.y) / 2 * height, width, height].map(Math.round);
  }); })()"""
"""x, y, width, height of the tiles in two opposite corners, px: the pointer is counted on the tile that it is over."""


def tiles(studio) -> list[bytes]:
    """A picture of the first and of the last tile, without their titles."""
    studio.still()
    return [
        studio.page.screenshot(clip={"x": x, "y": y + TITLE, "width": width, "height": height - TITLE})
        for x, y, width, height in studio.eval(AREAS)
    ]


def postures(studio, y: float) -> np.ndarray:
    """Values of each method once all of them rest with their first goal at that height; (methods, values)."""
    layers = studio.eval("m.store.comparison.rows.map((row) => row.layer)")
    return np.array(
        studio.wait(
            "a[0].every((k) => ((f) => f?.isAtRest && Math.abs(f.goals[1] - a[1]) < 1e-9)(m.store.layers.get(k)))"
            " && a[0].map((k) => Array.from(m.store.layers.get(k).values))",
            [layers, y],
        )
    )


def test_each_tile_draws_its_own_method(studio):
    studio.show("gallery", "planar_3r")
    number = choose_goal(studio)
    studio.ask({"do": "ChangeGoal", "goal": number, "kind": "point"})
    row = goal_row(studio, number, studio.at_rest())
    open_tab(studio, "compare")
    for box in studio.page.locator(f"{named('panel-compare')} input[type=checkbox]").all():
        name = (box.get_attribute("data-test") or "").removeprefix("compare-")
        if box.is_checked() != (name in METHODS):
            box.locator("..").click()
    studio.page.click(named("compare"))
    studio.wait("m.store.comparison?.rows.length === a", len(METHODS))
    first = postures(studio, row[1])
    np.testing.assert_allclose(first[0], first[1], atol=1e-6)
    left_tile, right_tile = tiles(studio)
    assert not is_blank(left_tile)
    assert changed_share(left_tile, right_tile) < ALIKE, "of the same posture the same picture"

    move_goal(studio, number, [0.5 * row[0], row[1] - 0.6, *row[2:7]])
    now = postures(studio, row[1] - 0.6)
    assert np.abs(now[0] - now[1]).max() > 0.1, "the two methods have gone different ways"
    left_tile, right_tile = tiles(studio)
    assert changed_share(left_tile, right_tile) > MOVED, "and are drawn so"
    studio.page.click(named("compare"))
    studio.wait("m.store.comparison.rows.length === 0")
