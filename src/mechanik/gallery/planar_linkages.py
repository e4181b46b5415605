"""Planar linkages: four-bar, five-bar and six-bar linkages, slider-crank, pantograph, straight-line and leg mechanisms.

All linkages are assembled in closed form, so their loops are closed from the beginning. The leg mechanisms move in the
plane of x (forward) and z (up), the other linkages in the plane z = 0. `four_bar_kind` classifies four-bar linkages.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from mechanik.errors import StructureError, UnknownName
from mechanik.gallery.construction import BLUE, DARK, GREEN, GREY, ORANGE, RED, block, capsule, hub, set_home
from mechanik.gallery.pinned_linkage import (
    Bars,
    PlanarPoint,
    build_pinned_linkage,
    direction_angle,
    intersect_circles,
    polar_point,
    wrap_angle,
)
from mechanik.model import Builder, Material, Mechanism, ShapeInstance
from mechanik.validation import check_finite_angles, check_planar_point, check_positive_numbers

FourBarKind = Literal["crank-rocker", "double-crank", "rocker-crank", "double-rocker", "change-point", "triple-rocker"]
"""Kinds of four-bar linkages by Grashof's rule."""

CHANGE_POINT_TOLERANCE = 1e-12
"""Fraction of the longest bar. Two sums of lengths that differ by less are equal except for rounding, and the kind is
"change-point"."""


def four_bar_kind(ground: float, crank: float, coupler: float, rocker: float) -> FourBarKind:
    """Classify a four-bar linkage by Grashof's rule (F. Grashof 1883).

    The shortest bar makes full revolutions relative to the others if shortest + longest < sum of the other two.

    Args:
        ground, crank, coupler, rocker: lengths of the bars; m.

    Returns:
        "crank-rocker": the crank makes full revolutions, the rocker oscillates.
        "double-crank": crank and rocker both make full revolutions (the ground is the shortest bar).
        "rocker-crank": the rocker makes full revolutions, the crank oscillates.
        "double-rocker": crank and rocker both oscillate; only the coupler can make full revolutions.
        "change-point": shortest + longest = sum of the other two, so all bars can be collinear; two branches meet in
            this configuration.
        "triple-rocker": no bar makes full revolutions.

    Raises:
        StructureError: a length is invalid, or a bar is at least as long as the other three together.

    Example:
        >>> mk.gallery.four_bar_kind(2.0, 0.5, 1.8, 1.2)
        'crank-rocker'
    """
    check_positive_numbers("four_bar_kind", ground=ground, crank=crank, coupler=coupler, rocker=rocker)
    lengths = {"ground": ground, "crank": crank, "coupler": coupler, "rocker": rocker}
    shortest, second_length, third_length, longest = sorted(lengths.values())
    if longest >= shortest + second_length + third_length:
        raise StructureError(
            f"four_bar_kind: a bar of {longest:g} m is at least as long as the other three together, "
            "so no bar can move; shorten this bar"
        )
    margin = (second_length + third_length) - (shortest + longest)
    if abs(margin) <= CHANGE_POINT_TOLERANCE * longest:
        return "change-point"
    if margin < 0:
        return "triple-rocker"
    kind_by_shortest_bar: dict[str, FourBarKind] = {
        "ground": "double-crank",
        "crank": "crank-rocker",
        "coupler": "double-rocker",
        "rocker": "rocker-crank",
    }
    return kind_by_shortest_bar[min(lengths, key=lambda bar: lengths[bar])]


