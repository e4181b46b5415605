"""A platform in the plane on three legs."""

from __future__ import annotations

import math

from mechanik.gallery.bars import pin_together
from mechanik.gallery.circles import meet, polar
from mechanik.gallery.lengths import check_angles, check_lengths, check_point
from mechanik.mechanism import Mechanism


def planar_3rrr(
    base_radius: float = 0.5,
    platform_radius: float = 0.15,
    arm: float = 0.3,
    forearm: float = 0.3,
    position: tuple[float, float] = (0.0, 0.0),
    angle: float = 0.0,
) -> Mechanism:
    """A platform that three arms of two bars move and turn in the plane: three freedoms, three motors at the base.

    Motors "arm1_joint" to "arm3_joint" are at 90, 210 and 330 degrees on a circle about the origin, and so are the
    pins on the platform, whose middle is the link "tool". All elbows are bent the same way round. For given motors
    there are up to six poses of the platform (K. Hunt 1983; C. Gosselin, J. Sefrioui 1991).

    Args:
        base_radius, platform_radius: of the circles of motors and pins; m.
        position, angle: of the platform, at which it is assembled; m and rad.
    """
    what = "planar_3rrr"
    check_lengths(what, base_radius=base_radius, platform_radius=platform_radius, arm=arm, forearm=forearm)
    check_point(what, "position", position)
    check_angles(what, angle=angle)
    points = {"middle": position}
    bars = {"ground": tuple(f"motor{k}" for k in (1, 2, 3))}
    for k in (1, 2, 3):
        spoke = math.radians(120 * k - 30)
        motor = points[f"motor{k}"] = polar((0.0, 0.0), base_radius, spoke)
        pin = points[f"pin{k}"] = polar(position, platform_radius, spoke + angle)
        points[f"elbow{k}"] = meet(what, motor, arm, pin, forearm)
        bars[f"arm{k}"] = (f"motor{k}", f"elbow{k}")
        bars[f"forearm{k}"] = (f"elbow{k}", f"pin{k}")
    bars["platform"] = ("pin1", "pin2", "pin3")
    return pin_together(what, points, bars, tools={"tool": ("platform", "middle", angle)})
