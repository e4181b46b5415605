"""What is read beside a mechanism that moves: numbers of the same moment as the words, and sliders that follow."""

import math
import time

import numpy as np
import pytest
from playing import PATIENCE, Played

from mechanik.spatial import translation
from mechanik.studio.messages.events import Controls, StatusText
from mechanik.studio.messages.message_codec import MAIN_LAYER, STATUSES, read_state
from mechanik.studio.messages.requests import SetRunning


def value(played, name):
    return next(control.value for control in played.scene.controls() if control.name == name)


def numbers(line):
    return [float(word) for word in line.replace(":", " ").split() if word.replace(".", "").isdigit()]


@pytest.mark.parametrize(("name", "controls"), [
    ("look_at", {"speed": 2.0}),
    ("ccd_arm", {"speed": 2.0, "sweeps": 200.0}),
])  # fmt: skip
def test_a_target_that_flies_is_never_called_reached_beside_a_number_that_says_it_is_not(name, controls):
    """They once compared where the target was by then with a state that answered an older one."""
    with Played(name) as played:
        for control, number in controls.items():
            played.set(control, number)
        reached = ticks = 0
        end = time.monotonic() + PATIENCE
        while ticks < 60 or (reached <= 5 and time.monotonic() < end):
            ticks += 1
            played.tick()
            state = played.session.active.latest_state
            lines = played.scene.readouts()
            is_same = state is played.session.active.latest_state
            if is_same and state is not None and state.solution is not None and state.solution.success:
                assert max(numbers(lines[0])) < 0.05, lines
                reached += 1
            time.sleep(0.003)
        assert reached > 5


@pytest.mark.parametrize(("name", "motion"), [("look_at", ("motion", "drag")), ("ccd_arm", ("orbit", False))])
def test_while_nothing_is_solved_the_number_is_what_the_goal_is_off_now(name, motion):
    with Played(name) as played:
        played.set(*motion)
        played.rest()
        assert max(numbers(played.scene.readouts()[0])) < 0.05
        played.session.handle_request(SetRunning(False))
        goal = played.session.goals[0]
        played.session.move_goals({goal.number: translation((0.05, 0.05, 0.3)) @ goal.X})
        assert max(numbers(played.scene.readouts()[0])) > 1.0


def test_what_the_target_is_off_is_what_the_page_shows_of_the_same_state():
    with Played("ccd_arm") as played:
        played.set("speed", 2.0)
        played.set("sweeps", 1.0)
        played.tick(5)
        played.rest()
        [state] = [frame for frame in map(read_state, played.frames[-1:]) if frame.header.layer == MAIN_LAYER]
        assert STATUSES[int(state.header.status)] != "PROBLEM"
        assert numbers(played.scene.readouts()[0])[0] == pytest.approx(1000 * state.goals[0, 7], abs=0.006)


@pytest.mark.parametrize(("scene", "slider"), [("gripper", "closing"), ("scissor_lift", "height")])
def test_a_slider_goes_along_with_what_it_sets_and_stays_where_that_is_stopped(scene, slider):
    with Played(scene) as played:
        before = value(played, slider)
        played.tick(10, follows=True)
        values = [event.values[slider] for event in played.events if isinstance(event, Controls)]
        assert len(set(values)) > 1
        assert abs(values[-1] - before) > 0.01
        stood, q = value(played, slider), played.q
        for moves in (False, True):
            played.set("moves", moves)
            played.rest()
            assert value(played, slider) == pytest.approx(stood, abs=1e-12)
            np.testing.assert_allclose(played.q, q, atol=1e-6)  # nothing leaps


def test_the_height_on_the_slider_is_the_height_of_the_platform():
    with Played("scissor_lift") as played:
        for _ in range(5):
            played.tick(follows=True)
            height = float(played.mechanism.pose("platform", played.q)[2, 3])
            assert height == pytest.approx(value(played, "height"), abs=1e-5)


