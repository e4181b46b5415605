"""Obstacles by the mouse: clicked, dragged and turned by their handle, added, removed; the arm gives way or is red."""

import time

import numpy as np
import pytest
from browser_checks import camera, check_number, metres_per_pixel, named, open_tab, pixel_of, pixels, value_of
from studio_driving import PATIENCE

import mechanik as mk
from mechanik.spatial import quaternion, rotation
from mechanik.studio.scenes.collision_scenes import table_obstacles

CLEARANCE, TOUCHING = 0.010, 1e-6
"""m; of the scene."""
MANY = 0.004
"""Share of red in a view where a link or an obstacle is hit."""
ABOVE_THE_BAR = {"x": 0, "y": 0, "width": 640, "height": 320}
"""Of the page that plays by itself."""
RING = 56
"""px from the middle to where a ring is taken."""


def pose_of(studio, name: str) -> np.ndarray:
    """x y z qw qx qy qz, as the page knows it."""
    return np.array(studio.eval("m.store.obstacle(a).pose", name))


def choose(studio, name: str) -> tuple[float, float]:
    """Select an obstacle; the pixel of its middle, where its handle is."""
    studio.eval("(m.store.select({ kind: 'obstacle', obstacle: a }), true)", name)
    studio.drawn()
    return studio.on_screen(pose_of(studio, name)[:3])


def drag_to(studio, name: str, place, steps: int = 16) -> None:
    """Take an obstacle by the middle of its handle, drag it to where that place is seen, and wait until all rests."""
    studio.drag(choose(studio, name), studio.on_screen(place), steps=steps)
    studio.wait("m.store.history.undo === a && m.store.connection.pending.size === 0", f"move {name}")
    studio.at_rest()


def link_place(studio, link: str) -> np.ndarray:
    """(3,), m."""
    number = studio.eval("m.store.model.links.findIndex(({ name }) => name === a)", link)
    return np.array(studio.at_rest()["links"][7 * number : 7 * number + 3])


def gap_now(studio) -> float:
    """m; of the Panda as it rests, among the obstacles of its scene where the page has them."""
    frame = studio.at_rest()
    arm = mk.gallery.panda()
    names = studio.eval("m.store.model.dofs.filter((f) => f.mimics < 0).map((f) => f.name)")
    q = arm.configuration({name: value_of(studio, name, frame) for name in names})
    standing = [
        mk.Obstacle(
            obstacle.shape, pose_of(studio, obstacle.name)[:3], pose_of(studio, obstacle.name)[3:], name=obstacle.name
        )
        for obstacle in table_obstacles(0.35)
    ]
    return mk.Collider(arm, ["self", *standing]).distance(q)


def red(picture: bytes) -> float:
    """Which share of a picture is of the red of clashes."""
    r, g, b = np.moveaxis(pixels(picture), 2, 0)
    return float(((r > 120) & (g < 0.4 * r) & (b < 0.45 * r)).mean())


def red_share(studio) -> float:
    """Of the view, with nothing selected, since handles are red too."""
    studio.eval("(m.store.select({ kind: 'none' }), true)")
    studio.page.mouse.move(4, 590)
    return red(studio.still())


@pytest.fixture
def table(studio):
    """The Panda at its table, fresh, with nothing selected."""
    studio.show("scene", "table")
    studio.wait("m.store.obstacles.length === 5 && m.store.scene.name === 'table'")
    studio.at_rest()
    studio.eval("(m.store.select({ kind: 'none' }), true)")
    studio.still()  # the first look has ended
    return studio


def test_a_click_selects_it_and_one_beside_it_selects_nothing(table):
    table.page.mouse.click(*table.on_screen(pose_of(table, "ball")[:3]))
    table.wait("m.store.selection.kind === 'obstacle' && m.store.selection.obstacle === 'ball'")
    table.page.mouse.click(*pixel_of(table, None))
    table.wait("m.store.selection.kind === 'none'")


