"""The start page, the looks of it, and coming back to it."""

import numpy as np
import pytest
from browser_checks import check_drag, named, pixels

import mechanik as mk
from mechanik.studio.scenes import SCENES


def test_it_shows_every_scene_and_mechanism_with_a_picture(open_studio):
    studio = open_studio(width=1280, height=800)
    assert studio.page.is_visible(named("start"))
    for name in SCENES:
        assert studio.page.locator(named(f"open-scene-{name}")).count() == 1
    for name in mk.gallery.names():
        assert studio.page.locator(named(f"open-gallery-{name}")).count() == 1
    studio.eval("(document.querySelectorAll('.card img').forEach((img) => (img.loading = 'eager')), 1)")
    studio.wait("[...document.querySelectorAll('.card img')].every((img) => img.complete && img.naturalWidth > 100)")
    cards, pictures = studio.eval("['.card', '.card img'].map((what) => document.querySelectorAll(what).length)")
    assert cards == pictures == len(SCENES) + len(mk.gallery.names())


def test_a_search_finds_and_enter_opens(open_studio):
    studio = open_studio()
    studio.page.fill(named("search"), "stewart")
    assert studio.page.locator(".card").count() == 1
    studio.page.fill(named("search"), "no such thing")
    assert "no such thing" in studio.page.inner_text(named("start"))
    studio.page.fill(named("search"), "stewart")
    studio.page.press(named("search"), "Enter")
    studio.wait("m.store.model?.name.includes('stewart') && m.store.frame")
    assert not studio.page.is_visible(named("start"))
    studio.page.click(named("home"))
    assert studio.page.is_visible(named("start"))
    studio.page.keyboard.press("Escape")
    studio.page.keyboard.press("Escape")
    assert not studio.page.is_visible(named("start")), "Esc leads back to the mechanism"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_is_as_light_or_dark_as_the_person_likes(open_studio, theme):
    studio = open_studio("gallery", "panda", theme=theme)
    brightness = {theme: np.median(pixels(studio.still()))}
    other_theme = "dark" if theme == "light" else "light"
    studio.page.click(named("theme"))
    assert studio.eval("document.documentElement.dataset.theme") == other_theme
    brightness[other_theme] = np.median(pixels(studio.still()))
    assert brightness["dark"] < 80 < 150 < brightness["light"]
    studio.reload()
    assert studio.eval("m.store.display.theme") == other_theme, "it is remembered"


def test_after_a_reload_everything_works_anew(open_studio):
    studio = open_studio("gallery", "delta_robot")
    check_drag(studio)
    studio.reload()
    assert studio.eval("location.search") == "", "the token is not in the address"
    studio.show("gallery", "panda")
    check_drag(studio)


def test_a_narrow_window_hides_nothing(open_studio):
    """Of a phone: the bar, the view, the tabs and the status all stand inside of the window."""
    studio = open_studio("gallery", "panda", width=390, height=844)
    studio.page.click(named("tab-joints"))
    assert studio.page.is_visible(named("slider-panda_joint1"))
    studio.page.click(named("tab-joints"))
    assert studio.eval("document.documentElement.scrollWidth <= innerWidth")
    for name in ("home", "mode-rotate", "tab-record", "status", "help-open"):
        box = studio.page.locator(named(name)).bounding_box()
        assert 0 <= box["x"] <= 390 - box["width"], name
        assert 0 <= box["y"] <= 844 - box["height"], name
    check_drag(studio, by=(25, -25))
