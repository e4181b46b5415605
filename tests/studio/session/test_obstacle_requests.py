"""Obstacles that users add, drag, edit and remove: each change is one undo step and reaches the solver at once."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_harness import SessionHarness

import mechanik as mk
from mechanik.errors import InvalidOperation, MechanikError, NotARotation, UnknownName
from mechanik.spatial import quaternion
from mechanik.studio.messages.events import Collisions, Controls, History, ObstacleMoved, Obstacles
from mechanik.studio.messages.requests import (
    AddObstacle,
    EndDrag,
    MoveObstacle,
    ObstacleKind,
    OpenGallery,
    OpenScene,
    Redo,
    RemoveObstacle,
    ResizeObstacle,
    SetCollisions,
    SetControl,
    SetRunning,
    StartGoalDrag,
    StartObstacleDrag,
    Undo,
)
from mechanik.studio.scenes import SCENES
from mechanik.studio.scenes.collision_scenes import WALL_POSITIONS
from mechanik.studio.session.loaded_model import LoadedModel, bounding_sphere
from mechanik.studio.session.request_handlers import default_shape, free_position

PATIENCE = 300.0
"""Seconds for a look; the first of all compiles."""
CLEARANCE, TOUCHING = 0.01, 1e-6
STRAIGHT = (1.0, 0.0, 0.0, 0.0)
OFF = (0.9, 0.0, 0.5, *STRAIGHT)
"""A pose in front of a Panda that touches nothing."""
INTO = np.array([0.05, 0.0, 0.0])
"""From the hand of a Panda to the middle of a box of 0.1 m that its fingers are in, m."""


def poses(harness: SessionHarness) -> dict[str, np.ndarray]:
    return {
        obstacle.name: obstacle.pose.matrix
        for obstacle in harness.session.active.edit_state.collision_settings.obstacles
    }


def hold(harness: SessionHarness, name: str, pose) -> None:
    harness.drag_obstacle_to(list(poses(harness)).index(name), pose)


def drag(harness: SessionHarness, name: str, end, steps: int = 6) -> None:
    """Take an obstacle, move it on a straight way to the pose `end` (its turn at once), let go."""
    start = poses(harness)[name][:3, 3]
    harness.ask(StartObstacleDrag(name))
    for k in range(1, steps + 1):
        hold(harness, name, [*(start + (np.array(end[:3]) - start) * k / steps), *end[3:]])
        harness.answered()
    harness.ask(EndDrag())


def looked(harness: SessionHarness) -> set[str]:
    """Obstacles that are hit where all has come to rest."""
    harness.rest()
    assert harness.session.collision_monitor.wait(PATIENCE)
    return {*harness.session.collision_monitor.info().obstacles}


def collider(harness: SessionHarness) -> mk.Collider:
    return mk.Collider(harness.session.mechanism, harness.session.active.edit_state.collision_settings.avoid)


def bodies(harness: SessionHarness) -> int:
    """How many there are that with collision shapes."""
    return sum(bool(link.collisions) for link in harness.session.mechanism.links.values()) + len(poses(harness))


def hand_of(harness: SessionHarness) -> np.ndarray:
    return harness.session.mechanism.pose("panda_hand_tcp", harness.session.q)[:3, 3]


@pytest.fixture
def harness():
    """A Panda with a box in front of it that it does not touch."""
    with SessionHarness("panda") as harness:
        harness.ask(AddObstacle("box", OFF))
        yield harness


# ---- dragged ----------------------------------------------------------------------------------


def test_a_box_that_is_dragged_into_an_arm_is_hit_and_away_from_it_is_not(harness):
    assert looked(harness) == set()
    q = harness.session.q.copy()
    drag(harness, "box 1", (*hand_of(harness), *STRAIGHT))
    assert looked(harness) == {"box 1"}
    np.testing.assert_array_equal(harness.session.q, q, "what is only shown moves nothing")
    drag(harness, "box 1", OFF)
    assert looked(harness) == set()


def test_arm_with_avoidance_moves_away_from_a_dragged_obstacle(harness):
    harness.ask(SetCollisions("avoid", CLEARANCE))
    harness.rest()
    before = harness.session.q.copy()
    start, end = np.array(OFF[:3]), hand_of(harness) + INTO
    harness.ask(StartObstacleDrag("box 1"))
    for k in range(1, 16):
        hold(harness, "box 1", [*(start + (end - start) * k / 15), *STRAIGHT])
        harness.answered()
        assert collider(harness).distance(harness.session.q) > CLEARANCE - TOUCHING, k
    harness.ask(EndDrag())
    assert np.abs(harness.session.q - before).max() > 1e-3, "it has moved"
    drag(harness, "box 1", OFF)
    assert harness.rest().goals[0, 7] < 1e-4, "and comes back when the way is free"


def test_without_avoiding_the_same_drag_goes_into_the_arm(harness):
    """A negative control of the test above."""
    drag(harness, "box 1", (*(hand_of(harness) + INTO), *STRAIGHT), steps=15)
    assert collider(harness).distance(harness.session.q) < -1e-3


def test_each_drag_update_is_broadcast_and_answered_while_nothing_else_moves(harness):
    harness.rest()
    harness.events.clear()
    harness.ask(StartObstacleDrag("box 1"))
    turn = quaternion.exp(np.array([0.0, 0.0, 0.5]))
    for x in (1.0, 1.1, 1.2):
        hold(harness, "box 1", (x, 0.2, 0.4, *turn))
        assert harness.answered().header.tag == harness.tag
    moved = [item.obstacle for item in harness.all(ObstacleMoved)]
    assert [item.pose[0] for item in moved] == [1.0, 1.1, 1.2]
    np.testing.assert_allclose(moved[-1].pose[3:], turn, atol=1e-15)
    assert not harness.all(Obstacles), "all of them are told only when there are others"


def test_while_it_is_paused_an_obstacle_is_dragged_too(harness):
    harness.ask(SetCollisions("avoid"))
    harness.rest()
    harness.ask(SetRunning(False))
    q = harness.session.q.copy()
    harness.ask(StartObstacleDrag("box 1"))
    hold(harness, "box 1", (*hand_of(harness), *STRAIGHT))
    assert harness.frame.header.tag == harness.tag
    harness.ask(EndDrag())
    assert harness.session.collision_monitor.wait(PATIENCE)
    assert harness.session.collision_monitor.info().obstacles == ["box 1"]
    np.testing.assert_array_equal(harness.session.q, q)


# ---- steps of undo ----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["show", "avoid"])
def test_one_drag_is_one_step_back_and_one_forth(harness, mode):
    harness.ask(SetCollisions(mode, CLEARANCE))
    harness.rest()
    q, steps = harness.session.q.copy(), len(harness.session.history)
    drag(harness, "box 1", (*(hand_of(harness) + INTO), *STRAIGHT))
    after, moved = harness.rest(), harness.session.q.copy()
    assert len(harness.session.history) == steps + 1
    assert harness.last(History).undo == "move box 1"
    harness.ask(Undo())
    np.testing.assert_array_equal(poses(harness)["box 1"][:3, 3], OFF[:3])
    assert harness.last(Obstacles).obstacles[0].pose == OFF
    np.testing.assert_array_equal(harness.session.q, q)
    harness.ask(Redo())
    np.testing.assert_array_equal(harness.session.q, moved)
    np.testing.assert_array_equal(harness.rest().links, after.links)
    assert (collider(harness).distance(harness.session.q) > 0) == (mode == "avoid")


def test_a_drag_that_is_put_back_has_never_been(harness):
    harness.rest()
    steps, q = len(harness.session.history), harness.session.q.copy()
    harness.ask(SetCollisions("avoid"))
    harness.ask(StartObstacleDrag("box 1"))
    hold(harness, "box 1", (*hand_of(harness), *STRAIGHT))
    harness.answered()
    harness.ask(EndDrag(cancel=True))
    harness.rest()
    np.testing.assert_array_equal(harness.session.q, q)
    np.testing.assert_array_equal(poses(harness)["box 1"][:3, 3], OFF[:3])
    assert len(harness.session.history) == steps + 1, "that of the mode"


def test_to_take_one_and_let_go_of_it_is_no_step(harness):
    steps = len(harness.session.history)
    harness.ask(StartObstacleDrag("box 1"))
    harness.ask(EndDrag())
    assert len(harness.session.history) == steps


def test_one_that_is_added_typed_and_removed_comes_and_goes_with_undo(harness):
    harness.ask(AddObstacle("sphere", (1.0, 0.3, 0.2, *STRAIGHT)))
    harness.ask(MoveObstacle("sphere 1", (1.0, -0.3, 0.2, *STRAIGHT)))
    harness.ask(RemoveObstacle("box 1"))
    assert list(poses(harness)) == ["sphere 1"]
    labels = []
    for _ in range(3):
        labels.append(harness.last(History).undo)
        harness.ask(Undo())
    assert labels == ["remove box 1", "move sphere 1", "add sphere 1"]
    assert list(poses(harness)) == ["box 1"] == [obstacle.name for obstacle in harness.last(Obstacles).obstacles]
    for _ in range(2):
        harness.ask(Redo())
    assert poses(harness)["sphere 1"][1, 3] == -0.3


@pytest.mark.parametrize(
    ("kind", "sizes"), [("box", [0.1, 0.2, 0.3]), ("sphere", [0.4]), ("capsule", [0.05, 0.3]), ("cylinder", [0.1, 0.2])]
)
def test_typed_sizes_are_broadcast_and_checked_for_collisions_and_undone(harness, kind, sizes):
    if kind == "cylinder":
        harness.session.add_obstacle(mk.Obstacle(mk.Cylinder(0.01, 0.02), OFF[:3], name="cylinder 1"))
    elif kind != "box":
        harness.ask(AddObstacle(kind, OFF))
    harness.ask(SetCollisions("avoid"))
    name, before = f"{kind} 1", harness.session.active.edit_state.collision_settings.obstacle(f"{kind} 1").shape
    harness.ask(ResizeObstacle(name, sizes))
    obstacles = {obstacle.name: obstacle for obstacle in harness.last(Obstacles).obstacles}
    assert (obstacles[name].kind, obstacles[name].shape.kind, obstacles[name].shape.sizes) == (kind, kind, sizes)
    assert harness.last(History).undo == f"resize {name}"
    steps = len(harness.session.history)
    harness.ask(ResizeObstacle(name, sizes))
    assert len(harness.session.history) == steps, "the same again is no step"
    harness.ask(Undo())
    assert harness.session.active.edit_state.collision_settings.obstacle(name).shape == before


def test_a_sphere_that_grows_into_an_arm_is_hit(harness):
    harness.ask(AddObstacle("sphere", OFF))
    harness.ask(ResizeObstacle("sphere 1", [0.7]))
    assert "sphere 1" in looked(harness)


# ---- added ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", mk.gallery.names())
def test_free_position_exists_beside_every_mechanism_of_the_gallery(name):
    mechanism = mk.gallery.make(name)
    q = np.array(mechanism.configurations.get("home", mechanism.q))
    model = LoadedModel(mechanism)
    assert model.has_collision_shapes, "it has shapes to bump with"
    centre, radius = bounding_sphere(mechanism, model.index.link_poses(q))
    place = free_position(model, q, ())
    assert np.linalg.norm(np.subtract(place, centre)) < radius, "near enough to be met"
    for kind in get_args(ObstacleKind):
        alone = mk.Collider(mechanism, [mk.Obstacle(default_shape(kind, radius), place, name="new")])
        assert alone.is_free(q), alone.contacts(q)


def test_several_that_are_added_do_not_stand_in_one_another():
    with SessionHarness("panda") as harness:
        for _ in range(4):
            harness.ask(AddObstacle("box"))
        assert list(poses(harness)) == ["box 1", "box 2", "box 3", "box 4"]
        places = np.array([X[:3, 3] for X in poses(harness).values()])
        gaps = np.linalg.norm(places[:, None] - places, axis=2) + np.eye(4)
        edge = harness.session.active.edit_state.collision_settings.obstacles[0].shape.size[0]
        assert gaps.min() > np.sqrt(3) * edge
        assert looked(harness) == set()


def test_a_name_that_is_free_again_is_taken_again(harness):
    harness.ask(AddObstacle("box", OFF))
    harness.ask(RemoveObstacle("box 1"))
    harness.ask(AddObstacle("box", OFF))
    assert list(poses(harness)) == ["box 2", "box 1"]


def test_with_the_first_obstacle_of_a_flat_linkage_what_it_hits_is_shown_and_its_own_bars_are_not():
    with SessionHarness("four_bar") as harness:
        assert harness.last(Collisions).mode == "off"
        harness.ask(AddObstacle("sphere"))
        assert harness.last(Collisions).mode == "show"
        assert looked(harness) == set()
        assert harness.session.collision_monitor.info().links == []
        X = harness.session.mechanism.poses(harness.session.q)
        drag(harness, "sphere 1", (*X[-1, :3, 3], *STRAIGHT))
        assert looked(harness) == {"sphere 1"}
        harness.ask(Undo())
        harness.ask(Undo())
        assert harness.last(Collisions).mode == "off"


def test_another_mechanism_stands_there_alone(harness):
    harness.ask(OpenGallery("ur5"))
    assert harness.last(Obstacles).obstacles == []
    harness.ask(AddObstacle("capsule"))
    assert list(poses(harness)) == ["capsule 1"]
    harness.ask(Undo())
    harness.ask(Undo())
    assert list(poses(harness)) == ["box 1"]


# ---- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (StartObstacleDrag("bux"), UnknownName),
        (MoveObstacle("bux", OFF), UnknownName),
        (RemoveObstacle("panda_hand"), UnknownName),
        (MoveObstacle("box 1", (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)), NotARotation),
        (ResizeObstacle("bux", [1.0]), UnknownName),
        (ResizeObstacle("box 1", [1.0]), InvalidOperation),
        (ResizeObstacle("box 1", [1.0, 0.0, 1.0]), MechanikError),
        (AddObstacle("box", (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)), NotARotation),
    ],
)
def test_what_is_not_there_or_is_no_pose_is_refused_and_changes_nothing(harness, request_, error):
    before, steps = harness.session.active.edit_state, len(harness.session.history)
    with pytest.raises(error):
        harness.ask(request_)
    assert harness.session.active.edit_state is before
    assert len(harness.session.history) == steps


def test_a_hand_that_has_not_taken_it_is_refused_and_one_that_is_late_is_passed_over(harness):
    with pytest.raises(InvalidOperation, match="not being dragged"):
        hold(harness, "box 1", OFF)
    drag(harness, "box 1", (1.0, 0.0, 0.5, *STRAIGHT))
    hold(harness, "box 1", OFF)
    assert poses(harness)["box 1"][0, 3] == 1.0
    harness.ask(StartGoalDrag(harness.session.goals[0].number))
    with pytest.raises(InvalidOperation, match="not being dragged"):
        harness.drag_obstacle_to(5, OFF)


def test_there_are_not_more_than_can_be_looked_after(harness):
    crowd = [mk.Obstacle(mk.Sphere(0.01), (5.0, 0.1 * k, 0.0), name=f"far {k}") for k in range(185)]
    harness.session.set_collision_avoidance(crowd, mode="show")
    while bodies(harness) < 200:
        harness.ask(AddObstacle("sphere", OFF))
    with pytest.raises(InvalidOperation, match="at most 200"):
        harness.ask(AddObstacle("sphere", OFF))


def test_pairs_that_named_one_that_is_removed_go_with_it(harness):
    harness.session.set_collision_avoidance(mode="avoid", allow=[("panda_hand", "box 1")])
    harness.ask(RemoveObstacle("box 1"))
    assert harness.session.active.edit_state.collision_settings.allow == ()
    harness.ask(Undo())
    assert harness.session.active.edit_state.collision_settings.allow == (("panda_hand", "box 1"),)


# ---- scenes -----------------------------------------------------------------------------------


def test_what_people_have_moved_at_the_table_stays_when_something_else_is_set():
    with SessionHarness(scenes=SCENES) as harness:
        harness.ask(OpenScene("table"))
        drag(harness, "ball", (0.9, 0.4, 0.3, *STRAIGHT), steps=2)
        drag(harness, "post", (0.5, 0.45, 0.5, *STRAIGHT), steps=2)
        harness.tick(1.0)
        assert harness.last(Controls).values["post"] == pytest.approx(0.45)
        harness.ask(AddObstacle("box", (0.0, 0.8, 0.2, *STRAIGHT)))
        for name, value in (("clearance", 20.0), ("avoids", False), ("post", 0.3)):
            harness.ask(SetControl(name, value))
        now = poses(harness)
        np.testing.assert_allclose(now["ball"][:3, 3], (0.9, 0.4, 0.3))
        np.testing.assert_allclose(now["post"][:3, 3], (0.5, 0.3, 0.5))
        assert "box 1" in now
        harness.ask(RemoveObstacle("post"))
        harness.ask(SetControl("post", 0.1))
        assert poses(harness)["post"][1, 3] == 0.1


def test_walls_that_are_taken_away_come_back_where_they_were_and_a_box_of_ours_stays():
    with SessionHarness(scenes=SCENES) as harness:
        harness.ask(OpenScene("boxes"))
        harness.ask(AddObstacle("box", (9.0, 9.0, 9.0, *STRAIGHT)))
        drag(harness, "wall 1", (0.0, 8.0, 2.0, *STRAIGHT), steps=2)
        harness.ask(SetControl("walls", False))
        assert list(poses(harness)) == ["box 1"]
        harness.ask(SetControl("walls", True))
        np.testing.assert_array_equal(poses(harness)["wall 1"][:3, 3], WALL_POSITIONS[0])
        assert {*poses(harness)} == {"box 1", "wall 1", "wall 2"}
        for name in ("wall 1", "wall 2"):
            harness.ask(RemoveObstacle(name))
        harness.tick(1.0)
        assert harness.last(Controls).values["walls"] is False


def test_a_wall_that_a_switch_takes_out_of_the_hand_moves_no_more():
    with SessionHarness(scenes=SCENES) as harness:
        harness.ask(OpenScene("boxes"))
        harness.ask(StartObstacleDrag("wall 1"))
        hold(harness, "wall 1", (0.0, 8.0, 2.0, *STRAIGHT))
        harness.ask(SetControl("walls", False))
        harness.drag_obstacle_to(0, (0.0, 9.0, 2.0, *STRAIGHT))
        harness.ask(EndDrag())
        assert poses(harness) == {}
        harness.ask(Undo())
        np.testing.assert_array_equal(poses(harness)["wall 1"][:3, 3], WALL_POSITIONS[0])


# ---- in any order -----------------------------------------------------------------------------

KINDS, NAMES = st.sampled_from(["box", "sphere", "capsule"]), st.sampled_from(["box 1", "sphere 1", "capsule 1"])
POSES = st.tuples(*[st.floats(-1.0, 1.0)] * 7)
ANY = st.one_of(
    st.builds(AddObstacle, KINDS, st.none() | POSES),
    st.builds(MoveObstacle, NAMES, POSES),
    st.builds(RemoveObstacle, NAMES),
    st.builds(ResizeObstacle, NAMES, st.lists(st.floats(0.0, 1.0), min_size=1, max_size=3)),
    st.builds(StartObstacleDrag, NAMES),
    st.builds(EndDrag, st.booleans()),
    st.builds(Undo),
    st.builds(Redo),
    POSES,
)


@settings(max_examples=15, deadline=None)
@given(st.lists(ANY, max_size=12))
def test_pages_know_the_present_obstacles_after_any_requests(page_requests):
    with SessionHarness("planar_3r") as harness:
        for request in page_requests:
            try:
                if isinstance(request, tuple):
                    harness.drag_obstacle_to(0, request)
                else:
                    harness.ask(request)
            except MechanikError:
                pass
            known: dict[str, tuple[float, ...]] = {}
            for event in harness.events:
                if isinstance(event, Obstacles):
                    known = {info.name: info.pose for info in event.obstacles}
                if isinstance(event, ObstacleMoved):
                    assert event.obstacle.name in known
                    known[event.obstacle.name] = event.obstacle.pose
            there = harness.session.active.edit_state.collision_settings.obstacles
            assert list(known) == [obstacle.name for obstacle in there]
            for obstacle in there:
                np.testing.assert_allclose(known[obstacle.name][:3], obstacle.pose.position, atol=0)
