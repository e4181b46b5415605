"""What bumps into something is red, and only that; what is avoided is not bumped into, whatever the mouse does."""

import numpy as np
import pytest
from browser_checks import check_number, check_quiet, check_words, choose_goal, named, open_tab, pixels, value_of

import mechanik as mk
from mechanik.studio.scenes.collision_scenes import table_obstacles
from mechanik.studio.studio_api import Studio as ProgramStudio

MANY, FEW = 0.004, 0.0004
"""Shares of the view: of red where a link or an obstacle is, and where nothing but a goal's axes is of that colour."""
CLEARANCE, TOUCHING = 0.010, 1e-6
"""m; of the scene."""
SETTLED = "m.store.frame?.isAtRest && m.store.contacts?.links.length {}"


def red_share(studio) -> float:
    """How much of the view is of the red of clashes; no goal is selected, whose handle is red too."""
    studio.eval("(m.store.select({ kind: 'none' }), true)")
    studio.page.mouse.move(4, 590)
    red, green, blue = np.moveaxis(pixels(studio.still()), 2, 0)
    return float(((red > 120) & (green < 0.4 * red) & (blue < 0.45 * red)).mean())


def collider() -> mk.Collider:
    arm = mk.gallery.panda()
    return mk.Collider(arm, ["self", *table_obstacles(0.35)])


def q_of(studio, arm: mk.Mechanism) -> np.ndarray:
    frame = studio.at_rest()
    named_values = studio.eval("m.store.model.dofs.filter((f) => f.mimics < 0).map((f) => f.name)")
    return arm.configuration({name: value_of(studio, name, frame) for name in named_values})


def drag_down(studio, pixels_down: float) -> None:
    """Take the hand's goal by its handle and drag it down, or up."""
    number = choose_goal(studio)
    x, y = studio.goal_on_screen(number)
    studio.drag((x, y), (x, y + pixels_down), steps=16)
    studio.at_rest()


@pytest.fixture
def studio(shared_page):
    """The Panda at its table, fresh."""
    shared_page.page.mouse.move(2, 300)
    shared_page.eval("(m.panels.closeAll(), m.controller.setMode('move'), m.controller.setSpace('world'), 1)")
    shared_page.show("scene", "table")
    shared_page.wait("m.store.obstacles.length === 5 && m.store.scene.name === 'table'")
    shared_page.at_rest()
    yield shared_page
    check_quiet(shared_page)


def test_a_hand_that_is_dragged_into_the_table_is_red_and_away_from_it_is_not(studio):
    open_tab(studio, "solve")
    studio.page.select_option(named("collisions"), "show")
    studio.wait("m.store.collisions.mode === 'show'")
    assert red_share(studio) < FEW, "far away nothing is red"
    drag_down(studio, 150)
    studio.wait(SETTLED.format("> 0"))
    studio.wait("m.store.contacts.obstacles.includes('table')")
    assert red_share(studio) > MANY
    studio.wait("m.store.statusText.text.startsWith('In collision: ')")
    check_words(studio, named("status"), "In collision")
    drag_down(studio, -150)
    studio.wait(SETTLED.format("=== 0"))
    assert red_share(studio) < FEW, "and it is as before"


def test_what_is_avoided_is_never_touched_by_a_drag(studio):
    watch = collider()
    assert studio.eval("m.store.collisions") == {"is": "Collisions", "mode": "avoid", "clearance": CLEARANCE}
    studio.eval("(window.bumped = 0, m.store.on('contacts', (c) => (window.bumped += c.links.length)), true)")
    before = q_of(studio, watch.mechanism)
    drag_down(studio, 150)
    q = q_of(studio, watch.mechanism)
    assert np.abs(q - before).max() > 0.05, "it has moved"
    assert watch.distance(q) > CLEARANCE - TOUCHING
    assert studio.eval("m.store.frame.goals[7]") > 0.02, "and it has not got there"
    assert red_share(studio) < FEW
    assert studio.eval("window.bumped") == 0


