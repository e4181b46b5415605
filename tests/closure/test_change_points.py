"""Change points, where branches cross: the path continues on its branch, and is exact at the crossing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from driven_linkages import angle_difference, four_bar, rocker_angle_of
from hypothesis import given, settings
from hypothesis import strategies as st

import mechanik as mk

PI = math.pi
TURNS = {
    "three large steps": 0.6 + np.linspace(0.0, 4 * PI, 4)[1:],
    "steps of a third": 0.6 + np.linspace(0.0, 4 * PI, 38)[1:],
    "from crossing to crossing": PI * np.arange(1, 5),
    "quarter turns": PI / 2 * np.arange(1, 9),
    "to and fro over a crossing": np.array([PI, 3.0, PI, 3.2, PI, PI + 1e-7, PI - 1e-7, 0.0, 0.3, 0.0]),
}


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("crank_angles", TURNS.values(), ids=TURNS)
def test_parallelogram_keeps_its_branch_through_change_points(crank_angles: np.ndarray, sign: float) -> None:
    path = four_bar(2.0, 0.5, 2.0, 0.5, 0.6).assembly_path({"crank": sign * crank_angles})
    assert path.success.all()
    crank, coupler, rocker = path.q.T
    assert np.abs(rocker - crank).max() < 1e-9
    assert np.abs(coupler + crank).max() < 1e-9


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("crank_angles", TURNS.values(), ids=TURNS)
def test_antiparallelogram_keeps_its_branch_through_change_points(crank_angles: np.ndarray, sign: float) -> None:
    path = four_bar(2.0, 0.5, 2.0, 0.5, 0.6, is_crossed=True).assembly_path({"crank": sign * crank_angles})
    assert path.success.all()
    assert angle_difference(path.q[:, 2], np.array([_opposite(angle) for angle in path.q[:, 0]])) < 1e-9


def _opposite(angle: float) -> float:
    """The rocker of an antiparallelogram: the parallelogram's elbow mirrored in its diagonal, at a crossing as well."""
    knee, pivot = 0.5 * np.array([math.cos(angle), math.sin(angle)]), np.array([2.0, 0.0])
    along = (pivot - knee) / np.linalg.norm(pivot - knee)
    rod = np.array([2.0, 0.0])
    elbow = knee + 2 * along * (along @ rod) - rod
    return math.atan2(*(elbow - pivot)[::-1])


@pytest.mark.parametrize("is_crossed", [False, True])
@pytest.mark.parametrize(
    "crank_angles", [[0.3, -0.3, -1.0, 0.0, 1.0], [-1.0, 1.0], [0.0, -1.0, 0.0, 0.5], [-1e-3, 1e-3]]
)
def test_kite_stays_a_kite_through_its_folded_pose(crank_angles: list[float], is_crossed: bool) -> None:
    """Where its crank lies on the ground, coupler and rocker could rotate together; it stays a kite."""
    kite = four_bar(1.0, 1.0, 0.7, 0.7, 0.6, is_crossed=is_crossed)
    path = kite.assembly_path({"crank": crank_angles})
    assert path.success.all()
    side = -1.0 if is_crossed else 1.0
    for angle, rocker in path.q[:, [0, 2]]:
        # the elbow lies on the axis of symmetry, which is at half of the crank's angle
        far = math.cos(angle / 2) + side * math.sqrt(0.49 - math.sin(angle / 2) ** 2)
        assert angle_difference(rocker, math.atan2(far * math.sin(angle / 2), far * math.cos(angle / 2) - 1.0)) < 1e-9


def test_change_points_along_a_path_are_reported_at_their_position() -> None:
    linkage = four_bar(2.0, 0.5, 2.0, 0.5, 0.6)
    passed = linkage.assemble({"crank": 0.6 + 2 * PI}).singularities
    assert [singularity.kind for singularity in passed] == ["change point"] * 2
    assert (
        np.abs([singularity.q[0] - angle for singularity, angle in zip(passed, (PI, 2 * PI), strict=True)]).max() < 1e-4
    )
    assert linkage.assemble({"crank": 3.0}).singularities == ()


def test_linkage_without_change_points_reports_none() -> None:
    assert four_bar(2.0, 0.5, 1.8, 1.2, 0.6).assemble({"crank": 0.6 + 4 * PI}).singularities == ()


def test_assembly_at_a_change_point_is_singular() -> None:
    linkage = four_bar(2.0, 0.5, 2.0, 0.5, 0.6)
    assert "change point" in linkage.assemble({"crank": PI}).singular.kinds
    assert not linkage.assemble({"crank": 1.0}).singular


def test_assembly_at_a_change_point_keeps_its_direction() -> None:
    """A bare q has no direction: both branches continue from there."""
    for is_crossed in (False, True):
        linkage = four_bar(2.0, 0.5, 2.0, 0.5, 0.6, is_crossed=is_crossed)
        flat = linkage.assemble({"crank": PI})
        on, back = linkage.assemble({"crank": 4.0}, flat), linkage.assemble({"crank": 0.6}, flat)
        assert angle_difference(on.q[2], 4.0 if not is_crossed else _opposite(4.0)) < 1e-9
        assert np.abs(back.q - linkage.q).max() < 1e-9


@pytest.mark.parametrize("start", [0.0, PI])
def test_branch_is_chosen_and_followed_from_a_flat_linkage(start: float) -> None:
    linkage = four_bar(2.0, 0.5, 2.0, 0.5, start)
    there = linkage.assemble({"crank": start + 1.0})
    assert there.success
    both = rocker_angle_of(2.0, 0.5, 2.0, 0.5, start + 1.0), rocker_angle_of(2.0, 0.5, 2.0, 0.5, start + 1.0, True)
    assert min(angle_difference(there.q[2], rocker_angle) for rocker_angle in both) < 1e-9


@settings(max_examples=6)
@given(st.floats(-7.0, -2.0), st.booleans(), st.sampled_from([-1.0, 1.0]))
def test_nearby_branches_are_not_confused(exponent: float, is_longer: bool, sign: float) -> None:
    """A parallelogram with a rod that is a little off is none: its elbow stays on one side of the diagonal."""
    lengths = 2.0, 0.5, 2.0 + (1.0 if is_longer else -1.0) * 10.0**exponent, 0.5
    linkage = four_bar(*lengths, 0.6)
    for angle in (PI, 3.3, 6.5):
        there = linkage.assemble({"crank": sign * angle})
        if there.success:
            assert angle_difference(there.q[2], rocker_angle_of(*lengths, sign * angle)) < 1e-7
        else:  # flat, the short rod does not reach
            assert there.singularities[-1].kind == "dead point"


def test_row_of_parallelograms_passes_its_flat_pose() -> None:
    """Three loops lose their rank at once."""
    b = mk.Builder("ladder")
    b.revolute("crank", "ground", "bar0", value=0.5)
    for k in range(3):
        b.revolute(f"bar{k + 1}_joint", "ground", f"bar{k + 1}", at=(k + 1.0, 0.0, 0.0), value=0.5)
        b.revolute(f"rod{k}_joint", f"bar{k}", f"rod{k}", at=(0.4, 0.0, 0.0), value=-0.5)
        b.close(f"pin{k}", f"rod{k}", f"bar{k + 1}", "pin", at=(1.0, 0.0, 0.0), onto=(0.4, 0.0, 0.0))
    ladder = b.build()
    path = ladder.assembly_path({"crank": [1.0, 4.0, -1.0]})
    assert path.success.all()
    for q in path.q:
        values = ladder.values(q)
        assert max(abs(values[f"bar{k}_joint"] - values["crank"]) for k in (1, 2, 3)) < 1e-9
