"""A motion is recorded, played, scrubbed and saved in every kind; the page that plays needs no server."""

import csv
import io
import json
import struct
import time

import numpy as np
import pytest
from browser_checks import changed_share, choose_goal, is_blank, named, open_tab, pixels
from studio_driving import PATIENCE

ABOVE_THE_BAR = {"x": 0, "y": 0, "width": 640, "height": 320}
"""Of the page that plays: what moves there is the mechanism, and not the clock."""
MOVED = 0.005


@pytest.fixture(scope="module")
def recorded(shared_page):
    """A page with a motion of a Panda: one drag, recorded."""
    studio = shared_page
    studio.show("gallery", "panda")
    studio.at_rest()
    open_tab(studio, "record")
    number = choose_goal(studio)
    studio.page.click(named("record"))
    studio.wait("m.store.recording.state === 'recording'")
    x, y = studio.goal_on_screen(number)
    # as slow as a person: a motion of a moment is over before anybody has seen it play
    studio.drag((x, y), (x + 40, y - 30), (x - 20, y - 40), steps=12, pause=60)
    studio.at_rest()
    studio.page.click(named("record"))
    studio.wait("m.store.recording.state === 'ready'")
    return studio


@pytest.fixture(autouse=True)
def _quiet(recorded):
    yield
    assert recorded.complaints == []
    assert recorded.off_machine() == []


def saved(studio, kind: str) -> bytes:
    with studio.page.expect_download() as download:
        studio.page.click(named(f"save-{kind}"))
    return download.value.path().read_bytes()


def test_a_recording_is_played_and_scrubbed(recorded):
    studio = recorded
    info = studio.eval("m.store.recording")
    assert info["frames"] > 3
    assert info["duration"] > 1.0, "at least as long as the hand took"
    end = studio.frame()["values"]
    middle = info["duration"] / 2
    scrub = studio.page.locator(named("scrub")).bounding_box()
    studio.page.mouse.click(scrub["x"] + scrub["width"] / 2, scrub["y"] + scrub["height"] / 2)
    studio.wait("Math.abs(m.store.recording.time - a) < 0.2 * a", middle)
    studio.wait("m.store.frame.values.some((value, k) => Math.abs(value - a[k]) > 1e-3)", end)
    studio.eval("(window.seen = [], m.store.on('frame', (f) => window.seen.push(f.values[0])), 1)")
    studio.page.click(named("play"))
    studio.wait("m.store.recording.state === 'playing'")
    studio.wait("new Set(window.seen).size > 5")
    studio.page.click(named("play"))
    studio.wait("m.store.recording.state === 'ready'")


def test_json_csv_and_npz_hold_the_same_motion(recorded, tmp_path):
    frames = recorded.eval("m.store.recording.frames")
    data = json.loads(saved(recorded, "json"))
    assert len(data["times"]) == frames
    rows = list(csv.reader(io.StringIO(saved(recorded, "csv").decode())))
    assert "panda_joint1" in " ".join(rows[0]), "a header names the joints"
    assert len(rows) == frames + 1
    with np.load(io.BytesIO(saved(recorded, "npz"))) as arrays:
        times = arrays["times"]
        np.testing.assert_allclose(times, data["times"])
        np.testing.assert_allclose([float(row[0]) for row in rows[1:]], times, atol=1e-6)


def test_bvh_and_glb_are_what_they_say(recorded):
    assert saved(recorded, "bvh").startswith(b"HIERARCHY")
    glb = saved(recorded, "glb")
    magic, version, length = struct.unpack_from("<4sII", glb)
    assert (magic, version, length) == (b"glTF", 2, len(glb))
    text = struct.unpack_from("<I", glb, 12)[0]
    assert json.loads(glb[20 : 20 + text])["animations"]


def test_screenshot_is_the_view_at_any_render_quality(recorded):
    recorded.at_rest()
    height, width = recorded.eval("[m.view.host.clientHeight, m.view.host.clientWidth]")
    for step in ("0", "4"):
        recorded.eval(f"(m.view.quality.level = {step}, m.view.quality.isFixed = true, m.view.applyDisplay(), true)")
        picture = saved(recorded, "png")
        assert pixels(picture).shape == (height, width, 3)
        assert not is_blank(picture)


def test_the_saved_page_plays_without_a_server_and_without_a_request(recorded, tmp_path):
    path = tmp_path / "motion.html"
    path.write_bytes(saved(recorded, "html"))
    context = recorded.page.context.browser.new_context(viewport={"width": 640, "height": 400}, offline=True)
    context.set_default_timeout(1000 * PATIENCE)
    page = context.new_page()
    complaints, requested = [], []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
    page.on("request", lambda request: requested.append(request.url))
    try:
        page.goto(path.as_uri())
        page.wait_for_selector("canvas")
        assert page.inner_text("output").endswith(" s")
        end, share = time.monotonic() + PATIENCE, 0.0
        while is_blank(first := page.screenshot(clip=ABOVE_THE_BAR)) and time.monotonic() < end:
            page.wait_for_timeout(30)
        assert not is_blank(first)
        while share < MOVED and time.monotonic() < end:
            page.wait_for_timeout(30)
            share = changed_share(first, page.screenshot(clip=ABOVE_THE_BAR))
        assert share > MOVED, "the arm moves"
        assert complaints == []
        assert [url for url in requested if not url.startswith(("file:", "data:", "blob:"))] == []
    finally:
        context.close()