def test_a_drag_that_begins_on_its_body_turns_the_view_and_leaves_it_where_it_is(table):
    before, eye = pose_of(table, "table"), camera(table)[0]
    x, y = table.on_screen((0.85, -0.5, 0.2))
    table.drag((x, y), (x + 60, y - 20))
    table.drawn()
    assert np.linalg.norm(camera(table)[0] - eye) > 0.05
    np.testing.assert_array_equal(pose_of(table, "table"), before)
    assert table.eval("m.store.selection.kind") == "none"


def test_arm_avoids_a_dragged_obstacle_and_undo_restores_both(table):
    before, was, undo = table.at_rest(), pose_of(table, "ball"), table.eval("m.store.history.undo")
    drag_to(table, "ball", link_place(table, "panda_hand"))
    assert np.linalg.norm(pose_of(table, "ball")[:3] - was[:3]) > 0.2
    after = table.at_rest()
    assert np.abs(np.subtract(after["values"], before["values"])).max() > 0.05, "the arm has moved"
    assert gap_now(table) > CLEARANCE - TOUCHING
    table.page.keyboard.press("Control+z")
    table.wait("m.store.history.redo && m.store.history.undo === a", undo)
    assert table.at_rest()["values"] == before["values"]
    np.testing.assert_array_equal(pose_of(table, "ball"), was)
    table.page.keyboard.press("Control+y")
    table.wait("!m.store.history.redo")
    assert table.at_rest()["values"] == after["values"]


def test_what_is_dragged_into_an_arm_is_red_with_it_where_that_is_only_shown(table):
    open_tab(table, "solve")
    table.page.select_option(named("collisions"), "show")
    table.wait("m.store.collisions.mode === 'show'")
    before = table.at_rest()
    calm = red_share(table)
    drag_to(table, "ball", link_place(table, "panda_hand"))
    table.wait("m.store.contacts?.obstacles.includes('ball') && m.store.contacts.links.length > 0")
    assert table.at_rest()["values"] == before["values"], "the arm stays"
    choose(table, "ball")
    table.wait("document.querySelector(a).dataset.tone === 'bad'", named("obstacle-ball"))
    for name, number in zip("xyz", pose_of(table, "ball")[:3], strict=True):
        check_number(table, named(f"obstacle-{name}"), number, 5.1e-5)
    assert red_share(table) > calm + MANY


def test_e_turns_it_about_an_axis_of_the_world_and_leaves_its_place(table):
    was = pose_of(table, "rock")
    choose(table, "rock")
    table.page.keyboard.press("e")
    table.drawn()
    z, place = np.array([0.0, 0.0, 1.0]), was[:3]
    toward = camera(table)[0] - place
    near = rotation.exp(z * 0.35) @ (toward - z * toward[2])
    near *= RING * metres_per_pixel(table, place) / np.linalg.norm(near)
    start, *ends = (table.on_screen(place + rotation.exp(z * angle) @ near) for angle in (0.0, 0.2, 0.4, 0.6))
    table.drag(start, *ends, steps=3)
    table.wait("m.store.history.undo === 'move rock'")
    table.at_rest()
    now = pose_of(table, "rock")
    np.testing.assert_allclose(now[:3], was[:3], atol=1e-12)
    by = rotation.log(quaternion.to_matrix(now[3:]) @ quaternion.to_matrix(was[3:]).T)
    np.testing.assert_allclose(by[:2], 0, atol=1e-9)
    assert by[2] == pytest.approx(0.6, abs=0.15), "what was taken stays under the pointer"


def test_esc_in_the_midst_of_a_drag_puts_it_back(table):
    before, was, undo = table.at_rest(), pose_of(table, "ball"), table.eval("m.store.history.undo")
    (x, y), (to_x, to_y) = choose(table, "ball"), table.on_screen(link_place(table, "panda_hand"))
    table.page.mouse.move(x, y)
    table.page.mouse.down()
    for share in np.linspace(0.1, 1.0, 10):
        table.page.mouse.move(x + share * (to_x - x), y + share * (to_y - y))
    table.wait("m.store.frame.values.some((value, k) => Math.abs(value - a[k]) > 0.05)", before["values"])
    table.page.keyboard.press("Escape")
    table.wait("m.store.frame.isAtRest && m.store.frame.values.every((value, k) => value === a[k])", before["values"])
    table.page.mouse.up()
    table.wait("m.store.obstacle('ball').pose.every((number, k) => number === a[k])", was.tolist())
    assert table.eval("m.store.history.undo") == undo
    assert not table.eval("m.controller.isDragging")


