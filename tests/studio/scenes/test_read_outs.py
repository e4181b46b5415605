"""Readouts belong to the same state as the status text, and sliders follow the mechanism."""

import math
import time

import numpy as np
import pytest
from scene_player import PATIENCE, ScenePlayer

from mechanik.spatial import translation
from mechanik.studio.messages.events import Controls, StatusText
from mechanik.studio.messages.message_codec import MAIN_LAYER, STATUSES, read_state
from mechanik.studio.messages.requests import SetRunning


def value(player, name):
    return next(control.value for control in player.scene.controls() if control.name == name)


def numbers(line):
    return [float(word) for word in line.replace(":", " ").split() if word.replace(".", "").isdigit()]


@pytest.mark.parametrize(("name", "controls"), [
    ("look_at", {"speed": 2.0}),
    ("ccd_arm", {"speed": 2.0, "sweeps": 200.0}),
])  # fmt: skip
def test_a_target_that_flies_is_never_called_reached_beside_a_number_that_says_it_is_not(name, controls):
    """They once compared where the target was by then with a state that answered an older one."""
    with ScenePlayer(name) as player:
        for control, number in controls.items():
            player.set(control, number)
        reached = ticks = 0
        end = time.monotonic() + PATIENCE
        while ticks < 60 or (reached <= 5 and time.monotonic() < end):
            ticks += 1
            player.tick()
            state = player.session.active.latest_state
            lines = player.scene.readouts()
            is_same = state is player.session.active.latest_state
            if is_same and state is not None and state.solution is not None and state.solution.success:
                assert max(numbers(lines[0])) < 0.05, lines
                reached += 1
            time.sleep(0.003)
        assert reached > 5


@pytest.mark.parametrize(("name", "motion"), [("look_at", ("motion", "drag")), ("ccd_arm", ("orbit", False))])
def test_while_nothing_is_solved_the_number_is_what_the_goal_is_off_now(name, motion):
    with ScenePlayer(name) as player:
        player.set(*motion)
        player.rest()
        assert max(numbers(player.scene.readouts()[0])) < 0.05
        player.session.handle_request(SetRunning(False))
        goal = player.session.goals[0]
        player.session.move_goals({goal.number: translation((0.05, 0.05, 0.3)) @ goal.X})
        assert max(numbers(player.scene.readouts()[0])) > 1.0


def test_what_the_target_is_off_is_what_the_page_shows_of_the_same_state():
    with ScenePlayer("ccd_arm") as player:
        player.set("speed", 2.0)
        player.set("sweeps", 1.0)
        player.tick(5)
        player.rest()
        [state] = [frame for frame in map(read_state, player.frames[-1:]) if frame.header.layer == MAIN_LAYER]
        assert STATUSES[int(state.header.status)] != "PROBLEM"
        assert numbers(player.scene.readouts()[0])[0] == pytest.approx(1000 * state.goals[0, 7], abs=0.006)


@pytest.mark.parametrize(("scene", "slider"), [("gripper", "closing"), ("scissor_lift", "height")])
def test_a_slider_goes_along_with_what_it_sets_and_stays_where_that_is_stopped(scene, slider):
    with ScenePlayer(scene) as player:
        before = value(player, slider)
        player.tick(10, follows=True)
        values = [event.values[slider] for event in player.events if isinstance(event, Controls)]
        assert len(set(values)) > 1
        assert abs(values[-1] - before) > 0.01
        stood, q = value(player, slider), player.q
        for moves in (False, True):
            player.set("moves", moves)
            player.rest()
            assert value(player, slider) == pytest.approx(stood, abs=1e-12)
            np.testing.assert_allclose(player.q, q, atol=1e-6)  # nothing leaps


def test_the_height_on_the_slider_is_the_height_of_the_platform():
    with ScenePlayer("scissor_lift") as player:
        for _ in range(5):
            player.tick(follows=True)
            height = float(player.mechanism.pose("platform", player.q)[2, 3])
            assert height == pytest.approx(value(player, "height"), abs=1e-5)


