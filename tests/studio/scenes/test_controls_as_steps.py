"""What is set on a scene is a step of undo, with the mechanism and the goals that it changes."""

import time

import numpy as np
import pytest
from playing import PATIENCE, Played

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


def wait(played):
    """Until nothing moves any more; without a word to the solver, which would begin anew."""
    until = time.monotonic() + PATIENCE
    while not played.session.active.is_at_rest:
        assert time.monotonic() < until, "it does not come to rest"
        time.sleep(1e-3)


def all_of(played):
    """All that undo must bring back, to the bit."""
    session, setup = played.session, played.session.active.edit_state
    scene = vars(played.scene)
    return {
        "table": session.active.model,
        "q": session.q.tobytes(),
        "controls": played.scene.controls(),
        "goals": [(goal.number, goal.name, goal.kind, goal.link, goal.pose, goal.free) for goal in setup.goals],
        "solver": (setup.solver, setup.options),
        "objectives": dict(setup.objectives),
        "ground": setup.terrain,
        "curves": list(session.state.curves),
        "phase": scene.get("phase"),
        "numbers of goals": {name: dict(value) if isinstance(value, dict) else value for name, value in scene.items()
                             if name in ("goal", "feet", "hands", "platform", "body", "target", "look", "pelvis")},
    }  # fmt: skip