def test_a_robot_of_the_gallery_gets_an_obstacle_that_is_dragged_typed_and_removed(studio):
    open_tab(studio, "solve")
    studio.wait("document.querySelector(a)", named("no-obstacles"))
    studio.page.click(named("add-capsule"))
    studio.wait("m.store.selection.kind === 'obstacle' && m.store.selection.obstacle === 'capsule 1'")
    studio.still()
    was = pose_of(studio, "capsule 1")
    drag_to(studio, "capsule 1", was[:3] + np.array([0.0, 0.0, 0.15]))
    now = pose_of(studio, "capsule 1")
    assert now[2] - was[2] > 0.1
    check_number(studio, named("obstacle-z"), now[2], 5.1e-5)
    field = studio.page.locator(named("obstacle-y"))
    field.fill("0.25")
    field.press("Enter")
    studio.wait("m.store.obstacle('capsule 1').pose[1] === 0.25")
    radius = studio.page.locator(named("obstacle-radius"))
    radius.fill("0.02")
    radius.press("Enter")
    studio.wait("m.store.obstacle('capsule 1').shape.sizes[0] === 0.02")
    field.fill("far")
    field.press("Enter")
    assert field.get_attribute("aria-invalid") == "true"
    studio.page.click(f"{named('obstacle-capsule 1')} {named('obstacle-remove')}")
    studio.wait("m.store.obstacles.length === 0 && m.store.selection.kind === 'none'")
    studio.page.mouse.click(*pixel_of(studio, None))  # out of the field
    studio.page.keyboard.press("Control+z")
    studio.wait("m.store.obstacle('capsule 1')?.pose[1] === 0.25")


def test_a_recorded_page_shows_obstacles_where_they_stood_and_what_bumped_in_red(table, tmp_path):
    table.ask({"do": "SetCollisions", "mode": "show"})
    table.wait("m.store.collisions.mode === 'show'")
    open_tab(table, "record")
    table.page.click(named("record"))
    table.wait("m.store.recording.state === 'recording'")
    drag_to(table, "ball", link_place(table, "panda_hand"))
    table.wait("m.store.contacts?.obstacles.includes('ball')")
    table.page.click(named("record"))
    table.wait("m.store.recording.state === 'ready'")
    with table.page.expect_download() as download:
        table.page.click(named("save-html"))
    path = tmp_path / "motion.html"
    download.value.save_as(path)
    context = table.page.context.browser.new_context(
        viewport={"width": 640, "height": 400}, offline=True, reduced_motion="reduce"
    )
    context.set_default_timeout(1000 * PATIENCE)
    try:
        page = context.new_page()
        complaints = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path.as_uri())
        page.focus("input[type=range]")
        for key, is_red in (("End", True), ("Home", False)):
            page.keyboard.press(key)
            end = time.monotonic() + PATIENCE
            while ((share := red(page.screenshot(clip=ABOVE_THE_BAR))) > MANY) != is_red and time.monotonic() < end:
                page.wait_for_timeout(30)
            assert (share > MANY) == is_red, share
        assert complaints == []
    finally:
        context.close()


def test_menus_add_one_and_remove_it_and_so_does_the_key(studio):
    studio.page.mouse.click(*pixel_of(studio, None), button="right")
    studio.page.click(named("menu-add-sphere"))
    studio.wait("m.store.selection.kind === 'obstacle' && m.store.selection.obstacle === 'sphere 1'")
    studio.still()
    at = studio.on_screen(pose_of(studio, "sphere 1")[:3])
    studio.page.mouse.click(*at, button="right")
    studio.page.click(named("menu-delete"))
    studio.wait("m.store.obstacles.length === 0")
    studio.page.keyboard.press("Control+z")
    studio.wait("m.store.obstacles.length === 1")
    choose(studio, "sphere 1")
    studio.page.keyboard.press("Delete")
    studio.wait("m.store.obstacles.length === 0 && m.store.selection.kind === 'none'")
