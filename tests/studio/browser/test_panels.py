"""The panels: joints by slider and number, locks and limits, methods, goals, other solutions, comparison."""

import math

import numpy as np
import pytest
from browser_checks import (
    check_drag,
    check_number,
    check_words,
    choose_goal,
    goal_row,
    move_goal,
    named,
    open_tab,
    value_of,
)

JOINT = "panda_joint2"


def info(studio, dof: str = JOINT) -> dict:
    return studio.eval("m.store.model.dofs.find((f) => f.name === a)", dof)


def last_step(studio) -> str:
    """Of undo; that the Panda was opened, if something was there before it."""
    return studio.eval("m.store.history.undo")


def type_into(studio, field: str, text: str) -> None:
    studio.page.fill(named(field), text)
    studio.page.press(named(field), "Enter")


def test_a_slider_turns_its_joint_and_is_one_step_of_undo(studio):
    open_tab(studio, "joints")
    before, was, undo = studio.at_rest(), value_of(studio, JOINT), last_step(studio)
    box = studio.page.locator(named(f"slider-{JOINT}")).bounding_box()
    limits = info(studio)
    share = (was - limits["lower"]) / (limits["upper"] - limits["lower"])
    thumb = box["x"] + 7 + share * (box["width"] - 14), box["y"] + box["height"] / 2
    studio.drag(thumb, (thumb[0] + 25, thumb[1]))
    studio.wait("m.store.history.undo !== a", undo)
    after = studio.at_rest()
    moved = np.abs(np.subtract(after["values"], before["values"]))
    assert value_of(studio, JOINT, after) > was + 0.1
    assert np.count_nonzero(moved > 1e-6) == 1
    check_number(studio, named(f"value-{JOINT}"), math.degrees(value_of(studio, JOINT, after)), 0.06)
    studio.page.click(named("undo"))
    studio.wait("m.store.history.redo")
    assert studio.at_rest()["values"] == before["values"]
    assert last_step(studio) == undo


def test_a_number_sets_a_joint_within_its_limits(studio):
    open_tab(studio, "joints")
    undo = last_step(studio)
    type_into(studio, f"value-{JOINT}", "30")
    studio.wait("m.store.history.undo !== a", undo)
    studio.at_rest()
    assert value_of(studio, JOINT) == pytest.approx(math.radians(30), abs=1e-9)
    studio.page.select_option(named("unit-angle"), "rad")
    type_into(studio, f"value-{JOINT}", "0,25")
    studio.wait("Math.abs(m.store.frame.values[a] - 0.25) < 1e-9", info(studio)["value"])
    studio.page.select_option(named("unit-angle"), "deg")
    type_into(studio, f"value-{JOINT}", "1000")
    studio.wait("Math.abs(m.store.frame.values[a[0]] - a[1]) < 1e-9", [info(studio)["value"], info(studio)["upper"]])
    type_into(studio, f"value-{JOINT}", "far")
    assert studio.page.get_attribute(named(f"value-{JOINT}"), "aria-invalid") == "true"


def test_a_locked_joint_stands_while_its_goal_is_dragged(studio):
    open_tab(studio, "joints")
    studio.page.click(named(f"lock-{JOINT}"))
    studio.wait("m.store.model.dofs.find((f) => f.name === a).locked", JOINT)
    was = value_of(studio, JOINT)
    check_drag(studio)
    assert value_of(studio, JOINT) == pytest.approx(was, abs=1e-12)
    assert studio.page.is_disabled(named(f"slider-{JOINT}"))
    studio.page.click(named(f"lock-{JOINT}"))
    studio.wait("!m.store.model.dofs.find((f) => f.name === a).locked", JOINT)


def test_limits_bound_a_joint_and_a_rest_value_is_set(studio):
    open_tab(studio, "joints")
    studio.page.locator(named("show-limits")).locator("..").click()
    was = value_of(studio, JOINT)
    top = math.degrees(was) - 10
    type_into(studio, f"upper-{JOINT}", f"{top:.3f}")
    studio.wait("m.store.model.dofs.find((f) => f.name === a[0]).upper < a[1]", [JOINT, was])
    studio.wait("m.store.frame.values[a[0]] <= a[1] + 1e-9", [info(studio)["value"], math.radians(top) + 1e-5])
    type_into(studio, f"lower-{JOINT}", f"{top + 20:.3f}")
    studio.page.wait_for_selector(named("toast-error"))
    assert "above" in studio.page.inner_text(named("toast-error"))
    rest = round(top - 5)
    type_into(studio, f"rest-{JOINT}", str(rest))
    wanted = [JOINT, math.radians(rest)]
    studio.wait("Math.abs(m.store.model.dofs.find((f) => f.name === a[0]).rest - a[1]) < 1e-9", wanted)
    studio.page.locator(named("show-limits")).locator("..").click()


def test_the_filter_and_the_named_configurations(studio):
    open_tab(studio, "joints")
    studio.page.fill(named("joint-filter"), "joint3")
    assert studio.page.is_visible(named("slider-panda_joint3"))
    assert not studio.page.is_visible(named(f"slider-{JOINT}"))
    studio.page.fill(named("joint-filter"), "")
    home, undo = studio.at_rest()["values"], last_step(studio)
    studio.page.click(named("go-random"))
    studio.wait("m.store.history.undo !== a", undo)
    assert not np.allclose(studio.at_rest()["values"], home)
    studio.page.click(named("go-home"))
    studio.wait("m.store.frame.values.every((v, k) => Math.abs(v - a[k]) < 1e-9)", home)


