"""Mechanisms that ship with the library, written from facts: dimensions and limits.

Each function makes a fresh one, which may be edited freely; it stands in its configuration "home", with every
loop shut. May import `mechanism` and `formats`, nothing above.
"""

from __future__ import annotations

import difflib

from mechanik.errors import UnknownName
from mechanik.gallery.arms import iiwa14, panda, puma560, ur5, ur10
from mechanik.gallery.chains import rail_arm, snake
from mechanik.gallery.humanoid import humanoid
from mechanik.gallery.loops import five_bar, four_bar, slider_crank
from mechanik.gallery.parallel import delta_robot, stewart_platform
from mechanik.gallery.planar import planar_2r, planar_3r, scara
from mechanik.gallery.seeds import dh6, grippy10, zalo5
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
    stewart_platform,
    delta_robot,
    humanoid,
)

__all__ = [
    "delta_robot",
    "dh6",
    "five_bar",
    "four_bar",
    "grippy10",
    "humanoid",
    "iiwa14",
    "make",
    "names",
    "panda",
    "planar_2r",
    "planar_3r",
    "puma560",
    "rail_arm",
    "scara",
    "slider_crank",
    "snake",
    "stewart_platform",
    "ur5",
    "ur10",
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