def four_bar(
    ground: float = 2.0,
    crank: float = 0.5,
    coupler: float = 1.8,
    rocker: float = 1.2,
    angle: float = 0.6,
    elbow: Literal["up", "down"] = "up",
) -> Mechanism:
    """Make a four-bar linkage: crank, coupler and rocker on the ground; all joints rotate about z.

    The pivot of the crank is at the origin, the pivot of the rocker at x = ground. `four_bar_kind` classifies linkages
    by the bars that make full revolutions. If ground = coupler, crank = rocker and the crank is above the ground at
    home, elbow "up" gives a parallelogram, whose coupler does not rotate. Elbow "down" gives an antiparallelogram. Its
    crank and rocker rotate in opposite directions if they are shorter than the ground.

    Args:
        ground, crank, coupler, rocker: lengths of the bars; m.
        angle: crank angle at home; rad.
        elbow: on which side the pin between coupler and rocker is, seen along the line from the tip of the crank to the
            pivot of the rocker: "up" is the left side, "down" the right side.

    Returns:
        The linkage, with 1 dof.

    Raises:
        StructureError: a dimension is invalid, or the linkage cannot be assembled at this angle.

    Example:
        >>> linkage = mk.gallery.four_bar()
        >>> linkage.nq, mk.mobility(linkage).dof
        (3, 1)
    """
    check_positive_numbers("four_bar", ground=ground, crank=crank, coupler=coupler, rocker=rocker)
    check_finite_angles("four_bar", angle=angle)
    if elbow not in ("up", "down"):
        raise StructureError(f"four_bar: elbow must be 'up' or 'down', not {elbow!r}")
    crank_tip, rocker_pivot = polar_point((0.0, 0.0), crank, angle), (ground, 0.0)
    is_elbow_up = elbow == "up"
    coupler_tip = (
        intersect_circles("four_bar", crank_tip, coupler, rocker_pivot, rocker)
        if is_elbow_up
        else intersect_circles("four_bar", rocker_pivot, rocker, crank_tip, coupler)
    )
    coupler_angle, rocker_angle = (
        wrap_angle(direction_angle(crank_tip, coupler_tip) - angle),
        direction_angle(rocker_pivot, coupler_tip),
    )

    radius = 0.02 * ground
    loop = Builder("four_bar")
    loop.revolute("crank_joint", "ground", "crank", value=angle)
    loop.revolute("coupler_joint", "crank", "coupler", at=(crank, 0.0, 0.0), value=coupler_angle)
    loop.revolute("rocker_joint", "ground", "rocker", at=(ground, 0.0, 0.0), value=rocker_angle)
    loop.close("closing_joint", "coupler", "rocker", "pin", at=(coupler, 0.0, 0.0), onto=(rocker, 0.0, 0.0))
    loop.link("ground", visuals=[capsule((0.0, 0.0, -2 * radius), (ground, 0.0, -2 * radius), radius, GREY)])
    loop.link("crank", visuals=_bar_shapes(crank, radius, RED))
    loop.link("coupler", visuals=_bar_shapes(coupler, radius, ORANGE))
    loop.link("rocker", visuals=_bar_shapes(rocker, radius, BLUE))
    return set_home(loop.build())


def slider_crank(crank: float = 0.3, rod: float = 1.0, offset: float = 0.0, angle: float = 0.6) -> Mechanism:
    """Make a slider-crank: a crank about z drives a slider along x through a rod, as in an engine.

    Args:
        crank, rod: lengths; m.
        offset: y of the slider's line, m; the pivot of the crank is at the origin.
        angle: crank angle at home; rad.

    Returns:
        The linkage, with 1 dof.

    Raises:
        StructureError: a dimension is invalid, or the rod does not reach the slider's line.

    Example:
        >>> linkage = mk.gallery.slider_crank(crank=0.3, rod=1.0, angle=0.0)
        >>> linkage.pose("slider")[:3, 3].round(3).tolist()
        [1.3, 0.0, 0.0]
    """
    check_positive_numbers("slider_crank", crank=crank, rod=rod)
    check_finite_angles("slider_crank", angle=angle)
    crank_tip = (crank * math.cos(angle), crank * math.sin(angle))
    rod_rise = offset - crank_tip[1]
    if not abs(rod_rise) <= rod:
        raise StructureError(
            f"slider_crank cannot be assembled: a rod of {rod:g} m does not reach the slider's line; use a longer rod"
        )
    slider_x = crank_tip[0] + math.sqrt(rod * rod - rod_rise * rod_rise)

    radius, max_reach = 0.02 * (crank + rod), crank + rod
    loop = Builder("slider_crank")
    loop.revolute("crank_joint", "ground", "crank", value=angle)
    loop.revolute(
        "rod_joint", "crank", "rod", at=(crank, 0.0, 0.0), value=math.atan2(rod_rise, slider_x - crank_tip[0]) - angle
    )
    loop.prismatic(
        "slider_joint",
        "ground",
        "slider",
        at=(0.0, offset, 0.0),
        axis="x",
        limits=(-max_reach, max_reach),
        value=slider_x,
    )
    loop.close("closing_joint", "rod", "slider", "pin", at=(rod, 0.0, 0.0), onto=(0.0, 0.0, 0.0))
    rail = capsule((0.0, offset, -4 * radius), (max_reach, offset, -4 * radius), radius, GREY)
    loop.link("ground", visuals=[rail, hub((0.0, 0.0, -2 * radius), (0.0, 0.0, 1.0), 2 * radius, 3 * radius, GREY)])
    loop.link("crank", visuals=_bar_shapes(crank, radius, RED))
    loop.link("rod", visuals=_bar_shapes(rod, radius, ORANGE))
    loop.link("slider", visuals=[block((0.0, 0.0, -1.5 * radius), (8 * radius, 5 * radius, 3 * radius), BLUE)])
    return set_home(loop.build())


