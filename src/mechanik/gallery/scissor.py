"""The scissor lift: crossed bars on crossed bars."""

from __future__ import annotations

import math

from mechanik.errors import StructureError
from mechanik.gallery.bones import BLUE, DARK, GREY, ORANGE, RED, block, bone, hub
from mechanik.gallery.home import stand
from mechanik.gallery.lengths import check_angles, check_lengths
from mechanik.mechanism import Builder, Mechanism, PlacedShape


def scissor_lift(stages: int = 3, bar: float = 1.0, angle: float = 0.5) -> Mechanism:
    """A platform on pairs of crossed bars, which goes straight up as the foot of the first pair is pulled in.

    It stands in the plane of x and z. Bars "rising" lean from the left foot to the right, "falling" across them. The
    left foot is pinned to the base, at the origin; the right one is on "slider_joint", which drives. The platform is
    pinned at its left end and rolls on its right, stays level, and is stages * sqrt(bar² - slide²) above the base.
    One freedom.

    Args:
        bar: between the pins at the ends of a bar; m.
        angle: of the bars above the base, at which it is assembled; rad, between 0 and pi/2.
    """
    if not isinstance(stages, int) or isinstance(stages, bool) or stages < 1:
        raise StructureError(f"scissor_lift: stages is {stages!r}; it is a whole number, at least 1")
    check_lengths("scissor_lift", bar=bar)
    check_angles("scissor_lift", angle=angle)
    if not 0 < angle < math.pi / 2:
        raise StructureError(f"scissor_lift: angle is {angle:g}; it is between 0, flat, and pi/2, upright")
    slide, r = bar * math.cos(angle), 0.02 * bar
    start, middle, end = (0.0, 0.0, 0.0), (0.5 * bar, 0.0, 0.0), (bar, 0.0, 0.0)
    lower, upper = (-0.5 * bar, 0.0, 0.0), middle
    lift = Builder("scissor_lift")
    lift.prismatic("slider_joint", "base", "slider", axis="x", limits=(0.05 * bar, 0.999 * bar), value=slide)
    left, right, tilt = ("base", start), ("slider", start), 0.0
    for k in range(1, stages + 1):
        rising, falling = f"rising{k}", f"falling{k}"
        lift.revolute(f"{rising}_joint", left[0], rising, at=left[1], axis="-y", value=angle - tilt)
        # the falling bar's frame is where the two cross, its x along it upwards, to the left
        lift.revolute(f"{falling}_joint", rising, falling, at=middle, axis="-y", value=math.pi - 2 * angle)
        lift.close(f"{falling}_foot", falling, right[0], "pin", at=lower, onto=right[1], axis="-y")
        lift.link(rising, visuals=[bone(start, end, r, RED), _axle(middle, r)])
        lift.link(falling, visuals=[bone(lower, upper, r, BLUE), _axle(lower, r), _axle(upper, r)])
        left, right, tilt = (falling, upper), (rising, end), math.pi - angle
    lift.revolute("platform_joint", left[0], "platform", at=left[1], axis="-y", value=-tilt)
    lift.prismatic("roller_joint", "platform", "roller", axis="x", value=slide)
    lift.close("roller_pin", "roller", right[0], "pin", onto=right[1], axis="-y")
    slab = (1.1 * bar, 0.4 * bar, r)
    lift.link("base", visuals=[block((0.5 * bar, 0.0, -2 * r), slab, GREY)])
    lift.link("platform", visuals=[block((0.5 * bar, 0.0, 2 * r), slab, ORANGE)])
    for wheel in ("slider", "roller"):
        lift.link(wheel, visuals=[hub(start, (0.0, 1.0, 0.0), 1.5 * r, 0.3 * bar, DARK)])
    return stand(lift.build())


def _axle(at: tuple[float, float, float], radius: float) -> PlacedShape:
    return hub(at, (0.0, 1.0, 0.0), 0.7 * radius, 5 * radius, DARK)
