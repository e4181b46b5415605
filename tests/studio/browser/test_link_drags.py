"""Links are clicked, dragged, pulled, and given goals by their menu."""

import numpy as np
import pytest
from browser_checks import check_loops_closed, choose_goal, goal_row, named, pixel_of, value_of

import mechanik as mk

KINDS = (
    *("point", "pose", "orientation", "axis", "hinge", "surface", "on_line", "on_plane", "look_at", "distance"),
    *("in_box", "in_cone", "in_band"),
)


def chosen_link(studio) -> str | None:
    return studio.eval("m.store.selection.kind === 'link' ? m.store.model.links[m.store.selection.link].name : null")


def local(studio, x: float, y: float) -> list[float]:
    """The point of a link under a pixel, in the link's frame, m."""
    return studio.eval(
        "(({ link, point }) => m.view.linkObject(link).worldToLocal(point).toArray())(m.view.pick(...a))", [x, y]
    )


def seen(studio, link: str, at: list[float]) -> tuple[float, float]:
    """The pixel at which a point of a link is seen."""
    return studio.on_screen(
        studio.eval(
            "m.view.linkObject(m.store.model.links.findIndex((link) => link.name === a[0]))"
            ".localToWorld(m.view.target.clone().set(...a[1])).toArray()",
            [link, at],
        )
    )


def turned_by(studio, name: str, link: str, joint: str, by: float, at: list[float]) -> tuple[float, float]:
    """The pixel at which that point of a link will be seen when its joint is `by` (m or rad) farther on."""
    mechanism, frame = mk.gallery.make(name), studio.frame()
    dofs = studio.eval("m.store.model.dofs.filter((f) => f.mimics < 0).map((f) => [f.name, f.value])")
    values = {dof: frame["values"][place] for dof, place in dofs if dof not in mechanism.closures}
    X_world_link = mechanism.pose(link, mechanism.configuration({**values, joint: values[joint] + by}))
    return studio.on_screen((X_world_link @ [*at, 1.0])[:3])


def menu(studio, link: str) -> None:
    studio.page.mouse.click(*pixel_of(studio, link), button="right")
    studio.page.wait_for_selector(named("menu"))


def press_in_menu(studio, link: str, entry: str) -> None:
    menu(studio, link)
    studio.page.click(named(f"menu-{entry}"))
    assert not studio.page.is_visible(named("menu"))


def test_a_click_selects_a_link_and_one_beside_it_nothing(studio):
    before = studio.at_rest()["values"]
    for link in ("panda_link2", "panda_link5"):
        studio.page.mouse.click(*pixel_of(studio, link))
        assert chosen_link(studio) == link
    studio.page.mouse.click(*pixel_of(studio, None))
    assert studio.eval("m.store.selection.kind") == "none"
    assert studio.frame()["values"] == before


def test_letting_go_of_a_drag_selects_nothing(studio):
    number = choose_goal(studio)
    x, y = studio.goal_on_screen(number)
    studio.drag((x, y), pixel_of(studio, "panda_link2"))
    studio.at_rest()
    assert studio.eval("m.store.selection") == {"kind": "goal", "goal": number}
    x, y = pixel_of(studio, None)
    studio.drag((x, y), pixel_of(studio, "panda_link0"))
    assert studio.eval("m.store.selection") == {"kind": "goal", "goal": number}


def test_a_dragged_link_turns_its_joint_and_the_taken_point_stays_under_the_pointer(studio):
    link, joint = "panda_link4", "panda_joint4"
    before = studio.at_rest()
    x, y = pixel_of(studio, link)
    at = local(studio, x, y)
    studio.drag((x, y), (x + 20, y + 20), follows=True)
    after = studio.at_rest()
    moved = np.abs(np.subtract(after["values"], before["values"]))
    assert abs(value_of(studio, joint, after) - value_of(studio, joint, before)) > 0.02
    assert np.count_nonzero(moved > 1e-6) == 1, "one joint, and no other"
    there = seen(studio, link, at)
    assert np.hypot(there[0] - (x + 20), there[1] - (y + 20)) < np.hypot(20, 20), "it came along with the pointer"
    assert studio.eval("m.store.selection.kind") == "goal", "and nothing was selected"
    studio.page.keyboard.press("Control+z")
    studio.wait("m.store.history.redo")
    assert studio.at_rest()["values"] == before["values"]


