"""Three sliders of a ball, and what the panels say of methods that know no levels."""

import pytest
from browser_checks import named, open_tab

TURN = "Array.from(m.store.frame.values.slice(m.store.model.dofs[0].value, m.store.model.dofs[0].value + 3))"


def balls(open_studio):
    studio = open_studio("scene", "ccd_arm")
    for name in ("limits", "orbit"):
        studio.ask({"do": "SetControl", "name": name, "value": False})
    studio.ask({"do": "SetControl", "name": "spherical", "value": True})
    studio.wait("m.store.model.dofs.every((one) => one.kind === 'spherical')")
    studio.at_rest()
    open_tab(studio, "joints")
    return studio, studio.eval("m.store.model.dofs[0].name")


def test_three_numbers_and_three_sliders_turn_a_ball(open_studio):
    studio, name = balls(open_studio)
    studio.page.select_option(named("unit-angle"), "rad")
    before = studio.eval(TURN)
    for axis, value in (("EX", 0.2), ("EY", -0.3), ("EZ", 0.4)):
        field = studio.page.locator(named(f"value-{name}-{axis}"))
        field.fill(str(value))
        field.press("Enter")
        studio.wait(f"Math.abs({TURN}[{['EX', 'EY', 'EZ'].index(axis)}] - a) < 1e-6", value)
    assert studio.eval(TURN) == pytest.approx([0.2, -0.3, 0.4], abs=1e-6)
    box = studio.page.locator(named(f"slider-{name}-EZ")).bounding_box()
    x, y = box["x"] + box["width"] * (0.5 + 0.4 / 6.2832), box["y"] + box["height"] / 2
    studio.page.mouse.move(x, y)
    studio.page.mouse.down()
    for k in range(1, 6):
        studio.page.mouse.move(x + 4 * k, y)
    studio.page.mouse.up()
    studio.wait(f"{TURN}[2] > 0.45")
    turned = studio.eval(TURN)
    assert turned[:2] == pytest.approx([0.2, -0.3], abs=1e-3)
    studio.wait("m.store.history.undo.startsWith('rotate')")
    for _ in range(4):
        studio.ask({"do": "Undo"})
    studio.wait(f"{TURN}.every((one, k) => Math.abs(one - a[k]) < 1e-9)", before)


def test_solve_panel_says_that_pins_have_more_weight(open_studio):
    studio = open_studio("scene", "humanoid")
    open_tab(studio, "solve")
    message = studio.page.locator(named("solver-message"))
    assert message.is_hidden()
    studio.page.select_option(named("solver"), "dls")
    studio.wait("m.store.solving.solver === 'dls'")
    assert (
        message.inner_text()
        == "Damped least squares does not support priority levels: pins have 30 times the weight of other goals."
    )
    studio.page.select_option(named("solver"), "lm")
    studio.wait("m.store.solving.solver === 'lm'")
    assert message.is_hidden()
    studio.ask({"do": "Compare", "solvers": ["lm", "dls"]})
    open_tab(studio, "compare")
    studio.wait("document.querySelectorAll('.is-message').length === 1")
    assert "pins have 30 times the weight" in studio.page.locator(".is-message").inner_text()
