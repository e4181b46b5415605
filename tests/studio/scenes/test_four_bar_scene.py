"""The coupler curve of the four-bar scene is closed and passes through the pen positions of the closed loop."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mechanik.studio.scenes.linkage_scenes import (
    FULL_ROTATION_RANGE,
    SWING_SHARE,
    clamp_crank_angle,
    coupler_curve,
    coupler_points,
    crank_range,
    four_bar_with_pen,
)

CRANK_ROCKER = (2.0, 0.5, 1.8, 1.2)
KINDS = {
    "crank-rocker": CRANK_ROCKER,
    "double-crank": (0.5, 1.2, 1.3, 1.1),
    "rocker-crank": (2.0, 1.2, 1.8, 0.5),
    "double-rocker": (2.0, 1.2, 0.6, 1.5),
    "triple-rocker": (2.0, 1.0, 1.1, 1.2),
}
PEN = (0.9, 0.6)


def distance_to(points, curve):
    """Of points (n, 3) to a closed polyline (m, 3)."""
    a, b = curve, np.roll(curve, -1, axis=0)
    segment = b - a
    share = np.einsum("nmi,mi->nm", points[:, None] - a, segment) / np.maximum(
        np.einsum("mi,mi->m", segment, segment), 1e-300
    )
    nearest = a + np.clip(share, 0.0, 1.0)[..., None] * segment
    return np.linalg.norm(points[:, None] - nearest, axis=-1).min(axis=1)


def angles_inside(lengths, count):
    low, high = crank_range(*lengths)
    middle, half = (low + high) / 2, SWING_SHARE * (high - low) / 2
    return middle + half * np.linspace(-1.0, 1.0, count)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("up", [True, False])
def test_the_closed_form_is_where_the_loop_takes_the_pen(kind, up):
    lengths = KINDS[kind]
    angles = angles_inside(lengths, 25)
    linkage = four_bar_with_pen(lengths, PEN, angles[0], up)
    path = linkage.assembly_path({"crank_joint": angles})
    assert path.success.all()
    drawn = np.array([linkage.pose("pen", q)[:3, 3] for q in path.q])
    np.testing.assert_allclose(drawn, coupler_points(lengths, PEN, angles, up), atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_the_curve_is_closed_and_the_pen_is_on_it(kind):
    lengths = KINDS[kind]
    curve = coupler_curve(lengths, PEN)
    steps = np.linalg.norm(np.roll(curve, -1, axis=0) - curve, axis=-1)
    assert steps.max() < 10 * np.median(steps)  # also the step from the last point to the first
    # a chord of a curve that bends with radius r misses it by s^2 / 8 r; three neighbours tell r
    a, b, c = np.roll(curve, 1, axis=0), curve, np.roll(curve, -1, axis=0)
    sagitta = np.linalg.norm(b - (a + c) / 2, axis=-1).max()  # of chords twice as long: four times too much
    pen = coupler_points(lengths, PEN, angles_inside(lengths, 500), True)
    assert distance_to(pen, curve).max() < sagitta + 1e-6


bars = st.floats(0.2, 3.0)


@given(bars, bars, bars, bars)
@settings(deadline=None, max_examples=200)
def test_inside_its_swing_the_crank_can_be_assembled_and_outside_it_cannot(ground, crank, coupler, rocker):
    lengths = ground, crank, coupler, rocker
    assume(max(lengths) < 0.98 * (sum(lengths) - max(lengths)))
    low, high = crank_range(*lengths)

    def distance(angle):
        return math.hypot(ground - crank * math.cos(angle), crank * math.sin(angle))

    least, most, slack = abs(coupler - rocker), coupler + rocker, 1e-9  # m, for rounding
    for share in np.linspace(0.0, 1.0, 21):
        assert least - slack <= distance(low + share * (high - low)) <= most + slack
    if high - low < FULL_ROTATION_RANGE:
        for angle in (low - 1e-3, high + 1e-3):
            # near a flat linkage the way hardly changes with the angle
            assert abs(math.sin(angle)) < 0.01 or not least < distance(angle) < most


@given(st.floats(-50.0, 50.0), st.floats(-3.0, 3.0), st.floats(0.1, 6.0))
def test_a_crank_is_brought_inside_its_swing_by_whole_turns_first(angle, low, width):
    high = low + width
    inside = clamp_crank_angle(angle, low, high)
    assert low <= inside <= high
    turns = (angle - inside) / (2 * math.pi)
    middle, half = (low + high) / 2, SWING_SHARE * width / 2
    is_inside = abs(math.remainder(angle - middle, 2 * math.pi)) <= half
    assert not is_inside or turns == pytest.approx(round(turns), abs=1e-9)
