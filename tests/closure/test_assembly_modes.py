"""Assembly modes: as many as a closed form has, each once, and no others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from driven_linkages import angle_difference, four_bar, gough_platform, rocker_angle_of
from hypothesis import given, settings
from hypothesis import strategies as st
from platform_6_3 import circles, real_angles
from scipy.optimize import brentq

import mechanik as mk
from mechanik.errors import LimitsError, StructureError
from mechanik.spatial.array import Array

LENGTHS = 2.0, 0.5, 1.8, 1.2
FOUR_BAR = four_bar(*LENGTHS, 0.6)


def smallest_distance(mechanism: mk.Mechanism, modes: Array) -> float:
    """Return the smallest distance between two modes: the largest difference in any dof."""
    far = np.abs(mechanism.difference(modes[:, None], modes[None])).max(axis=2)
    return float((far + np.eye(len(modes)) * 9.0).min())


@settings(max_examples=10)
@given(st.floats(-6.0, 6.0))
def test_four_bar_has_two_modes(angle: float) -> None:
    modes = FOUR_BAR.assembly_modes({"crank": angle})
    assert len(modes) == 2
    wanted = [rocker_angle_of(*LENGTHS, angle, is_crossed) for is_crossed in (False, True)]
    assert max(min(angle_difference(q[2], rocker_angle) for q in modes) for rocker_angle in wanted) < 1e-9
    assert (modes.hit_counts > 1).all()
    assert not modes.redundancy


def test_four_bar_has_one_mode_at_its_dead_point_and_none_beyond() -> None:
    dead = FOUR_BAR.assemble({"rocker": 4.0}).q[2]
    counts = [len(FOUR_BAR.assembly_modes({"rocker": dead + more})) for more in (-0.3, -1e-4, 0.0, 1e-4, 0.3)]
    assert counts == [2, 2, 1, 0, 0]


def test_result_without_modes_says_why() -> None:
    none = FOUR_BAR.assembly_modes({"rocker": 3.1})
    assert not len(none)
    assert "closed the loops" in none.explanation
    assert "no assembly mode" in repr(none)


def test_modes_are_sorted_by_distance_from_the_present_configuration() -> None:
    modes = FOUR_BAR.assembly_modes({"crank": 0.6})
    assert np.abs(modes[0] - FOUR_BAR.q).max() < 1e-9
    assert np.all(np.diff(modes.distance) >= 0)
    assert len(FOUR_BAR.assembly_modes({"crank": 0.6}, limit=1)) == 1


def test_modes_outside_the_limits_are_excluded() -> None:
    linkage = four_bar(*LENGTHS, 0.6)
    linkage.joint("rocker").set_limits(0.0, math.pi)
    modes = linkage.assembly_modes({"crank": 0.6})
    assert len(modes) == 1
    assert 0.0 <= modes[0][2] <= math.pi


def test_slider_crank_has_two_modes() -> None:
    engine = mk.gallery.slider_crank(0.3, 1.0, 0.1)
    positions = sorted(q[2] for q in engine.assembly_modes({"crank_joint": 0.8}))
    half = math.sqrt(1.0 - (0.1 - 0.3 * math.sin(0.8)) ** 2)
    assert positions == pytest.approx([0.3 * math.cos(0.8) - half, 0.3 * math.cos(0.8) + half], abs=1e-9)


def test_five_bar_with_both_cranks_driven_has_two_modes() -> None:
    robot = mk.gallery.five_bar()
    modes = robot.assembly_modes({"left_crank_joint": 1.8, "right_crank_joint": 1.0})
    assert len(modes) == 2
    knees = 0.5 * np.exp(1j * np.array([1.8, 1.0])) + np.array([-0.3, 0.3])
    between_knees = knees[1] - knees[0]
    aside = 1j * between_knees / abs(between_knees) * math.sqrt(0.64 - abs(between_knees) ** 2 / 4)
    tips = sorted(complex(*robot.pose("tool", q)[:2, 3]).imag for q in modes)
    middle = knees.mean()
    assert tips == pytest.approx(sorted([(middle + aside).imag, (middle - aside).imag]), abs=1e-9)


def test_five_bar_with_one_crank_driven_moves_on_two_curves() -> None:
    modes = mk.gallery.five_bar().assembly_modes({"left_crank_joint": 2.0})
    assert modes.redundancy == 1
    assert "2 connected self-motions" in modes.explanation


# ---- three legs in the plane --------------------------------------------------------------------

PIVOTS = np.exp(2j * math.pi * np.arange(3) / 3)
CORNERS = 0.78 * np.exp(1j * np.array([0.28, 1.88, -2.10]))
CRANKS, RODS = np.array([2.11, -1.37, -1.79]), 1.15
"""A planar 3-RRR with as many real modes as one can have."""


def test_planar_3rrr_has_as_many_modes_as_a_scan_finds() -> None:
    b = mk.Builder("3-RRR")
    b.planar("platform_joint", "ground", "platform")
    for k in range(3):
        b.revolute(f"crank{k}", "ground", f"crank_link{k}", at=(PIVOTS[k].real, PIVOTS[k].imag, 0), value=CRANKS[k])
        b.revolute(f"rod{k}", f"crank_link{k}", f"rod_link{k}", at=(0.6, 0, 0))
        corner = (CORNERS[k].real, CORNERS[k].imag, 0.0)
        b.close(f"pin{k}", f"rod_link{k}", "platform", "pin", at=(RODS, 0, 0), onto=corner)
    robot = b.build()
    modes = robot.assembly_modes({f"crank{k}": CRANKS[k] for k in range(3)})
    knees = PIVOTS + 0.6 * np.exp(1j * CRANKS)
    wanted = _platforms(knees)
    assert len(wanted) == 6
    assert len(modes) == 6
    for x, y, turn in wanted:
        off = [max(abs(q[0] - x), abs(q[1] - y), angle_difference(q[2], turn)) for q in modes]
        assert min(off) < 1e-8


def _platforms(knees: Array) -> list[tuple[float, float, float]]:
    """x, y and turn of the platform: two legs put it on a curve over its turn, and the third is as long as it should
    be where that curve crosses its circle. Found by a fine scan of the turn."""
    poses: list[tuple[float, float, float]] = []
    turns = np.linspace(-math.pi, math.pi, 4001)
    for side in (1.0, -1.0):

        def place(turn: Any, side: float = side) -> tuple[Any, Any]:
            centres = knees[:, None] - CORNERS[:, None] * np.exp(1j * np.atleast_1d(turn))
            between_centres = centres[1] - centres[0]
            square = RODS**2 - np.abs(between_centres) ** 2 / 4
            p = (
                centres[0]
                + between_centres / 2
                + side * 1j * between_centres / np.abs(between_centres) * np.sqrt(np.where(square > 0, square, np.nan))
            )
            return np.abs(p - centres[2]) - RODS, p

        off, _ = place(turns)
        for k in np.flatnonzero(off[:-1] * off[1:] < 0):
            turn = brentq(lambda x: float(place(x)[0][0]), turns[k], turns[k + 1], xtol=1e-14)
            p = complex(place(turn)[1][0])
            poses.append((p.real, p.imag, turn))
    return poses


# ---- six legs -----------------------------------------------------------------------------------


def test_platform_6_3_has_as_many_modes_as_its_polynomial_has_real_roots() -> None:
    """Two legs meet at each corner of the platform, which so lies on a circle: a polynomial of degree 16 is left.

    P. Nanua, K. J. Waldron, V. Murthy, "Direct kinematic solution of a Stewart platform", IEEE Transactions on
    Robotics and Automation 6(4), 1990.
    """
    angles = np.array([-0.249, 0.359, 1.875, 2.473, 3.69, 4.598])
    base = np.c_[np.cos(angles), np.sin(angles), np.zeros(6)]
    sides, lengths = (0.62, 1.08, 0.98), np.array([1.55, 1.3, 0.98, 1.25, 1.42, 1.37])
    a, b, c = sides  # from the first corner to the second, to the third, and from the second to the third
    x = (a * a + b * b - c * c) / (2 * a)
    corners = np.array([(0.0, 0, 0), (a, 0, 0), (x, math.sqrt(b * b - x * x), 0)])
    robot = gough_platform(base, np.repeat(corners, 2, axis=0), lengths)
    modes = robot.assembly_modes({f"slide{k}": length for k, length in enumerate(lengths)})
    wanted = real_angles(base, sides, lengths)
    assert len(wanted) == 12
    assert len(modes) == 12
    middle, u, v = circles(base, lengths)[0]
    firsts = np.array([robot.pose("platform", q)[:3, 3] for q in modes])
    for angle in wanted:
        first = middle + math.cos(angle) * u + math.sin(angle) * v
        assert np.linalg.norm(firsts - first, axis=1).min() < 1e-7


DIETMAIER_BASE = np.array(
    [(0, 0, 0), (1.107915, 0, 0), (0.549094, 0.756063, 0), (0.735077, -0.223935, 0.525991),
     (0.514188, -0.526063, -0.368418), (0.590473, 0.094733, -0.205018)]
)  # fmt: skip
DIETMAIER_PLATFORM = np.array(
    [(0, 0, 0), (0.542805, 0, 0), (0.956919, -0.528915, 0), (0.665885, -0.353482, 1.402538),
     (0.478359, 1.158742, 0.107672), (-0.137087, -0.235121, 0.353913)]
)  # fmt: skip
DIETMAIER_LEGS = np.array([1.0, 0.645275, 1.086284, 1.503439, 1.281933, 0.771071])


def test_dietmaiers_platform_has_forty_modes() -> None:
    """As many as any platform can have, and all of them real.

    P. Dietmaier, "The Stewart-Gough platform of general geometry can have 40 real postures", Advances in Robot
    Kinematics, 1998.
    """
    robot = gough_platform(DIETMAIER_BASE, DIETMAIER_PLATFORM, DIETMAIER_LEGS)
    modes = robot.assembly_modes({f"slide{k}": leg for k, leg in enumerate(DIETMAIER_LEGS)}, max_attempts=1000)
    assert len(modes) == 40
    assert smallest_distance(robot, modes.q) > 0.05
    for q in modes:
        X = robot.pose("platform", q)
        legs = np.linalg.norm(DIETMAIER_PLATFORM @ X[:3, :3].T + X[:3, 3] - DIETMAIER_BASE, axis=1)
        assert np.abs(legs - DIETMAIER_LEGS).max() < 1e-9


def test_delta_robot_has_two_modes_with_a_level_platform() -> None:
    """Three spheres about the elbows, moved inward by the platform's radius, meet in two points."""
    robot = mk.gallery.delta_robot()
    for joint in robot.joints.values():
        if joint.name.endswith("_universal"):
            joint.set_limits((-math.pi / 2, -math.pi), (math.pi / 2, math.pi))
    drives = np.array([0.35, 0.2, 0.5])
    modes = robot.assembly_modes({f"arm{k + 1}_joint": angle for k, angle in enumerate(drives)})
    level = np.array([X[:3, 3] for X in (robot.pose("platform", q) for q in modes) if abs(X[0, 0] - 1) < 1e-9])
    turns = np.radians([0.0, 120.0, 240.0])
    out = 0.20 + 0.30 * np.cos(drives) - 0.06
    centres = np.c_[out * np.cos(turns), out * np.sin(turns), -0.30 * np.sin(drives)]
    # points at the same distance from all three lie on a line
    A, r = 2 * (centres[1:] - centres[0]), (centres[1:] ** 2).sum(1) - (centres[0] ** 2).sum()
    p, along = np.linalg.lstsq(A, r, rcond=None)[0], np.cross(A[0], A[1])
    along /= np.linalg.norm(along)
    near = (centres[0] - p) @ along
    half = math.sqrt(0.70**2 - np.linalg.norm(p + near * along - centres[0]) ** 2)
    wanted = np.array([p + (near + sign * half) * along for sign in (1.0, -1.0)])
    distances = np.linalg.norm(level[:, None] - wanted[None], axis=2)
    assert (distances.min(axis=0) < 1e-8).all()
    assert (distances.min(axis=1) < 1e-8).all()


