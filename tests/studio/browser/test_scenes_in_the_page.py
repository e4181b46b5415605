"""Every scene is opened by its card and played: it moves, its loops stay shut, nobody complains."""

import pytest
from browser_checks import changed_share, check_quiet, is_blank, named

from mechanik.studio.scenes import SCENES

STILL = ("drag", "stand")
"""Motions of a scene in which the person moves it."""
MOVING_SHUT = 1e-6
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


@pytest.mark.parametrize("name", SCENES)
def test_a_scene_is_opened_and_played(studio, name):
    if not studio.page.is_visible(named("start")):
        studio.page.click(named("home"))
    studio.page.click(named(f"open-scene-{name}"))
    studio.wait("m.store.scene?.name === a && m.store.frame?.order === m.store.order", name)
    assert not studio.page.is_visible(named("start"))
    assert studio.page.inner_text(named("scene-about"))
    controls = {one["name"]: one for one in studio.eval("m.store.scene.controls")}
    motion = controls.get("motion")
    if motion and motion["value"] in STILL:
        choice = next(one for one in motion["choices"] if one not in STILL)
        studio.page.select_option(named("control-motion"), choice)
    elif "circle" in controls:
        studio.page.locator(named("control-circle")).locator("..").click()
    studio.eval(WATCH)
    before = studio.picture()
    studio.wait("window.watched.count > 12 && window.watched.high.some((h, k) => h - window.watched.low[k] > 0.03)")
    assert studio.eval("window.watched.gap") < MOVING_SHUT, "the loops are shut all the way"
    after = studio.picture()
    assert not is_blank(after)
    assert changed_share(before, after) > MOVED, "and it is seen to move"
    assert not studio.page.is_visible(named("toast-error"))
    assert studio.eval("m.store.frame.status") not in ("PROBLEM", "DIVERGED")
