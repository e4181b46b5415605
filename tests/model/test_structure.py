"""Inputs, passive dofs, idle motions and redundant constraints of mechanisms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_mechanisms import random_mechanism
from special_loops import (
    bennett,
    parallelogram,
    planar_four_bar,
    quick_return,
    sarrus,
    six_sps,
    slot_crank,
    stretched_truss,
)

import mechanik as mk
from mechanik.errors import InvalidArgument, ShapeError, StructureError
from mechanik.model import structure
from mechanik.model.mobility import analyse_structure
from mechanik.model.numpy_kinematics import NumpyKinematics

LOOPS = [
    mk.gallery.four_bar,
    mk.gallery.slider_crank,
    mk.gallery.five_bar,
    mk.gallery.stewart_platform,
    lambda: mk.gallery.stewart_platform(ends="joint"),
    mk.gallery.delta_robot,
    parallelogram,
    bennett,
    sarrus,
    six_sps,
    lambda: six_sps("joint"),
    stretched_truss,
    slot_crank,
    quick_return,
]


# ---- laws ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", LOOPS)
def test_inputs_passive_and_immobile_dofs_are_all_dofs_but_the_idle_ones(make):
    mechanism = make()
    analysis = structure(mechanism)
    named = [*analysis.inputs, *analysis.passive_dofs, *analysis.immobile_dofs]
    assert len(set(named)) == len(named)
    idle = {joint for motion in analysis.idle_motions for joint in motion}
    missing = set(mechanism.space.v_names) - set(named)
    assert all(name.rpartition(".")[0] in idle for name in missing)


@pytest.mark.parametrize("make", LOOPS)
def test_the_number_of_inputs_is_the_mobility_without_idle_motions(make):
    analysis = structure(make())
    assert len(analysis.inputs) == analysis.generic_dof - len(analysis.idle_motions)


@pytest.mark.parametrize("make", LOOPS)
def test_a_mechanism_with_locked_inputs_has_only_idle_motions(make):
    mechanism = make()
    analysis = structure(mechanism)
    for name in analysis.inputs:
        joint = mechanism.joint(name)
        joint.set_limits(joint.values, joint.values)
    held = structure(mechanism)
    assert (held.generic_dof, held.inputs, held.idle_motions) == (len(analysis.idle_motions), (), analysis.idle_motions)


@pytest.mark.parametrize("make", LOOPS)
def test_an_idle_motion_moves_one_part_as_a_rigid_body_and_nothing_else(make):
    mechanism = make()
    details = analyse_structure(mechanism, mechanism.q)
    for at in (details.system_at_q, *details.neighbours):
        placed = NumpyKinematics(mechanism.kinematics, at.q)
        for motion, v in zip(details.idle_motions, details.idle_basis(at).T, strict=True):
            assert np.abs(at.A @ v).max() < 1e-9
            twists = {name: placed.link_kinematics(name).spatial_jacobian @ (v * at.unit) for name in mechanism.links}
            still = [twist for name, twist in twists.items() if name not in motion.links]
            assert np.abs(still).max() < 1e-9
            assert np.ptp([twists[name] for name in motion.links], axis=0).max() < 1e-9
            assert np.abs(twists[motion.links[0]]).max() > 0.1


@pytest.mark.parametrize("make", LOOPS)
def test_without_its_redundant_rows_a_mechanism_has_the_same_mobility(make):
    mechanism = make()
    analysis = structure(mechanism)
    assert len(analysis.redundant_rows) == analysis.mobility.redundant_constraints
    assert analysis.mobility.dof == analysis.mobility.gruebler + analysis.mobility.redundant_constraints


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_in_a_tree_all_dofs_are_inputs(seed):
    mechanism = random_mechanism(seed, 6)
    analysis = structure(mechanism)
    balls = {name for name, joint in mechanism.joints.items() if joint.has_quaternion}
    others = {name for name in mechanism.space.v_names if name.rpartition(".")[0] not in balls}
    assert set(analysis.inputs) == balls | others
    assert len(analysis.inputs) == len(balls) + len(others)
    assert (analysis.passive_dofs, analysis.immobile_dofs, analysis.idle_motions, analysis.loops) == ((), (), (), ())


# ---- what the books say -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "gruebler", "dof", "over", "inputs"),
    [
        (parallelogram, -2, 1, 3, ["crank"]),
        (bennett, -2, 1, 3, ["one"]),
        (sarrus, 0, 1, 1, ["a1"]),
        (mk.gallery.four_bar, -2, 1, 3, ["crank_joint"]),
        (mk.gallery.five_bar, -1, 2, 3, ["left_crank_joint", "right_crank_joint"]),
        (mk.gallery.stewart_platform, 6, 6, 0, [f"leg{k}_slide" for k in range(1, 7)]),
        (mk.gallery.delta_robot, 3, 3, 0, [f"arm{k}_joint" for k in range(1, 4)]),
        (six_sps, 12, 12, 0, [f"slide{k}" for k in range(6)]),
    ],
)
def test_textbook_loops_have_their_known_structure(make, gruebler, dof, over, inputs):
    analysis = structure(make())
    assert (analysis.mobility.gruebler, analysis.mobility.dof, analysis.generic_dof) == (gruebler, dof, dof)
    assert analysis.overconstrained == over
    assert list(analysis.inputs) == inputs
    assert not analysis.is_change_point


def test_a_planar_loop_closed_by_a_pin_has_three_redundant_rows():
    analysis = structure(planar_four_bar("pin"))
    assert analysis.redundant_rows == (("pin", "Z"), ("pin", "EX"), ("pin", "EY"))


def test_each_leg_between_two_spherical_joints_has_an_idle_spin():
    assert structure(six_sps()).idle_motions == tuple((f"foot{k}",) for k in range(6))
    assert structure(six_sps("joint")).idle_motions == tuple((f"foot{k}", f"top{k}") for k in range(6))


def test_a_panel_on_two_hinges_is_not_idle():
    builder = mk.Builder()
    builder.revolute("hinge", "frame", "door", value=0.3)
    builder.close("upper", "door", "frame", "pin", at=(0, 0, 1))
    analysis = structure(builder.build())
    assert (analysis.inputs, analysis.idle_motions, analysis.overconstrained) == (("hinge",), (), 5)


def test_a_roller_in_two_bearings_is_idle():
    builder = mk.Builder()
    builder.revolute("crank", "ground", "crank", value=0.6)
    builder.revolute("knee", "crank", "roller", at=(0.5, 0, 0), value=0.2)
    builder.revolute("bearing", "roller", "coupler", value=-0.5)
    builder.revolute("rocker", "ground", "rocker", at=(2.0, 0, 0), value=1.9)
    four_bar = mk.gallery.four_bar()
    q = four_bar.q
    builder._find_joint("bearing").set_values(q[1] - 0.2)
    builder._find_joint("rocker").set_values(q[2])
    builder.close("pin", "coupler", "rocker", "pin", at=(1.8, 0, 0), onto=(1.2, 0, 0))
    analysis = structure(builder.build())
    assert analysis.idle_motions == (("knee", "bearing"),)
    assert analysis.inputs == ("crank",)


def test_a_crank_whose_rod_slides_on_the_ground_is_an_input():
    """The slide may be the joint that closes the loop: what stands below both turns, and moves all the same."""
    analysis = structure(slot_crank())
    assert (analysis.inputs, analysis.passive_dofs, analysis.idle_motions) == (("crank",), ("elbow",), ())


def test_a_pin_in_the_slot_of_a_lever_is_not_idle():
    """Crank and lever turn between two bodies that may stand still, but they do not turn as one."""
    analysis = structure(quick_return())
    assert (analysis.inputs, analysis.passive_dofs, analysis.idle_motions) == (("crank", "slide"), ("pivot",), ())


def test_the_platform_of_a_delta_robot_does_not_rotate():
    analysis = structure(mk.gallery.delta_robot())
    assert analysis.immobile_dofs == tuple(f"platform_joint.{turn}" for turn in ("EX", "EY", "EZ"))


def test_a_flat_parallelogram_is_at_a_change_point():
    mechanism = parallelogram()
    analysis = structure(mechanism, np.zeros(3))
    assert analysis.is_change_point
    assert (analysis.mobility.dof, analysis.generic_dof) == (2, 1)
    np.testing.assert_array_equal(mechanism.q, parallelogram().q)  # it was not moved


def test_a_stretched_truss_is_shaky():
    analysis = structure(stretched_truss())
    assert (analysis.mobility.dof, analysis.generic_dof, analysis.inputs) == (1, 0, ())
    assert analysis.immobile_dofs == ("left", "middle")


def test_legs_between_similar_hexagons_cannot_drive_a_platform_at_any_pose():
    """A. Karger: where base and platform are similar, and like corners are joined, every pose is singular."""
    analysis = structure(six_sps(foot="universal", angles=(20.0, 20.0)))
    assert analysis.generic_dof == 6
    assert not {f"slide{k}" for k in range(6)} <= set(analysis.inputs)


def test_loops_that_share_no_joint_are_separate():
    builder = mk.Builder("two four-bars on one base")
    builder.revolute("turntable", "world", "base", value=0.4)
    q = mk.gallery.four_bar().q
    for side in "ab":
        at = 3.0 * (side == "b")
        builder.revolute(f"{side}_crank", "base", f"{side}_crank", at=(0, 0, at), value=q[0])
        builder.revolute(f"{side}_knee", f"{side}_crank", f"{side}_coupler", at=(0.5, 0, 0), value=q[1])
        builder.revolute(f"{side}_rocker", "base", f"{side}_rocker", at=(2.0, 0, at), value=q[2])
        builder.close(f"{side}_pin", f"{side}_coupler", f"{side}_rocker", "pin", at=(1.8, 0, 0), onto=(1.2, 0, 0))
    analysis = structure(builder.build())
    assert analysis.inputs == ("turntable", "a_crank", "b_crank")
    assert [loop.closures for loop in analysis.loops] == [("a_pin",), ("b_pin",)]
    assert [loop.dofs for loop in analysis.loops] == [(f"{s}_crank", f"{s}_knee", f"{s}_rocker") for s in "ab"]
    assert [(loop.mobility.dof, loop.inputs) for loop in analysis.loops] == [(1, ("a_crank",)), (1, ("b_crank",))]


def test_loops_that_share_a_joint_are_joined():
    builder = mk.Builder("two four-bars on one crank")
    q = mk.gallery.four_bar().q
    builder.revolute("crank", "ground", "crank", value=q[0])
    for side in "ab":
        builder.revolute(f"{side}_knee", "crank", f"{side}_coupler", at=(0.5, 0, 0), value=q[1])
        builder.revolute(f"{side}_rocker", "ground", f"{side}_rocker", at=(2.0, 0, 0), value=q[2])
        builder.close(f"{side}_pin", f"{side}_coupler", f"{side}_rocker", "pin", at=(1.8, 0, 0), onto=(1.2, 0, 0))
    analysis = structure(builder.build())
    assert [loop.closures for loop in analysis.loops] == [("a_pin", "b_pin")]
    assert (analysis.inputs, analysis.generic_dof) == (("crank",), 1)


def test_a_coupled_joint_is_an_input_through_its_leader():
    """Two cranks geared to each other leave a five-bar one freedom."""
    mechanism = mk.gallery.five_bar()
    mechanism.joint("right_crank_joint").mimic(mechanism.joint("left_crank_joint"), -1.0, np.pi)
    analysis = structure(mechanism)
    assert (analysis.mobility.tree_dof, analysis.generic_dof, analysis.inputs) == (3, 1, ("left_crank_joint",))


def test_a_joint_constraint_removes_a_dof_and_joins_loops():
    mechanism = mk.gallery.five_bar()
    left, right = (mechanism.joint(f"{side}_crank_joint") for side in ("left", "right"))
    mk.JointConstraint(
        {left: 1.0, right: [1.0, 0.2]}, left.values[0] + right.values[0] + 0.2 * right.values[0] ** 2, name="cam"
    )
    analysis = structure(mechanism)
    assert (analysis.mobility.constraints, analysis.generic_dof, analysis.inputs) == (6, 1, ("left_crank_joint",))
    assert [(loop.closures, loop.joint_constraints) for loop in analysis.loops] == [(("closing_joint",), ("cam",))]
    assert "closing_joint closes a loop and cam constrains joints: 6 scalar constraints." in mechanism.explain()


def test_a_joint_constraint_that_repeats_another_is_redundant():
    builder = mk.Builder()
    builder.revolute("left", "base", "one", value=0.3)
    builder.revolute("right", "base", "other", value=-0.3)
    builder.joint_constraint("mirror", {"left": 1.0, "right": 1.0})
    builder.joint_constraint("again", {"left": 2.0, "right": 2.0})
    analysis = structure(builder.build())
    assert analysis.redundant_rows == (("again", "value"),)
    assert (analysis.inputs, analysis.passive_dofs, analysis.overconstrained) == (("left",), ("right",), 1)


def test_a_violated_joint_constraint_is_rejected():
    builder = mk.Builder()
    builder.revolute("left", "base", "one", value=0.3)
    builder.revolute("right", "base", "other", value=0.3)
    builder.joint_constraint("mirror", {"left": 1.0, "right": 1.0})
    mechanism = builder.build()
    assert mk.mobility(mechanism).dof is None
    with pytest.raises(StructureError, match=r"joint constraint 'mirror' is violated by 0\.6"):
        structure(mechanism)
    mechanism.apply(mechanism.assemble())
    assert len(structure(mechanism).inputs) == 1


@pytest.mark.parametrize("kind", ["weld", "pin", "universal", "planar", "ball", "point_on_plane"])
def test_the_error_of_an_open_loop_states_its_gap_and_its_advice_closes_it(kind):
    # it once gave the largest row without a unit, and advised what leaves the mechanism where it is
    builder = mk.Builder()
    builder.free("float", "ground", "body")
    builder.close("end", "body", "ground", kind, at=(0.1, 0.2, 0.3))
    mechanism = builder.build()
    mechanism.joint("float").set_values(0.4, -0.5, 0.2, 0.3, 0.1, -0.6)
    gap = mechanism.closure("end").gap()
    more = f"{gap.distance:.3g} m" if gap.distance >= gap.angle else f"{gap.angle:.3g} rad"
    with pytest.raises(StructureError, match=rf"loop 'end' has a gap of {more}; .*apply\(mechanism.assemble\(\)\)"):
        structure(mechanism)
    mechanism.apply(mechanism.assemble())
    assert structure(mechanism).loops[0].closures == ("end",)


def test_a_spherical_input_is_named_by_its_joint():
    builder = mk.Builder()
    builder.free("base", "ground", "body")
    builder.spherical("shoulder", "body", "arm")
    builder.planar("pad", "ground", "table")
    assert structure(builder.build()).inputs == ("pad.X", "pad.Y", "pad.EZ", "shoulder", "base")


def test_a_partial_spherical_input_is_named_by_its_own_axes():
    builder = mk.Builder()
    builder.spherical("shoulder", "ground", "arm")
    builder.close("wrist", "arm", "ground", "point_on_plane", at=(0.5, 0, 0))
    mechanism = builder.build()
    analysis = structure(mechanism)
    assert len(analysis.inputs) == analysis.generic_dof == 2
    assert set(analysis.inputs) < set(mechanism.space.v_names)
    assert mechanism.closed_jacobian("arm", analysis.inputs).dependent == ()


def test_a_gap_within_the_tolerance_does_not_hide_redundant_rows():
    mechanism = parallelogram()
    q = mechanism.q + np.array([0.0, 3e-8, 0.0])
    analysis = structure(mechanism, q)
    assert analysis.mobility == structure(mechanism).mobility


# ---- in words -----------------------------------------------------------------------------------


def test_the_structure_is_described_in_sentences():
    assert "3 of the constraints are redundant: Z, EX and EY of pin." in parallelogram().explain()
    assert "It can be driven by crank; knee and rocker are passive." in parallelogram().explain()
    assert "foot4 and foot5 can move without effect on other links." in six_sps().explain()
    assert "; platform_joint" in mk.gallery.stewart_platform().explain()  # and not each of its six freedoms
    assert "a shaky mechanism" in stretched_truss().explain()
    flat = parallelogram()
    flat.q = np.zeros(3)
    assert "It is at a change point: near it the mobility is 1 dof." in flat.explain()


# ---- refusals -----------------------------------------------------------------------------------


def test_an_open_loop_has_no_structure():
    mechanism = parallelogram()
    with pytest.raises(StructureError, match="'pin' has a gap of"):
        structure(mechanism, mechanism.q + 0.1)


def test_the_structure_needs_a_single_configuration():
    with pytest.raises(InvalidArgument, match="four-bar"):
        structure("four-bar")
    with pytest.raises(ShapeError):
        structure(parallelogram(), np.zeros((2, 3)))
