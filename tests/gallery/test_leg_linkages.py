"""Leg linkages with a single crank: the path of the foot compared with circle intersections."""

import cmath
import math

import numpy as np
import pytest
from linkage_drive import cross, driven, turn, upright

from mechanik import gallery
from mechanik.errors import StructureError, UnknownName

STEPS = 180


def jansen_foot(crank):
    """In Jansen's numbers, from his letters alone."""
    pin, pivot = cmath.rect(15, crank), complex(-38, -7.8)
    upper, lower = cross(pin, 50, pivot, 41.5, -1), cross(pin, 61.9, pivot, 39.3, +1)
    back = cross(upper, 55.8, pivot, 40.1, -1)
    ankle = cross(back, 39.4, lower, 36.7, -1)
    return cross(ankle, 65.7, lower, 49, -1)


def klann_foot(crank):
    """In the patent's numbers."""
    pin, lower, upper = cmath.rect(0.268, crank), complex(-0.590, -0.176), complex(-0.233, 0.616)
    elbow = cross(pin, 0.590, lower, 0.3206, -1)
    knee = cross(pin, 1.1051, elbow, 0.5221, -1)
    hip = cross(knee, 0.8966, upper, 0.5176, +1)
    return cross(knee, 0.8966, hip, 1.7321, -1)


LEGS = {"jansen_leg": (jansen_foot, 0.01), "klann_leg": (klann_foot, 0.5)}
each = pytest.mark.parametrize(("name", "foot", "scale"), [(name, *leg) for name, leg in LEGS.items()], ids=LEGS)


@each
@pytest.mark.parametrize("direction", [1, -1])
def test_the_foot_follows_its_closed_form_through_a_turn_and_its_path_closes(name, foot, scale, direction):
    leg = gallery.make(name)
    # in closed form no joint of either leg turns more than 2.1 times as fast as the crank
    for solution in driven(leg, "crank_joint", direction * turn(0.0, STEPS), fastest=2.2):
        expected = scale * foot(solution["crank_joint"])
        assert abs(upright(leg.pose("foot", solution.q)[:3, 3]) - expected) < 1e-9
    np.testing.assert_allclose(leg.pose("foot", solution.q), leg.pose("foot"), rtol=0, atol=1e-9)
    # what hangs on the crank has turned back once, against it, and nothing else has turned over
    on_crank = {joint.name for joint in leg.link("crank").children}
    for joint, value in leg.values().items():
        turned = direction * (joint == "crank_joint") - direction * (joint in on_crank)
        assert solution[joint] - value == pytest.approx(turned * 2 * math.pi, abs=1e-8), joint


@each
@pytest.mark.parametrize("angle", np.linspace(-6, 6, 13))
def test_a_leg_built_at_an_angle_equals_the_leg_driven_there(name, foot, scale, angle):
    leg = getattr(gallery, name)(angle=float(angle))
    assert abs(upright(leg.pose("foot")[:3, 3]) - scale * foot(angle)) < 1e-12
    assert all(closure.gap().is_closed(1e-12) for closure in leg.closures.values())


def path(foot):
    return np.array([foot(angle) for angle in np.linspace(0, 2 * math.pi, 720, endpoint=False)])


def test_jansens_step_is_three_times_as_long_as_high_and_level_for_half_a_turn():
    step = path(jansen_foot)
    length, height = np.ptp(step.real), np.ptp(step.imag)
    assert (length, height) == pytest.approx((67.9, 22.5), abs=0.1)
    # on the ground from 85 degrees before the crank points along x to 95 degrees after
    ground = np.roll(step, 170)[:361]
    assert np.ptp(ground.real) > 0.93 * length
    assert np.ptp(ground.imag) < 0.03 * length
    assert (np.diff(ground.real)[10:-10] > 0).all()  # all the way forward, so that it walks backward


def test_klanns_foot_runs_its_whole_stride_in_the_first_half_of_the_turn_and_steps_over_it_in_the_second():
    step = path(klann_foot)
    length, height = np.ptp(step.real), np.ptp(step.imag)
    assert (length, height) == pytest.approx((1.008, 0.528), abs=0.001)
    assert np.ptp(step[:361].real) > 0.99 * length
    assert np.ptp(step[:361].imag) < 0.06 * length
    assert step[360:].imag.max() - step[:361].imag.max() > 0.4 * length


def test_klanns_leg_stretched_out_stands_on_the_coordinates_of_the_patent():
    leg = gallery.klann_leg(scale=1.0, angle=math.pi)
    shaft = complex(1.599, 0.750)
    joints = {"crank_joint": (1.599, 0.750), "lower_rocker_joint": (1.009, 0.574), "upper_rocker_joint": (1.366, 1.366),
              "connecting_rod_joint": (1.331, 0.750), "connecting_rod_elbow": (0.741, 0.750),
              "leg_joint": (0.232, 0.866), "leg_hip": (0.866, 1.5), "foot_joint": (0.0, 0.0)}  # fmt: skip
    for joint, place in joints.items():
        assert abs(shaft + upright(leg.joint(joint).world_position) - complex(*place)) < 1e-3, joint


def test_a_dimension_of_the_leg_can_be_replaced():
    longer = gallery.jansen_leg(scale=1.0, h=66.0)
    ankle, foot = longer.joint("shin_ankle").world_position, longer.pose("foot")[:3, 3]
    assert np.linalg.norm(foot - ankle) == pytest.approx(66.0, abs=1e-12)


def test_impossible_legs_are_rejected_by_name():
    with pytest.raises(UnknownName, match="length of jansen_leg is called 'z'"):
        gallery.jansen_leg(z=1.0)
    with pytest.raises(UnknownName, match="Did you mean 'hip_foot'"):
        gallery.klann_leg(hip_fot=1.0)
    with pytest.raises(StructureError, match="jansen_leg cannot be assembled"):
        gallery.jansen_leg(k=5.0)
    with pytest.raises(StructureError, match=r"klann_leg: scale must .*not 0"):
        gallery.klann_leg(scale=0.0)
    with pytest.raises(StructureError, match=r"klann_leg: angle must .*not inf"):
        gallery.klann_leg(angle=math.inf)
