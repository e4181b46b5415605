"""Forward kinematics of closed loops: inputs have their values, loops are closed, and the branch is preserved."""

from __future__ import annotations

import math

import numpy as np
import pytest
from driven_linkages import angle_difference, four_bar, gough_platform, lengths_at, rocker_angle_of
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import mechanik as mk
from mechanik.closure import Assembly
from mechanik.errors import (
    CouplingError,
    DoFError,
    LimitsError,
    MechanikError,
    NotFinite,
    NotSolved,
    ShapeError,
    UnknownName,
)
from mechanik.spatial import make_pose, rotation

LENGTHS = 2.0, 0.5, 1.8, 1.2
FOUR_BAR = four_bar(*LENGTHS, 0.6)


def largest_closure_error(assembly: Assembly) -> float:
    return max(max(error.position, error.rotation) for error in assembly.closure_errors.values())


# ---- the branch ---------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.floats(-12.0, 12.0), st.booleans())
def test_branch_is_preserved_for_any_crank_angle(angle: float, is_crossed: bool) -> None:
    linkage = four_bar(*LENGTHS, 0.6, is_crossed=is_crossed)
    there = linkage.assemble({"crank": angle})
    assert there.success
    assert there.q[0] == angle
    assert angle_difference(there.q[2], rocker_angle_of(*LENGTHS, angle, is_crossed)) < 1e-9
    assert largest_closure_error(there) < 1e-12


def test_one_large_step_equals_many_small_steps() -> None:
    at_once = FOUR_BAR.assemble({"crank": 3.5})
    path = FOUR_BAR.assembly_path({"crank": np.linspace(0.6, 3.5, 101)})
    assert path.success.all()
    assert np.abs(at_once.q - path.q[-1]).max() < 1e-12


@settings(max_examples=10)
@given(st.floats(-8.0, 8.0), st.floats(-8.0, 8.0))
def test_moving_there_and_back_returns_to_the_start(away: float, further: float) -> None:
    q = FOUR_BAR.assembly_path({"crank": [away, further, 0.6]}).q
    assert np.abs(q[-1] - FOUR_BAR.q).max() < 1e-9


def test_number_of_steps_does_not_change_the_assembly() -> None:
    assert np.abs(FOUR_BAR.assemble({"crank": 2.0}, steps=40).q - FOUR_BAR.assemble({"crank": 2.0}).q).max() < 1e-12


def test_assemble_does_not_change_the_mechanism() -> None:
    before = FOUR_BAR.q
    there = FOUR_BAR.assemble({"crank": 2.0})
    assert np.array_equal(FOUR_BAR.q, before)
    fresh = four_bar(*LENGTHS, 0.6)
    fresh.apply(there)
    assert np.array_equal(fresh.q, there.q)


@settings(max_examples=10)
@given(st.floats(-7.0, 7.0))
def test_slider_position_matches_the_closed_form(angle: float) -> None:
    engine = mk.gallery.slider_crank(0.3, 1.0, 0.1)
    stroke = 0.3 * math.cos(angle) + math.sqrt(1.0 - (0.1 - 0.3 * math.sin(angle)) ** 2)
    assert engine.assemble({"crank_joint": angle})["slider_joint"] == pytest.approx(stroke, abs=1e-9)


