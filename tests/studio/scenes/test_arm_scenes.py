"""Scenes with arms: what their switches, lists and tables say is what they do."""

import json
import math
from itertools import pairwise, product

import numpy as np
import pytest
from playing import Played

from mechanik.spatial import apply
from mechanik.studio.messages.requests import EditModel
from mechanik.studio.scenes.arm_scenes import SPHERICAL_CONE_ANGLE, dh_row_texts, dh_table_json, make_ccd_arm
from mechanik.studio.scenes.goal_scenes import DIRECTIONS
from mechanik.studio.scenes.linkage_scenes import CRANK_LINKAGES, trace_point


@pytest.mark.parametrize("motion", ["turn", "both"])
def test_any_choice_of_directions_is_followed_for_as_long_as_one_likes(motion):
    """With rotation the demonstration that this is made after crashed at its ninth tick."""
    with Played("partial_goals") as played:
        played.set("motion", motion)
        for directions in product((True, False), repeat=3):
            for name, on in zip(("X", "EX", "EZ"), directions, strict=True):
                played.set(name, on)
            played.tick(12)
        played.rest()
        played.check()


def test_goal_without_constrained_directions_does_not_count():
    with Played("partial_goals") as played:
        for name in DIRECTIONS:
            played.set(name, False)
        assert not played.session.goals[0].enabled
        played.set("motion", "both")
        before = played.q.copy()
        played.tick(5)
        np.testing.assert_array_equal(played.q, before)
        played.set("EY", True)
        assert played.session.goals[0].enabled
        assert set(played.session.goals[0].free) == {*DIRECTIONS} - {"EY"}


def test_free_direction_stays_and_constrained_directions_are_met():
    with Played("partial_goals") as played:
        played.set("Z", False)
        played.set("motion", "wander")
        played.tick(20, follows=True)
        goal, tool = played.session.goals[0].X, played.mechanism.pose("iiwa_link_ee", played.q)
        off = goal[:3, :3].T @ (tool[:3, 3] - goal[:3, 3])
        assert abs(off[:2]).max() < 1e-5
        assert abs(off[2]) > 1e-3
        np.testing.assert_allclose(tool[:3, :3], goal[:3, :3], atol=1e-5)


@pytest.mark.parametrize(("hinges", "limits", "direction"), list(product((True, False), repeat=3)))
def test_each_combination_of_the_arms_switches_keeps_its_word(hinges, limits, direction):
    with Played("ccd_arm") as played:
        for name, on in (("hinges", hinges), ("limits", limits), ("direction", direction), ("orbit", True)):
            played.set(name, on)
        assert played.scene.is_on("free") is not hinges
        assert played.session.active.edit_state.solver == "ccd"
        played.set("sweeps", 200.0)
        played.tick(10, follows=True)
        played.check()
        arm, q = played.mechanism, played.q
        if hinges and limits:
            np.testing.assert_array_equal(arm.clamp(q), q)
        if limits and not hinges:
            up = np.array([0.0, 1.0, 0.0])
            chain = ["base", "first", "second", "third", "fourth", "fifth"]
            turns = arm.poses(q, chain)[:, :3, :3]
            for above, below in pairwise(turns):
                assert math.acos(min(1.0, (above @ up) @ (below @ up))) < SPHERICAL_CONE_ANGLE + 1e-6
        if not direction:
            tip, goal = arm.pose("effector", q)[:3, 3], played.session.goals[0].X[:3, 3]
            assert np.linalg.norm(tip - goal) < 1e-3


def test_hinged_or_free_the_arm_begins_in_the_same_pose():
    hinged, free = make_ccd_arm(True, True), make_ccd_arm(False, False)
    np.testing.assert_allclose(hinged.pose("effector"), free.pose("effector"), atol=1e-12)


def test_the_dh_rows_on_the_screen_carry_the_angles_of_the_joints():
    with Played("dh_arm") as played:
        assert played.scene.readouts() == dh_row_texts(dh_table_json(), np.radians([0, 125, -35, 0, 90, 0]).tolist())
        assert "theta  125.000" in played.scene.readouts()[1]
        played.set("motion", "circle")
        played.tick(10, follows=True)
        thetas = [float(line.split()[-1]) for line in played.scene.readouts()]
        np.testing.assert_allclose(thetas, np.degrees(played.q), atol=1e-3)


def test_an_edited_dh_row_is_on_the_screen_and_the_scene_goes_on():
    with Played("dh_arm") as played:
        table = json.loads(dh_table_json())
        table["dh"]["rows"][0][0] = 0.75
        played.session.handle_request(EditModel("dh", json.dumps(table)))
        assert "d    0.750" in played.scene.readouts()[0]
        played.set("motion", "circle")
        played.tick(10, follows=True)
        played.session.handle_request(EditModel("arm_3d", '{"mechanik": 1, "arm": {"lengths": [1, 1], "axes": "zy"}}'))
        assert played.scene.readouts() == []
        played.tick(3)


def test_rows_that_cannot_be_read_are_not_shown():
    for text in ("", "{}", "[1]", '{"dh": 3}', '{"dh": {"rows": [[1, 2]]}}', '{"dh": {"rows": [["a", 1, 2, 3]]}}'):
        assert dh_row_texts(text, [0.0]) == []


@pytest.mark.parametrize("joints", [2, 30, 100])
def test_an_arm_of_any_number_of_joints_takes_its_tip_to_the_sliders(joints):
    with Played("list_arm") as played:
        played.set("arm", "counted")
        played.set("joints", float(joints))
        for name, value in (("x", 0.5), ("y", 0.2), ("z", 0.7)):
            played.set(name, value)
        played.rest()
        assert played.mechanism.nq == joints
        if joints > 2:
            tip = played.mechanism.pose("tool", played.q)[:3, 3]
            np.testing.assert_allclose(tip, (0.5, 0.2, 0.7), atol=1e-5)


def test_the_list_in_the_editor_is_the_arm_on_the_table():
    for scene, kind in (("list_arm", "arm_3d"), ("arm_2d", "arm_2d")):
        with Played(scene) as played:
            played.rest()
            assert played.session.active.model.source[0] == kind
            count, tip = played.mechanism.nq, played.mechanism.pose("tool", np.zeros(played.mechanism.nq))
            played.session.handle_request(EditModel(*played.session.active.model.source))
            assert played.mechanism.nq == count
            np.testing.assert_allclose(played.mechanism.pose("tool", np.zeros(count)), tip, atol=1e-6 * count)


def test_colliders_of_the_list_arm_are_drawn_from_the_start():
    with Played("list_arm") as played:
        assert played.scene.shows_collisions
        assert all(played.mechanism.link(f"seg{k}").collisions for k in range(11))


@pytest.mark.parametrize("name", CRANK_LINKAGES)
def test_what_a_linkage_draws_is_where_its_point_goes(name):
    points, (low, high) = trace_point(name)
    drawing = CRANK_LINKAGES[name]
    with Played("cranks") as played:
        played.set("linkage", name)
        for _ in range(4):
            played.tick(6, follows=True)
            p = apply(played.mechanism.pose(drawing.link, played.q), drawing.at)
            steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
            assert np.linalg.norm(points - p, axis=1).min() < 0.6 * steps.max()
            assert high - low > 0.5
