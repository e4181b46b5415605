"""A change of a control is an undo step, with the mechanism and the goals that it changes."""

import time

import numpy as np
import pytest
from scene_player import PATIENCE, ScenePlayer

from mechanik.errors import InvalidOperation, StructureError
from mechanik.studio.messages import events
from mechanik.studio.messages.requests import (
    EndDrag,
    MoveGoal,
    OpenGallery,
    Redo,
    SetControl,
    StartGoalDrag,
    StartLinkDrag,
    Undo,
)
from mechanik.studio.scenes import SCENES
from mechanik.studio.scenes.scene_base import AnimatedScene


def wait(player):
    """Until nothing moves any more; without a word to the solver, which would begin anew."""
    until = time.monotonic() + PATIENCE
    while not player.session.active.is_at_rest:
        assert time.monotonic() < until, "it does not come to rest"
        time.sleep(1e-3)


def all_of(player):
    """All that undo must bring back, to the bit."""
    session, setup = player.session, player.session.active.edit_state
    scene = vars(player.scene)
    return {
        "table": session.active.model,
        "q": session.q.tobytes(),
        "controls": player.scene.controls(),
        "goals": [(goal.number, goal.name, goal.kind, goal.link, goal.pose, goal.free) for goal in setup.goals],
        "solver": (setup.solver, setup.options),
        "objectives": dict(setup.objectives),
        "ground": setup.terrain,
        "curves": list(session.state.curves),
        "phase": scene.get("phase"),
        "numbers of goals": {name: dict(value) if isinstance(value, dict) else value for name, value in scene.items()
                             if name in ("goal", "feet", "hands", "platform", "body", "target", "look", "pelvis")},
    }  # fmt: skip


def is_broadcast(player):
    """Pages know of the controls, the goals and the curves as they are."""
    controls = {control.name: control.value for control in player.scene.controls()}
    last = next(event for event in reversed(player.events) if isinstance(event, events.Scene | events.Controls))
    values = (
        last.values if isinstance(last, events.Controls) else {control.name: control.value for control in last.controls}
    )
    goals = next(event for event in reversed(player.events) if isinstance(event, events.Goals))
    scene = next(event for event in reversed(player.events) if isinstance(event, events.Scene))
    return (
        values == controls
        and [goal.pose for goal in goals.goals] == [goal.pose for goal in player.session.goals]
        and scene.name == player.scene.name
        and scene.curves == list(player.session.state.curves)
    )


def other_value(control):
    """A value that it does not have."""
    match control.kind:
        case "slider":
            low, high = control.low, control.high
            share = (low + (high - low) * 0.4, low + (high - low) * 0.6)
            value = max(share, key=lambda candidate: abs(candidate - control.value))
            return float(round(value)) if control.step >= 1.0 else value
        case "switch":
            return not control.value
        case "choice":
            return next(candidate for candidate in control.choices if candidate != control.value)
        case _:
            return True


def stand_still(player):
    if isinstance(player.scene, AnimatedScene):
        player.set(player.scene.motion_control, player.scene.stopped_value)
    wait(player)


@pytest.mark.parametrize("name", SCENES)
def test_a_control_is_taken_back_with_all_that_it_changed_and_set_again_to_the_bit(name):
    with ScenePlayer(name) as player:
        stand_still(player)
        steps = []
        for k in range(len(player.scene.controls())):
            control, before = player.scene.controls()[k], all_of(player)
            try:
                player.set(control.name, other_value(control))
            except StructureError:  # bars that do not fit together
                assert all_of(player) == before
                continue
            wait(player)
            after = all_of(player)
            assert after["controls"] != before["controls"] or control.kind == "button"
            player.session.handle_request(Undo())
            assert all_of(player) == before, control.name
            assert is_broadcast(player)
            player.session.handle_request(Redo())
            assert all_of(player) == after, control.name
            assert is_broadcast(player)
            steps.append(before)
        for before in reversed(steps):
            player.session.handle_request(Undo())
            assert all_of(player) == before
        for before in steps[1:]:
            player.session.handle_request(Redo())
            assert all_of(player) == before
        player.check()


@pytest.mark.parametrize("name", [name for name, scene in SCENES.items() if issubclass(scene, AnimatedScene)])
def test_what_moves_by_itself_goes_on_from_where_it_was(name):
    with ScenePlayer(name) as player:
        starter = next(control for control in player.scene.controls() if control.name == player.scene.motion_control)
        if not player.scene.is_moving:
            player.set(starter.name, other_value(starter))
        player.tick(3)
        phase = player.scene.phase
        player.set("speed", 0.37)
        player.tick(3)
        assert player.scene.phase != phase
        player.session.handle_request(Undo())
        assert player.scene.phase == phase
        player.tick(3)
        player.check()


def test_snapshot_of_a_scene_does_not_change_after_it_is_restored():
    with ScenePlayer("walker") as player:
        state, feet = player.scene.snapshot(), dict(player.scene.foot_goals)
        for _ in range(2):
            player.set("foot1", False)
            assert player.scene.foot_goals != feet
            player.scene.restore(state)
            assert player.scene.foot_goals == feet


