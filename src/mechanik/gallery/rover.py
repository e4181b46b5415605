"""A rover on six wheels: rockers and bogies, and a bar that lets the rockers turn only against each other."""

from __future__ import annotations

from mechanik.errors import StructureError
from mechanik.gallery.bones import BLUE, DARK, GREY, ORANGE, RED, WHITE, block, bone, hub
from mechanik.gallery.home import stand
from mechanik.gallery.lengths import check_lengths
from mechanik.gallery.rods import hang_rod
from mechanik.mechanism import Builder, Mechanism

Y = (0.0, 1.0, 0.0)
WHEELS = ("front_left", "middle_left", "rear_left", "front_right", "middle_right", "rear_right")
"""Links of the wheels; each turns about its middle."""


def rover(wheelbase: float = 2.2, track: float = 2.2, wheel: float = 0.25, clearance: float = 0.6) -> Mechanism:
    """A rover of the rocker-bogie kind (D. B. Bickler 1989), about as large as those on Mars; x is forward, z up.

    On each side a rocker turns on the body and carries the front wheel; behind, it carries a bogie with the middle and
    the rear wheel. A bar across the body, turning about its upright middle, is tied by rods to the tops of both
    rockers: as one goes up, the other goes down, and the body's pitch is the mean of theirs. That is the
    differential. It is a real linkage, so the two angles are opposite but for terms of fourth order: at 0.3 rad they
    differ by 0.001 rad.

    15 freedoms: the body 6, the differential 1, the bogies 2, and the wheels 6. Placed by x, y and heading on
    any ground, the other six (height, roll, pitch, differential, bogies) are as many as there are wheels to touch.

    Args:
        wheelbase: from the front wheels' axles to the rear ones'; m.
        track: from the left wheels' middles to the right ones'; m.
        wheel: radius; m.
        clearance: from the axles up to the rockers' pivots; m.
    """
    check_lengths("rover", wheelbase=wheelbase, track=track, wheel=wheel, clearance=clearance)
    if not 2 * wheel < wheelbase / 2:
        raise StructureError(f"rover: wheels of radius {wheel:g} do not fit side by side into {wheelbase:g}")
    half, aside, arm = wheelbase / 2, 0.36 * track, 0.4 * clearance
    low = 0.3 * clearance
    # rockers turn a little ahead of the middle; bogies below and behind, halfway between their wheels
    pivot = 0.1 * half
    r = 0.05 * clearance
    robot = Builder("rover")
    robot.free("base", "world", "body", value=(0.0, 0.0, wheel + clearance, 0.0, 0.0, 0.0))
    # the body's frame is as high as the rockers' axis; the bar is as high as their tops, and the rods lie along x
    robot.revolute("bar_joint", "body", "bar", at=(pivot - half / 2, 0.0, arm), limits=(-0.5, 0.5))
    for side, sign, colour in (("left", 1.0, RED), ("right", -1.0, BLUE)):
        rocker, bogie = f"{side}_rocker", f"{side}_bogie"
        robot.revolute(f"{rocker}_joint", "body", rocker, at=(pivot, sign * aside, 0.0), axis="y", limits=(-0.7, 0.7))
        p_bogie = (-half / 2 - pivot, 0.0, low - clearance)
        robot.revolute(f"{bogie}_joint", rocker, bogie, at=p_bogie, axis="y", limits=(-0.9, 0.9))
        outward = sign * (track / 2 - aside)
        places = {
            "front": (rocker, (half - pivot, outward, -clearance)),
            "middle": (bogie, (half / 2, outward, -low)),
            "rear": (bogie, (-half / 2, outward, -low)),
        }
        for where, (link, at) in places.items():
            robot.revolute(f"{where}_{side}_axle", link, f"{where}_{side}", at=at, axis="y")
            robot.link(f"{where}_{side}", visuals=[
                hub((0.0, 0.0, 0.0), Y, wheel, 0.8 * wheel, DARK),
                hub((0.0, 0.0, 0.0), Y, 0.35 * wheel, 0.86 * wheel, GREY),
            ])  # fmt: skip
        knee = (half - pivot, 0.0, -0.55 * clearance)
        top = (0.0, 0.0, arm)
        front = places["front"][1]
        robot.link(rocker, visuals=[
            hub((0.0, 0.0, 0.0), Y, 2.2 * r, 4 * r, DARK), bone((0.0, 0.0, 0.0), top, r, colour),
            bone((0.0, 0.0, 0.0), p_bogie, r, colour), bone((0.0, 0.0, 0.0), knee, r, colour),
            bone(knee, (front[0], 0.0, front[2]), r, colour), bone((front[0], 0.0, front[2]), front, r, colour),
        ])  # fmt: skip
        spread = [bone((0.0, 0.0, 0.0), (x, 0.0, -low), r, ORANGE) for x in (-half / 2, half / 2)]
        axles = [bone((x, 0.0, -low), (x, outward, -low), r, ORANGE) for x in (-half / 2, half / 2)]
        robot.link(bogie, visuals=[hub((0.0, 0.0, 0.0), Y, 1.8 * r, 4 * r, DARK), *spread, *axles])
        hang_rod(robot, f"{side}_rod", rocker, top, "bar", (0.0, sign * aside, 0.0), 0.6 * r, GREY)
    robot.link("bar", visuals=[
        bone((0.0, -aside, 0.0), (0.0, aside, 0.0), r, WHITE), hub((0.0, 0.0, 0.0), (0, 0, 1), 2 * r, 4 * r, DARK)
    ])  # fmt: skip
    size = (1.1 * half, 1.5 * aside, 0.45 * arm + 2 * r)
    axle = bone((pivot, -aside, 0.0), (pivot, aside, 0.0), r, DARK)
    robot.link("body", visuals=[block((0.0, 0.0, arm - 2 * r - size[2] / 2), size, WHITE), axle])
    return stand(robot.build())