# ---- arguments -----------------------------------------------------------------------------------


def test_modes_do_not_depend_on_the_random_seed() -> None:
    first, second = (FOUR_BAR.assembly_modes({"crank": 1.0}) for _ in range(2))
    assert np.array_equal(first.q, second.q)
    assert np.array_equal(first.hit_counts, second.hit_counts)
    other_seed = FOUR_BAR.assembly_modes({"crank": 1.0}, rng=np.random.default_rng(5))
    assert np.abs(first.q - other_seed.q).max() < 1e-9


def test_chance_of_more_modes_decreases_with_the_number_of_attempts() -> None:
    few, many = (FOUR_BAR.assembly_modes({"crank": 1.0}, max_attempts=max_attempts) for max_attempts in (8, 300))
    assert few.attempts == 8
    assert many.chance_of_more < few.chance_of_more


def test_closure_can_be_an_input() -> None:
    pin = FOUR_BAR.assemble({"crank": 1.1})["pin"]
    modes = FOUR_BAR.assembly_modes({"pin": pin})
    assert min(np.abs(q - FOUR_BAR.assemble({"crank": 1.1}).q).max() for q in modes) < 1e-9


def test_invalid_arguments_of_assembly_modes_raise_an_error() -> None:
    for options in ({"limit": 0}, {"max_attempts": 0}, {"max_attempts": 1.5}, {"max_seconds": 0.0}):
        with pytest.raises(LimitsError):
            FOUR_BAR.assembly_modes({"crank": 1.0}, **options)  # type: ignore[arg-type]
    with pytest.raises(StructureError, match="no loop"):
        mk.gallery.planar_2r().assembly_modes({})


