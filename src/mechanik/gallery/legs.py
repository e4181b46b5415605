"""Legs that walk on one crank: Jansen's and Klann's, in the plane x forward, z up."""

from __future__ import annotations

from collections.abc import Mapping

from mechanik.errors import UnknownName
from mechanik.gallery.bars import pin_together
from mechanik.gallery.circles import meet, polar
from mechanik.gallery.lengths import check_angles, check_lengths
from mechanik.mechanism import Mechanism

HOLY_NUMBERS: Mapping[str, float] = {
    "a": 38.0, "b": 41.5, "c": 39.3, "d": 40.1, "e": 55.8, "f": 39.4, "g": 36.7,
    "h": 65.7, "i": 49.0, "j": 50.0, "k": 61.9, "l": 7.8, "m": 15.0,
}  # fmt: skip
"""Jansen's, by his letters: a and l from the crankshaft to the fixed pivot, across and down; m the crank."""

PATENT: Mapping[str, float] = {
    "lower_x": 0.590, "lower_y": 0.176, "upper_x": 0.233, "upper_y": 0.616,
    "crank": 0.268, "lower_rocker": 0.3206, "upper_rocker": 0.5176,
    "pin_elbow": 0.590, "elbow_knee": 0.5221, "pin_knee": 1.1051,
    "knee_hip": 0.8966, "knee_foot": 0.8966, "hip_foot": 1.7321,
}  # fmt: skip
"""Klann's, from the coordinates in his patent: the rockers' axles behind the crankshaft, one below, one above it."""


def jansen_leg(scale: float = 0.01, angle: float = 0.0, **numbers: float) -> Mechanism:
    """The leg of the beach animals (T. Jansen 1990): eight bars, one crank, and a foot that glides level on the ground.

    The crankshaft is at the origin, the fixed pivot behind and below it. The foot, a link, runs along the ground for
    half a turn of the crank and returns above it; a crank that turns from z to x walks along x. In Jansen's numbers the
    step is 68 long and 22 high, and level within 2 over that half.

    Args:
        scale: the length of 1 in Jansen's numbers; m.
        angle: of the crank from x towards z, at which it is assembled; rad.
        numbers: those that shall differ from Jansen's, by his letters a to m.
    """
    n = _numbers("jansen_leg", HOLY_NUMBERS, numbers, scale, angle)
    what, shaft, pivot = "jansen_leg", (0.0, 0.0), (-n["a"], -n["l"])
    pin = polar(shaft, n["m"], angle)
    shoulder = meet(what, pivot, n["b"], pin, n["j"])
    back = meet(what, pivot, n["d"], shoulder, n["e"])
    knee = meet(what, pin, n["k"], pivot, n["c"])
    ankle = meet(what, knee, n["g"], back, n["f"])
    foot = meet(what, knee, n["i"], ankle, n["h"])
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
    return pin_together(what, points, bars, tools={"foot": ("shin", "foot", 0.0)}, upright=True)


def klann_leg(scale: float = 0.5, angle: float = 0.0, **numbers: float) -> Mechanism:
    """A leg of six bars that lifts its foot high (J. Klann, US patent 6260862, 1998): Stephenson's third inversion.

    The crankshaft is at the origin. The foot, a link, runs along the ground for half a turn of the crank, from 0 to pi,
    and steps over it in the other; a crank that turns from x to z walks along x. In the patent's numbers the step is
    1.0 long and 0.5 high.

    Args:
        scale: the length of 1 in the patent's numbers; m.
        angle: of the crank from x towards z, at which it is assembled; rad.
        numbers: those that shall differ from the patent's, by the names in PATENT.
    """
    n = _numbers("klann_leg", PATENT, numbers, scale, angle)
    what, shaft = "klann_leg", (0.0, 0.0)
    lower, upper = (-n["lower_x"], -n["lower_y"]), (-n["upper_x"], n["upper_y"])
    pin = polar(shaft, n["crank"], angle)
    elbow = meet(what, lower, n["lower_rocker"], pin, n["pin_elbow"])
    knee = meet(what, elbow, n["elbow_knee"], pin, n["pin_knee"])
    hip = meet(what, knee, n["knee_hip"], upper, n["upper_rocker"])
    foot = meet(what, hip, n["hip_foot"], knee, n["knee_foot"])
    points = {
        "shaft": shaft,
        "lower": lower,
        "upper": upper,
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
    return pin_together(what, points, bars, tools={"foot": ("leg", "foot", 0.0)}, upright=True)


def _numbers(
    what: str, known: Mapping[str, float], given: Mapping[str, float], scale: float, angle: float
) -> dict[str, float]:
    """The known numbers, those given in their place, all times the scale."""
    for name in given:
        if name not in known:
            raise UnknownName(f"number of {what}", name, known)
    numbers = {**known, **given}
    check_lengths(what, scale=scale, **numbers)
    check_angles(what, angle=angle)
    return {name: scale * number for name, number in numbers.items()}
