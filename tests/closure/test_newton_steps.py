"""Small steps by Newton iteration: equal to path following everywhere, and independent of previous calls."""

from __future__ import annotations

import functools
import gc
import math
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from driven_linkages import angle_difference, four_bar, rocker_angle_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import mechanik as mk
from mechanik.closure.assemble_loops import StartState, follow_branch_to
from mechanik.closure.loop_system import cached_loop_system
from mechanik.closure.newton_step import newton_step_for
from mechanik.spatial.array import Array

LENGTHS = 2.0, 0.5, 1.8, 1.2
PLATFORM_LEGS = tuple(f"leg{k}_slide" for k in range(1, 7))
LINKAGES = {
    "four_bar": ("crank_joint",),
    "five_bar": ("left_crank_joint", "right_crank_joint"),
    "jansen_leg": ("crank_joint",),
    "bennett": (),
    "planar_3rrr": (),
    "delta_robot": (),
    "stewart_platform": PLATFORM_LEGS,
    "gripper": (),
}
"""Inputs by name in the gallery; empty: those that mk.structure chooses."""


@functools.cache
def closed_linkage(name: str) -> tuple[mk.Mechanism, tuple[str, ...], Array]:
    """Return a linkage, its inputs, and a closed configuration."""
    linkage = mk.gallery.make(name)
    return linkage, LINKAGES[name] or tuple(map(str, mk.structure(linkage).inputs)), linkage.assemble().require().q


def inputs_at_distance(
    linkage: mk.Mechanism, names: tuple[str, ...], q: Array, far: float, seed: int
) -> dict[str, Array]:
    """Return input values at the distance `far` (m, rad) from those at q, in a random direction."""
    direction = np.random.default_rng(seed).standard_normal(len(names))
    here = np.array([linkage.values(q)[name] for name in names])
    there = here + far * direction / np.linalg.norm(direction)
    return {name: np.array([x]) for name, x in zip(names, there, strict=True)}


@pytest.mark.parametrize("name", LINKAGES)
def test_newton_step_equals_path_following(name: str) -> None:
    linkage, names, q = closed_linkage(name)
    rng = np.random.default_rng(3)
    taken = 0
    with cached_loop_system(linkage, {}) as loops:
        for seed in range(12):
            values = inputs_at_distance(linkage, names, q, 10 ** rng.uniform(-5, -1), seed)
            step, still = newton_step_for(loops, values), np.zeros(linkage.nv)
            assert step is not None
            at_once, walked = step.solve(values, q, still), follow_branch_to(loops, values, StartState(q, still))
            if at_once is not None:
                assert walked.success
                assert np.abs(at_once.q - walked.q).max() < 1e-12
                assert at_once.message == walked.message
                assert at_once.input_errors == walked.input_errors
                assert not walked.singularities
                assert [float(at_once[name]) for name in names] == [float(values[name][0]) for name in names]
                taken += 1
            if walked.success:
                q = walked.q
    assert taken > 6


@settings(max_examples=80)
@given(
    st.sampled_from([(2.0, 0.5, 2.0, 0.5), (2.0, 2.0, 0.7, 0.7), (1.0, 1.0, 1.0, 1.0)]),
    st.sampled_from([0.0, 1e-10, 1e-6, 1e-4, 1e-2]),
    st.floats(-4.0, 0.0),
    st.floats(-4.0, -0.3),
    st.sampled_from([-1.0, 1.0]),
    st.sampled_from(["crank", "coupler", "rocker"]),
    st.booleans(),
)
def test_newton_step_takes_the_branch_of_path_following_near_singularities(
    lengths: tuple[float, ...], off: float, away: float, far: float, sign: float, drive: str, is_crossed: bool
) -> None:
    """Two branches cross where all bars lie on one line, or come as near as `off` to each other."""
    ground, crank, coupler, rocker = lengths
    linkage = four_bar(ground + off, crank, coupler, rocker, 10**away, is_crossed=is_crossed)
    assume(max(float(np.abs(closure.gap().position).max()) for closure in linkage.closures.values()) < 1e-12)
    values = {drive: np.array([float(linkage.values()[drive]) + sign * 10**far])}  # type: ignore[arg-type]
    with cached_loop_system(linkage, {}) as loops:
        step = newton_step_for(loops, values)
        assert step is not None
        at_once = step.solve(values, linkage.q, np.zeros(3))
        if at_once is not None:
            walked = follow_branch_to(loops, values, StartState(linkage.q, np.zeros(3)))
            assert np.abs(at_once.q - walked.q).max() < 1e-9
            assert (at_once.success, at_once.message) == (walked.success, walked.message)