# ---- legs that turn about their own line -----------------------------------------------------------


def different_platform_poses(robot: mk.Mechanism, modes: mk.AssemblyModes) -> int:
    """Return the number of different poses of the platform."""
    poses = robot.pose("platform", modes.q)
    is_same = np.abs(poses[:, None] - poses[None]).max(axis=(2, 3)) < 1e-6
    return sum(not is_same[k, :k].any() for k in range(len(poses)))


def slide_values(robot: mk.Mechanism) -> dict[str, float]:
    values = robot.values(robot.q)
    return {name: float(values[name]) for name in values if name.endswith("_slide")}


def drop_limits_of_universals(robot: mk.Mechanism) -> mk.Mechanism:
    for joint in robot.joints.values():
        if joint.name.endswith("_universal"):
            joint.set_limits((-math.pi, -math.pi), (math.pi, math.pi))
    return robot


@pytest.mark.parametrize("legs", ["ups", "sps"])
@pytest.mark.parametrize("ends", ["closure", "joint"])
def test_turned_legs_of_a_platform_are_no_other_modes(legs: Any, ends: Any) -> None:
    """Each leg can be turned over, or rotates freely: hundreds of entries, or samples, were given for 16 poses."""
    robot = drop_limits_of_universals(mk.gallery.stewart_platform(legs=legs, ends=ends))
    modes = robot.assembly_modes(slide_values(robot))
    assert len(modes) == different_platform_poses(robot, modes) == 16
    assert modes.redundancy == 0
    assert set(modes.legs) == {f"{part}{k}" for part in ("leg", "piston") for k in range(1, 7)}
    assert "rotation of legs" in modes.explanation
    for q in modes:
        assert (
            max(robot.closure_gap(f"leg{k}_{'ball' if ends == 'closure' else 'weld'}", q).distance for k in range(1, 7))
            < 1e-9
        )