@pytest.mark.parametrize(
    ("name", "link", "joint", "by"),
    [
        ("panda", "panda_link2", "panda_joint2", -0.25),
        ("panda", "panda_link4", "panda_joint4", 0.3),
        ("ur5", "forearm_link", "elbow_joint", 0.3),
        ("scara", "upper_arm", "shoulder", 0.3),
        ("scara", "quill", "quill", -0.05),
        ("planar_2r", "link2", "joint2", -0.4),
        ("four_bar", "crank", "crank_joint", 0.6),
    ],
)
def test_the_point_of_a_link_that_was_taken_stays_under_the_pointer_where_it_can_go(studio, name, link, joint, by):
    studio.show("gallery", name)
    before = studio.at_rest()
    x, y = pixel_of(studio, link, away=45)
    at = local(studio, x, y)
    end = turned_by(studio, name, link, joint, by, at)
    assert np.hypot(end[0] - x, end[1] - y) > 8, "a drag that can be seen"
    studio.drag((x, y), end, follows=True)
    after = studio.at_rest()
    there = seen(studio, link, at)
    assert np.hypot(there[0] - end[0], there[1] - end[1]) < 2
    assert value_of(studio, joint, after) - value_of(studio, joint, before) == pytest.approx(by, rel=0.1)
    check_loops_closed(after)


def test_a_pinned_hand_holds_while_a_joint_is_moved(studio):
    number = studio.eval("m.store.goals.find((goal) => !goal.pinned).number")
    studio.ask({"do": "ChangeGoal", "goal": number, "pinned": True})
    before = studio.at_rest()
    x, y = pixel_of(studio, "panda_link1")
    studio.drag((x, y), (x + 12, y), follows=True)
    after = studio.at_rest()
    moved = np.abs(np.subtract(after["values"], before["values"]))
    assert np.count_nonzero(moved > 1e-4) > 1, "the others follow"
    np.testing.assert_array_equal(goal_row(studio, number, after)[:7], goal_row(studio, number, before)[:7])
    assert max(goal_row(studio, number, after)[7:]) < 1e-5, "the hand has stayed"


@pytest.mark.parametrize(("name", "link"), [("four_bar", "crank"), ("delta_robot", None)])
def test_loops_stay_closed_while_a_crank_is_dragged(studio, name, link):
    studio.show("gallery", name)
    links = studio.eval("m.store.model.links.map((l) => l.name)")
    if link is None or link not in links:  # the first that hangs on the ground by one joint
        link = studio.eval(
            "m.store.model.links[m.store.model.joints.find((j) => j.dofs.length === 1"
            " && m.store.model.links[j.parent].parent < 0).child].name"
        )
    before = studio.at_rest()
    x, y = pixel_of(studio, link, away=45)
    studio.drag((x, y), (x + 12, y - 14), follows=True)
    after = studio.at_rest()
    assert np.abs(np.subtract(after["values"], before["values"])).max() > 0.01
    check_loops_closed(after)


def test_shift_pulls_a_link_at_the_point_that_was_taken(studio):
    before, goals = studio.at_rest(), studio.eval("m.store.goals.length")
    x, y = pixel_of(studio, "panda_link5")
    at = local(studio, x, y)
    studio.drag((x, y), (x - 25, y + 20), keys=["Shift"], follows=True)
    after = studio.at_rest()
    moved = np.abs(np.subtract(after["values"], before["values"]))
    assert np.count_nonzero(moved > 1e-4) > 1, "several joints give way"
    assert studio.eval("m.store.goals.length") == goals, "the pull is gone with the hand"
    there = seen(studio, "panda_link5", at)
    assert np.hypot(there[0] - (x - 25), there[1] - (y + 20)) < 4, "it hangs on the pointer"