@pytest.mark.parametrize("method", ["dls", "ccd", "lbfgsb"])
def test_another_method_follows_the_drag(studio, method):
    known = studio.eval("m.store.welcome.methods.map((one) => one.name)")
    assert method in known
    open_tab(studio, "solve")
    studio.page.select_option(named("solver"), method)
    studio.wait("m.store.solving.solver === a", method)
    check_drag(studio)


def test_pause_one_step_and_run(studio):
    open_tab(studio, "solve")
    number = choose_goal(studio)
    before = studio.at_rest()
    studio.page.click(named("run"))
    studio.wait("!m.store.solving.running")
    row = goal_row(studio, number)
    studio.ask({"do": "MoveGoal", "goal": number, "pose": [row[0] + 0.1, *row[1:7].tolist()]})
    studio.wait("m.store.frame.goals[7] > 0.09")
    assert studio.frame()["values"] == before["values"], "paused"
    studio.page.click(named("step"))
    studio.wait("m.store.frame.goals[7] < 0.09")
    studio.page.click(named("run"))
    studio.wait("m.store.frame.isAtRest && m.store.frame.goals[7] < 1e-5")
    studio.wait("/[1-9]/.test(document.querySelector(a).textContent)", named("error"))  # never a bare 0


def test_the_list_of_goals_says_and_sets_all_of_a_goal(studio):
    open_tab(studio, "goals")
    number = choose_goal(studio)
    card = studio.page.locator(named(f"goal-{number}"))
    x = goal_row(studio, number)[0]
    field = card.locator(named("goal-x"))
    check_number(studio, f"{named(f'goal-{number}')} {named('goal-x')}", x, 2e-3)
    field.fill(f"{x - 0.05:.3f}")
    field.press("Enter")
    studio.wait("m.store.frame.isAtRest && Math.abs(m.store.frame.goals[0] - a) < 2e-3", x - 0.05)
    card.locator(named("goal-weight")).fill("2.5")
    card.locator(named("goal-weight")).press("Enter")
    studio.wait("m.store.goal(a).weight === 2.5", number)
    card.locator(named("goal-free-EZ")).click()
    studio.wait("m.store.goal(a).free.includes('EZ')", number)
    card.locator(named("goal-level")).select_option("2")
    studio.wait("m.store.goal(a).level === 2", number)
    card.locator(named("goal-kind")).select_option("point")
    studio.wait("m.store.goal(a).kind === 'point'", number)
    card.locator(named("goal-enabled")).click()
    studio.wait("!m.store.goal(a).enabled", number)
    card.locator(named("goal-pinned")).click()
    studio.wait("m.store.goal(a).pinned", number)
    card.locator(named("goal-remove")).click()
    studio.wait("m.store.goal(a) === undefined", number)


def test_a_goal_is_added_by_the_panel_and_selected_in_both(studio):
    open_tab(studio, "goals")
    count = studio.eval("m.store.goals.length")
    studio.page.select_option(named("add-link"), "panda_link4")
    studio.page.select_option(named("add-kind"), "on_plane")
    studio.page.click(named("add-goal"))
    goal = studio.wait("m.store.goals.length > a && m.store.goals.at(-1)", count)
    assert goal["kind"] == "on_plane"
    studio.wait("m.store.selection.goal === a", goal["number"])
    assert "is-selected" in studio.page.get_attribute(named(f"goal-{goal['number']}"), "class")
    first = studio.eval("m.store.goals[0].number")
    studio.page.locator(named(f"goal-{first}")).locator(".goal-title").click()
    assert studio.eval("m.store.selection") == {"kind": "goal", "goal": first}


def test_alternative_solutions_are_drawn(studio):
    studio.show("gallery", "ur5")
    open_tab(studio, "solve")
    before = studio.still()
    switch = studio.page.locator(named("alternatives")).locator("..")
    switch.click()
    count = studio.wait("m.store.alternatives?.poses.length")
    assert 1 <= count <= 16
    studio.wait("document.querySelector(a).textContent !== ''", named("alternatives-text"))
    assert studio.still() != before
    number = choose_goal(studio)
    row = goal_row(studio, number)
    move_goal(studio, number, [row[0], row[1] + 0.05, *row[2:7]])
    studio.wait("m.store.alternatives.poses.length === 0")  # those of another place are none
    studio.wait("!document.querySelector(a).checked", named("alternatives"))


def test_methods_are_compared_on_the_same_drag(studio):
    open_tab(studio, "compare")
    assert studio.page.is_checked(named("compare-lm"))
    studio.page.click(named("compare"))
    rows = studio.wait("m.store.comparison?.rows.length >= 2 && m.store.comparison.rows")
    studio.drawn()
    number = choose_goal(studio)
    row = goal_row(studio, number)
    move_goal(studio, number, [row[0], row[1] + 0.08, *row[2:7]])
    layers = [row["layer"] for row in rows if not row["refusal"]]
    studio.wait("a[0].every((k) => Math.abs(m.store.layers.get(k)?.goals[1] - a[1]) < 1e-9)", [layers, row[1] + 0.08])
    studio.wait("m.store.comparison.rows.some((r) => r.solver === 'lm' && r.status === 'CONVERGED' && r.error < 1e-5)")
    for word in ("Solved", "%"):
        check_words(studio, named("comparison"), word)
    studio.page.click(named("compare"))
    studio.wait("m.store.comparison.rows.length === 0")