def five_bar(
    ground: float = 0.6, crank: float = 0.5, rod: float = 0.8, left: float = 2.0, right: float = math.pi - 2.0
) -> Mechanism:
    """Make a five-bar linkage: two cranks about z and two rods move the link "tool", where the rods meet.

    Args:
        ground: distance between the crank pivots, which are at x = -ground/2 and ground/2; m.
        crank, rod: lengths of both cranks and both rods; m.
        left, right: crank angles at home; rad.

    Returns:
        The linkage, with 2 dofs.

    Raises:
        StructureError: a dimension is invalid, or the rods do not meet.

    Example:
        >>> mk.mobility(mk.gallery.five_bar()).dof
        2
    """
    check_positive_numbers("five_bar", ground=ground, crank=crank, rod=rod)
    check_finite_angles("five_bar", left=left, right=right)
    crank_tips = [
        (x + crank * math.cos(angle), crank * math.sin(angle))
        for x, angle in ((-ground / 2, left), (ground / 2, right))
    ]
    rod_tip = intersect_circles("five_bar", crank_tips[0], rod, crank_tips[1], rod)

    radius = 0.02 * (crank + rod)
    loop = Builder("five_bar")
    for side, x, angle, crank_tip in (
        ("left", -ground / 2, left, crank_tips[0]),
        ("right", ground / 2, right, crank_tips[1]),
    ):
        rod_angle = math.atan2(rod_tip[1] - crank_tip[1], rod_tip[0] - crank_tip[0]) - angle
        loop.revolute(f"{side}_crank_joint", "ground", f"{side}_crank", at=(x, 0.0, 0.0), value=angle)
        loop.revolute(
            f"{side}_rod_joint", f"{side}_crank", f"{side}_rod", at=(crank, 0.0, 0.0), value=wrap_angle(rod_angle)
        )
        loop.link(f"{side}_crank", visuals=_bar_shapes(crank, radius, RED if side == "left" else BLUE))
        loop.link(f"{side}_rod", visuals=_bar_shapes(rod, radius, ORANGE if side == "left" else GREEN))
    loop.fixed("tool_joint", "left_rod", "tool", at=(rod, 0.0, 0.0))
    loop.close("closing_joint", "left_rod", "right_rod", "pin", at=(rod, 0.0, 0.0), onto=(rod, 0.0, 0.0))
    loop.link(
        "ground", visuals=[capsule((-ground / 2, 0.0, -2 * radius), (ground / 2, 0.0, -2 * radius), radius, GREY)]
    )
    return set_home(loop.build())


