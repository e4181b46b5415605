"""Mechanik: inverse kinematics for any mechanism, closed loops above all.

import mechanik as mk
arm = mk.gallery.panda()
arm.pose("panda_link8", arm.neutral())
"""

from importlib import import_module
from typing import TYPE_CHECKING

from mechanik import errors, spatial
from mechanik.errors import MechanikError, UnknownName
from mechanik.kernels import warm_up
from mechanik.mechanism import (
    Box,
    Builder,
    Capsule,
    Chain,
    Closure,
    Coupling,
    Cylinder,
    DoF,
    Frame,
    Gap,
    Goal,
    Inertial,
    Joint,
    Link,
    Material,
    Mechanism,
    Mesh,
    Mobility,
    PlacedShape,
    Sphere,
    find_roots,
    independent_chains,
    mobility,
    save_rest_pose,
    trim,
)
from mechanik.spatial import Pose
from mechanik.version import __version__

if TYPE_CHECKING:
    from mechanik import formats, gallery
    from mechanik.formats import arm_2d, arm_3d, check, from_dh, load, save

__all__ = [
    "Box",
    "Builder",
    "Capsule",
    "Chain",
    "Closure",
    "Coupling",
    "Cylinder",
    "DoF",
    "Frame",
    "Gap",
    "Goal",
    "Inertial",
    "Joint",
    "Link",
    "Material",
    "MechanikError",
    "Mechanism",
    "Mesh",
    "Mobility",
    "PlacedShape",
    "Pose",
    "Sphere",
    "UnknownName",
    "__version__",
    "arm_2d",
    "arm_3d",
    "check",
    "errors",
    "find_roots",
    "formats",
    "from_dh",
    "gallery",
    "independent_chains",
    "load",
    "mobility",
    "save",
    "save_rest_pose",
    "spatial",
    "trim",
    "warm_up",
]

# readers and the gallery are half of the time that importing takes, and many programs need neither
_LATER = dict.fromkeys(("arm_2d", "arm_3d", "check", "from_dh", "load", "save"), "mechanik.formats")


def __getattr__(name: str) -> object:
    if name in ("formats", "gallery"):
        return import_module(f"mechanik.{name}")
    if name in _LATER:
        found = globals()[name] = getattr(import_module(_LATER[name]), name)
        return found
    raise AttributeError(f"module 'mechanik' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
