"""Scenes with ground contact: feet and wheels are on the ground."""

import math

import numpy as np
import pytest
from scene_player import ScenePlayer

from mechanik.gallery.mobile_robots import WHEELS
from mechanik.studio.scenes.legged_scenes import (
    FEET,
    LEG_COUNTS,
    SOLE_CORNERS,
    centre_of_mass,
    foot_path,
    jansen_walker,
    leg_crank_angle,
    leg_mounts,
)
from mechanik.studio.scenes.machine_scenes import make_terrain


@pytest.mark.parametrize("height", [0.0, 0.6, 1.2])
def test_all_wheels_of_the_rover_touch_wherever_it_drives(height):
    with ScenePlayer("rover") as player:
        player.set("height", height)
        player.set("motion", "eight")
        for _ in range(4):
            player.tick(15, follows=True)
            centres = player.mechanism.poses(player.q, WHEELS)[:, :3, 3]
            rolling = player.scene.axle_terrain
            assert np.abs(centres[:, 2] - rolling.height(centres[:, 0], centres[:, 1])).max() < 1e-6
            assert player.scene.readouts()[0] == "wheels on the ground: 6 of 6"


@pytest.mark.parametrize("seed", [1.0, 7.0, 77.0])
def test_a_rover_that_is_dropped_settles_on_its_wheels_however_few_iterations_its_slider_gives_it(seed):
    with ScenePlayer("rover") as player:
        for name, value in (("height", 1.5), ("roughness", 1.0), ("seed", seed)):
            player.set(name, value)
        player.rest()
        stood = player.mechanism.pose("body", player.q)
        fewest = next(control for control in player.scene.controls() if control.name == "iterations").low
        for iterations in (fewest, 10.0, 100.0):
            player.set("iterations", iterations)
            player.set("settle", True)
            assert player.mechanism.pose("body", player.q)[2, 3] > stood[2, 3] - 1e-3
            player.rest()
            player.check()
            assert player.scene.readouts()[0] == "wheels on the ground: 6 of 6"
            np.testing.assert_allclose(player.mechanism.pose("body", player.q), stood, atol=1e-4)


def test_terrain_has_the_given_height_and_another_seed_makes_another_terrain():
    heights, same_heights, other_heights = (make_terrain(0.8, 0.5, seed).heights for seed in (1, 1, 2))
    assert np.ptp(heights) == pytest.approx(0.8)
    np.testing.assert_array_equal(heights, same_heights)
    assert np.abs(heights - other_heights).max() > 0.1


def test_standing_feet_of_the_walker_stay_on_the_ground_and_go_back_together():
    with ScenePlayer("walker") as player:
        player.set("motion", "walk")
        before = None
        for _ in range(20):
            player.tick(follows=True)
            feet = player.mechanism.poses(player.q, FEET)[:, :3, 3]
            standing = feet[:, 2] < 1e-9
            assert standing.sum() >= 3
            assert feet[:, 2].min() > -1e-6
            if before is not None:
                both = standing & before[1]
                moved = (feet - before[0])[both]
                assert np.ptp(moved, axis=0).max() < 1e-6
            before = feet, standing


def test_a_foot_that_is_switched_off_is_let_go_and_one_switched_on_is_held_again():
    with ScenePlayer("walker") as player:
        player.set("foot3", False)
        assert [goal.name for goal in player.session.goals if goal.pinned] == [f"foot{k}" for k in (1, 2, 4, 5, 6)]
        player.set("foot3", True)
        assert sum(goal.pinned for goal in player.session.goals) == 6


@pytest.mark.parametrize("motion", ["wave", "reach", "squat"])
def test_the_humanoid_in_balance_keeps_its_centre_of_mass_over_its_soles(motion):
    with ScenePlayer("humanoid") as player:
        player.set("motion", motion)
        for _ in range(8):
            player.tick(5, follows=True)
            x, y, _ = centre_of_mass(player.mechanism, player.q)
            ankles = player.mechanism.poses(player.q, ["left_foot", "right_foot"])[:, :3, 3]
            assert ankles[:, 0].min() + SOLE_CORNERS[:, 0].min() < x < ankles[:, 0].max() + SOLE_CORNERS[:, 0].max()
            assert ankles[:, 1].min() + SOLE_CORNERS[:, 1].min() < y < ankles[:, 1].max() + SOLE_CORNERS[:, 1].max()


@pytest.mark.parametrize("count", LEG_COUNTS.values())
def test_all_cranks_of_jansens_animal_are_one_shaft(count):
    """Legs of a pair share a pin, and pairs are a third of a turn apart."""
    animal = jansen_walker(count)
    for angle in (0.0, 1.0, 4.0):
        q = animal.configuration({"crank_joint1": angle})
        for k, (_, ahead, y) in enumerate(leg_mounts(count), start=1):
            pin = animal.pose(f"crank{k}", q) @ np.array([0.15, 0.0, 0.0, 1.0])
            np.testing.assert_allclose(
                pin[:3], (0.15 * math.cos(angle + ahead), y, 0.15 * math.sin(angle + ahead)), atol=1e-12
            )


def test_jansens_animal_stands_on_its_lowest_foot_which_does_not_slip():
    with ScenePlayer("jansen") as player:
        count = LEG_COUNTS[player.scene.text("legs")]
        feet = [f"foot{k}" for k in range(1, count + 1)]
        before, ahead = None, []
        for _ in range(40):
            player.tick(follows=True)
            places = player.mechanism.poses(player.q, feet)[:, :3, 3]
            # the feet's way is known every two degrees; between them it is a straight line
            assert abs(places[:, 2].min()) < 1e-3
            ahead.append(float(player.mechanism.pose("chassis", player.q)[0, 3]))
            if before is not None:
                lowest = int(np.argmin(places[:, 2]))
                assert abs(places[lowest, 0] - before[lowest, 0]) < 2e-3
            before = places
        assert all(np.diff(ahead) > 0)


def test_a_leg_turned_around_sees_its_crank_mirrored():
    assert leg_crank_angle(False, 0.5, 1.0) == 1.5
    assert leg_crank_angle(True, 0.5, 1.0) == math.pi - 1.5
    path = foot_path()
    np.testing.assert_allclose(path[0], path[-1], atol=1e-9)


@pytest.mark.parametrize(("legs", "walks"), [("one", True), ("one", False), ("a pair", True)])
def test_legs_are_counted_in_plain_words(legs, walks):
    with ScenePlayer("jansen") as player:
        player.set("legs", legs)
        player.set("walks", walks)
        [line] = player.scene.readouts()
        assert line.startswith("1 leg, " if legs == "one" else "2 legs, ")
