"""What panels do about what is refused, hidden, left or not to be had."""

from browser_checks import named, open_tab


def focused(studio) -> str:
    return studio.eval("document.activeElement.dataset.test ?? document.activeElement.tagName")


def test_what_is_typed_on_the_start_page_is_searched_for(open_studio):
    """Letters were shortcuts there: the h of "humanoid" opened the sheet of keys."""
    studio = open_studio()
    studio.page.keyboard.type("hum")
    assert studio.page.input_value(named("search")) == "hum"
    assert studio.page.locator("dialog[open]").count() == 0
    studio.page.keyboard.press("Enter")
    studio.wait("m.store.model && m.store.frame")
    assert focused(studio) == "BODY", "keys mean the view again"
    studio.page.keyboard.press("e")
    assert studio.eval("m.controller.mode") == "rotate"


def test_tab_does_not_go_behind_the_start_page_and_one_escape_leaves_it(open_studio):
    studio = open_studio("gallery", "four_bar")
    studio.page.click(named("home"))
    passed = []
    for _ in range(4):
        studio.page.keyboard.press("Shift+Tab")
        passed.append(focused(studio))
    assert "CANVAS" not in passed
    assert studio.eval("m.view.canvas.inert")
    studio.page.focus(named("search"))
    studio.page.keyboard.press("Escape")
    assert not studio.page.is_visible(named("start"))
    assert not studio.eval("m.view.canvas.inert")


def test_every_tab_keeps_its_own_place(studio):
    place = "document.querySelector('.side-body').scrollTop"
    open_tab(studio, "solve")
    studio.eval("document.querySelector('.side-body').scrollTo(0, 120)")
    studio.page.click(named("tab-compare"))
    assert studio.eval(place) == 0
    studio.page.click(named("tab-solve"))
    assert studio.eval(place) == 120
    studio.page.click(named("tab-solve"))
    studio.page.click(named("tab-solve"))
    assert studio.eval(place) == 120, "closed and opened"


def test_a_refused_option_is_taken_back_in_its_field(studio):
    """It stayed while the field had the focus, as if it were in force."""
    open_tab(studio, "solve")
    for typed, shown in (("0.02", "0.02"), ("-5", "0.02"), ("", "")):
        studio.page.fill(named("option-damping"), typed)
        studio.page.press(named("option-damping"), "Enter")
        studio.wait("m.store.connection.pending.size === 0 && document.querySelector(a[0]).value === a[1]",
                    [named("option-damping"), shown])  # fmt: skip
        assert studio.eval("m.store.solving.options.damping ?? null") == (float(shown) if shown else None)


def test_ground_is_offered_where_there_is_some(open_studio):
    studio = open_studio("gallery", "panda")
    on_ground = "document.querySelector('[data-test=add-kind] option[value=on_terrain]') !== null"
    assert not studio.eval(on_ground)
    studio.show("scene", "rover")
    studio.wait(on_ground)
    studio.show("gallery", "panda")
    studio.wait(f"!({on_ground})")


def test_what_a_scene_reads_out_leaves_while_a_recording_plays(open_studio):
    """It stood still beside a mechanism that moved."""
    studio = open_studio("scene", "excavator")
    studio.wait("!document.querySelector('[data-test=readouts]').hidden")
    studio.ask({"do": "RecordMotion", "on": True})
    studio.page.wait_for_timeout(300)
    studio.ask({"do": "RecordMotion", "on": False})
    studio.ask({"do": "Play", "on": True, "looped": True})
    studio.wait("m.store.recording.state === 'playing'")
    assert studio.page.locator(named("readouts")).is_hidden()
    studio.ask({"do": "Play", "on": False})
    studio.wait("!document.querySelector('[data-test=readouts]').hidden")


def test_a_ball_is_locked_as_a_whole(open_studio):
    studio = open_studio("scene", "ccd_arm")
    studio.ask({"do": "SetControl", "name": "spherical", "value": True})
    studio.wait("m.store.model.dofs.every((one) => one.kind === 'spherical')")
    name = studio.eval("m.store.model.dofs[0].name")
    open_tab(studio, "joints")
    studio.page.click(named(f"lock-{name}"))
    studio.wait("m.store.model.dofs[0].locked")
    assert studio.page.get_attribute(named(f"lock-{name}"), "aria-pressed") == "true"