@pytest.mark.parametrize("arm", ["grippy10", "zalo5", "counted"])
def test_sliders_of_the_list_arm_are_where_the_target_is_whoever_moves_it(arm):
    with Played("list_arm") as played:
        played.set("arm", arm)

        def agree():
            place = played.session.goals[0].X[:3, 3]
            np.testing.assert_allclose([value(played, name) for name in "xyz"], place, atol=1e-12)
            return place.copy()

        first = agree()
        played.session.move_goal(played.session.goals[0].number, translation((0.2, -0.1, 0.3)))
        assert math.dist(agree(), first) > 0.01
        played.set("y", 0.15)
        np.testing.assert_allclose(agree(), (0.2, 0.15, 0.3), atol=1e-12)
        played.set("circle", True)
        played.tick(5)
        on_circle = agree()
        assert math.dist(on_circle, (0.2, 0.15, 0.3)) > 0.01
        played.set("x", 0.25)
        np.testing.assert_allclose(agree(), (0.25, *on_circle[1:]), atol=1e-12)
        played.tick()
        assert agree()[0] == pytest.approx(0.25)


def test_the_rover_opens_where_it_will_stand():
    with Played("rover") as played:
        first = read_state(played.frames[0]).links[:, :3].mean(axis=0)
        played.rest()
        last = read_state(played.frames[-1]).links[:, :3].mean(axis=0)
        assert math.dist(first, last) < 0.2


def test_all_that_is_read_off_is_of_one_state_also_if_another_arrives_meanwhile():
    """Of two arms that hold a box one hand was once read from one state and the other from the next."""
    with Played("two_arms") as played:
        played.rest()
        scene, seen = played.scene, []

        def lines():
            seen.append(scene.q)
            goal = played.session.goals[0]
            played.session.move_goal(goal.number, translation((0.0, 0.0, 0.02)) @ goal.X)
            played.rest()
            seen.append(scene.q)
            return []

        scene.make_readouts = lines
        scene.readouts()
        assert seen[0] is seen[1]
        assert not np.array_equal(seen[1], played.q)
        assert scene.q is played.q or np.array_equal(scene.q, played.q)


def test_hands_that_hold_a_box_are_as_far_apart_as_it_is_long_at_every_state():
    with Played("two_arms") as played:
        played.rest()
        [apart] = numbers(played.scene.readouts()[0].removesuffix("mm"))
        played.set("motion", "both")
        for _ in range(40):
            played.tick()
            state = played.session.active.latest_state
            [now] = numbers(played.scene.readouts()[0].removesuffix("mm"))
            if state is played.session.active.latest_state and state.solution is not None and state.solution.success:
                assert now == pytest.approx(apart, abs=2e-5)  # mm: a loop that is shut is shut to 1e-8 m
            time.sleep(0.003)


def test_words_and_the_lines_beside_them_are_about_the_same_state():
    with Played("two_arms") as played:
        played.rest()
        scene, active, read = played.scene, played.session.active, []

        def lines():
            read.append(active.latest_state)
            if len(read) == 1:  # a state arrives just after the first sentence was made
                goal = played.session.goals[0]
                played.session.move_goal(goal.number, translation((0.0, 0.0, 0.02)) @ goal.X)
                played.rest()
            return [str(len(read))]

        scene.make_readouts = lines
        played.tick()
        texts = [event for event in played.events if isinstance(event, StatusText)]
        assert texts[-1].readouts == [str(len(read))]
        assert read[-1] is active.latest_state
        assert len(read) > 1


def test_a_number_of_joints_chooses_the_arm_that_has_so_many():
    for arm in ("grippy10", "zalo5", "counted"):
        with Played("list_arm") as played:
            played.set("arm", arm)
            played.set("joints", 12.0)
            assert value(played, "arm") == "counted"
            assert played.mechanism.nq == 12
            played.rest()
            assert played.session.active.latest_state.solution.success