def test_off_paints_nothing_and_undo_paints_it_again(studio):
    open_tab(studio, "solve")
    studio.page.select_option(named("collisions"), "show")
    drag_down(studio, 150)
    studio.wait(SETTLED.format("> 0"))
    studio.page.select_option(named("collisions"), "off")
    studio.wait(SETTLED.format("=== 0"))
    assert red_share(studio) < FEW
    studio.page.keyboard.press("Control+z")
    studio.wait(SETTLED.format("> 0"))
    assert red_share(studio) > MANY
    studio.wait("document.querySelector(a).value === 'show'", named("collisions"))


def test_clearance_is_typed_in_millimetres(studio):
    watch = collider()
    open_tab(studio, "solve")
    field = studio.page.locator(named("clearance"))
    check_number(studio, named("clearance"), 10, 0)
    field.fill("17.5")
    field.press("Tab")
    studio.wait("m.store.collisions.clearance === 0.0175")
    drag_down(studio, 150)
    assert watch.distance(q_of(studio, watch.mechanism)) < 0.05, "it has come to the table"
    assert watch.distance(q_of(studio, watch.mechanism)) > 0.0175 - TOUCHING
    field.fill("-3")
    field.press("Tab")
    assert field.get_attribute("aria-invalid") == "true"
    assert studio.eval("m.store.collisions.clearance") == 0.0175


def test_the_boxes_that_hit_the_walls_are_red_with_the_walls(studio):
    studio.show("scene", "boxes")
    studio.wait("m.store.scene.name === 'boxes' && m.store.obstacles.length === 2")
    studio.at_rest()
    assert red_share(studio) < FEW
    open_tab(studio, "scene")
    studio.page.select_option(named("control-pose"), "hits the walls")
    studio.wait(SETTLED.format("> 0"))
    assert studio.eval("m.store.contacts.links.map((k) => m.store.model.links[k].name)") == ["link6", "link7", "link9"]
    assert red_share(studio) > MANY


def test_obstacles_of_a_program_are_drawn_whatever_their_kind(browser, open_studio):
    from studio_driving import Studio

    shapes = {
        "sphere": mk.Sphere(0.12),
        "capsule": mk.Capsule(0.06, 0.2),
        "box": mk.Box((0.2, 0.2, 0.2)),
        "cylinder": mk.Cylinder(0.1, 0.25),
        "hull": mk.ConvexMesh([(0, 0, 0), (0.25, 0, 0), (0, 0.25, 0), (0, 0, 0.25)]),
        "field": mk.HeightField([[0.0, 0.1, 0.0], [0.1, 0.2, 0.1]], (0.4, 0.4)),
    }
    round_about = {
        name: mk.Obstacle(shape, (0.9 * np.cos(k), 0.9 * np.sin(k), 0.2), name=name)
        for k, (name, shape) in enumerate(shapes.items())
    }
    floor = mk.Obstacle(mk.HalfSpace(), (0.0, 0.0, -0.5), name="floor")
    with ProgramStudio(mk.gallery.ur5(), avoid=["self", *round_about.values(), floor], open_browser=False) as program:
        page = Studio.open(browser, program.link)
        page.wait("m.store.obstacles.length === 7 && m.view.sceneGraph.obstacles.drawnObstacles.length === 7")
        page.drawn()  # which puts them into their places
        boxes = page.eval(
            "m.view.sceneGraph.obstacles.drawnObstacles.map(({ info, mesh }) => (mesh.geometry.computeBoundingBox(),"
            " [info.name, mesh.matrixWorld.elements.slice(12, 15), mesh.geometry.boundingBox.min.toArray(),"
            " mesh.geometry.boundingBox.max.toArray()]))"
        )
        drawn = {name: (place, np.subtract(high, low)) for name, place, low, high in boxes}
        for name, obstacle in round_about.items():
            np.testing.assert_allclose(drawn[name][0], obstacle.pose.position, atol=1e-9)
        np.testing.assert_allclose(drawn["hull"][1], 0.25, atol=1e-6)
        np.testing.assert_allclose(drawn["capsule"][1][2], 0.32, atol=1e-3)
        page.still()
        program.move_obstacle("box", (0.9, 0.0, 0.6))
        page.wait("m.store.obstacles.find(({ name }) => name === 'box').shape.pose[2] === 0.6")
        check_quiet(page)
        page.close()
