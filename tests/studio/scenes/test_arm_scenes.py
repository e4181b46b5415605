"""Scenes with arms: controls and tables have the effect that they describe."""

import json
import math
from itertools import pairwise, product

import numpy as np
import pytest
from scene_player import ScenePlayer

from mechanik.spatial import apply
from mechanik.studio.messages.requests import EditModel
from mechanik.studio.scenes.arm_scenes import SPHERICAL_CONE_ANGLE, dh_row_texts, dh_table_json, make_ccd_arm
from mechanik.studio.scenes.goal_scenes import DOF_TITLES
from mechanik.studio.scenes.linkage_scenes import CRANK_LINKAGES, trace_point


@pytest.mark.parametrize("motion", ["rotate", "both"])
def test_any_choice_of_directions_is_followed_for_as_long_as_one_likes(motion):
    """With rotation the demonstration that this is made after crashed at its ninth tick."""
    with ScenePlayer("partial_goals") as player:
        player.set("motion", motion)
        for directions in product((True, False), repeat=3):
            for name, on in zip(("X", "EX", "EZ"), directions, strict=True):
                player.set(name, on)
            player.tick(12)
        player.rest()
        player.check()


def test_goal_without_constrained_directions_does_not_count():
    with ScenePlayer("partial_goals") as player:
        for name in DOF_TITLES:
            player.set(name, False)
        assert not player.session.goals[0].enabled
        player.set("motion", "both")
        before = player.q.copy()
        player.tick(5)
        np.testing.assert_array_equal(player.q, before)
        player.set("EY", True)
        assert player.session.goals[0].enabled
        assert set(player.session.goals[0].free) == {*DOF_TITLES} - {"EY"}


def test_free_direction_stays_and_constrained_directions_are_met():
    with ScenePlayer("partial_goals") as player:
        player.set("Z", False)
        player.set("motion", "translate")
        player.tick(20, follows=True)
        goal, tool = player.session.goals[0].X, player.mechanism.pose("iiwa_link_ee", player.q)
        off = goal[:3, :3].T @ (tool[:3, 3] - goal[:3, 3])
        assert abs(off[:2]).max() < 1e-5
        assert abs(off[2]) > 1e-3
        np.testing.assert_allclose(tool[:3, :3], goal[:3, :3], atol=1e-5)


@pytest.mark.parametrize(("revolute", "limits", "direction"), list(product((True, False), repeat=3)))
def test_each_combination_of_the_arms_switches_keeps_its_word(revolute, limits, direction):
    with ScenePlayer("ccd_arm") as player:
        for name, on in (("revolute", revolute), ("limits", limits), ("direction", direction), ("orbit", True)):
            player.set(name, on)
        assert player.scene.is_on("spherical") is not revolute
        assert player.session.active.edit_state.solver == "ccd"
        player.set("sweeps", 200.0)
        player.tick(10, follows=True)
        player.check()
        arm, q = player.mechanism, player.q
        if revolute and limits:
            np.testing.assert_array_equal(arm.clamp(q), q)
        if limits and not revolute:
            up = np.array([0.0, 1.0, 0.0])
            chain = ["base", "first", "second", "third", "fourth", "fifth"]
            turns = arm.poses(q, chain)[:, :3, :3]
            for above, below in pairwise(turns):
                assert math.acos(min(1.0, (above @ up) @ (below @ up))) < SPHERICAL_CONE_ANGLE + 1e-6
        if not direction:
            tip, goal = arm.pose("effector", q)[:3, 3], player.session.goals[0].X[:3, 3]
            assert np.linalg.norm(tip - goal) < 1e-3


def test_hinged_or_free_the_arm_begins_in_the_same_pose():
    hinged, free = make_ccd_arm(True, True), make_ccd_arm(False, False)
    np.testing.assert_allclose(hinged.pose("effector"), free.pose("effector"), atol=1e-12)


