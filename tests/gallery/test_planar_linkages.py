"""Planar linkages compared with closed forms: straight lines, scales, inversions."""

import cmath
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkage_drive import CLOSED, cross, driven, flat, openness, same_angle, turn

import mechanik as mk
from mechanik import gallery
from mechanik.errors import StructureError, UnknownName

# ---- four-bars ------------------------------------------------------------------------------------------------------

KINDS = {
    "crank-rocker": (2.0, 0.5, 1.8, 1.2),
    "double-crank": (0.5, 2.0, 1.8, 1.2),
    "rocker-crank": (2.0, 1.2, 1.8, 0.5),
    "double-rocker": (2.0, 1.2, 0.5, 1.8),
    "change-point": (2.0, 1.0, 2.0, 1.0),
    "triple-rocker": (2.0, 1.0, 1.2, 1.4),
}


@pytest.mark.parametrize(("kind", "lengths"), KINDS.items())
def test_every_kind_of_four_bar_is_named(kind, lengths):
    assert gallery.four_bar_kind(*lengths) == kind


lengths = st.integers(1, 40).map(lambda quarters: quarters / 4)  # sums of these are exact


def turns_around(a, b, c, d):
    """Whether neighbours a and b turn all around each other: c and d span the way between their far ends always."""
    return abs(c - d) <= abs(a - b) + 1e-12 and a + b <= c + d + 1e-12


@given(lengths, lengths, lengths, lengths)
def test_the_kind_determines_which_bars_make_full_turns(ground, crank, coupler, rocker):
    sizes = (ground, crank, coupler, rocker)
    if 2 * max(sizes) >= sum(sizes):
        with pytest.raises(StructureError, match="as long as the other three"):
            gallery.four_bar_kind(*sizes)
        return
    kind = gallery.four_bar_kind(*sizes)
    at_ground = turns_around(ground, crank, coupler, rocker), turns_around(ground, rocker, coupler, crank)
    at_coupler = turns_around(coupler, crank, ground, rocker), turns_around(coupler, rocker, ground, crank)
    if kind == "change-point":
        assert sum(sorted(sizes)[::3]) == pytest.approx(sum(sorted(sizes)[1:3]))
    else:
        known = {
            "crank-rocker": (True, False, True, False),
            "rocker-crank": (False, True, False, True),
            "double-crank": (True, True, False, False),
            "double-rocker": (False, False, True, True),
            "triple-rocker": (False, False, False, False),
        }
        assert (*at_ground, *at_coupler) == known[kind]


@pytest.mark.parametrize("elbow", ["up", "down"])
@pytest.mark.parametrize("kind", ["crank-rocker", "double-crank"])
def test_a_crank_makes_full_turns_and_the_rocker_follows_its_closed_form(kind, elbow):
    ground, crank, coupler, rocker = KINDS[kind]
    linkage = gallery.four_bar(*KINDS[kind], elbow=elbow)
    for solution in driven(linkage, "crank_joint", turn(0.6, 180), fastest=3.0):
        knee = cmath.rect(crank, solution["crank_joint"])
        tip = cross(knee, coupler, complex(ground), rocker, +1 if elbow == "up" else -1)
        assert same_angle(solution["rocker_joint"], cmath.phase(tip - ground), 1e-9)
    turned = solution["rocker_joint"] - linkage.values()["rocker_joint"]
    assert turned == pytest.approx(2 * math.pi if kind == "double-crank" else 0.0, abs=1e-8)


def test_a_triple_rocker_stops_where_coupler_and_rocker_are_stretched():
    ground, crank, coupler, rocker = KINDS["triple-rocker"]
    linkage = gallery.four_bar(*KINDS["triple-rocker"])
    end = math.acos((ground**2 + crank**2 - (coupler + rocker) ** 2) / (2 * ground * crank))
    solver = mk.Solver(linkage, mk.JointValues({"crank_joint": 0.0}, angle_mode="exact"))
    q = linkage.q
    for crank_angle in np.linspace(0.7, end + 0.5, 60):
        solution = solver.solve({"crank_joint": crank_angle}, q)
        assert openness(solution) < CLOSED
        assert solution.success == (crank_angle <= end)
        q = solution.q
    assert solution["crank_joint"] == pytest.approx(end, abs=1e-6)


