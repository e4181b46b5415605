"""The page that plays by itself: whatever names hold, its data come out as they went in and nothing else is run."""

from __future__ import annotations

import base64
import json
from html.parser import HTMLParser

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from recorded_motions import recorded

import mechanik as mk
from mechanik.motion.record import Motion, to_html
from mechanik.spatial import from_position_wxyz

EVIL = "</script><script>alert(1)</script><!-- <script> & ' \" \u2028"


class Page(HTMLParser):
    """The scripts and the title of a page, as a browser splits them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.title, self.tags = "", list[str]()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_data(self, data):
        if self.tags[-1:] == ["script"] and self.scripts:
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        if self.tags[-1:] == ["title"]:
            self.title += data

    def handle_endtag(self, tag):
        self.tags.append(f"/{tag}")


def opened(page: bytes) -> tuple[dict, str, str]:
    """The data, the player and the title; there must be two scripts, and the player must be no text of the page."""
    found = Page(page.decode())
    assert len(found.scripts) == 2
    (kind, data), (source, nothing) = found.scripts
    assert kind == {"type": "application/json", "id": "motion"}
    assert nothing == ""
    prefix = "data:text/javascript;base64,"
    assert (source["src"] or "").startswith(prefix)
    return json.loads(data), base64.b64decode((source["src"] or "")[len(prefix) :]).decode(), found.title


@given(st.text(), st.text(), st.text())
def test_no_text_can_break_out(name: str, player: str, word: str):
    arm = mk.gallery.make("planar_2r")
    clean = [one.encode("utf-8", "ignore").decode() for one in (name, player, word)]
    motion = Motion(arm, [0.0], np.zeros((1, 2)), name=clean[0])
    data, script, _ = opened(to_html(motion, clean[1], {"title": clean[2]}, {clean[2]: b"x"}))
    assert data["model"] == {"title": clean[2]}
    assert script == clean[1]


def test_texts_made_to_break_out_do_not():
    motion = Motion(mk.gallery.make("planar_2r"), [0.0], np.zeros((1, 2)), name=EVIL)
    data, script, title = opened(to_html(motion, EVIL, {"links": [{"name": EVIL}]}))
    assert data["name"] == data["model"]["links"][0]["name"] == title == script == EVIL


def test_the_frames_are_the_poses_of_the_links():
    motion = recorded("humanoid")
    data, _, _ = opened(to_html(motion, "", {}, {"/mesh/1.stl": b"\x00\x01"}))
    numbers = np.array(data["poses"]).reshape(len(motion.times), -1, 7)
    assert np.abs(from_position_wxyz(numbers[..., :3], numbers[..., 3:]) - motion.poses()).max() < 1e-6
    assert np.allclose(data["times"], motion.times - motion.times[0], atol=1e-6)
    assert base64.b64decode(data["files"]["/mesh/1.stl"]) == b"\x00\x01"


def test_the_page_asks_for_nothing_from_elsewhere():
    page = to_html(recorded("panda"), "play()", {}).decode()
    assert "http://" not in page
    assert "https://" not in page
    assert "default-src 'none'" in page
