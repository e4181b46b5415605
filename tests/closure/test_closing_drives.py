"""Joints that close a loop and drive it: they have no number in q, and still their turns are counted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from driven_linkages import elbow_of, rocker_of, turned_off
from hypothesis import given, settings
from hypothesis import strategies as st

import mechanik as mk

LENGTHS = 2.0, 0.5, 1.8, 1.2
ANGLE = 1.0


def driven_from_its_closure() -> mk.Mechanism:
    """A four-bar whose tree begins at the rocker, so that the pin of its crank on the ground is what closes it."""
    ground, crank, coupler, rocker = LENGTHS
    knee, elbow, pivot = elbow_of(*LENGTHS, ANGLE)
    swing, back = math.atan2(*(elbow - pivot)[::-1]), math.atan2(*(knee - elbow)[::-1])
    b = mk.Builder("four_bar")
    b.revolute("rocker", "ground", "rocker_link", at=(ground, 0, 0), value=swing)
    b.revolute("top", "rocker_link", "coupler_link", at=(rocker, 0, 0), value=back - swing)
    b.revolute("elbow", "coupler_link", "crank_link", at=(coupler, 0, 0), value=ANGLE + math.pi - back)
    b.close("drive", "ground", "crank_link", "pin", onto=(crank, 0, 0))
    return b.build()


def reading(linkage: mk.Mechanism) -> float:
    return float(linkage.closure("drive").joint_values()[0])


def heading_of_crank(q: np.ndarray) -> float:
    """The angle of the crank in the plane, full turns included, as the tree has it."""
    return float(np.sum(q)) - math.pi


@settings(max_examples=12)
@given(st.floats(-14.0, 14.0))
def test_a_closing_joint_is_turned_as_far_as_it_is_asked_to(turn: float) -> None:
    """It lost full turns, and went the short way: +4 rad became -2.28."""
    linkage = driven_from_its_closure()
    there = linkage.assemble({"drive": reading(linkage) + turn})
    assert there.success
    assert heading_of_crank(there.q) - heading_of_crank(linkage.q) == pytest.approx(turn, abs=1e-9)
    assert turned_off(there.q[0], rocker_of(*LENGTHS, ANGLE + turn)) < 1e-9
    assert there["drive"] == pytest.approx(reading(linkage) + turn, abs=1e-9)
    assert there.input_errors["drive"] < 1e-9


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_along_a_path_its_turns_go_on_counting(sign: float) -> None:
    linkage = driven_from_its_closure()
    way = sign * np.linspace(0.0, 15.0, 9)
    path = linkage.assembly_path({"drive": reading(linkage) + way})
    assert path.success.all()
    turns = [heading_of_crank(one.q) - heading_of_crank(linkage.q) for one in path]
    assert np.abs(np.array(turns) - way).max() < 1e-9
    once_more = linkage.assemble({"drive": reading(linkage) + way[-1] + sign * 0.1}, path[-1])
    assert heading_of_crank(once_more.q) - heading_of_crank(path[-1].q) == pytest.approx(sign * 0.1, abs=1e-9)


def test_what_is_missing_of_its_turns_is_told_in_turns() -> None:
    """The rocker stops it before the first of three turns is done."""
    linkage = driven_from_its_closure()
    stop = float(linkage.assemble({"drive": reading(linkage) + 1.5}).q[0])
    linkage.joint("rocker").set_limits(-math.inf, stop)
    there = linkage.assemble({"drive": reading(linkage) + 6 * math.pi})
    assert not there.success
    gone = heading_of_crank(there.q) - heading_of_crank(linkage.q)
    assert gone <= 1.5 + 1e-9
    assert there.input_errors["drive"] == pytest.approx(6 * math.pi - gone, abs=1e-9)


def test_beyond_its_own_limits_it_is_left_at_the_nearer_one() -> None:
    linkage = driven_from_its_closure()
    low, high = reading(linkage) - 1.0, reading(linkage) + 2.0
    linkage.joint("drive").set_limits(low, high)
    for wanted, limit in ((high + 0.5, high), (low - 7.0, low)):
        there = linkage.assemble({"drive": wanted})
        assert there.status is mk.Status.CLOSEST
        assert "outside the limits" in there.message
        assert there["drive"] == pytest.approx(limit, abs=1e-9)
        assert there.input_errors["drive"] == pytest.approx(abs(wanted - limit), abs=1e-9)
    assert linkage.assemble({"drive": high}).success


def test_modes_beyond_its_limits_are_none_without_a_search() -> None:
    linkage = driven_from_its_closure()
    linkage.joint("drive").set_limits(reading(linkage) - 1.0, reading(linkage) + 1.0)
    modes = linkage.assembly_modes({"drive": reading(linkage) + 1.5})
    assert len(modes) == 0
    assert modes.tries == 0
    assert modes.why == "outside the limits: drive"
    assert len(linkage.assembly_modes({"drive": reading(linkage) + 0.5})) == 2