def test_turned_rods_of_a_delta_robot_are_no_other_modes() -> None:
    """There were 838 entries for 16 poses."""
    robot = drop_limits_of_universals(mk.gallery.delta_robot())
    modes = robot.assembly_modes({f"arm{k}_joint": 0.3 for k in (1, 2, 3)})
    assert len(modes) == different_platform_poses(robot, modes) == 16
    assert set(modes.legs) == {f"rod{k}{side}" for k in (1, 2, 3) for side in "ab"}


@pytest.mark.parametrize("legs", ["ups", "sps"])
def test_the_mode_at_hand_keeps_its_legs(legs: Any) -> None:
    robot = drop_limits_of_universals(mk.gallery.stewart_platform(legs=legs))
    q, rng = robot.q, np.random.default_rng(3)
    if legs == "sps":  # turn the legs
        balls = [robot.space.v_names.index(name) for name in robot.space.v_names if "base_ball" in name]
        directions = [robot.pose(f"leg{k}", q)[:3, 2] for k in range(1, 7)]
        v = np.zeros(robot.nv)
        for k in range(6):
            v[balls[3 * k : 3 * k + 3]] = np.array([0.0, 0.0, rng.uniform(-2.0, 2.0)])
        assert np.allclose(directions, [robot.pose(f"leg{k}", robot.integrate(q, v))[:3, 2] for k in range(1, 7)])
        q = robot.integrate(q, v)
    modes = robot.assembly_modes(slide_values(robot), q)
    assert np.abs(robot.difference(q, modes[0])).max() < 1e-6


def test_links_that_cannot_turn_alone_are_no_legs() -> None:
    """A mode is decided by every link of these: an elbow up and an elbow down are two modes."""
    spherical = mk.Builder("spherical four-bar")
    for name, parent, child, axis in (
        ("a", "base", "crank", (0, 0, 1)), ("b", "crank", "coupler", (1, 0, 2)), ("c", "coupler", "rocker", (1, 1, 1)),
    ):  # fmt: skip
        spherical.revolute(name, parent, child, axis=axis)
    spherical.close("d", "rocker", "base", "pin", at=mk.Pose.identity())
    for robot, inputs in ((FOUR_BAR, {"crank": 1.0}), (spherical.build(), {"a": 0.0})):
        modes = robot.assembly_modes(inputs)
        assert len(modes) == 2
        assert modes.legs == ()
