"""A small hexapod for positioning: struts with cardan joints at both ends, whose spindles may turn."""

from __future__ import annotations

import math

import numpy as np

from mechanik.errors import StructureError
from mechanik.gallery.bones import BLUE, DARK, GREY, WHITE, ball, hub, rod
from mechanik.gallery.home import stand
from mechanik.gallery.lengths import check_lengths
from mechanik.mechanism import Builder, Mechanism
from mechanik.spatial import make, rotation

Z = np.array([0.0, 0.0, 1.0])
PAIR_BASE, PAIR_PLATFORM = 13.0, 15.0
"""Half the angle between two joints that stand side by side, degrees: pairs below alternate with pairs above."""


def hexapod(
    base_radius: float = 0.060,
    platform_radius: float = 0.045,
    height: float = 0.090,
    travel: float = 0.009,
) -> Mechanism:
    """A hexapod of the size of a hand, as they carry lenses and chips: 6-UCU, six freedoms.

    Each strut is a cardan joint, a spindle that shifts and turns, and a second cardan joint. Were the spindles held
    from turning, the struts would hold the platform fast. At home all struts are equally long. From there, one
    direction at a time, it goes 20 mm sideways and 8 mm up and down, tilts by 10 degrees and turns by 20. The
    platform floats, so its pose stands in q.

    Args:
        base_radius, platform_radius: of the circles on which the cardan joints stand; m.
        height: from one circle to the other at home; m.
        travel: how much longer and shorter than at home a strut can be; m.
    """
    check_lengths("hexapod", base_radius=base_radius, platform_radius=platform_radius, height=height, travel=travel)
    robot = Builder("hexapod")
    robot.free("platform_joint", "base", "platform", value=(0.0, 0.0, height, 0.0, 0.0, 0.0))
    for k in range(6):
        middle, side = 120.0 * (k // 2), (-1.0, 1.0)[k % 2]
        p_base = _on_circle(base_radius, middle + side * PAIR_BASE)
        p_platform = _on_circle(platform_radius, middle + side * (60.0 - PAIR_PLATFORM))
        reach = p_platform + height * Z - p_base
        length = float(np.linalg.norm(reach))
        if not travel < 0.5 * length:
            raise StructureError(f"hexapod: travel is {travel:g}, but struts of {length:g} change by less than half")
        stroke = (length - travel, length + travel)
        strut, spindle = f"strut{k + 1}", f"spindle{k + 1}"
        R_base_strut = rotation.between(Z, reach)
        robot.universal(f"{strut}_cardan", "base", strut, at=make(R_base_strut, p_base), limits=(-0.8, 0.8))
        robot.cylindrical(
            f"{strut}_slide", strut, spindle, limits=((stroke[0], -math.pi), (stroke[1], math.pi)), value=(length, 0.0)
        )
        robot.close(f"{strut}_upper_cardan", spindle, "platform", "universal", onto=make(R_base_strut, p_platform))
        r = 0.1 * platform_radius
        sleeve = 0.75 * stroke[0]
        robot.link(strut, visuals=[ball((0.0, 0.0, 0.0), 1.2 * r, DARK), rod((0.0, 0.0, 0.0), sleeve * Z, r, BLUE)])
        robot.link(
            spindle, visuals=[rod(-0.6 * stroke[0] * Z, (0.0, 0.0, 0.0), 0.5 * r, GREY), ball((0, 0, 0), r, DARK)]
        )
    slab = 0.2 * platform_radius
    robot.link("base", visuals=[hub((0.0, 0.0, -slab), Z, 1.25 * base_radius, slab, GREY)])
    robot.link("platform", visuals=[hub((0.0, 0.0, slab), Z, 1.2 * platform_radius, slab, WHITE)])
    return stand(robot.build())


def _on_circle(radius: float, degrees: float) -> np.ndarray:
    angle = math.radians(degrees)
    return np.array([radius * math.cos(angle), radius * math.sin(angle), 0.0])