def test_the_coupler_of_a_parallelogram_does_not_rotate():
    linkage = gallery.four_bar(*KINDS["change-point"])
    for solution in driven(linkage, "crank_joint", np.linspace(0.6, 3.0, 60), fastest=1.0 + 1e-9):
        np.testing.assert_allclose(linkage.pose("coupler", solution.q)[:3, :3], np.eye(3), rtol=0, atol=1e-9)
        assert solution["rocker_joint"] == pytest.approx(solution["crank_joint"], abs=1e-9)


def test_the_cranks_of_an_antiparallelogram_rotate_in_opposite_directions_by_the_ratio_of_half_angles():
    ground, crank, *_ = KINDS["change-point"]
    linkage = gallery.four_bar(*KINDS["change-point"], elbow="down")
    for solution in driven(linkage, "crank_joint", np.linspace(0.6, 3.0, 60), fastest=4.0):
        halves = [math.tan(solution[joint] / 2) for joint in ("crank_joint", "rocker_joint")]
        assert halves[1] == pytest.approx(-halves[0] * (ground + crank) / (ground - crank), rel=1e-8)


def test_the_slider_follows_the_engine_formula_through_two_turns():
    linkage = gallery.slider_crank(crank=0.4, rod=0.9, offset=0.1)
    for solution in driven(linkage, "crank_joint", turn(0.6, 360, turns=2), fastest=2.0):
        angle = solution["crank_joint"]
        rise = 0.4 * math.sin(angle) - 0.1
        expected = 0.4 * math.cos(angle) + math.sqrt(0.81 - rise**2)
        assert solution["slider_joint"] == pytest.approx(expected, abs=1e-9)


# ---- linkages that draw ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.25, 2.0, 3.0])
def test_the_pen_of_a_pantograph_draws_what_is_traced_larger(scale):
    linkage = gallery.pantograph(scale=scale)
    solver = mk.Solver(linkage, mk.PositionGoal("tracer", (0.0, 0.0, 0.0)))
    q = linkage.q
    for t in np.linspace(0, 2 * math.pi, 61):
        target = (0.1 + 0.15 * math.cos(2 * t), 0.5 + 0.15 * math.sin(3 * t), 0.0)
        solution = solver.solve(target, q)
        assert solution.success, (t, solution)
        assert openness(solution) < CLOSED
        tracer, pen = (linkage.pose(link, solution.q)[:3, 3] for link in ("tracer", "pen"))
        np.testing.assert_allclose(pen, scale * tracer, rtol=0, atol=1e-9)
        np.testing.assert_allclose(tracer, target, rtol=0, atol=1e-6)
        q = solution.q


@pytest.mark.parametrize(("arm", "side", "crank"), [(1.0, 0.45, 0.4), (3.0, 1.0, 1.2)])
def test_peaucelliers_pen_draws_a_straight_line_over_its_whole_stroke(arm, side, crank):
    linkage = gallery.peaucellier(arm, side, crank)
    line = (arm**2 - side**2) / (2 * crank)
    end = 0.98 * 2 * math.acos((arm - side) / (2 * crank))  # where the rhombus would lie flat
    out_and_back = np.concatenate([np.linspace(0.3, end, 80), np.linspace(end, -end, 200)])
    heights = []
    for solution in driven(linkage, "crank_joint", out_and_back, fastest=12.0):
        near, pen = linkage.pose("upper_near", solution.q), linkage.pose("pen", solution.q)[:3, 3]
        assert pen[0] == pytest.approx(line, abs=1e-9)
        assert pen[2] == pytest.approx(0, abs=1e-12)
        corner = flat(near[:3, 3] + side * near[:3, 0])
        assert abs(corner) * abs(flat(pen)) == pytest.approx(arm**2 - side**2, abs=1e-9)  # inversion in a circle
        assert cmath.phase(corner) == pytest.approx(cmath.phase(flat(pen)), abs=1e-9)
        heights.append(pen[1])
    assert np.ptp(heights) > 1.9 * math.sqrt((arm + side) ** 2 - line**2)


# ---- six bars -------------------------------------------------------------------------------------------------------

WATT = ("base", "crank", "coupler", "bell", "rod", "lever")
STEPHENSON = ("base", "crank", "coupler", "rocker", "rod", "lever")
CHAINS = [("watt_six_bar", bar) for bar in WATT] + [("stephenson_six_bar", bar) for bar in STEPHENSON]


def headings(linkage, q, bars):
    """By bar: its angle from the base."""
    at = {bar: linkage.pose(bar, q)[:3, :3] for bar in bars}
    turned = {bar: at["base"].T @ R for bar, R in at.items()}
    return {bar: math.atan2(R[1, 0], R[0, 0]) for bar, R in turned.items()}


