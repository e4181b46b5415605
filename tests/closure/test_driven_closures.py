"""Closures as inputs: they have no entry in q, and their full turns are counted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from driven_linkages import angle_difference, elbow_position, rocker_angle_of
from hypothesis import given, settings
from hypothesis import strategies as st

import mechanik as mk

LENGTHS = 2.0, 0.5, 1.8, 1.2
ANGLE = 1.0


def four_bar_closed_at_the_crank() -> mk.Mechanism:
    """A four-bar whose tree begins at the rocker, so that the pin of its crank on the ground is what closes it."""
    ground, crank, coupler, rocker = LENGTHS
    knee, elbow, pivot = elbow_position(*LENGTHS, ANGLE)
    swing, back = math.atan2(*(elbow - pivot)[::-1]), math.atan2(*(knee - elbow)[::-1])
    b = mk.Builder("four_bar")
    b.revolute("rocker", "ground", "rocker_link", at=(ground, 0, 0), value=swing)
    b.revolute("top", "rocker_link", "coupler_link", at=(rocker, 0, 0), value=back - swing)
    b.revolute("elbow", "coupler_link", "crank_link", at=(coupler, 0, 0), value=ANGLE + math.pi - back)
    b.close("drive", "ground", "crank_link", "pin", onto=(crank, 0, 0))
    return b.build()


def closure_angle(linkage: mk.Mechanism) -> float:
    return float(linkage.closure("drive").joint_values()[0])


def crank_angle(q: np.ndarray) -> float:
    """The angle of the crank in the plane, full turns included, as the tree has it."""
    return float(np.sum(q)) - math.pi


@settings(max_examples=12)
@given(st.floats(-14.0, 14.0))
def test_closure_as_input_reaches_its_value_including_full_turns(turn: float) -> None:
    """Full turns were lost: +4 rad became -2.28."""
    linkage = four_bar_closed_at_the_crank()
    there = linkage.assemble({"drive": closure_angle(linkage) + turn})
    assert there.success
    assert crank_angle(there.q) - crank_angle(linkage.q) == pytest.approx(turn, abs=1e-9)
    assert angle_difference(there.q[0], rocker_angle_of(*LENGTHS, ANGLE + turn)) < 1e-9
    assert there["drive"] == pytest.approx(closure_angle(linkage) + turn, abs=1e-9)
    assert there.input_errors["drive"] < 1e-9


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_full_turns_of_a_driven_closure_are_counted_along_a_path(sign: float) -> None:
    linkage = four_bar_closed_at_the_crank()
    offsets = sign * np.linspace(0.0, 15.0, 9)
    path = linkage.assembly_path({"drive": closure_angle(linkage) + offsets})
    assert path.success.all()
    turns = [crank_angle(assembly.q) - crank_angle(linkage.q) for assembly in path]
    assert np.abs(np.array(turns) - offsets).max() < 1e-9
    once_more = linkage.assemble({"drive": closure_angle(linkage) + offsets[-1] + sign * 0.1}, path[-1])
    assert crank_angle(once_more.q) - crank_angle(path[-1].q) == pytest.approx(sign * 0.1, abs=1e-9)


def test_input_error_of_a_driven_closure_includes_full_turns() -> None:
    """The rocker stops the input before the first of three turns."""
    linkage = four_bar_closed_at_the_crank()
    stop = float(linkage.assemble({"drive": closure_angle(linkage) + 1.5}).q[0])
    linkage.joint("rocker").set_limits(-math.inf, stop)
    there = linkage.assemble({"drive": closure_angle(linkage) + 6 * math.pi})
    assert not there.success
    gone = crank_angle(there.q) - crank_angle(linkage.q)
    assert gone <= 1.5 + 1e-9
    assert there.input_errors["drive"] == pytest.approx(6 * math.pi - gone, abs=1e-9)


def test_driven_closure_beyond_its_limits_stops_at_the_nearer_limit() -> None:
    linkage = four_bar_closed_at_the_crank()
    low, high = closure_angle(linkage) - 1.0, closure_angle(linkage) + 2.0
    linkage.joint("drive").set_limits(low, high)
    for wanted, limit in ((high + 0.5, high), (low - 7.0, low)):
        there = linkage.assemble({"drive": wanted})
        assert there.status is mk.Status.CLOSEST
        assert "outside the limits" in there.message
        assert there["drive"] == pytest.approx(limit, abs=1e-9)
        assert there.input_errors["drive"] == pytest.approx(abs(wanted - limit), abs=1e-9)
    assert linkage.assemble({"drive": high}).success


def test_modes_beyond_the_limits_of_a_driven_closure_are_empty_without_a_search() -> None:
    linkage = four_bar_closed_at_the_crank()
    linkage.joint("drive").set_limits(closure_angle(linkage) - 1.0, closure_angle(linkage) + 1.0)
    modes = linkage.assembly_modes({"drive": closure_angle(linkage) + 1.5})
    assert len(modes) == 0
    assert modes.attempts == 0
    assert modes.explanation == "input values are outside the limits of drive; change the inputs or the limits"
    assert len(linkage.assembly_modes({"drive": closure_angle(linkage) + 0.5})) == 2
