"""Mechanik: inverse kinematics for any mechanism, closed loops above all.

import mechanik as mk
arm = mk.gallery.panda()
solution = mk.solve(arm, mk.Point("panda_link8", (0.4, 0.2, 0.5)))
"""

from importlib import import_module
from typing import TYPE_CHECKING

from mechanik import errors, spatial
from mechanik.errors import MechanikError, UnknownName
from mechanik.mechanism import (
    Box,
    Builder,
    Capsule,
    Chain,
    ClosedJacobian,
    Closure,
    ConvexMesh,
    Coupling,
    Cylinder,
    DoF,
    Frame,
    Gap,
    Goal,
    HalfSpace,
    HeightField,
    Inertial,
    Joint,
    Law,
    Link,
    Material,
    Mechanism,
    Mesh,
    Mobility,
    PlacedShape,
    Sphere,
    Structure,
    find_roots,
    independent_chains,
    mobility,
    save_rest_pose,
    structure,
    trim,
)
from mechanik.spatial import Pose
from mechanik.tiers import use_kernels, warm_up
from mechanik.version import __version__

if TYPE_CHECKING:
    from mechanik import comparison, formats, gallery, objectives
    from mechanik.assembly import Assembly, AssemblyModes, AssemblyPath
    from mechanik.batch import BatchResult, Interrupted
    from mechanik.collision import Clash, Collider, Obstacle, find_unchecked, fit_shapes
    from mechanik.comparison import compare
    from mechanik.formats import arm_2d, arm_3d, check, from_dh, load, save
    from mechanik.ik import Solver, solve
    from mechanik.live import Live, LiveState
    from mechanik.objectives import (
        Axis,
        CentreOfMass,
        Clearance,
        Custom,
        Distance,
        Hinge,
        InBand,
        InBox,
        InCone,
        JointValues,
        LookAt,
        Manipulability,
        Objective,
        OnLine,
        OnPlane,
        OnTerrain,
        Orientation,
        Placement,
        Point,
        PoseGoal,
        RestPose,
        Surface,
        Terrain,
        from_points,
    )
    from mechanik.paths import Arc, Following, Line, Path, PosePath, Spline, follow
    from mechanik.planning import PlannedPath, plan
    from mechanik.reach import ReachMap, reachability
    from mechanik.search import SolutionSet, closed_form
    from mechanik.solvers import METHODS, Iterate, Method, Options, Solution, Status
    from mechanik.studio.studio import Studio
    from mechanik.timing import Trajectory, retime
    from mechanik.tracking import Task, Tracker, TrackerState, TrackerStatus

__all__ = [
    "METHODS",
    "Arc",
    "Assembly",
    "AssemblyModes",
    "AssemblyPath",
    "Axis",
    "BatchResult",
    "Box",
    "Builder",
    "Capsule",
    "CentreOfMass",
    "Chain",
    "Clash",
    "Clearance",
    "ClosedJacobian",
    "Closure",
    "Collider",
    "ConvexMesh",
    "Coupling",
    "Custom",
    "Cylinder",
    "Distance",
    "DoF",
    "Following",
    "Frame",
    "Gap",
    "Goal",
    "HalfSpace",
    "HeightField",
    "Hinge",
    "InBand",
    "InBox",
    "InCone",
    "Inertial",
    "Interrupted",
    "Iterate",
    "Joint",
    "JointValues",
    "Law",
    "Line",
    "Link",
    "Live",
    "LiveState",
    "LookAt",
    "Manipulability",
    "Material",
    "MechanikError",
    "Mechanism",
    "Mesh",
    "Method",
    "Mobility",
    "Objective",
    "Obstacle",
    "OnLine",
    "OnPlane",
    "OnTerrain",
    "Options",
    "Orientation",
    "Path",
    "PlacedShape",
    "Placement",
    "PlannedPath",
    "Point",
    "Pose",
    "PoseGoal",
    "PosePath",
    "ReachMap",
    "RestPose",
    "Solution",
    "SolutionSet",
    "Solver",
    "Sphere",
    "Spline",
    "Status",
    "Structure",
    "Studio",
    "Surface",
    "Task",
    "Terrain",
    "Tracker",
    "TrackerState",
    "TrackerStatus",
    "Trajectory",
    "UnknownName",
    "__version__",
    "arm_2d",
    "arm_3d",
    "check",
    "closed_form",
    "compare",
    "comparison",
    "errors",
    "find_roots",
    "find_unchecked",
    "fit_shapes",
    "follow",
    "formats",
    "from_dh",
    "from_points",
    "gallery",
    "independent_chains",
    "load",
    "mobility",
    "objectives",
    "plan",
    "reachability",
    "retime",
    "save",
    "save_rest_pose",
    "solve",
    "spatial",
    "structure",
    "trim",
    "use_kernels",
    "warm_up",
]

# most of the time that importing takes is theirs, and no program needs all of them
_LATER = {
    "compare": "mechanik.comparison",
    "Studio": "mechanik.studio.studio",
    **dict.fromkeys(("SolutionSet", "closed_form"), "mechanik.search"),
    **dict.fromkeys(("arm_2d", "arm_3d", "check", "from_dh", "load", "save"), "mechanik.formats"),
    **dict.fromkeys(("METHODS", "Iterate", "Method", "Options", "Solution", "Status"), "mechanik.solvers"),
    **dict.fromkeys(("Solver", "solve"), "mechanik.ik"),
    **dict.fromkeys(("Live", "LiveState"), "mechanik.live"),
    **dict.fromkeys(("Assembly", "AssemblyModes", "AssemblyPath"), "mechanik.assembly"),
    **dict.fromkeys(("ReachMap", "reachability"), "mechanik.reach"),
    **dict.fromkeys(("BatchResult", "Interrupted"), "mechanik.batch"),
    **dict.fromkeys(("Clash", "Collider", "Obstacle", "find_unchecked", "fit_shapes"), "mechanik.collision"),
    **dict.fromkeys(("Arc", "Following", "Line", "Path", "PosePath", "Spline", "follow"), "mechanik.paths"),
    **dict.fromkeys(("PlannedPath", "plan"), "mechanik.planning"),
    **dict.fromkeys(("Trajectory", "retime"), "mechanik.timing"),
    **dict.fromkeys(("Task", "Tracker", "TrackerState", "TrackerStatus"), "mechanik.tracking"),
    **dict.fromkeys(
        (
            "Axis",
            "CentreOfMass",
            "Clearance",
            "Custom",
            "Distance",
            "Hinge",
            "InBand",
            "InBox",
            "InCone",
            "JointValues",
            "LookAt",
            "Manipulability",
            "Objective",
            "OnLine",
            "OnPlane",
            "OnTerrain",
            "Orientation",
            "Placement",
            "Point",
            "PoseGoal",
            "RestPose",
            "Surface",
            "Terrain",
            "from_points",
        ),
        "mechanik.objectives",
    ),
}


def __getattr__(name: str) -> object:
    if name in ("comparison", "formats", "gallery", "objectives"):
        return import_module(f"mechanik.{name}")
    if name in _LATER:
        found = globals()[name] = getattr(import_module(_LATER[name]), name)
        return found
    raise AttributeError(f"module 'mechanik' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