def test_newton_steps_suffice_all_around_a_four_bar() -> None:
    linkage = four_bar(*LENGTHS, 0.6)
    q = linkage.q
    with cached_loop_system(linkage, {}) as loops:
        for angle in np.arange(0.65, 7.0, 0.05):
            values = {"crank": np.array([angle])}
            step = newton_step_for(loops, values)
            there = None if step is None else step.solve(values, q, np.zeros(3))
            assert there is not None
            q = there.q
            assert q[0] == angle
            assert angle_difference(q[2], rocker_angle_of(*LENGTHS, angle)) < 1e-12


@settings(max_examples=20)
@given(st.floats(-0.2, 0.2).filter(lambda x: abs(x) > 1e-6), st.floats(0.0, 6.0))
def test_heading_is_the_tangent_of_the_path(far: float, angle: float) -> None:
    linkage = four_bar(*LENGTHS, angle)
    there = linkage.assemble({"crank": angle + far})
    h = 1e-5
    ends = [linkage.assemble({"crank": angle + far + x}, there).q for x in (-h, h)]
    slope = np.sign(far) * (ends[1] - ends[0]) / (2 * h)
    assert np.abs(there.heading - slope).max() < 1e-8


def test_passive_joint_at_its_limit_stops_a_newton_step() -> None:
    linkage = four_bar(*LENGTHS, 1.49)
    limit = rocker_angle_of(*LENGTHS, 1.5)
    linkage.joint("rocker").set_limits(-math.inf, limit)
    there = linkage.assemble({"crank": 1.51})
    assert not there.success
    assert there.q[0] == pytest.approx(1.5, abs=1e-8)
    assert linkage.assemble({"crank": 1.499}).success


def test_newton_step_beyond_the_limit_of_the_input_ends_at_the_limit() -> None:
    linkage = four_bar(*LENGTHS, 0.6)
    linkage.joint("crank").set_limits(-1.0, 0.61)
    assert linkage.assemble({"crank": 0.61}).success
    beyond = linkage.assemble({"crank": 0.62})
    assert not beyond.success
    assert beyond.q[0] == 0.61


def test_dependent_inputs_fail_even_for_small_steps() -> None:
    linkage = four_bar(*LENGTHS, 0.6)
    there = linkage.assemble({"crank": 0.601, "rocker": float(linkage.q[2])})
    assert not there.success
    assert "rocker depends on crank" in there.message


# ---- caches -------------------------------------------------------------------------------


def test_assembly_does_not_depend_on_previous_calls() -> None:
    used, values = four_bar(*LENGTHS, 0.6), {"crank": 0.63}
    for angle in (0.61, 0.7, 2.9, 0.63):
        used.assemble({"crank": angle})
        used.assemble({"rocker": float(used.q[2]) + 0.01})
    assert np.array_equal(used.assemble(values).q, four_bar(*LENGTHS, 0.6).assemble(values).q)


def test_edit_of_the_mechanism_is_noticed() -> None:
    linkage = four_bar(*LENGTHS, 0.6)
    linkage.assemble({"crank": 0.62})
    linkage.joint("rocker").set_limits(-1.0, float(linkage.q[2]) + 1e-4)
    assert not linkage.assemble({"crank": 0.7}).success
    linkage.joint("rocker").set_limits(-math.inf, math.inf)
    assert linkage.assemble({"crank": 0.7}).success
    linkage.closure("pin").undo()
    loose = linkage.assemble({"crank": 0.7})
    assert loose.q.tolist() == [0.7, *linkage.q[1:]]


def test_weights_of_a_call_do_not_affect_the_next_call() -> None:
    robot, fresh = mk.gallery.five_bar(), mk.gallery.five_bar()
    drive, weights = {"left_crank_joint": 2.4}, {"left_rod_joint": 3.0}
    plain, weighted = robot.assemble(drive).q, robot.assemble(drive, weights=weights).q
    assert np.abs(plain - weighted).max() > 1e-3
    assert np.array_equal(robot.assemble(drive).q, plain)
    assert np.array_equal(fresh.assemble(drive, weights=weights).q, weighted)


def test_cache_does_not_keep_the_mechanism_alive() -> None:
    linkage = four_bar(*LENGTHS, 0.6)
    linkage.assemble({"crank": 0.62})
    seen = weakref.ref(linkage)
    del linkage
    gc.collect()
    assert seen() is None


def test_threads_can_assemble_the_same_mechanism() -> None:
    linkage = four_bar(*LENGTHS, 0.6)

    def turn(sign: float) -> Array:
        q = linkage.q
        for k in range(1, 150):
            q = linkage.assemble({"crank": 0.6 + sign * 0.02 * k}, q).q
        return q

    alone = [turn(sign) for sign in (1.0, -1.0)]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(turn, (1.0, -1.0)))
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))
