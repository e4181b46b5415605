"""Mechanisms that ship with the library, written from facts: dimensions and limits.

Each function makes a fresh one, which may be edited freely; it stands in its configuration "home", with every
loop shut. May import `mechanism` and `formats`, nothing above.
"""

from __future__ import annotations

import difflib

from mechanik.errors import UnknownName
from mechanik.gallery.arms import iiwa14, panda, puma560, ur5, ur10
from mechanik.gallery.biped import biped
from mechanik.gallery.chains import rail_arm, snake
from mechanik.gallery.drawing import pantograph, peaucellier
from mechanik.gallery.excavator import excavator
from mechanik.gallery.grashof import four_bar_kind
from mechanik.gallery.gripper import gripper
from mechanik.gallery.hexapod import hexapod
from mechanik.gallery.humanoid import humanoid
from mechanik.gallery.legs import jansen_leg, klann_leg
from mechanik.gallery.loops import five_bar, four_bar, slider_crank
from mechanik.gallery.overconstrained import bennett, sarrus
from mechanik.gallery.parallel import delta_robot, stewart_platform
from mechanik.gallery.planar import planar_2r, planar_3r, scara
from mechanik.gallery.planar_parallel import planar_3rrr
from mechanik.gallery.rover import rover
from mechanik.gallery.scissor import scissor_lift
from mechanik.gallery.seeds import dh6, grippy10, zalo5
from mechanik.gallery.six_bars import stephenson_six_bar, watt_six_bar
from mechanik.gallery.two_arms import two_arms
from mechanik.gallery.walker import walker
from mechanik.mechanism import Mechanism

_MAKERS = (
    zalo5,
    dh6,
    grippy10,
    planar_2r,
    planar_3r,
    scara,
    panda,
    ur5,
    ur10,
    iiwa14,
    puma560,
    rail_arm,
    snake,
    four_bar,
    slider_crank,
    five_bar,
    pantograph,
    peaucellier,
    jansen_leg,
    klann_leg,
    watt_six_bar,
    stephenson_six_bar,
    bennett,
    sarrus,
    scissor_lift,
    planar_3rrr,
    stewart_platform,
    delta_robot,
    humanoid,
    hexapod,
    excavator,
    gripper,
    rover,
    walker,
    biped,
    two_arms,
)

__all__ = [
    "bennett",
    "biped",
    "delta_robot",
    "dh6",
    "excavator",
    "five_bar",
    "four_bar",
    "four_bar_kind",
    "gripper",
    "grippy10",
    "hexapod",
    "humanoid",
    "iiwa14",
    "jansen_leg",
    "klann_leg",
    "make",
    "names",
    "panda",
    "pantograph",
    "peaucellier",
    "planar_2r",
    "planar_3r",
    "planar_3rrr",
    "puma560",
    "rail_arm",
    "rover",
    "sarrus",
    "scara",
    "scissor_lift",
    "slider_crank",
    "snake",
    "stephenson_six_bar",
    "stewart_platform",
    "two_arms",
    "ur5",
    "ur10",
    "walker",
    "watt_six_bar",
    "zalo5",
]


def __getattr__(name: str) -> object:
    near = difflib.get_close_matches(name, names(), n=1)
    hint = f". Did you mean {near[0]!r}?" if near else ""
    raise AttributeError(f"the gallery has no {name!r}{hint}")


def names() -> list[str]:
    """What there is, as `make` takes it."""
    return [maker.__name__ for maker in _MAKERS]


def make(name: str) -> Mechanism:
    """A fresh mechanism by its name; `make("panda")` is `panda()`."""
    for maker in _MAKERS:
        if maker.__name__ == name:
            return maker()
    raise UnknownName("mechanism of the gallery", name, names())
