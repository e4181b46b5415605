"""Properties of every scene."""

from contextlib import suppress

import numpy as np
import pytest
from scene_player import ScenePlayer, settings_of

from mechanik.errors import StructureError
from mechanik.studio.messages import events
from mechanik.studio.messages.message_codec import write_event
from mechanik.studio.messages.requests import EditModel, OpenGallery, RemoveGoal, SetRunning, Undo
from mechanik.studio.scenes import SCENES
from mechanik.studio.scenes.scene_base import AnimatedScene

TICKS = 200
ANIMATED = [name for name, scene in SCENES.items() if issubclass(scene, AnimatedScene)]


def set_moving(player):
    """Start the motion of an animated scene; other scenes have none."""
    if not isinstance(player.scene, AnimatedScene) or player.scene.is_moving:
        return
    control = next(control for control in player.scene.controls() if control.name == player.scene.motion_control)
    player.set(control.name, control.choices[1] if control.kind == "choice" else True)


@pytest.mark.parametrize("name", SCENES)
def test_scene_continues_with_closed_loops_for_every_setting(name):
    with ScenePlayer(name) as player:
        tries = [(control.name, value) for control in player.scene.controls() for value in settings_of(control)]
        share = -(-TICKS // len(tries))
        for control, value in tries:
            player.set(control, value)
            player.tick(share)
            assert all(isinstance(line, str) and line for line in player.scene.readouts())
        player.rest()
        player.check()
        assert player.session.scene is not None


@pytest.mark.parametrize("name", ANIMATED)
def test_what_says_that_it_moves_moves_and_what_does_not_stands(name):
    with ScenePlayer(name) as player:
        set_moving(player)
        assert player.session.is_animated
        player.rest()
        before = player.q.copy()
        player.tick(8, follows=True)
        assert np.abs(player.q - before).max() > 1e-3
        player.session.handle_request(SetRunning(False))
        before = player.q.copy()
        player.tick(5)
        np.testing.assert_array_equal(player.q, before)


@pytest.mark.parametrize("name", SCENES)
def test_goals_that_people_remove_or_undo_do_not_end_it(name):
    with ScenePlayer(name) as player:
        set_moving(player)
        for goal in player.session.goals:
            player.session.handle_request(RemoveGoal(goal.number))
            player.tick(2)
            player.scene.readouts()
        for _ in range(2):
            if player.session.history.info().undo:
                player.session.handle_request(Undo())
            player.tick(2)
        for control in player.scene.controls():
            with suppress(StructureError):  # bars that were set one after the other may not fit together
                player.set(control.name, settings_of(control)[0])
            player.tick()
            player.scene.readouts()


@pytest.mark.parametrize("name", SCENES)
def test_scene_is_broadcast_with_its_controls_and_can_be_written(name):
    with ScenePlayer(name) as player:
        scenes = [event for event in player.events if isinstance(event, events.Scene)]
        assert scenes[-1].name == name
        assert scenes[-1].controls == player.scene.controls()
        assert all(write_event(event) for event in player.events)


@pytest.mark.parametrize("name", SCENES)
def test_another_model_typed_in_its_place_does_no_harm(name):
    with ScenePlayer(name) as player:
        set_moving(player)
        player.tick(2)
        player.session.handle_request(
            EditModel("arm_3d", '{"mechanik": 1, "arm": {"lengths": [1, 1, 1], "axes": "zyy"}}')
        )
        for _ in range(12):
            player.now += 0.05
            player.session.tick(player.now)
        player.check()
        assert player.mechanism.nq == 3


@pytest.mark.parametrize("name", SCENES)
def test_another_mechanism_ends_it_with_its_curves_and_its_ground(name):
    with ScenePlayer(name) as player:
        player.tick(2)
        player.session.handle_request(OpenGallery("planar_2r"))
        assert player.session.scene is None
        for _ in range(3):
            player.now += 0.2
            player.session.tick(player.now)
        last = [event for event in player.events if isinstance(event, events.Scene)][-1]
        assert (last.name, last.controls, last.curves, last.terrain) == ("", [], [], None)