def test_a_slider_that_is_dragged_is_one_step_and_the_next_drag_is_another():
    with ScenePlayer("hexapod") as player:
        wait(player)
        start = all_of(player)
        for sign in (1.0, -1.0):
            for k in range(50):
                player.session.handle_request(SetControl("tilt_x", sign * k / 10, is_dragging=True))
            player.session.handle_request(SetControl("tilt_x", sign * 4.9))
            wait(player)
        assert len(player.session.history) == 2
        player.session.handle_request(Undo())
        assert player.scene.number("tilt_x") == 4.9
        player.session.handle_request(Undo())
        assert all_of(player) == start
        player.session.handle_request(Redo())
        player.session.handle_request(Redo())
        assert player.scene.number("tilt_x") == -4.9


def test_a_slider_goes_on_with_its_step_only_while_nothing_else_was_done():
    with ScenePlayer("hexapod") as player:
        player.session.handle_request(SetControl("tilt_x", 1.0, is_dragging=True))
        player.session.handle_request(SetControl("tilt_y", 1.0, is_dragging=True))
        player.session.handle_request(SetControl("tilt_x", 2.0, is_dragging=True))
        assert len(player.session.history) == 3
        player.session.handle_request(Undo())
        player.session.handle_request(SetControl("tilt_x", 3.0, is_dragging=True))
        assert len(player.session.history) == 3
        player.session.handle_request(Undo())
        assert (player.scene.number("tilt_x"), player.scene.number("tilt_y")) == (1.0, 1.0)


def test_what_is_set_as_it_is_is_no_step_and_what_is_refused_leaves_all_as_it_was():
    with ScenePlayer("four_bar") as player:
        stand_still(player)
        player.set("coupler", 0.4)
        wait(player)
        before, steps = all_of(player), len(player.session.history)
        player.set("speed", player.scene.number("speed"))
        with pytest.raises(InvalidOperation):
            player.set("speed", 1e6)
        with pytest.raises(StructureError):
            player.set("rocker", 0.1)
        assert all_of(player) == before
        assert len(player.session.history) == steps


def test_what_is_set_while_a_hand_holds_something_is_part_of_its_step():
    with ScenePlayer("hexapod") as player:
        wait(player)
        before = all_of(player)
        for puts_back in (True, False):
            player.session.handle_request(StartGoalDrag(player.scene.platform_goal))
            player.set("speed", 1.0)
            assert not len(player.session.history)
            player.session.handle_request(EndDrag(cancel=puts_back))
            assert player.scene.number("speed") == (0.4 if puts_back else 1.0)
        assert len(player.session.history) == 1
        player.session.handle_request(Undo())
        assert all_of(player) == before


def test_a_hand_lets_go_of_a_mechanism_that_a_control_replaces_and_undo_brings_it_back():
    with ScenePlayer("two_arms") as player:
        wait(player)
        before = all_of(player)
        player.session.handle_request(StartLinkDrag("box", (0.0, 0.0, 0.0)))
        player.set("box", 0.4)
        player.session.handle_request(EndDrag())
        assert len(player.session.history) == 1
        player.session.handle_request(Undo())
        assert all_of(player) == before


def test_a_button_is_a_step_and_undo_puts_the_rover_back_on_its_wheels():
    with ScenePlayer("rover") as player:
        wait(player)
        q = player.q.copy()
        player.set("settle", True)
        assert player.session.history.info().undo == "drop the rover"
        assert np.abs(player.q - q).max() > 0.1
        player.session.handle_request(Undo())
        np.testing.assert_array_equal(player.q, q)


def test_undo_after_another_mechanism_was_opened_brings_the_scene_back_and_it_can_be_set():
    with ScenePlayer("delta") as player:
        stand_still(player)
        before = all_of(player)
        scene = player.scene
        player.session.handle_request(OpenGallery("planar_2r"))
        player.session.handle_request(Undo())
        assert player.scene is scene
        assert all_of(player) == before
        assert is_broadcast(player)
        player.set("motion", "circle")
        player.tick(5, follows=True)
        player.check()
        player.session.handle_request(Undo())
        player.session.handle_request(Redo())
        assert player.scene.text("motion") == "circle"


def test_a_goal_that_was_moved_by_number_and_a_control_are_taken_back_one_after_the_other():
    with ScenePlayer("list_arm") as player:
        wait(player)
        before = all_of(player)
        player.session.handle_request(MoveGoal(player.scene.goal, (0.9, 0.2, 0.7, 1.0, 0.0, 0.0, 0.0)))
        wait(player)
        between = all_of(player)
        assert [control.value for control in between["controls"]][2:5] == [0.9, 0.2, 0.7], "sliders follow the goal"
        player.set("x", 1.0)
        wait(player)
        player.session.handle_request(Undo())
        assert all_of(player) == between
        player.session.handle_request(Undo())
        assert all_of(player) == before
