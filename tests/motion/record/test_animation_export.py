"""HTML export: the data is read back unchanged for any text, and no other script is run."""

from __future__ import annotations

import base64
import json
from html.parser import HTMLParser

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from recorded_motions import random_motion

import mechanik as mk
from mechanik.motion.record import Motion, to_html
from mechanik.spatial import from_position_wxyz

HOSTILE_TEXT = "</script><script>alert(1)</script><!-- <script> & ' \" \u2028"


class Page(HTMLParser):
    """Scripts and title of a page, as a browser parses them."""

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


def parse_page(page: bytes) -> tuple[dict, str, str]:
    """Data, player and title of a page; it must have two scripts, and the player must not be inline."""
    parsed = Page(page.decode())
    assert len(parsed.scripts) == 2
    (kind, data), (source, inline_code) = parsed.scripts
    assert kind == {"type": "application/json", "id": "motion"}
    assert inline_code == ""
    prefix = "data:text/javascript;base64,"
    assert (source["src"] or "").startswith(prefix)
    return json.loads(data), base64.b64decode((source["src"] or "")[len(prefix) :]).decode(), parsed.title


@given(st.text(), st.text(), st.text())
def test_no_text_escapes_its_element(name: str, player: str, word: str):
    arm = mk.gallery.make("planar_2r")
    clean = [text.encode("utf-8", "ignore").decode() for text in (name, player, word)]
    motion = Motion(arm, [0.0], np.zeros((1, 2)), name=clean[0])
    data, script, _ = parse_page(to_html(motion, clean[1], {"title": clean[2]}, {clean[2]: b"x"}))
    assert data["model"] == {"title": clean[2]}
    assert script == clean[1]


def test_hostile_text_does_not_escape_its_element():
    motion = Motion(mk.gallery.make("planar_2r"), [0.0], np.zeros((1, 2)), name=HOSTILE_TEXT)
    data, script, title = parse_page(to_html(motion, HOSTILE_TEXT, {"links": [{"name": HOSTILE_TEXT}]}))
    assert data["name"] == data["model"]["links"][0]["name"] == title == script == HOSTILE_TEXT


def test_page_contains_the_link_poses():
    motion = random_motion("humanoid")
    data, _, _ = parse_page(to_html(motion, "", {}, {"/mesh/1.stl": b"\x00\x01"}))
    numbers = np.array(data["poses"]).reshape(len(motion.times), -1, 7)
    assert np.abs(from_position_wxyz(numbers[..., :3], numbers[..., 3:]) - motion.poses()).max() < 1e-6
    assert np.allclose(data["times"], motion.times - motion.times[0], atol=1e-6)
    assert base64.b64decode(data["files"]["/mesh/1.stl"]) == b"\x00\x01"


def test_page_loads_nothing_from_other_hosts():
    page = to_html(random_motion("panda"), "play()", {}).decode()
    assert "http://" not in page
    assert "https://" not in page
    assert "default-src 'none'" in page