def test_the_dh_rows_on_the_screen_carry_the_angles_of_the_joints():
    with ScenePlayer("dh_arm") as player:
        assert player.scene.readouts() == dh_row_texts(dh_table_json(), np.radians([0, 125, -35, 0, 90, 0]).tolist())
        assert "theta  125.000" in player.scene.readouts()[1]
        player.set("motion", "circle")
        player.tick(10, follows=True)
        thetas = [float(line.split()[-1]) for line in player.scene.readouts()]
        np.testing.assert_allclose(thetas, np.degrees(player.q), atol=1e-3)


def test_an_edited_dh_row_is_on_the_screen_and_the_scene_goes_on():
    with ScenePlayer("dh_arm") as player:
        table = json.loads(dh_table_json())
        table["dh"]["rows"][0][0] = 0.75
        player.session.handle_request(EditModel("dh", json.dumps(table)))
        assert "d    0.750" in player.scene.readouts()[0]
        player.set("motion", "circle")
        player.tick(10, follows=True)
        player.session.handle_request(EditModel("arm_3d", '{"mechanik": 1, "arm": {"lengths": [1, 1], "axes": "zy"}}'))
        assert player.scene.readouts() == []
        player.tick(3)


def test_rows_that_cannot_be_read_are_not_shown():
    for text in ("", "{}", "[1]", '{"dh": 3}', '{"dh": {"rows": [[1, 2]]}}', '{"dh": {"rows": [["a", 1, 2, 3]]}}'):
        assert dh_row_texts(text, [0.0]) == []


@pytest.mark.parametrize("joints", [2, 30, 100])
def test_an_arm_of_any_number_of_joints_takes_its_tip_to_the_sliders(joints):
    with ScenePlayer("list_arm") as player:
        player.set("arm", "variable")
        player.set("joints", float(joints))
        for name, value in (("x", 0.5), ("y", 0.2), ("z", 0.7)):
            player.set(name, value)
        player.rest()
        assert player.mechanism.nq == joints
        if joints > 2:
            tip = player.mechanism.pose("tool", player.q)[:3, 3]
            np.testing.assert_allclose(tip, (0.5, 0.2, 0.7), atol=1e-5)


def test_the_list_in_the_editor_is_the_arm_on_the_table():
    for scene, kind in (("list_arm", "arm_3d"), ("arm_2d", "arm_2d")):
        with ScenePlayer(scene) as player:
            player.rest()
            assert player.session.active.model.source[0] == kind
            count, tip = player.mechanism.nq, player.mechanism.pose("tool", np.zeros(player.mechanism.nq))
            player.session.handle_request(EditModel(*player.session.active.model.source))
            assert player.mechanism.nq == count
            np.testing.assert_allclose(player.mechanism.pose("tool", np.zeros(count)), tip, atol=1e-6 * count)


def test_colliders_of_the_list_arm_are_drawn_from_the_start():
    with ScenePlayer("list_arm") as player:
        assert player.scene.shows_collisions
        assert all(player.mechanism.link(f"seg{k}").collisions for k in range(11))


@pytest.mark.parametrize("name", CRANK_LINKAGES)
def test_what_a_linkage_draws_is_where_its_point_goes(name):
    points, (low, high) = trace_point(name)
    drawing = CRANK_LINKAGES[name]
    with ScenePlayer("cranks") as player:
        player.set("linkage", name)
        for _ in range(4):
            player.tick(6, follows=True)
            p = apply(player.mechanism.pose(drawing.link, player.q), drawing.at)
            steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
            assert np.linalg.norm(points - p, axis=1).min() < 0.6 * steps.max()
            assert high - low > 0.5


def test_a_prismatic_row_of_a_dh_table_shows_its_value_in_d():
    """Once its value was shown as an angle in theta."""
    rows = [[0.5, 0.0, 0.0, 0.0], [0.3, 0.2, 90.0, 10.0]]
    text = json.dumps({"mechanik": 1, "dh": {"columns": "d a alpha theta", "kinds": "RP", "rows": rows}})
    first_row, second_row = (line.split() for line in dh_row_texts(text, [0.1, 0.4]))
    assert first_row[2::2] == ["0.500", "0.000", "0.000", "5.730"]
    assert second_row[2::2] == ["0.700", "0.200", "90.000", "10.000"]
