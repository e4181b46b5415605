"""Linkages that draw: a copy at another scale, and a straight line without a guide."""

from __future__ import annotations

import math

from mechanik.errors import StructureError
from mechanik.gallery.bars import pin_together
from mechanik.gallery.circles import meet, polar
from mechanik.gallery.lengths import check_angles, check_lengths
from mechanik.mechanism import Mechanism


def pantograph(
    scale: float = 2.0, arm: float = 0.4, forearm: float = 0.4, shoulder: float = 2.2, elbow: float = 0.7
) -> Mechanism:
    """A parallelogram that draws larger what is traced (C. Scheiner 1603): pen = scale * tracer, from its pivot.

    The pivot is at the origin; two freedoms in the plane; links "tracer" and "pen" are where it follows and draws.
    Where the two arms point along one line the parallelogram can fold the other way, and then it no longer scales.

    Args:
        scale: above 1. For a smaller copy, trace with the pen.
        arm, forearm: from the pivot to the parallelogram, and from there to the tracer; m.
        shoulder, elbow: directions of the two, from x, at which it is assembled; rad.
    """
    check_lengths("pantograph", scale=scale, arm=arm, forearm=forearm)
    check_angles("pantograph", shoulder=shoulder, elbow=elbow)
    if scale <= 1:
        raise StructureError(
            f"pantograph: scale is {scale:g}; it is above 1 (for a smaller copy, trace with the pen and draw with the "
            "tracer)"
        )
    origin = (0.0, 0.0)
    points = {
        "pivot": origin,
        "fork": polar(origin, arm, shoulder),
        "tip": polar(origin, scale * arm, shoulder),
    }
    points["tracer"] = polar(points["fork"], forearm, elbow)
    points["joint"] = polar(points["tip"], forearm, elbow)
    points["pen"] = polar(points["tip"], scale * forearm, elbow)
    bars = {
        "ground": ("pivot",),
        "upper_arm": ("pivot", "fork", "tip"),
        "forearm": ("tip", "joint", "pen"),
        "side": ("fork", "tracer"),
        "bridge": ("joint", "tracer"),
    }
    tools = {"tracer": ("side", "tracer", 0.0), "pen": ("forearm", "pen", 0.0)}
    return pin_together("pantograph", points, bars, tools=tools)


def peaucellier(arm: float = 1.0, side: float = 0.45, crank: float = 0.4, angle: float = 0.3) -> Mechanism:
    """A crank's circle made into an exact straight line (C.-N. Peaucellier 1864, L. Lipkin 1871).

    Two equal arms from the origin carry a rhombus, whose near corner rides on the crank. Near and far corner, "pen",
    are always on one line with the origin, and the product of their distances from it is arm² - side². The crank's
    pivot is at x = crank, so that its circle passes through the origin, and the pen runs along
    x = (arm² - side²) / (2 crank). One freedom. The rhombus is flat where the near corner is arm - side from the
    origin, and folded where both corners meet; there it could go on in another way.

    Args:
        side: of the rhombus; m.
        angle: of the crank from x, at which it is assembled; rad.
    """
    check_lengths("peaucellier", arm=arm, side=side, crank=crank)
    check_angles("peaucellier", angle=angle)
    if side >= arm:
        raise StructureError(f"peaucellier: side is {side:g} and arm is {arm:g}; the arms are longer than the sides")
    origin, pivot = (0.0, 0.0), (crank, 0.0)
    near = polar(pivot, crank, angle)
    out = (arm**2 - side**2) / math.hypot(*near) ** 2
    points = {
        "origin": origin,
        "pivot": pivot,
        "near": near,
        "upper": meet("peaucellier", origin, arm, near, side),
        "lower": meet("peaucellier", near, side, origin, arm),
        "far": (out * near[0], out * near[1]),
    }
    bars = {
        "ground": ("origin", "pivot"),
        "crank": ("pivot", "near"),
        "upper_arm": ("origin", "upper"),
        "lower_arm": ("origin", "lower"),
        "upper_near": ("upper", "near"),
        "lower_near": ("lower", "near"),
        "upper_far": ("upper", "far"),
        "lower_far": ("lower", "far"),
    }
    return pin_together("peaucellier", points, bars, tools={"pen": ("upper_far", "far", 0.0)})