def is_broadcast(played):
    """Pages know of the controls, the goals and the curves as they are."""
    controls = {control.name: control.value for control in played.scene.controls()}
    last = next(event for event in reversed(played.events) if isinstance(event, events.Scene | events.Controls))
    values = (
        last.values if isinstance(last, events.Controls) else {control.name: control.value for control in last.controls}
    )
    goals = next(event for event in reversed(played.events) if isinstance(event, events.Goals))
    scene = next(event for event in reversed(played.events) if isinstance(event, events.Scene))
    return (
        values == controls
        and [goal.pose for goal in goals.goals] == [goal.pose for goal in played.session.goals]
        and scene.name == played.scene.name
        and scene.curves == list(played.session.state.curves)
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


def stand_still(played):
    if isinstance(played.scene, AnimatedScene):
        played.set(played.scene.motion_control, played.scene.stopped_value)
    wait(played)


@pytest.mark.parametrize("name", SCENES)
def test_a_control_is_taken_back_with_all_that_it_changed_and_set_again_to_the_bit(name):
    with Played(name) as played:
        stand_still(played)
        steps = []
        for k in range(len(played.scene.controls())):
            control, before = played.scene.controls()[k], all_of(played)
            try:
                played.set(control.name, other_value(control))
            except StructureError:  # bars that do not fit together
                assert all_of(played) == before
                continue
            wait(played)
            after = all_of(played)
            assert after["controls"] != before["controls"] or control.kind == "button"
            played.session.handle_request(Undo())
            assert all_of(played) == before, control.name
            assert is_broadcast(played)
            played.session.handle_request(Redo())
            assert all_of(played) == after, control.name
            assert is_broadcast(played)
            steps.append(before)
        for before in reversed(steps):
            played.session.handle_request(Undo())
            assert all_of(played) == before
        for before in steps[1:]:
            played.session.handle_request(Redo())
            assert all_of(played) == before
        played.check()


@pytest.mark.parametrize("name", SCENES)
def test_what_moves_by_itself_goes_on_from_where_it_was(name):
    with Played(name) as played:
        starter = next(control for control in played.scene.controls() if control.name == played.scene.motion_control)
        if not played.scene.is_moving:
            played.set(starter.name, other_value(starter))
        played.tick(3)
        phase = played.scene.phase
        played.set("speed", 0.37)
        played.tick(3)
        assert played.scene.phase != phase
        played.session.handle_request(Undo())
        assert played.scene.phase == phase
        played.tick(3)
        played.check()


def test_snapshot_of_a_scene_does_not_change_after_it_is_restored():
    with Played("walker") as played:
        state, feet = played.scene.snapshot(), dict(played.scene.feet)
        for _ in range(2):
            played.set("foot1", False)
            assert played.scene.feet != feet
            played.scene.restore(state)
            assert played.scene.feet == feet


def test_a_slider_that_is_dragged_is_one_step_and_the_next_drag_is_another():
    with Played("hexapod") as played:
        wait(played)
        start = all_of(played)
        for sign in (1.0, -1.0):
            for k in range(50):
                played.session.handle_request(SetControl("tilt_x", sign * k / 10, is_dragging=True))
            played.session.handle_request(SetControl("tilt_x", sign * 4.9))
            wait(played)
        assert len(played.session.history) == 2
        played.session.handle_request(Undo())
        assert played.scene.number("tilt_x") == 4.9
        played.session.handle_request(Undo())
        assert all_of(played) == start
        played.session.handle_request(Redo())
        played.session.handle_request(Redo())
        assert played.scene.number("tilt_x") == -4.9


def test_a_slider_goes_on_with_its_step_only_while_nothing_else_was_done():
    with Played("hexapod") as played:
        played.session.handle_request(SetControl("tilt_x", 1.0, is_dragging=True))
        played.session.handle_request(SetControl("tilt_y", 1.0, is_dragging=True))
        played.session.handle_request(SetControl("tilt_x", 2.0, is_dragging=True))
        assert len(played.session.history) == 3
        played.session.handle_request(Undo())
        played.session.handle_request(SetControl("tilt_x", 3.0, is_dragging=True))
        assert len(played.session.history) == 3
        played.session.handle_request(Undo())
        assert (played.scene.number("tilt_x"), played.scene.number("tilt_y")) == (1.0, 1.0)


def test_what_is_set_as_it_is_is_no_step_and_what_is_refused_leaves_all_as_it_was():
    with Played("four_bar") as played:
        stand_still(played)
        played.set("coupler", 0.4)
        wait(played)
        before, steps = all_of(played), len(played.session.history)
        played.set("speed", played.scene.number("speed"))
        with pytest.raises(InvalidOperation):
            played.set("speed", 1e6)
        with pytest.raises(StructureError):
            played.set("rocker", 0.1)
        assert all_of(played) == before
        assert len(played.session.history) == steps


def test_what_is_set_while_a_hand_holds_something_is_part_of_its_step():
    with Played("hexapod") as played:
        wait(played)
        before = all_of(played)
        for puts_back in (True, False):
            played.session.handle_request(StartGoalDrag(played.scene.platform))
            played.set("speed", 1.0)
            assert not len(played.session.history)
            played.session.handle_request(EndDrag(cancel=puts_back))
            assert played.scene.number("speed") == (0.4 if puts_back else 1.0)
        assert len(played.session.history) == 1
        played.session.handle_request(Undo())
        assert all_of(played) == before


def test_a_hand_lets_go_of_a_mechanism_that_a_control_replaces_and_undo_brings_it_back():
    with Played("two_arms") as played:
        wait(played)
        before = all_of(played)
        played.session.handle_request(StartLinkDrag("box", (0.0, 0.0, 0.0)))
        played.set("box", 0.4)
        played.session.handle_request(EndDrag())
        assert len(played.session.history) == 1
        played.session.handle_request(Undo())
        assert all_of(played) == before


def test_a_button_is_a_step_and_undo_puts_the_rover_back_on_its_wheels():
    with Played("rover") as played:
        wait(played)
        q = played.q.copy()
        played.set("settle", True)
        assert played.session.history.info().undo == "drop it"
        assert np.abs(played.q - q).max() > 0.1
        played.session.handle_request(Undo())
        np.testing.assert_array_equal(played.q, q)


def test_undo_after_another_mechanism_was_opened_brings_the_scene_back_and_it_can_be_set():
    with Played("delta") as played:
        stand_still(played)
        before = all_of(played)
        scene = played.scene
        played.session.handle_request(OpenGallery("planar_2r"))
        played.session.handle_request(Undo())
        assert played.scene is scene
        assert all_of(played) == before
        assert is_broadcast(played)
        played.set("motion", "circle")
        played.tick(5, follows=True)
        played.check()
        played.session.handle_request(Undo())
        played.session.handle_request(Redo())
        assert played.scene.text("motion") == "circle"


def test_a_goal_that_was_moved_by_number_and_a_control_are_taken_back_one_after_the_other():
    with Played("list_arm") as played:
        wait(played)
        before = all_of(played)
        played.session.handle_request(MoveGoal(played.scene.goal, (0.9, 0.2, 0.7, 1.0, 0.0, 0.0, 0.0)))
        wait(played)
        between = all_of(played)
        assert [control.value for control in between["controls"]][2:5] == [0.9, 0.2, 0.7], "sliders follow the goal"
        played.set("x", 1.0)
        wait(played)
        played.session.handle_request(Undo())
        assert all_of(played) == between
        played.session.handle_request(Undo())
        assert all_of(played) == before
