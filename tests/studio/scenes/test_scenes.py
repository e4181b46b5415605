"""What holds for every scene."""

from contextlib import suppress

import numpy as np
import pytest
from playing import Played, settings_of

from mechanik.errors import StructureError
from mechanik.studio.messages import events
from mechanik.studio.messages.message_codec import write_event
from mechanik.studio.messages.requests import EditModel, OpenGallery, RemoveGoal, SetRunning, Undo
from mechanik.studio.scenes import SCENES

TICKS = 200
MOVES = {"motion": 1, "turns": True, "orbit": True, "circle": True, "digs": True, "moves": True}
"""The control that makes a scene move, and the choice (by number) or side that does."""


def set_moving(played):
    if played.scene.is_moving:
        return
    control = next(candidate for candidate in played.scene.controls() if candidate.name in MOVES)
    played.set(control.name, control.choices[1] if control.kind == "choice" else True)


@pytest.mark.parametrize("name", SCENES)
def test_scene_continues_with_closed_loops_for_every_setting(name):
    with Played(name) as played:
        tries = [(control.name, value) for control in played.scene.controls() for value in settings_of(control)]
        share = -(-TICKS // len(tries))
        for control, value in tries:
            played.set(control, value)
            played.tick(share)
            assert all(isinstance(line, str) and line for line in played.scene.readouts())
        played.rest()
        played.check()
        assert played.session.scene is not None


@pytest.mark.parametrize("name", SCENES)
def test_what_says_that_it_moves_moves_and_what_does_not_stands(name):
    with Played(name) as played:
        set_moving(played)
        assert played.session.is_animated
        played.rest()
        before = played.q.copy()
        played.tick(8, follows=True)
        assert np.abs(played.q - before).max() > 1e-3
        played.session.handle_request(SetRunning(False))
        before = played.q.copy()
        played.tick(5)
        np.testing.assert_array_equal(played.q, before)


@pytest.mark.parametrize("name", SCENES)
def test_goals_that_people_remove_or_undo_do_not_end_it(name):
    with Played(name) as played:
        set_moving(played)
        for goal in played.session.goals:
            played.session.handle_request(RemoveGoal(goal.number))
            played.tick(2)
            played.scene.readouts()
        for _ in range(2):
            if played.session.history.info().undo:
                played.session.handle_request(Undo())
            played.tick(2)
        for control in played.scene.controls():
            with suppress(StructureError):  # bars that were set one after the other may not fit together
                played.set(control.name, settings_of(control)[0])
            played.tick()
            played.scene.readouts()


@pytest.mark.parametrize("name", SCENES)
def test_scene_is_broadcast_with_its_controls_and_can_be_written(name):
    with Played(name) as played:
        scenes = [event for event in played.events if isinstance(event, events.Scene)]
        assert scenes[-1].name == name
        assert scenes[-1].controls == played.scene.controls()
        assert all(write_event(event) for event in played.events)


@pytest.mark.parametrize("name", SCENES)
def test_another_model_typed_in_its_place_does_no_harm(name):
    with Played(name) as played:
        set_moving(played)
        played.tick(2)
        played.session.handle_request(
            EditModel("arm_3d", '{"mechanik": 1, "arm": {"lengths": [1, 1, 1], "axes": "zyy"}}')
        )
        for _ in range(12):
            played.now += 0.05
            played.session.tick(played.now)
        played.check()
        assert played.mechanism.nq == 3


@pytest.mark.parametrize("name", SCENES)
def test_another_mechanism_ends_it_with_its_curves_and_its_ground(name):
    with Played(name) as played:
        played.tick(2)
        played.session.handle_request(OpenGallery("planar_2r"))
        assert played.session.scene is None
        for _ in range(3):
            played.now += 0.2
            played.session.tick(played.now)
        last = [event for event in played.events if isinstance(event, events.Scene)][-1]
        assert (last.name, last.controls, last.curves, last.terrain) == ("", [], [], None)