@pytest.mark.parametrize("arm", ["grippy10", "zalo5", "variable"])
def test_sliders_of_the_list_arm_are_where_the_target_is_whoever_moves_it(arm):
    with ScenePlayer("list_arm") as player:
        player.set("arm", arm)

        def agree():
            place = player.session.goals[0].X[:3, 3]
            np.testing.assert_allclose([value(player, name) for name in "xyz"], place, atol=1e-12)
            return place.copy()

        first = agree()
        player.session.move_goal(player.session.goals[0].number, translation((0.2, -0.1, 0.3)))
        assert math.dist(agree(), first) > 0.01
        player.set("y", 0.15)
        np.testing.assert_allclose(agree(), (0.2, 0.15, 0.3), atol=1e-12)
        player.set("circle", True)
        player.tick(5)
        on_circle = agree()
        assert math.dist(on_circle, (0.2, 0.15, 0.3)) > 0.01
        player.set("x", 0.25)
        np.testing.assert_allclose(agree(), (0.25, *on_circle[1:]), atol=1e-12)
        player.tick()
        assert agree()[0] == pytest.approx(0.25)


def test_the_rover_opens_where_it_will_stand():
    with ScenePlayer("rover") as player:
        first = read_state(player.frames[0]).links[:, :3].mean(axis=0)
        player.rest()
        last = read_state(player.frames[-1]).links[:, :3].mean(axis=0)
        assert math.dist(first, last) < 0.2


def test_all_that_is_read_off_is_of_one_state_also_if_another_arrives_meanwhile():
    """Of two arms that hold a box one hand was once read from one state and the other from the next."""
    with ScenePlayer("two_arms") as player:
        player.rest()
        scene, seen = player.scene, []

        def lines():
            seen.append(scene.q)
            goal = player.session.goals[0]
            player.session.move_goal(goal.number, translation((0.0, 0.0, 0.02)) @ goal.X)
            player.rest()
            seen.append(scene.q)
            return []

        scene.make_readouts = lines
        scene.readouts()
        assert seen[0] is seen[1]
        assert not np.array_equal(seen[1], player.q)
        assert scene.q is player.q or np.array_equal(scene.q, player.q)


def test_hands_that_hold_a_box_are_as_far_apart_as_it_is_long_at_every_state():
    with ScenePlayer("two_arms") as player:
        player.rest()
        [apart] = numbers(player.scene.readouts()[0].removesuffix("mm"))
        player.set("motion", "both")
        for _ in range(40):
            player.tick()
            state = player.session.active.latest_state
            [now] = numbers(player.scene.readouts()[0].removesuffix("mm"))
            if state is player.session.active.latest_state and state.solution is not None and state.solution.success:
                assert now == pytest.approx(apart, abs=2e-5)  # mm: a loop that is shut is shut to 1e-8 m
            time.sleep(0.003)


def test_words_and_the_lines_beside_them_are_about_the_same_state():
    with ScenePlayer("two_arms") as player:
        player.rest()
        scene, active, read = player.scene, player.session.active, []

        def lines():
            read.append(active.latest_state)
            if len(read) == 1:  # a state arrives just after the first sentence was made
                goal = player.session.goals[0]
                player.session.move_goal(goal.number, translation((0.0, 0.0, 0.02)) @ goal.X)
                player.rest()
            return [str(len(read))]

        scene.make_readouts = lines
        player.tick()
        texts = [event for event in player.events if isinstance(event, StatusText)]
        assert texts[-1].readouts == [str(len(read))]
        assert read[-1] is active.latest_state
        assert len(read) > 1


def test_a_number_of_joints_chooses_the_arm_that_has_so_many():
    for arm in ("grippy10", "zalo5", "variable"):
        with ScenePlayer("list_arm") as player:
            player.set("arm", arm)
            player.set("joints", 12.0)
            assert value(player, "arm") == "variable"
            assert player.mechanism.nq == 12
            player.rest()
            assert player.session.active.latest_state.solution.success