def test_the_menu_gives_a_link_a_goal_of_any_kind_and_each_is_a_step_of_undo(studio):
    before, count = studio.at_rest()["values"], studio.eval("m.store.goals.length")
    place = pixel_of(studio, "panda_link5")
    for kind in KINDS:
        studio.page.mouse.click(*place, button="right")
        studio.page.click(named(f"menu-goal-{kind}"))
        studio.wait("m.store.goals.length === a", count + 1)
        goal = studio.wait("m.store.selection.kind === 'goal' && m.store.goal(m.store.selection.goal)")
        assert (goal["kind"], goal["pinned"]) == (kind, False)
        assert studio.eval("m.store.model.links[a].name", goal["link"]) == "panda_link5"
        after = studio.at_rest()
        assert max(goal_row(studio, goal["number"], after)[7:]) < 1e-5, f"{kind} is met where it stands"
        assert after["values"] == pytest.approx(before, abs=1e-4), f"nothing jumps with {kind}"
        studio.page.keyboard.press("Control+z")
        studio.wait("m.store.goals.length === a", count)
    studio.page.mouse.click(*place, button="right")
    assert studio.page.is_disabled(named("menu-goal-centre_of_mass")), "the arm's file knows no masses"
    assert "no link has mass" in (studio.page.get_attribute(named("menu-goal-centre_of_mass"), "title") or "")
    studio.page.keyboard.press("Escape")


def test_the_menu_pins_locks_hides_and_esc_closes_it(studio):
    count = studio.eval("m.store.goals.length")
    press_in_menu(studio, "panda_link4", "pin")
    studio.wait("m.store.goals.length === a", count + 1)
    assert studio.eval("m.store.goals.at(-1).pinned")
    press_in_menu(studio, "panda_link2", "lock")
    studio.wait("m.store.model.dofs.find((f) => f.name === 'panda_joint2').locked")
    press_in_menu(studio, "panda_link2", "unlock")
    studio.wait("!m.store.model.dofs.find((f) => f.name === 'panda_joint2').locked")
    press_in_menu(studio, "panda_link2", "hide")
    hidden = studio.wait("1 + m.store.model.links.findIndex((link) => !link.visible)") - 1
    assert studio.eval("m.store.model.links[a].name", hidden) == "panda_link2"
    assert studio.eval("m.view.linkObject(a).visible", hidden) is False
    menu(studio, "panda_link4")
    studio.page.keyboard.press("ArrowDown")
    studio.page.keyboard.press("Escape")
    assert not studio.page.is_visible(named("menu"))
    menu(studio, "panda_link4")
    box = studio.page.locator(named("menu")).bounding_box()
    assert 0 <= box["x"] <= 960 - box["width"]
    assert 0 <= box["y"] <= 600 - box["height"]
    studio.page.mouse.click(*pixel_of(studio, None))
    assert not studio.page.is_visible(named("menu"))


def test_the_menu_of_a_goal_changes_its_kind_and_removes_it(studio):
    number = choose_goal(studio)
    studio.eval("(m.store.select({ kind: 'none' }), 1)")
    studio.drawn()
    studio.page.mouse.click(*studio.goal_on_screen(number), button="right")
    studio.page.click(named("menu-kind-point"))
    studio.wait("m.store.goal(a).kind === 'point'", number)
    studio.eval("(m.store.select({ kind: 'none' }), 1)")
    studio.drawn()
    studio.page.mouse.click(*studio.goal_on_screen(number), button="right")
    studio.page.click(named("menu-delete"))
    studio.wait("m.store.goal(a) === undefined", number)
