"""Mechanik: inverse kinematics for any mechanism, closed loops above all.

    import mechanik as mk
    arm = mk.gallery.panda()
    arm.pose("panda_link8", arm.neutral())
"""

from mechanik import errors, formats, gallery, spatial
from mechanik.errors import MechanikError, UnknownName
from mechanik.formats import arm_2d, arm_3d, check, from_dh, load, save
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