@settings(max_examples=8)
@given(st.lists(st.floats(-0.4, 0.4), min_size=3, max_size=3), st.lists(st.floats(-0.05, 0.05), min_size=3, max_size=3))
def test_leg_lengths_of_a_platform_give_back_its_pose(turn: list[float], shift: list[float]) -> None:
    angles = np.radians([120 * (k // 2) + (-15, 15)[k % 2] for k in range(6)])
    ends = np.radians([120 * (k // 2) + (-45, 45)[k % 2] for k in range(6)])
    base = 0.2 * np.c_[np.cos(angles), np.sin(angles), 0 * angles]
    platform = 0.12 * np.c_[np.cos(ends), np.sin(ends), 0 * ends]
    home, there = (
        make_pose(np.eye(3), (0, 0, 0.3)),
        make_pose(rotation.exp(np.array(turn)), np.array([0, 0, 0.3]) + shift),
    )
    robot = gough_platform(base, platform, lengths_at(base, platform, home))
    start = robot.assemble(None, robot.configuration({"float": (0, 0, 0.3, 0, 0, 0)})).require()
    assert np.abs(robot.pose("platform", start.q) - home).max() < 0.2  # shut from where all legs point up
    at_home = robot.assemble(
        {f"slide{k}": x for k, x in enumerate(lengths_at(base, platform, home))}, start.q
    ).require()
    legs = {f"slide{k}": x for k, x in enumerate(lengths_at(base, platform, there))}
    assembly = robot.assemble(legs, at_home)
    assert assembly.success
    assert np.abs(robot.pose("platform", assembly.q) - there).max() < 1e-9


# ---- infeasible inputs ------------------------------------------------------------------


@pytest.mark.parametrize(("wanted", "stretched"), [(4.0, False), (0.5, True)])
def test_rocker_beyond_its_range_stops_at_its_dead_point(wanted: float, stretched: bool) -> None:
    """Crank and coupler lie on one line there: a triangle with sides ground, rocker, and their sum or difference."""
    ground, crank, coupler, rocker = LENGTHS
    side = coupler + crank if stretched else coupler - crank
    inner = math.acos((ground**2 + rocker**2 - side**2) / (2 * ground * rocker))
    there = FOUR_BAR.assemble({"rocker": wanted})
    assert there.status is mk.Status.CLOSEST
    assert not there.success
    assert largest_closure_error(there) < 1e-9
    limit = math.pi - inner
    assert there.q[2] == pytest.approx(limit, abs=1e-9)
    assert there.input_errors["rocker"] == pytest.approx(abs(wanted - limit), abs=1e-9)
    assert there.singularities[-1].kind == "dead point"
    assert "dead point" in there.message
    assert "dead point" in there.singular.kinds
    with pytest.raises(NotSolved, match="dead point"):
        there.require()


@pytest.mark.parametrize("short_of", [0.0, 1e-13, 1e-12, 1e-10, 1e-8, 1e-4])
def test_input_can_be_moved_exactly_to_the_dead_point(short_of: float) -> None:
    dead = float(FOUR_BAR.assemble({"rocker": 4.0}).q[2])
    there = FOUR_BAR.assemble({"rocker": dead - short_of})
    assert there.success
    assert largest_closure_error(there) < 1e-9


def test_linkage_returns_from_a_dead_point() -> None:
    dead = FOUR_BAR.assemble({"rocker": 4.0})
    back = FOUR_BAR.assemble({"rocker": 2.3}, dead)
    assert back.success
    assert largest_closure_error(back) < 1e-12
    both = [FOUR_BAR.assemble({"crank": float(back.q[0])}, q0=back.q).q]
    assert np.abs(both[0] - back.q).max() < 1e-9


def test_non_grashof_linkage_stops_at_the_limit_of_its_crank() -> None:
    """Not a Grashof linkage: coupler and rocker are stretched where the crank can go no further."""
    stiff = four_bar(2.0, 1.5, 1.0, 1.2, 0.6)
    jam = math.acos((2.0**2 + 1.5**2 - (1.0 + 1.2) ** 2) / (2 * 2.0 * 1.5))
    for wanted, limit in ((3.0, jam), (-3.0, -jam)):
        there = stiff.assemble({"crank": wanted})
        assert not there.success
        assert there.q[0] == pytest.approx(limit, abs=1e-9)


def test_two_infeasible_inputs_reach_the_nearest_feasible_values() -> None:
    """Cranks of 0.5 on a ground of 0.9 would be 1.9 apart, and rods of 0.8 span 1.6."""
    robot = mk.gallery.five_bar(ground=0.9)
    wanted = np.array([3.0, 0.3])
    there = robot.assemble({"left_crank_joint": wanted[0], "right_crank_joint": wanted[1]})
    assert not there.success
    assert largest_closure_error(there) < 1e-9

    def remaining_length(angles: np.ndarray) -> float:
        knees = 0.5 * np.exp(1j * angles) + np.array([-0.45, 0.45])
        return 1.6 - abs(knees[1] - knees[0])

    start = np.array([2.0, math.pi - 2.0])
    best = minimize(
        lambda x: float(((x - wanted) ** 2).sum()),
        start,
        constraints={"type": "ineq", "fun": remaining_length},
        tol=1e-14,
    )
    crank_angles = np.array([there["left_crank_joint"], there["right_crank_joint"]])
    assert np.linalg.norm(crank_angles - wanted) == pytest.approx(math.sqrt(best.fun), abs=1e-5)


def test_passive_joint_at_its_limit_stops_the_input() -> None:
    linkage = four_bar(*LENGTHS, 0.6)
    limit = rocker_angle_of(*LENGTHS, 1.5)
    linkage.joint("rocker").set_limits(-math.inf, limit)
    there = linkage.assemble({"crank": 2.5})
    assert not there.success
    assert there.q[0] == pytest.approx(1.5, abs=1e-8)
    assert there.q[2] <= limit + 1e-10
    assert "rocker is at its limit" in there.message
    assert linkage.assemble({"crank": 1.4}).success


def test_input_beyond_its_limit_stops_at_the_limit() -> None:
    linkage = four_bar(*LENGTHS, 0.6)
    linkage.joint("crank").set_limits(-1.0, 2.0)
    there = linkage.assemble({"crank": 3.0})
    assert not there.success
    assert there.q[0] == 2.0
    assert angle_difference(there.q[2], rocker_angle_of(*LENGTHS, 2.0)) < 1e-9
    assert "outside the limits" in there.message


def test_redundant_inputs_are_named_with_those_they_depend_on() -> None:
    there = FOUR_BAR.assemble({"crank": 1.0, "rocker": 2.5})
    assert not there.success
    assert "rocker depends on crank" in there.message
    assert there.q[0] == 1.0
    assert largest_closure_error(there) < 1e-9


def test_redundant_inputs_are_met_if_they_are_consistent() -> None:
    assert FOUR_BAR.assemble({"crank": 1.0, "rocker": rocker_angle_of(*LENGTHS, 1.0)}).success
    assert FOUR_BAR.assemble({"crank": 0.6, "rocker": float(FOUR_BAR.q[2])}).success


# ---- kinds of inputs ------------------------------------------------------------------------


def test_closure_can_be_an_input() -> None:
    turned = FOUR_BAR.assemble({"crank": 1.1})
    there = FOUR_BAR.assemble({"pin": turned["pin"]})
    assert there.success
    assert np.abs(there.q - turned.q).max() < 1e-9


def test_mimic_joint_as_input_drives_its_leader() -> None:
    b = mk.Builder("geared")
    b.revolute("crank", "ground", "crank_link", value=0.6)
    b.revolute("motor", "ground", "wheel", at=(0, 0, 1))
    b.couple("motor", "crank", ratio=-3.0)
    b.revolute("coupler", "crank_link", "coupler_link", at=(0.5, 0, 0), value=float(FOUR_BAR.q[1]))
    b.revolute("rocker", "ground", "rocker_link", at=(2.0, 0, 0), value=float(FOUR_BAR.q[2]))
    b.close("pin", "coupler_link", "rocker_link", "pin", at=(1.8, 0, 0), onto=(1.2, 0, 0))
    geared = b.build()
    there = geared.assemble({"motor": -6.0})
    assert there.success
    assert there["crank"] == pytest.approx(2.0, abs=1e-12)
    assert angle_difference(float(there["rocker"]), rocker_angle_of(*LENGTHS, 2.0)) < 1e-9


def test_spherical_joint_can_be_an_input() -> None:
    b = mk.Builder("rod on a ball")
    b.spherical("ball", "ground", "rod")
    b.free("float", "ground", "end", value=(1.0, 0, 0, 0, 0, 0))
    b.close("hold", "rod", "end", "ball", at=(1.0, 0, 0))
    robot = b.build()
    turn = (0.4, -0.3, 1.2)
    there = robot.assemble({"ball": turn})
    assert there.success
    assert np.abs(there["ball"] - np.array(turn)).max() < 1e-9
    assert np.abs(robot.pose("end", there.q)[:3, 3] - robot.pose("rod", there.q)[:3, 0]).max() < 1e-9


# ---- undriven dofs -----------------------------------------------------------------


@pytest.mark.parametrize("weights", [{}, {"left_rod_joint": 3.0, "right_crank_joint": 0.5}])
def test_undriven_dofs_change_as_little_as_possible(weights: dict[str, float]) -> None:
    robot = mk.gallery.five_bar()
    there = robot.assemble({"left_crank_joint": 2.4}, weights=weights)
    assert there.success
    w = np.array([weights.get(name, 1.0) for name in robot.space.q_names])

    def closure_residual(x: np.ndarray) -> np.ndarray:
        q = np.r_[2.4, x]
        ends = [robot.pose(f"{side}_rod", q) @ (0.8, 0, 0, 1) for side in ("left", "right")]
        return (ends[0] - ends[1])[:2]

    free = np.array([name != "left_crank_joint" for name in robot.space.q_names])
    best = minimize(
        lambda x: float((((x - robot.q[free]) * w[free]) ** 2).sum()),
        there.q[free] + 0.01,
        constraints={"type": "eq", "fun": closure_residual},
        tol=1e-14,
    )
    assert np.abs(best.x - there.q[free]).max() < 1e-6


def test_without_inputs_loops_are_closed_at_the_nearest_configuration() -> None:
    q0 = FOUR_BAR.q + np.array([0.05, -0.1, 0.08])
    there = FOUR_BAR.assemble(None, q0)
    assert there.success
    assert largest_closure_error(there) < 1e-12

    def far(angle: float) -> float:
        return float(np.sum((FOUR_BAR.assemble({"crank": angle}).q - q0) ** 2))

    here = there.q[0]
    assert far(here) < min(far(here - 1e-3), far(here + 1e-3))


def test_closed_mechanism_without_inputs_is_unchanged() -> None:
    assert np.array_equal(FOUR_BAR.assemble().q, FOUR_BAR.q)


@settings(max_examples=15)
@given(st.lists(st.floats(-3.0, 3.0), min_size=3, max_size=3), st.floats(-3.0, 3.0))
def test_assembly_can_start_from_violated_loops(q0: list[float], angle: float) -> None:
    there = FOUR_BAR.assemble({"crank": angle}, q0)
    assert there.success
    assert largest_closure_error(there) < 1e-9
    rocker_angles = [rocker_angle_of(*LENGTHS, angle, is_crossed) for is_crossed in (False, True)]
    assert min(angle_difference(there.q[2], rocker_angle) for rocker_angle in rocker_angles) < 1e-9


@pytest.mark.parametrize(
    ("robot", "drives"),
    [
        (mk.gallery.planar_3rrr(), ["arm1_joint", "arm2_joint", "arm3_joint"]),
        (mk.gallery.stewart_platform(), [f"leg{k}_slide" for k in range(1, 7)]),
    ],
    ids=["three legs", "six legs"],
)
def test_assembly_of_platforms_can_start_anywhere(robot: mk.Mechanism, drives: list[str]) -> None:
    rng = np.random.default_rng(3)
    for q0 in robot.random(rng, 5):
        there = robot.assemble({name: robot.joint(name).values for name in drives}, q0)
        assert there.success
        assert largest_closure_error(there) < 1e-9
        assert robot.space.within_limits(there.q, 1e-9)


def test_loops_that_cannot_be_closed_are_reported() -> None:
    b = mk.Builder("too short")
    b.revolute("a", "ground", "one")
    b.revolute("b", "ground", "two", at=(5.0, 0, 0))
    b.close("pin", "one", "two", "pin", at=(1.0, 0, 0), onto=(1.0, 0, 0))
    there = b.build().assemble({"a": 0.3})
    assert there.status is mk.Status.NOT_CLOSED
    assert not there.success


# ---- invalid arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("drive", "error"),
    [
        ({"crnk": 1.0}, UnknownName),
        ({"crank": math.nan}, NotFinite),
        ({"crank": [1.0, 2.0]}, ShapeError),
        ({"crank": "far"}, ShapeError),
        ({"ground": 1.0}, UnknownName),
        ([1.0], ShapeError),
    ],
)
def test_invalid_inputs_raise_an_error(drive: object, error: type[MechanikError]) -> None:
    with pytest.raises(error):
        FOUR_BAR.assemble(drive)  # type: ignore[arg-type]
    with pytest.raises(error):
        FOUR_BAR.assembly_modes(drive)  # type: ignore[arg-type]


def test_error_on_a_misspelt_input_suggests_the_right_name() -> None:
    with pytest.raises(UnknownName, match="'crank'"):
        FOUR_BAR.assemble({"crnk": 1.0})


def test_invalid_starts_and_options_raise_an_error() -> None:
    for q0 in ([0.0], [math.nan] * 3, [[0.0] * 3] * 2):
        with pytest.raises(MechanikError):
            FOUR_BAR.assemble({"crank": 1.0}, q0)
    with pytest.raises(ShapeError):
        FOUR_BAR.assemble({"crank": 1.0}, mk.gallery.five_bar().assemble())
    for steps in (0, -1, 2.5, True):
        with pytest.raises(LimitsError):
            FOUR_BAR.assemble({"crank": 1.0}, steps=steps)  # type: ignore[arg-type]
    with pytest.raises(UnknownName):
        FOUR_BAR.assemble({"crank": 1.0}, weights={"crnk": 2.0})


def test_invalid_paths_raise_an_error() -> None:
    for drive in ({}, {"crank": 1.0}, {"crank": [1.0, math.inf]}, {"crank": [1.0], "rocker": [1.0, 2.0]}, None):
        with pytest.raises((ShapeError, NotFinite)):
            FOUR_BAR.assembly_path(drive)  # type: ignore[arg-type]


def test_fixed_joint_cannot_be_an_input() -> None:
    with pytest.raises((DoFError, CouplingError)):
        mk.gallery.five_bar().assemble({"tool_joint": 1.0})


# ---- joint constraints ---------------------------------------------------------------------------------------


def geared_five_bar() -> mk.Mechanism:
    """Gears of equal size couple the two cranks with opposite sense, so one input drives it."""
    b = mk.Builder("geared five-bar")
    for side, x, angle, bend in (("left", -0.3, 2.0, -1.4), ("right", 0.3, math.pi - 2.0, 1.4)):
        b.revolute(f"{side}_crank", "ground", f"{side}_crank_link", at=(x, 0, 0), value=angle)
        b.revolute(f"{side}_rod", f"{side}_crank_link", f"{side}_rod_link", at=(0.5, 0, 0), value=bend)
    b.close("pin", "left_rod_link", "right_rod_link", "pin", at=(0.8, 0, 0), onto=(0.8, 0, 0))
    b.joint_constraint("gears", {"left_crank": 1.0, "right_crank": 1.0}, constant=math.pi)
    return b.build()


@pytest.mark.parametrize("angle", [2.6, 4.0, 1.2])
def test_joint_constraints_hold_along_the_path(angle: float) -> None:
    robot = geared_five_bar()
    start = robot.assemble().require()
    there = robot.assemble({"left_crank": angle}, start)
    assert there.success
    assert abs(there.joint_constraint_errors["gears"]) < 1e-12
    assert there["right_crank"] == pytest.approx(math.pi - angle, abs=1e-12)
    tip = robot.pose("left_rod_link", there.q) @ (0.8, 0, 0, 1)
    knee = -0.3 + 0.5 * math.cos(angle)
    # by symmetry the rods meet in the middle, above the knees until these, at pi, are as far apart as rods can span
    above = math.copysign(math.sqrt(0.64 - knee**2), math.pi - angle)
    assert tip[:2] == pytest.approx([0.0, 0.5 * math.sin(angle) + above], abs=1e-9)