def _bar_shapes(length: float, radius: float, material: Material) -> list[ShapeInstance]:
    """Return the shapes of a bar along x, with a pin through its start; m."""
    pin = hub((0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 0.7 * radius, 5 * radius, DARK)
    return [capsule((0.0, 0.0, 0.0), (length, 0.0, 0.0), radius, material), pin]


WattBar = Literal["base", "crank", "coupler", "bell", "rod", "lever"]
"""Names of the bars of `watt_six_bar`."""
StephensonBar = Literal["base", "crank", "coupler", "rocker", "rod", "lever"]
"""Names of the bars of `stephenson_six_bar`."""


def watt_six_bar(
    base: float = 2.0,
    crank: float = 0.5,
    coupler: float = 1.8,
    rocker: float = 1.2,
    bend: float = -1.2,
    arm: float = 1.0,
    rod: float = 1.6,
    lever: float = 1.1,
    reach: float = 1.8,
    angle: float = 0.6,
    fixed_bar: WattBar = "base",
) -> Mechanism:
    """Make Watt's six-bar linkage (J. Watt 1784): two four-bars in series, connected by a bell crank.

    Crank and coupler move the bell crank, which moves a lever through a rod. The two bars with three pins, base and
    bell, share a pin. Fixing one of them gives Watt's second inversion; fixing another bar gives the first inversion.

    Args:
        base, crank, coupler, rocker: lengths of the first four-bar; the rocker is the first arm of the bell crank; m.
        bend: angle from the first to the second arm of the bell crank; rad.
        arm, rod, lever: lengths of the second four-bar; `arm` is the second arm of the bell crank; m.
        reach: distance along the base from the bell crank's pivot to the lever's pivot; m.
        angle: angle of the crank to the base at home; rad.
        fixed_bar: the bar that is fixed to the world; its first pin is at the origin and its second on the x axis.

    Returns:
        The linkage, with 1 dof.

    Raises:
        StructureError: a dimension is invalid, or the linkage cannot be assembled.
        UnknownName: the linkage has no such bar.

    Example:
        >>> mk.mobility(mk.gallery.watt_six_bar(fixed_bar="coupler")).dof
        1
    """
    gallery_name = "watt_six_bar"
    check_positive_numbers(
        gallery_name, base=base, crank=crank, coupler=coupler, rocker=rocker, arm=arm, rod=rod, lever=lever
    )
    check_positive_numbers(gallery_name, reach=reach)
    check_finite_angles(gallery_name, angle=angle, bend=bend)
    start, middle, end = (0.0, 0.0), (base, 0.0), (base + reach, 0.0)
    knee = polar_point(start, crank, angle)
    elbow = intersect_circles(gallery_name, knee, coupler, middle, rocker)
    tip = polar_point(middle, arm, direction_angle(middle, elbow) + bend)
    points = {
        "start": start,
        "middle": middle,
        "end": end,
        "knee": knee,
        "elbow": elbow,
        "tip": tip,
        "wrist": intersect_circles(gallery_name, tip, rod, end, lever),
    }
    bars = {
        "base": ("start", "middle", "end"),
        "crank": ("start", "knee"),
        "bell": ("middle", "elbow", "tip"),
        "coupler": ("knee", "elbow"),
        "lever": ("end", "wrist"),
        "rod": ("tip", "wrist"),
    }
    return _build_with_fixed_bar(gallery_name, points, bars, fixed_bar)


def stephenson_six_bar(
    base: float = 2.0,
    crank: float = 0.5,
    coupler: float = 1.8,
    rocker: float = 1.2,
    bend: float = 0.6,
    arm: float = 1.4,
    rod: float = 1.6,
    lever: float = 1.2,
    pivot: PlanarPoint = (2.6, 1.2),
    angle: float = 0.6,
    fixed_bar: StephensonBar = "base",
) -> Mechanism:
    """Make Stephenson's six-bar linkage (R. Stephenson's valve gear, 1842): a four-bar whose coupler drives a lever.

    The two bars with three pins, base and coupler, share no pin. Fixing one of them gives Stephenson's third inversion;
    fixing crank or rocker, which connect them, gives the first inversion; fixing rod or lever gives the second.

    Args:
        base, crank, coupler, rocker: lengths of the four-bar; m.
        bend: angle on the coupler at the crank pin, from the direction of the rocker pin to that of the rod pin; rad.
        arm: distance from the crank pin to the rod pin on the coupler; m.
        rod, lever: lengths; m.
        pivot: the lever's pivot (x, y) on the base; m.
        angle: angle of the crank to the base at home; rad.
        fixed_bar: the bar that is fixed to the world; its first pin is at the origin and its second on the x axis.

    Returns:
        The linkage, with 1 dof.

    Raises:
        StructureError: a dimension is invalid, or the linkage cannot be assembled.
        UnknownName: the linkage has no such bar.

    Example:
        >>> mk.mobility(mk.gallery.stephenson_six_bar()).dof
        1
    """
    gallery_name = "stephenson_six_bar"
    check_positive_numbers(
        gallery_name, base=base, crank=crank, coupler=coupler, rocker=rocker, arm=arm, rod=rod, lever=lever
    )
    check_finite_angles(gallery_name, angle=angle, bend=bend)
    check_planar_point(gallery_name, "pivot", pivot)
    start, middle = (0.0, 0.0), (base, 0.0)
    knee = polar_point(start, crank, angle)
    elbow = intersect_circles(gallery_name, knee, coupler, middle, rocker)
    tip = polar_point(knee, arm, direction_angle(knee, elbow) + bend)
    points = {
        "start": start,
        "middle": middle,
        "end": pivot,
        "knee": knee,
        "elbow": elbow,
        "tip": tip,
        "wrist": intersect_circles(gallery_name, tip, rod, pivot, lever),
    }
    bars = {
        "base": ("start", "middle", "end"),
        "crank": ("start", "knee"),
        "rocker": ("middle", "elbow"),
        "coupler": ("knee", "elbow", "tip"),
        "lever": ("end", "wrist"),
        "rod": ("tip", "wrist"),
    }
    return _build_with_fixed_bar(gallery_name, points, bars, fixed_bar)


def _build_with_fixed_bar(
    gallery_name: str, points: Mapping[str, PlanarPoint], bars: Bars, fixed_bar: str
) -> Mechanism:
    """Build the linkage with the first pin of the fixed bar at the origin and its second pin on the x axis."""
    if fixed_bar not in bars:
        raise UnknownName(f"bar of {gallery_name}", fixed_bar, bars)
    pin1, pin2 = (points[point] for point in bars[fixed_bar][:2])
    c, s = math.cos(direction_angle(pin1, pin2)), math.sin(direction_angle(pin1, pin2))
    moved_points = {
        name: (c * (x - pin1[0]) + s * (y - pin1[1]), c * (y - pin1[1]) - s * (x - pin1[0]))
        for name, (x, y) in points.items()
    }
    return build_pinned_linkage(gallery_name, moved_points, bars, fixed_bar)


def pantograph(
    scale: float = 2.0, arm: float = 0.4, forearm: float = 0.4, shoulder: float = 2.2, elbow: float = 0.7
) -> Mechanism:
    """Make a pantograph (C. Scheiner 1603), a parallelogram that enlarges a drawing: pen = scale * tracer.

    The pivot is at the origin. The link "tracer" follows the original drawing, and the link "pen" draws the copy. If
    upper arm and forearm are collinear, the parallelogram can change to its other branch (antiparallelogram), on which
    pen = scale * tracer does not hold.

    Args:
        scale: ratio of the copy to the original, above 1; for a smaller copy, follow the original with the pen.
        arm: distance on the upper arm from the pivot to the first corner of the parallelogram; m.
        forearm: distance from this corner to the tracer; m.
        shoulder, elbow: angles of upper arm and forearm from the x axis at home; rad.

    Returns:
        The linkage, with 2 dofs.

    Raises:
        StructureError: a dimension is invalid, or the scale is not above 1.

    Example:
        >>> linkage = mk.gallery.pantograph(scale=2.0)
        >>> ratio = linkage.pose("pen")[:2, 3] / linkage.pose("tracer")[:2, 3]
        >>> ratio.round(6).tolist()
        [2.0, 2.0]
    """
    check_positive_numbers("pantograph", scale=scale, arm=arm, forearm=forearm)
    check_finite_angles("pantograph", shoulder=shoulder, elbow=elbow)
    if scale <= 1:
        raise StructureError(
            f"pantograph: scale must be above 1, not {scale:g}; for a smaller copy exchange pen and tracer"
        )
    origin = (0.0, 0.0)
    points = {
        "pivot": origin,
        "fork": polar_point(origin, arm, shoulder),
        "tip": polar_point(origin, scale * arm, shoulder),
    }
    points["tracer"] = polar_point(points["fork"], forearm, elbow)
    points["joint"] = polar_point(points["tip"], forearm, elbow)
    points["pen"] = polar_point(points["tip"], scale * forearm, elbow)
    bars = {
        "ground": ("pivot",),
        "upper_arm": ("pivot", "fork", "tip"),
        "forearm": ("tip", "joint", "pen"),
        "side": ("fork", "tracer"),
        "bridge": ("joint", "tracer"),
    }
    tools = {"tracer": ("side", "tracer", 0.0), "pen": ("forearm", "pen", 0.0)}
    return build_pinned_linkage("pantograph", points, bars, tools=tools)


def peaucellier(arm: float = 1.0, side: float = 0.45, crank: float = 0.4, angle: float = 0.3) -> Mechanism:
    """Make the Peaucellier-Lipkin linkage, which converts a crank's circle to an exact straight line (1864, 1871).

    Two equal arms connect the origin with two opposite corners of a rhombus, whose near corner is on the crank. The
    near corner, the far corner "pen" and the origin are collinear, and the product of the two distances from the origin
    is arm² - side². The pivot of the crank is at x = crank, so the circle of the crank passes through the origin, and
    the pen moves on the line x = (arm² - side²) / (2 crank). The linkage is singular if the near corner is at a
    distance of arm - side or arm + side from the origin (flat rhombus), or if near and far corner coincide (folded
    rhombus). In these configurations it can change to other branches.

    Args:
        arm: length of the two arms; m.
        side: side length of the rhombus, shorter than the arms; m.
        crank: length of the crank; m.
        angle: crank angle from the x axis at home; rad.

    Returns:
        The linkage, with 1 dof.

    Raises:
        StructureError: a dimension is invalid, or the linkage cannot be assembled.

    Example:
        >>> linkage = mk.gallery.peaucellier(arm=1.0, side=0.45, crank=0.4)
        >>> round(float(linkage.pose("pen")[0, 3]), 6)
        0.996875
    """
    check_positive_numbers("peaucellier", arm=arm, side=side, crank=crank)
    check_finite_angles("peaucellier", angle=angle)
    if side >= arm:
        raise StructureError(f"peaucellier: arm must be longer than side, but arm is {arm:g} m and side is {side:g} m")
    origin, pivot = (0.0, 0.0), (crank, 0.0)
    near_corner = polar_point(pivot, crank, angle)
    distance_ratio = (arm**2 - side**2) / math.hypot(*near_corner) ** 2
    points = {
        "origin": origin,
        "pivot": pivot,
        "near": near_corner,
        "upper": intersect_circles("peaucellier", origin, arm, near_corner, side),
        "lower": intersect_circles("peaucellier", near_corner, side, origin, arm),
        "far": (distance_ratio * near_corner[0], distance_ratio * near_corner[1]),
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
    return build_pinned_linkage("peaucellier", points, bars, tools={"pen": ("upper_far", "far", 0.0)})


JANSEN_LENGTHS: Mapping[str, float] = {
    "a": 38.0, "b": 41.5, "c": 39.3, "d": 40.1, "e": 55.8, "f": 39.4, "g": 36.7,
    "h": 65.7, "i": 49.0, "j": 50.0, "k": 61.9, "l": 7.8, "m": 15.0,
}  # fmt: skip
"""Jansen's lengths by his letters, without unit: m is the crank, a and l are the x and z distances from the
crankshaft to the fixed pivot."""

KLANN_LENGTHS: Mapping[str, float] = {
    "lower_x": 0.590, "lower_y": 0.176, "upper_x": 0.233, "upper_y": 0.616,
    "crank": 0.268, "lower_rocker": 0.3206, "upper_rocker": 0.5176,
    "pin_elbow": 0.590, "elbow_knee": 0.5221, "pin_knee": 1.1051,
    "knee_hip": 0.8966, "knee_foot": 0.8966, "hip_foot": 1.7321,
}  # fmt: skip
"""Klann's lengths from the coordinates in his patent, without unit. The lower rocker's pivot is `lower_x` behind and
`lower_y` below the crankshaft, the upper rocker's pivot `upper_x` behind and `upper_y` above it."""


def jansen_leg(scale: float = 0.01, angle: float = 0.0, **lengths: float) -> Mechanism:
    """Make the leg of the strandbeests (T. Jansen 1990): eight bars, a single crank, and a foot with a flat path.

    The crankshaft is at the origin, the fixed pivot behind and below it. The link "foot" moves along the ground for
    half a revolution of the crank and returns above the ground. If the crank rotates from z to x, the leg walks along
    x. In Jansen's units the step is 68 long and 22 high, and the height of the foot changes by at most 2 during the
    half revolution on the ground.

    Args:
        scale: m per unit of Jansen's lengths.
        angle: crank angle from x towards z at home; rad.
        lengths: replacements for some of Jansen's lengths, by his letters a to m; without unit.

    Returns:
        The leg, with 1 dof.

    Raises:
        StructureError: a dimension is invalid, or the linkage cannot be assembled.
        UnknownName: there is no such letter.

    Example:
        >>> mk.mobility(mk.gallery.jansen_leg()).dof
        1
    """
    lengths = _scaled_lengths("jansen_leg", JANSEN_LENGTHS, lengths, scale, angle)
    gallery_name, shaft, pivot = "jansen_leg", (0.0, 0.0), (-lengths["a"], -lengths["l"])
    pin = polar_point(shaft, lengths["m"], angle)
    shoulder = intersect_circles(gallery_name, pivot, lengths["b"], pin, lengths["j"])
    back = intersect_circles(gallery_name, pivot, lengths["d"], shoulder, lengths["e"])
    knee = intersect_circles(gallery_name, pin, lengths["k"], pivot, lengths["c"])
    ankle = intersect_circles(gallery_name, knee, lengths["g"], back, lengths["f"])
    foot = intersect_circles(gallery_name, knee, lengths["i"], ankle, lengths["h"])
    points = {
        "shaft": shaft,
        "pivot": pivot,
        "pin": pin,
        "shoulder": shoulder,
        "back": back,
        "knee": knee,
        "ankle": ankle,
        "foot": foot,
    }
    bars = {
        "ground": ("shaft", "pivot"),
        "crank": ("shaft", "pin"),
        "hip": ("pivot", "shoulder", "back"),
        "upper_rod": ("pin", "shoulder"),
        "thigh": ("pivot", "knee"),
        "lower_rod": ("pin", "knee"),
        "tie": ("back", "ankle"),
        "shin": ("knee", "ankle", "foot"),
    }
    return build_pinned_linkage(gallery_name, points, bars, tools={"foot": ("shin", "foot", 0.0)}, is_upright=True)


def klann_leg(scale: float = 0.5, angle: float = 0.0, **lengths: float) -> Mechanism:
    """Make the leg of J. Klann (US patent 6260862, 2001): six bars, Stephenson's third inversion, and a high step.

    The crankshaft is at the origin. The link "foot" moves along the ground while the crank angle goes from 0 to pi, and
    returns above the ground in the other half revolution. If the crank rotates from x to z, the leg walks along x. In
    the units of the patent the step is 1.0 long and 0.5 high.

    Args:
        scale: m per unit of the patent's lengths.
        angle: crank angle from x towards z at home; rad.
        lengths: replacements for some of the patent's lengths, by the names in `KLANN_LENGTHS`; without unit.

    Returns:
        The leg, with 1 dof.

    Raises:
        StructureError: a dimension is invalid, or the linkage cannot be assembled.
        UnknownName: there is no such length.

    Example:
        >>> mk.mobility(mk.gallery.klann_leg()).dof
        1
    """
    lengths = _scaled_lengths("klann_leg", KLANN_LENGTHS, lengths, scale, angle)
    gallery_name, shaft = "klann_leg", (0.0, 0.0)
    lower_pivot, upper_pivot = (-lengths["lower_x"], -lengths["lower_y"]), (-lengths["upper_x"], lengths["upper_y"])
    pin = polar_point(shaft, lengths["crank"], angle)
    elbow = intersect_circles(gallery_name, lower_pivot, lengths["lower_rocker"], pin, lengths["pin_elbow"])
    knee = intersect_circles(gallery_name, elbow, lengths["elbow_knee"], pin, lengths["pin_knee"])
    hip = intersect_circles(gallery_name, knee, lengths["knee_hip"], upper_pivot, lengths["upper_rocker"])
    foot = intersect_circles(gallery_name, hip, lengths["hip_foot"], knee, lengths["knee_foot"])
    points = {
        "shaft": shaft,
        "lower": lower_pivot,
        "upper": upper_pivot,
        "pin": pin,
        "elbow": elbow,
        "knee": knee,
        "hip": hip,
        "foot": foot,
    }
    bars = {
        "ground": ("shaft", "lower", "upper"),
        "crank": ("shaft", "pin"),
        "lower_rocker": ("lower", "elbow"),
        "connecting_rod": ("pin", "elbow", "knee"),
        "upper_rocker": ("upper", "hip"),
        "leg": ("knee", "hip", "foot"),
    }
    return build_pinned_linkage(gallery_name, points, bars, tools={"foot": ("leg", "foot", 0.0)}, is_upright=True)


def _scaled_lengths(
    gallery_name: str,
    default_lengths: Mapping[str, float],
    user_lengths: Mapping[str, float],
    scale: float,
    angle: float,
) -> dict[str, float]:
    """Return the lengths by name, each from the user or else the default, multiplied by the scale; m.

    Raises:
        UnknownName: a name of `user_lengths` is not in `default_lengths`.
        StructureError: a length, the scale or the angle is invalid.
    """
    for name in user_lengths:
        if name not in default_lengths:
            raise UnknownName(f"length of {gallery_name}", name, default_lengths)
    lengths = {**default_lengths, **user_lengths}
    check_positive_numbers(gallery_name, scale=scale, **lengths)
    check_finite_angles(gallery_name, angle=angle)
    return {name: scale * length for name, length in lengths.items()}