def watt(crank):
    knee, middle, end = cmath.rect(0.5, crank), complex(2), complex(3.8)
    elbow = cross(knee, 1.8, middle, 1.2, +1)
    tip = middle + cmath.rect(1.0, cmath.phase(elbow - middle) - 1.2)
    wrist = cross(tip, 1.6, end, 1.1, +1)
    return {
        "crank": crank,
        "coupler": cmath.phase(elbow - knee),
        "bell": cmath.phase(elbow - middle),
        "rod": cmath.phase(wrist - tip),
        "lever": cmath.phase(wrist - end),
    }


def stephenson(crank):
    knee, middle, end = cmath.rect(0.5, crank), complex(2), complex(2.6, 1.2)
    elbow = cross(knee, 1.8, middle, 1.2, +1)
    tip = knee + cmath.rect(1.4, cmath.phase(elbow - knee) + 0.6)
    wrist = cross(tip, 1.6, end, 1.2, +1)
    return {
        "crank": crank,
        "coupler": cmath.phase(elbow - knee),
        "rocker": cmath.phase(elbow - middle),
        "rod": cmath.phase(wrist - tip),
        "lever": cmath.phase(wrist - end),
    }


@pytest.mark.parametrize(("name", "held"), CHAINS)
def test_a_six_bar_follows_its_closed_form_whichever_bar_is_fixed(name, held):
    bars, known = (WATT, watt) if name == "watt_six_bar" else (STEPHENSON, stephenson)
    linkage = getattr(gallery, name)(fixed_bar=held)
    assert mk.mobility(linkage).dof == 1
    np.testing.assert_array_equal(linkage.pose(held), np.eye(4))
    home, start = headings(linkage, linkage.q, bars), known(0.6)
    # the joint between crank and base, whichever of them carries the other
    ends = {joint.name: {joint.parent.name, joint.child.name} for joint in linkage.joints.values() if joint.child}
    drive = next(joint for joint, links in ends.items() if links == {"crank", "base"})
    direction = 1 if drive == "crank_joint" else -1
    first = linkage.values()[drive]
    for solution in driven(linkage, drive, first + direction * turn(0.0, 120), fastest=3.0):
        now, expected = headings(linkage, solution.q, bars), known(0.6 + direction * (solution[drive] - first))
        for bar, angle in expected.items():
            assert same_angle(now[bar] - home[bar], angle - start[bar], 1e-8), bar


# ---- what is refused ------------------------------------------------------------------------------------------------

BAD = {
    "a bar as long as the others": (lambda: gallery.four_bar_kind(4.0, 1.0, 2.0, 1.0), "as long as the other three"),
    "a bar of no length": (lambda: gallery.four_bar_kind(0.0, 1.0, 2.0, 1.0), "four_bar_kind: ground must .*not 0"),
    "an elbow aside": (lambda: gallery.four_bar(elbow="left"), "'up' or 'down'"),
    "an angle without end": (lambda: gallery.slider_crank(angle=math.inf), "slider_crank: angle must .*not inf"),
    "an angle in words": (lambda: gallery.five_bar(left="up"), "five_bar: left must .*not 'up'"),
    "a pantograph that does not enlarge": (
        lambda: gallery.pantograph(scale=1.0),
        "pantograph: scale must be above 1, not 1",
    ),
    "a rhombus larger than its arms": (lambda: gallery.peaucellier(side=1.0), "arm is 1 m and side is 1 m"),
    "a crank that cannot reach": (lambda: gallery.peaucellier(angle=2.5), "peaucellier cannot be assembled"),
    "a rod too short": (lambda: gallery.watt_six_bar(rod=0.1), "watt_six_bar cannot be assembled"),
    "a pivot too far": (lambda: gallery.stephenson_six_bar(pivot=(9.0, 0.0)), "stephenson_six_bar cannot be assembled"),
    "a pivot of one number": (lambda: gallery.stephenson_six_bar(pivot=3.0), "pivot must be .*not 3.0"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_impossible_linkages_are_rejected_by_name(call, message):
    with pytest.raises(StructureError, match=message):
        call()


def test_an_unknown_bar_cannot_be_fixed():
    with pytest.raises(UnknownName, match="Did you mean 'lever'"):
        gallery.watt_six_bar(fixed_bar="levr")
