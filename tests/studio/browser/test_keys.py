"""Keys of the view, and that they mean letters while somebody types."""

import pytest
from browser_checks import choose_goal, named, open_tab

STATE = "JSON.stringify([m.store.display, m.controller.mode, m.controller.space, m.view.camera.position])"
"""All that keys of the view change, but for goals."""


def test_h_opens_the_help_and_esc_closes_it(studio):
    number = choose_goal(studio)
    studio.page.keyboard.press("h")
    assert studio.page.is_visible(named("help"))
    studio.page.keyboard.press("w")
    studio.page.keyboard.press("Delete")
    studio.page.keyboard.press("Escape")
    assert not studio.page.is_visible(named("help"))
    assert studio.eval("m.store.goal(a) !== undefined", number), "keys do nothing behind the sheet"
    assert studio.eval("m.store.selection.kind") == "goal", "Esc leaves the innermost thing alone"


def test_esc_selects_nothing(studio):
    choose_goal(studio)
    studio.page.keyboard.press("Escape")
    assert studio.eval("m.store.selection.kind") == "none"


def test_delete_removes_the_selected_goal_and_undo_brings_it_back(studio):
    number = choose_goal(studio)
    before, count = studio.eval("JSON.stringify(m.store.goal(a))", number), studio.eval("m.store.goals.length")
    studio.page.keyboard.press("Delete")
    studio.wait("m.store.goals.length === a", count - 1)
    assert studio.eval("m.store.selection.kind") == "none"
    studio.page.keyboard.press("Control+z")
    studio.wait("m.store.goals.length === a", count)
    assert studio.eval("JSON.stringify(m.store.goal(a))", number) == before
    studio.wait("m.store.history.redo")
    studio.page.keyboard.press("Delete")  # nothing is selected now
    studio.page.keyboard.press("Control+Shift+Z")
    studio.wait("m.store.goals.length === a", count - 1)


def test_space_pauses_and_runs(studio):
    studio.page.keyboard.press(" ")
    studio.wait("!m.store.solving.running")
    studio.page.keyboard.press(" ")
    studio.wait("m.store.solving.running")


@pytest.mark.parametrize(("key", "what"), {"g": "grid", "l": "labels", "b": "bodies", "k": "skeleton"}.items())
def test_a_letter_shows_and_hides(studio, key, what):
    before, picture = studio.eval("m.store.display[a]", what), studio.still()
    studio.page.keyboard.press(key)
    assert studio.eval("m.store.display[a]", what) is not before
    assert studio.still() != picture
    studio.page.keyboard.press(key)
    assert studio.eval("m.store.display[a]", what) is before


@pytest.mark.parametrize(("tab", "field"), [("joints", "joint-filter"), ("joints", "value-panda_joint1")])
def test_keys_mean_letters_while_somebody_types(studio, tab, field):
    number = choose_goal(studio)
    open_tab(studio, tab)
    before = studio.eval(STATE)
    studio.page.click(named(field))
    studio.page.keyboard.type("werqfhglbkx123")
    studio.page.keyboard.press("Delete")
    studio.page.keyboard.press("Backspace")
    studio.page.keyboard.press("Control+z")
    assert not studio.page.is_visible(named("help"))
    assert studio.eval(STATE) == before
    assert studio.eval("m.store.goal(a) !== undefined", number)
    assert studio.eval("m.store.history.redo") == ""
    studio.page.fill(named(field), "")
    studio.page.keyboard.press("Escape")
    assert studio.eval("document.activeElement === document.querySelector(a)", named(field)) is False
    assert studio.eval("m.store.selection.kind") == "goal", "Esc has left the field and nothing else"
