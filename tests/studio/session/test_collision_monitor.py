"""Collisions are shown, and avoided on request; obstacles are sent to pages, and all changes can be undone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from session_harness import SessionHarness

import mechanik as mk
from mechanik.errors import InvalidArgument, InvalidOperation, MechanikError, StructureError, UnknownName
from mechanik.studio.messages.events import Collisions, ContactsChanged, Model, ObstacleMoved, Obstacles, StatusText
from mechanik.studio.messages.message_codec import STATUSES
from mechanik.studio.messages.requests import (
    EditModel,
    OpenGallery,
    OpenScene,
    Redo,
    SetCollisions,
    SetControl,
    SetRunning,
    ShowAlternatives,
    Undo,
)
from mechanik.studio.scenes import SCENES
from mechanik.studio.scenes.collision_scenes import AXES, BOX_WIDTH, CONFIGURATIONS, LENGTHS, WALL_POSITIONS, WALL_SIZE

CASES = json.loads((Path(__file__).parents[2] / "data/seed_arms/collision_vectors.json").read_text(encoding="utf-8"))
PATIENCE = 300.0
"""Seconds for a look; the first of all compiles."""
WALL_BEFORE = mk.Obstacle(mk.Box((0.1, 0.6, 0.6)), (0.65, 0.0, 0.5), name="wall")
"""In front of a Panda, 0.3 m from its hand."""
INTO, TOUCHING = (0.3, 0.0, 0.0), 1e-6
KINDS = [
    mk.Obstacle(mk.Sphere(0.1), (1, 0, 0), name="sphere"),
    mk.Obstacle(mk.Capsule(0.1, 0.2), (1, 1, 0), name="capsule"),
    mk.Obstacle(mk.Box((0.1, 0.2, 0.3)), (1, 2, 0), name="box"),
    mk.Obstacle(mk.Cylinder(0.1, 0.2), (1, 3, 0), name="cylinder"),
    mk.Obstacle(mk.ConvexMesh([(0, 0, 0), (0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1)]), (1, 4, 0), name="hull"),
    mk.Obstacle(mk.HeightField([[0.0, 0.1], [0.2, 0.3]], (1.0, 1.0)), (2, 0, -1), name="field"),
    mk.Obstacle(mk.HalfSpace(), (0, 0, -1), name="floor"),
]


def looked(harness: SessionHarness) -> ContactsChanged:
    """What bumps where it has come to rest."""
    harness.rest()
    assert harness.session.collision_monitor.wait(PATIENCE)
    return harness.session.collision_monitor.info()


def names(harness: SessionHarness, event: ContactsChanged) -> set[str]:
    return {harness.model.links[k].name for k in event.links} | {*event.obstacles}


def truly_hit(harness: SessionHarness) -> set[str]:
    """By a collider of our own."""
    collisions = harness.session.active.edit_state.collision_settings
    collider = mk.Collider(harness.session.mechanism, collisions.avoid)
    return {name for contact in collider.contacts(harness.session.q) for name in (contact.a, contact.b)}


@pytest.fixture
def harness():
    """A Panda before a wall."""
    with SessionHarness("panda") as harness:
        harness.session.set_collision_avoidance(["self", WALL_BEFORE])
        yield harness


@pytest.fixture
def goal(harness) -> int:
    return harness.session.goals[0].number


# ---- showing ----------------------------------------------------------------------------------


def test_contacts_are_sent_when_they_begin_and_when_they_end(harness, goal):
    assert looked(harness).links == []
    harness.drag(goal, INTO)
    hit = looked(harness)
    assert hit.obstacles == ["wall"]
    assert len(hit.links) > 0
    assert names(harness, hit) == truly_hit(harness)
    assert harness.last(ContactsChanged) == hit
    harness.drag(goal, np.negative(INTO))
    assert looked(harness) == harness.last(ContactsChanged)
    assert (harness.last(ContactsChanged).links, harness.last(ContactsChanged).obstacles) == ([], [])


def test_an_event_comes_only_when_the_set_is_another(harness, goal):
    harness.drag(goal, INTO)
    looked(harness)
    count = len(harness.all(ContactsChanged))
    harness.drag(goal, (0.0005, 0.0, 0.0))
    hit = looked(harness)
    assert names(harness, hit) == truly_hit(harness)
    assert len(harness.all(ContactsChanged)) == count


def test_the_words_name_the_pair_and_how_deep(harness, goal):
    harness.drag(goal, INTO)
    looked(harness)
    harness.tick()
    words = harness.last(StatusText)
    assert words.status == "IN_COLLISION"
    deepest = mk.Collider(harness.session.mechanism, ["self", WALL_BEFORE]).nearest_pairs(harness.session.q)[0]
    assert words.text.startswith(f"In collision: {deepest}")
    assert "mm inside 'wall'" in words.text


def test_no_contacts_are_sent_while_collisions_are_off(harness, goal):
    harness.drag(goal, INTO)
    assert looked(harness).links
    harness.ask(SetCollisions("off"))
    assert looked(harness).links == []
    harness.tick()
    assert "ollision" not in harness.last(StatusText).text


def test_a_pose_that_is_shown_while_it_is_paused_is_looked_at_too(harness):
    harness.ask(SetRunning(False))
    arm = harness.session.mechanism
    reaching = mk.solve(arm, mk.PositionGoal("panda_hand_tcp", (0.65, 0.0, 0.5)), q0=arm.configurations["home"]).q
    harness.session.set_configuration(reaching)
    assert harness.session.collision_monitor.wait(PATIENCE)
    assert "wall" in harness.session.collision_monitor.info().obstacles


def test_a_mechanism_without_shapes_is_not_looked_at():
    bare = mk.arm_3d([1.0, 1.0], "zy")
    with SessionHarness() as harness:
        harness.session.open(bare)
        harness.rest()
        assert harness.session.collision_monitor._thread is None
        with pytest.raises(StructureError, match="has a collision shape"):
            harness.ask(SetCollisions("avoid"))
        assert harness.last(Collisions).mode == "show"


@pytest.mark.parametrize("name", ["klann_leg", "peaucellier", "slider_crank"])
def test_bars_of_a_flat_linkage_may_be_drawn_over_each_other(name):
    """They lie one above the other in truth; who wants to see where they cross can have it shown."""
    with SessionHarness(name) as harness:
        assert harness.last(Collisions).mode == "off"
        harness.ask(SetCollisions("show"))
        assert names(harness, looked(harness)) == truly_hit(harness)


def test_page_that_connects_later_receives_everything(harness, goal):
    harness.drag(goal, INTO)
    hit = looked(harness)
    harness.events.clear()
    harness.session.send_everything()
    assert harness.last(ContactsChanged) == hit
    assert [item.name for item in harness.last(Obstacles).obstacles] == ["wall"]
    assert harness.last(Collisions) == Collisions("show", 0.0)
    kinds = [type(item) for item in harness.events]
    assert kinds.index(ContactsChanged) > kinds.index(Model), "a page forgets what bumps when another model comes"


# ---- avoiding ---------------------------------------------------------------------------------


def test_what_is_avoided_is_not_touched_in_any_state_of_a_drag(harness, goal):
    clearance = 0.01
    harness.ask(SetCollisions("avoid", clearance))
    states: list[np.ndarray] = []
    harness.session.subscribe(lambda state: states.append(state.q))
    frame = harness.drag(goal, (0.35, 0.05, 0.0), steps=20)
    looked(harness)
    harness.session.state_subscribers.wait(
        (harness.session.solver_session_count, harness.session.live.state.sequence), PATIENCE
    )
    gaps = mk.Collider(harness.session.mechanism, ["self", WALL_BEFORE]).distance(
        np.array([*states, harness.session.q])
    )
    assert np.min(gaps) > clearance - TOUCHING
    assert frame.goals[0, 7] > 0.05, "it could not get there"
    assert harness.last(ContactsChanged).links == [] if harness.all(ContactsChanged) else True
    harness.tick()
    assert "'wall' blocks" in harness.last(StatusText).text


def test_without_avoiding_the_same_drag_goes_through_the_wall(harness, goal):
    """A negative control of the test above."""
    frame = harness.drag(goal, (0.35, 0.05, 0.0), steps=20)
    assert frame.goals[0, 7] < 1e-4
    assert "wall" in looked(harness).obstacles


@pytest.mark.parametrize("mode", ["avoid", "show"])
def test_a_joint_that_is_turned_by_hand_goes_through_a_wall_unless_that_is_avoided(harness, mode):
    harness.session.set_collision_avoidance(
        [mk.Obstacle(mk.Box((0.2, 0.1, 1.0)), (0.25, 0.25, 0.5), name="side")], mode=mode
    )
    watch = mk.Collider(harness.session.mechanism, harness.session.active.edit_state.collision_settings.avoid)
    harness.turn(0, 0.8, steps=12)
    assert watch.is_free(harness.session.q, -TOUCHING) == (mode == "avoid")


def test_to_avoid_what_is_hit_already_leads_out_of_it(harness, goal):
    harness.drag(goal, INTO)
    assert looked(harness).links
    harness.ask(SetCollisions("avoid"))
    assert looked(harness).links == []
    assert mk.Collider(harness.session.mechanism, ["self", WALL_BEFORE]).is_free(harness.session.q, -TOUCHING)


def test_alternatives_have_no_collisions_while_avoidance_is_on(harness):
    harness.session.set_collision_avoidance(mode="avoid")
    harness.ask(ShowAlternatives(8))
    harness.session.alternatives.join()
    collider = mk.Collider(harness.session.mechanism, ["self", WALL_BEFORE])
    assert collider.is_free(harness.session.q)
    alternatives = harness.session.alternatives.poll()
    assert alternatives is not None
    assert alternatives.poses


# ---- undo -------------------------------------------------------------------------------------


def test_what_is_done_about_collisions_is_undone_and_redone(harness, goal):
    harness.drag(goal, INTO)
    through = looked(harness)
    q = harness.session.q.copy()
    harness.ask(SetCollisions("avoid", 0.02))
    assert harness.last(Collisions) == Collisions("avoid", 0.02)
    harness.rest()
    around = harness.session.q.copy()
    assert not np.array_equal(around, q)
    harness.ask(SetCollisions("avoid", 0.05))
    harness.rest()
    for _ in range(2):
        harness.ask(Undo())
    assert harness.last(Collisions) == Collisions("show", 0.0)
    np.testing.assert_array_equal(harness.session.q, q)
    assert looked(harness) == through
    harness.ask(Redo())
    assert harness.last(Collisions) == Collisions("avoid", 0.02)
    assert looked(harness).links == []
    np.testing.assert_array_equal(harness.session.q, around)


def test_setting_what_is_set_already_is_no_step(harness):
    steps = len(harness.session.history)
    harness.ask(SetCollisions("show", 0.0))
    assert len(harness.session.history) == steps


def test_another_mechanism_has_no_obstacles_and_an_undo_brings_them_back(harness, goal):
    harness.drag(goal, INTO)
    hit = names(harness, looked(harness))
    harness.ask(OpenGallery("ur5"))
    assert harness.last(Obstacles).obstacles == []
    assert looked(harness).links == []
    harness.ask(Undo())
    assert [obstacle.name for obstacle in harness.last(Obstacles).obstacles] == ["wall"]
    assert names(harness, looked(harness)) == hit


def test_an_arm_that_is_typed_anew_is_looked_at_among_the_same_obstacles():
    text = '{{"mechanik": 1, "arm": {{"lengths": [1, {length}], "axes": "zy"}}}}'
    with SessionHarness() as harness:
        harness.ask(EditModel("arm_3d", text.format(length=1)))
        harness.session.set_collision_avoidance(
            ["self", mk.Obstacle(mk.Box((0.5, 0.5, 0.5)), (0.0, 0.0, 3.0), name="roof")]
        )
        assert looked(harness).obstacles == []
        harness.ask(EditModel("arm_3d", text.format(length=2)))
        harness.session.set_configuration(np.zeros(2))
        assert looked(harness).obstacles == ["roof"]


# ---- obstacles --------------------------------------------------------------------------------


def test_every_kind_of_obstacle_is_sent_with_its_pose(harness):
    harness.session.set_collision_avoidance(["self", *KINDS])
    shapes = {obstacle.name: obstacle.shape for obstacle in harness.last(Obstacles).obstacles}
    assert shapes.keys() == {obstacle.name for obstacle in KINDS}
    assert {name: shape.kind for name, shape in shapes.items()} == {
        "sphere": "sphere", "capsule": "capsule", "box": "box", "cylinder": "cylinder", "hull": "mesh",
        "field": "mesh", "floor": "box",
    }  # fmt: skip
    for obstacle in KINDS:
        if obstacle.name != "floor":
            assert shapes[obstacle.name].pose[:3] == tuple(obstacle.pose.position)
    floor = shapes["floor"]
    assert floor.pose[2] + floor.sizes[2] / 2 == pytest.approx(-1.0, abs=1e-12), "its top is the true one"
    for name in ("hull", "field"):
        address = shapes[name].mesh
        assert address is not None
        data, kind = harness.session.read_mesh(int(address.split("/")[-1].split("?")[0]))
        assert kind == "model/stl"
        assert len(data) > 84


def test_an_obstacle_is_moved_and_what_it_touches_is_found(harness):
    home = mk.gallery.panda().pose("panda_hand_tcp", harness.session.q)[:3, 3]
    harness.session.move_obstacle("wall", home)
    assert looked(harness).obstacles == ["wall"]
    harness.session.move_obstacle("wall", (3.0, 0.0, 0.0))
    assert looked(harness).obstacles == []
    assert harness.last(ObstacleMoved).obstacle.shape.pose[0] == 3.0


def test_arm_avoids_an_obstacle_that_is_moved_into_it(harness):
    harness.session.set_collision_avoidance(mode="avoid", clearance=0.005)
    harness.rest()
    for x in (0.5, 0.44, 0.4, 0.37, 0.34):
        harness.session.move_obstacle("wall", (x, 0.0, 0.5))
        harness.rest()
    collider = mk.Collider(harness.session.mechanism, harness.session.active.edit_state.collision_settings.avoid)
    assert collider.distance(harness.session.q) > 0.005 - TOUCHING
    assert np.abs(harness.session.q - harness.session.mechanism.configurations["home"]).max() > 1e-3


@pytest.mark.parametrize(
    ("avoid", "error"),
    [
        (["slef"], UnknownName),
        ([mk.Box((1, 1, 1))], InvalidArgument),
        ([mk.Obstacle(mk.Sphere(0.1), name="panda_hand")], StructureError),
        (7, InvalidArgument),
    ],
)
def test_what_cannot_be_avoided_is_refused_and_changes_nothing(harness, avoid, error):
    before = harness.session.active.edit_state
    with pytest.raises(error):
        harness.session.set_collision_avoidance(avoid)
    assert harness.session.active.edit_state is before


def test_a_wrong_clearance_or_obstacle_is_refused(harness):
    with pytest.raises(MechanikError):
        harness.session.set_collision_avoidance(mode="avoid", clearance=float("nan"))
    with pytest.raises(UnknownName, match="wall"):
        harness.session.move_obstacle("wal", (0, 0, 0))
    assert harness.last(Collisions).mode == "show"


def test_meshes_that_came_with_a_page_are_looked_at_and_no_file_is_read(tmp_path):
    """A file of this machine is never read for a mechanism that came from a page, whatever path that names."""
    secret = tmp_path / "secret.stl"
    secret.write_bytes(b"not to be read")
    arm = mk.arm_3d([1.0, 1.0], "zy")
    for link in list(arm.links.values())[:2]:
        link.collisions = (mk.ShapeInstance(mk.Mesh("secret.stl", path=str(secret))),)
    with SessionHarness() as harness:
        harness.session.open(arm, files={})
        event = looked(harness)
        assert "was not uploaded" in event.reason
        with pytest.raises(InvalidOperation, match="uploaded mesh"):
            harness.ask(SetCollisions("avoid"))


# ---- scenes -----------------------------------------------------------------------------------


def test_the_scene_of_boxes_is_the_recorded_arm_between_the_recorded_walls():
    assert (CASES["lengths"], CASES["axes"], 1.2) == (LENGTHS, AXES, BOX_WIDTH)
    assert CASES["obstacles"] == [
        {"center": [*place], "half": [edge / 2 for edge in WALL_SIZE]} for place in WALL_POSITIONS
    ]


@pytest.mark.parametrize(("pose", "case"), [("hits itself", "self_cases"), ("hits the walls", "world_cases")])
def test_in_the_scene_of_boxes_those_are_red_that_were_hit(pose, case):
    hit = {f"link{k}" for k, is_hit in enumerate(CASES[case][0]["hit"]) if is_hit}
    with SessionHarness(scenes=SCENES) as harness:
        harness.ask(OpenScene("boxes"))
        assert looked(harness).links == []
        harness.ask(SetControl("pose", pose))
        np.testing.assert_allclose(CONFIGURATIONS[pose], CASES[case][0]["q"], atol=1e-3)
        assert {name for name in names(harness, looked(harness)) if name.startswith("link")} == hit
        harness.ask(Undo())
        assert looked(harness).links == []


def test_tool_slides_along_the_obstacles_of_the_table_scene():
    with SessionHarness(scenes=SCENES) as harness:
        harness.ask(OpenScene("table"))
        assert looked(harness).reason == ""
        collider = mk.Collider(harness.session.mechanism, harness.session.active.edit_state.collision_settings.avoid)
        goal = harness.session.goals[0].number
        frame = harness.drag(goal, (0.0, 0.0, -0.4), steps=10)  # into the table
        assert collider.distance(harness.session.q) > 0.01 - TOUCHING
        assert frame.goals[0, 7] > 0.05
        low = frame.links[-1][2]
        frame = harness.drag(goal, (0.2, 0.2, 0.0), steps=10)  # along it
        assert collider.distance(harness.session.q) > 0.01 - TOUCHING
        assert STATUSES[int(frame.header.status)] in ("CLOSEST", "STALLED")
        assert abs(frame.links[-1][2] - low) < 0.05
        harness.ask(SetControl("avoids", False))
        assert "table" in looked(harness).obstacles
