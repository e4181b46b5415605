"""Gallery of ready-made mechanisms: robot arms, planar and spatial linkages, parallel robots, legged and mobile robots.

Each function that `names` lists returns a new mechanism, which may be edited freely. The mechanism is in its
configuration "home", with every loop closed. Dimensions of real robots and published linkages come from data sheets,
robot descriptions, patents and papers. This package imports `model`, `formats` and the layers below.
"""

from __future__ import annotations

import difflib

from mechanik.errors import UnknownName
from mechanik.gallery.machines import excavator, gripper, scissor_lift
from mechanik.gallery.mobile_robots import biped, humanoid, rover, walker
from mechanik.gallery.overconstrained import bennett, sarrus
from mechanik.gallery.parallel_robots import delta_robot, hexapod, planar_3rrr, stewart_platform
from mechanik.gallery.planar_linkages import (
    five_bar,
    four_bar,
    four_bar_kind,
    jansen_leg,
    klann_leg,
    pantograph,
    peaucellier,
    slider_crank,
    stephenson_six_bar,
    watt_six_bar,
)
from mechanik.gallery.robot_arms import (
    dh6,
    grippy10,
    iiwa14,
    panda,
    planar_2r,
    planar_3r,
    puma560,
    rail_arm,
    scara,
    snake,
    two_arms,
    ur5,
    ur10,
    zalo5,
)
from mechanik.model import Mechanism

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
    matches = difflib.get_close_matches(name, names(), n=1)
    hint = f". Did you mean {matches[0]!r}?" if matches else ""
    raise AttributeError(f"the gallery has no {name!r}{hint}")


def names() -> list[str]:
    """List the names of all mechanisms in the gallery.

    Returns:
        The names that `make` accepts.

    Example:
        >>> "panda" in mk.gallery.names()
        True
    """
    return [maker.__name__ for maker in _MAKERS]


def make(name: str) -> Mechanism:
    """Make a mechanism of the gallery by its name; `make("panda")` is `panda()`.

    Args:
        name: a name from `names`.

    Returns:
        A new mechanism with default dimensions.

    Raises:
        UnknownName: the gallery has no such mechanism.

    Example:
        >>> mk.gallery.make("ur5").nq
        6
    """
    for maker in _MAKERS:
        if maker.__name__ == name:
            return maker()
    raise UnknownName("mechanism of the gallery", name, names())
