"""What bumps is told, and avoided if that is asked for; obstacles are shown, and all of it can be undone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from session_desk import Desk

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
from mechanik.studio.scenes.collision_scenes import AXES, BOX_WIDTH, LENGTHS, POSES, WALL_POSITIONS, WALL_SIZE

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


def looked(desk: Desk) -> ContactsChanged:
    """What bumps where it has come to rest."""
    desk.rest()
    assert desk.session.collision_monitor.wait(PATIENCE)
    return desk.session.collision_monitor.info()


def names(desk: Desk, event: ContactsChanged) -> set[str]:
    return {desk.model.links[k].name for k in event.links} | {*event.obstacles}


def truly_hit(desk: Desk) -> set[str]:
    """By a collider of our own."""
    collisions = desk.session.active.edit_state.collisions
    collider = mk.Collider(desk.session.mechanism, collisions.avoid)
    return {name for contact in collider.contacts(desk.session.q) for name in (contact.a, contact.b)}


@pytest.fixture
def desk():
    """A Panda before a wall."""
    with Desk("panda") as desk:
        desk.session.set_collision_avoidance(["self", WALL_BEFORE])
        yield desk


@pytest.fixture
def goal(desk) -> int:
    return desk.session.goals[0].number


# ---- showing ----------------------------------------------------------------------------------


def test_contacts_are_sent_when_they_begin_and_when_they_end(desk, goal):
    assert looked(desk).links == []
    desk.drag(goal, INTO)
    hit = looked(desk)
    assert hit.obstacles == ["wall"]
    assert len(hit.links) > 0
    assert names(desk, hit) == truly_hit(desk)
    assert desk.last(ContactsChanged) == hit
    desk.drag(goal, np.negative(INTO))
    assert looked(desk) == desk.last(ContactsChanged)
    assert (desk.last(ContactsChanged).links, desk.last(ContactsChanged).obstacles) == ([], [])


def test_an_event_comes_only_when_the_set_is_another(desk, goal):
    desk.drag(goal, INTO)
    looked(desk)
    count = len(desk.all(ContactsChanged))
    desk.drag(goal, (0.0005, 0.0, 0.0))
    hit = looked(desk)
    assert names(desk, hit) == truly_hit(desk)
    assert len(desk.all(ContactsChanged)) == count


def test_the_words_name_the_pair_and_how_deep(desk, goal):
    desk.drag(goal, INTO)
    looked(desk)
    desk.tick()
    words = desk.last(StatusText)
    assert words.status == "IN_COLLISION"
    deepest = mk.Collider(desk.session.mechanism, ["self", WALL_BEFORE]).nearest_pairs(desk.session.q)[0]
    assert words.text.startswith(f"In collision: {deepest}")
    assert "mm inside 'wall'" in words.text


def test_no_contacts_are_sent_while_collisions_are_off(desk, goal):
    desk.drag(goal, INTO)
    assert looked(desk).links
    desk.ask(SetCollisions("off"))
    assert looked(desk).links == []
    desk.tick()
    assert "ollision" not in desk.last(StatusText).text


def test_a_pose_that_is_shown_while_it_is_paused_is_looked_at_too(desk):
    desk.ask(SetRunning(False))
    arm = desk.session.mechanism
    reaching = mk.solve(arm, mk.PositionGoal("panda_hand_tcp", (0.65, 0.0, 0.5)), q0=arm.configurations["home"]).q
    desk.session.set_configuration(reaching)
    assert desk.session.collision_monitor.wait(PATIENCE)
    assert "wall" in desk.session.collision_monitor.info().obstacles


def test_a_mechanism_without_shapes_is_not_looked_at():
    bare = mk.arm_3d([1.0, 1.0], "zy")
    with Desk() as desk:
        desk.session.open(bare)
        desk.rest()
        assert desk.session.collision_monitor._thread is None
        with pytest.raises(StructureError, match="has a collision shape"):
            desk.ask(SetCollisions("avoid"))
        assert desk.last(Collisions).mode == "show"


@pytest.mark.parametrize("name", ["klann_leg", "peaucellier", "slider_crank"])
def test_bars_of_a_flat_linkage_may_be_drawn_over_each_other(name):
    """They lie one above the other in truth; who wants to see where they cross can have it shown."""
    with Desk(name) as desk:
        assert desk.last(Collisions).mode == "off"
        desk.ask(SetCollisions("show"))
        assert names(desk, looked(desk)) == truly_hit(desk)


def test_page_that_connects_later_receives_everything(desk, goal):
    desk.drag(goal, INTO)
    hit = looked(desk)
    desk.events.clear()
    desk.session.send_everything()
    assert desk.last(ContactsChanged) == hit
    assert [item.name for item in desk.last(Obstacles).obstacles] == ["wall"]
    assert desk.last(Collisions) == Collisions("show", 0.0)
    kinds = [type(item) for item in desk.events]
    assert kinds.index(ContactsChanged) > kinds.index(Model), "a page forgets what bumps when another model comes"


# ---- avoiding ---------------------------------------------------------------------------------


def test_what_is_avoided_is_not_touched_in_any_state_of_a_drag(desk, goal):
    clearance = 0.01
    desk.ask(SetCollisions("avoid", clearance))
    states: list[np.ndarray] = []
    desk.session.subscribe(lambda state: states.append(state.q))
    frame = desk.drag(goal, (0.35, 0.05, 0.0), steps=20)
    looked(desk)
    desk.session.state_subscribers.wait((desk.session.solver_session_count, desk.session.live.state.sequence), PATIENCE)
    gaps = mk.Collider(desk.session.mechanism, ["self", WALL_BEFORE]).distance(np.array([*states, desk.session.q]))
    assert np.min(gaps) > clearance - TOUCHING
    assert frame.goals[0, 7] > 0.05, "it could not get there"
    assert desk.last(ContactsChanged).links == [] if desk.all(ContactsChanged) else True
    desk.tick()
    assert "'wall' blocks" in desk.last(StatusText).text


def test_without_avoiding_the_same_drag_goes_through_the_wall(desk, goal):
    """A negative control of the test above."""
    frame = desk.drag(goal, (0.35, 0.05, 0.0), steps=20)
    assert frame.goals[0, 7] < 1e-4
    assert "wall" in looked(desk).obstacles


@pytest.mark.parametrize("mode", ["avoid", "show"])
def test_a_joint_that_is_turned_by_hand_goes_through_a_wall_unless_that_is_avoided(desk, mode):
    desk.session.set_collision_avoidance(
        [mk.Obstacle(mk.Box((0.2, 0.1, 1.0)), (0.25, 0.25, 0.5), name="side")], mode=mode
    )
    watch = mk.Collider(desk.session.mechanism, desk.session.active.edit_state.collisions.avoid)
    desk.turn(0, 0.8, steps=12)
    assert watch.is_free(desk.session.q, -TOUCHING) == (mode == "avoid")


def test_to_avoid_what_is_hit_already_leads_out_of_it(desk, goal):
    desk.drag(goal, INTO)
    assert looked(desk).links
    desk.ask(SetCollisions("avoid"))
    assert looked(desk).links == []
    assert mk.Collider(desk.session.mechanism, ["self", WALL_BEFORE]).is_free(desk.session.q, -TOUCHING)


def test_alternatives_have_no_collisions_while_avoidance_is_on(desk):
    desk.session.set_collision_avoidance(mode="avoid")
    desk.ask(ShowAlternatives(8))
    desk.session.alternatives.join()
    collider = mk.Collider(desk.session.mechanism, ["self", WALL_BEFORE])
    assert collider.is_free(desk.session.q)
    alternatives = desk.session.alternatives.poll()
    assert alternatives is not None
    assert alternatives.poses


# ---- undo -------------------------------------------------------------------------------------


def test_what_is_done_about_collisions_is_undone_and_redone(desk, goal):
    desk.drag(goal, INTO)
    through = looked(desk)
    q = desk.session.q.copy()
    desk.ask(SetCollisions("avoid", 0.02))
    assert desk.last(Collisions) == Collisions("avoid", 0.02)
    desk.rest()
    around = desk.session.q.copy()
    assert not np.array_equal(around, q)
    desk.ask(SetCollisions("avoid", 0.05))
    desk.rest()
    for _ in range(2):
        desk.ask(Undo())
    assert desk.last(Collisions) == Collisions("show", 0.0)
    np.testing.assert_array_equal(desk.session.q, q)
    assert looked(desk) == through
    desk.ask(Redo())
    assert desk.last(Collisions) == Collisions("avoid", 0.02)
    assert looked(desk).links == []
    np.testing.assert_array_equal(desk.session.q, around)


def test_setting_what_is_set_already_is_no_step(desk):
    steps = len(desk.session.history)
    desk.ask(SetCollisions("show", 0.0))
    assert len(desk.session.history) == steps


def test_another_mechanism_has_no_obstacles_and_an_undo_brings_them_back(desk, goal):
    desk.drag(goal, INTO)
    hit = names(desk, looked(desk))
    desk.ask(OpenGallery("ur5"))
    assert desk.last(Obstacles).obstacles == []
    assert looked(desk).links == []
    desk.ask(Undo())
    assert [obstacle.name for obstacle in desk.last(Obstacles).obstacles] == ["wall"]
    assert names(desk, looked(desk)) == hit


def test_an_arm_that_is_typed_anew_is_looked_at_among_the_same_obstacles():
    text = '{{"mechanik": 1, "arm": {{"lengths": [1, {length}], "axes": "zy"}}}}'
    with Desk() as desk:
        desk.ask(EditModel("arm_3d", text.format(length=1)))
        desk.session.set_collision_avoidance(
            ["self", mk.Obstacle(mk.Box((0.5, 0.5, 0.5)), (0.0, 0.0, 3.0), name="roof")]
        )
        assert looked(desk).obstacles == []
        desk.ask(EditModel("arm_3d", text.format(length=2)))
        desk.session.set_configuration(np.zeros(2))
        assert looked(desk).obstacles == ["roof"]


# ---- obstacles --------------------------------------------------------------------------------


def test_every_kind_of_obstacle_is_sent_with_its_pose(desk):
    desk.session.set_collision_avoidance(["self", *KINDS])
    shapes = {obstacle.name: obstacle.shape for obstacle in desk.last(Obstacles).obstacles}
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
        data, kind = desk.session.read_mesh(int(address.split("/")[-1].split("?")[0]))
        assert kind == "model/stl"
        assert len(data) > 84


def test_an_obstacle_is_moved_and_what_it_touches_is_found(desk):
    home = mk.gallery.panda().pose("panda_hand_tcp", desk.session.q)[:3, 3]
    desk.session.move_obstacle("wall", home)
    assert looked(desk).obstacles == ["wall"]
    desk.session.move_obstacle("wall", (3.0, 0.0, 0.0))
    assert looked(desk).obstacles == []
    assert desk.last(ObstacleMoved).obstacle.shape.pose[0] == 3.0


def test_arm_avoids_an_obstacle_that_is_moved_into_it(desk):
    desk.session.set_collision_avoidance(mode="avoid", clearance=0.005)
    desk.rest()
    for x in (0.5, 0.44, 0.4, 0.37, 0.34):
        desk.session.move_obstacle("wall", (x, 0.0, 0.5))
        desk.rest()
    collider = mk.Collider(desk.session.mechanism, desk.session.active.edit_state.collisions.avoid)
    assert collider.distance(desk.session.q) > 0.005 - TOUCHING
    assert np.abs(desk.session.q - desk.session.mechanism.configurations["home"]).max() > 1e-3


@pytest.mark.parametrize(
    ("avoid", "error"),
    [
        (["slef"], UnknownName),
        ([mk.Box((1, 1, 1))], InvalidArgument),
        ([mk.Obstacle(mk.Sphere(0.1), name="panda_hand")], StructureError),
        (7, InvalidArgument),
    ],
)
def test_what_cannot_be_avoided_is_refused_and_changes_nothing(desk, avoid, error):
    before = desk.session.active.edit_state
    with pytest.raises(error):
        desk.session.set_collision_avoidance(avoid)
    assert desk.session.active.edit_state is before


def test_a_wrong_clearance_or_obstacle_is_refused(desk):
    with pytest.raises(MechanikError):
        desk.session.set_collision_avoidance(mode="avoid", clearance=float("nan"))
    with pytest.raises(UnknownName, match="wall"):
        desk.session.move_obstacle("wal", (0, 0, 0))
    assert desk.last(Collisions).mode == "show"


def test_meshes_that_came_with_a_page_are_looked_at_and_no_file_is_read(tmp_path):
    """A file of this machine is never read for a mechanism that came from a page, whatever path that names."""
    secret = tmp_path / "secret.stl"
    secret.write_bytes(b"not to be read")
    arm = mk.arm_3d([1.0, 1.0], "zy")
    for link in list(arm.links.values())[:2]:
        link.collisions = (mk.ShapeInstance(mk.Mesh("secret.stl", path=str(secret))),)
    with Desk() as desk:
        desk.session.open(arm, files={})
        event = looked(desk)
        assert "was not uploaded" in event.reason
        with pytest.raises(InvalidOperation, match="uploaded mesh"):
            desk.ask(SetCollisions("avoid"))


# ---- scenes -----------------------------------------------------------------------------------


def test_the_scene_of_boxes_is_the_recorded_arm_between_the_recorded_walls():
    assert (CASES["lengths"], CASES["axes"], 1.2) == (LENGTHS, AXES, BOX_WIDTH)
    assert CASES["obstacles"] == [
        {"center": [*place], "half": [edge / 2 for edge in WALL_SIZE]} for place in WALL_POSITIONS
    ]


@pytest.mark.parametrize(("pose", "case"), [("hits itself", "self_cases"), ("hits the walls", "world_cases")])
def test_in_the_scene_of_boxes_those_are_red_that_were_hit(pose, case):
    hit = {f"link{k}" for k, is_hit in enumerate(CASES[case][0]["hit"]) if is_hit}
    with Desk(scenes=SCENES) as desk:
        desk.ask(OpenScene("boxes"))
        assert looked(desk).links == []
        desk.ask(SetControl("pose", pose))
        np.testing.assert_allclose(POSES[pose], CASES[case][0]["q"], atol=1e-3)
        assert {name for name in names(desk, looked(desk)) if name.startswith("link")} == hit
        desk.ask(Undo())
        assert looked(desk).links == []


def test_tool_slides_along_the_obstacles_of_the_table_scene():
    with Desk(scenes=SCENES) as desk:
        desk.ask(OpenScene("table"))
        assert looked(desk).reason == ""
        collider = mk.Collider(desk.session.mechanism, desk.session.active.edit_state.collisions.avoid)
        goal = desk.session.goals[0].number
        frame = desk.drag(goal, (0.0, 0.0, -0.4), steps=10)  # into the table
        assert collider.distance(desk.session.q) > 0.01 - TOUCHING
        assert frame.goals[0, 7] > 0.05
        low = frame.links[-1][2]
        frame = desk.drag(goal, (0.2, 0.2, 0.0), steps=10)  # along it
        assert collider.distance(desk.session.q) > 0.01 - TOUCHING
        assert STATUSES[int(frame.header.status)] in ("CLOSEST", "STALLED")
        assert abs(frame.links[-1][2] - low) < 0.05
        desk.ask(SetControl("avoids", False))
        assert "table" in looked(desk).obstacles
