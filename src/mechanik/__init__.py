"""Mechanik: inverse kinematics of serial arms, trees and mechanisms with closed loops.

Units are SI: m, rad, kg, s. Poses are 4x4 matrices, in the world frame unless another frame is named. Quaternions are
wxyz.

Example:
    >>> arm = mk.gallery.panda()
    >>> solution = mk.solve(arm, mk.PositionGoal("panda_link8", (0.4, 0.2, 0.5)))
    >>> solution.success
    True
    >>> arm.pose("panda_link8", solution.q)[:3, 3].round(3).tolist()
    [0.4, 0.2, 0.5]
"""

from importlib import import_module
from typing import TYPE_CHECKING

from mechanik import errors, spatial
from mechanik.errors import MechanikError, UnknownName
from mechanik.model import (
    Box,
    Builder,
    Capsule,
    ClosedJacobian,
    Closure,
    ClosureGap,
    ConvexMesh,
    Coupling,
    Cylinder,
    DoF,
    Frame,
    Goal,
    HalfSpace,
    HeightField,
    IndependentChain,
    Inertial,
    Joint,
    JointConstraint,
    Link,
    Material,
    Mechanism,
    Mesh,
    Mobility,
    ShapeInstance,
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
    from mechanik.closure import Assembly, AssemblyModes, AssemblyPath
    from mechanik.collision import Collider, Contact, Obstacle, find_allowed_collisions, fit_shapes
    from mechanik.comparison import compare
    from mechanik.formats import arm_2d, arm_3d, check, from_dh, load, save
    from mechanik.motion.follow import Arc, CartesianPath, FollowResult, Line, Path, Spline, follow
    from mechanik.motion.live import LiveSolver, LiveState
    from mechanik.motion.plan import PlannedPath, plan
    from mechanik.motion.retime import Trajectory, retime
    from mechanik.motion.tracking import Task, Tracker, TrackerState, TrackerStatus
    from mechanik.objectives import (
        AxisGoal,
        CentreOfMass,
        Clearance,
        Custom,
        Distance,
        HingeGoal,
        InBand,
        InBox,
        InCone,
        JointValues,
        LinkGoal,
        LookAt,
        Manipulability,
        Objective,
        OnLine,
        OnPlane,
        OnTerrain,
        OrientationGoal,
        PoseGoal,
        PositionGoal,
        RestPose,
        SurfaceGoal,
        Terrain,
        from_points,
    )
    from mechanik.reach import ReachMap, reachability
    from mechanik.solver import METHODS, Iterate, Method, Options, Solution, Solver, Status, solve
    from mechanik.solver.batch import BatchResult, Interrupted
    from mechanik.solver.search import SolutionSet, closed_form
    from mechanik.studio.studio_api import Studio

__all__ = [
    "METHODS",
    "Arc",
    "Assembly",
    "AssemblyModes",
    "AssemblyPath",
    "AxisGoal",
    "BatchResult",
    "Box",
    "Builder",
    "Capsule",
    "CartesianPath",
    "CentreOfMass",
    "Clearance",
    "ClosedJacobian",
    "Closure",
    "ClosureGap",
    "Collider",
    "Contact",
    "ConvexMesh",
    "Coupling",
    "Custom",
    "Cylinder",
    "Distance",
    "DoF",
    "FollowResult",
    "Frame",
    "Goal",
    "HalfSpace",
    "HeightField",
    "HingeGoal",
    "InBand",
    "InBox",
    "InCone",
    "IndependentChain",
    "Inertial",
    "Interrupted",
    "Iterate",
    "Joint",
    "JointConstraint",
    "JointValues",
    "Line",
    "Link",
    "LinkGoal",
    "LiveSolver",
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
    "OrientationGoal",
    "Path",
    "PlannedPath",
    "Pose",
    "PoseGoal",
    "PositionGoal",
    "ReachMap",
    "RestPose",
    "ShapeInstance",
    "Solution",
    "SolutionSet",
    "Solver",
    "Sphere",
    "Spline",
    "Status",
    "Structure",
    "Studio",
    "SurfaceGoal",
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
    "find_allowed_collisions",
    "find_roots",
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

# The modules of these names are imported on first use: they take most of the import time, and no program needs all.
_LAZY_NAMES = {
    "compare": "mechanik.comparison",
    "Studio": "mechanik.studio.studio_api",
    **dict.fromkeys(("SolutionSet", "closed_form"), "mechanik.solver.search"),
    **dict.fromkeys(("arm_2d", "arm_3d", "check", "from_dh", "load", "save"), "mechanik.formats"),
    **dict.fromkeys(("METHODS", "Iterate", "Method", "Options", "Solution", "Status"), "mechanik.solver"),
    **dict.fromkeys(("Solver", "solve"), "mechanik.solver"),
    **dict.fromkeys(("LiveSolver", "LiveState"), "mechanik.motion.live"),
    **dict.fromkeys(("Assembly", "AssemblyModes", "AssemblyPath"), "mechanik.closure"),
    **dict.fromkeys(("ReachMap", "reachability"), "mechanik.reach"),
    **dict.fromkeys(("BatchResult", "Interrupted"), "mechanik.solver.batch"),
    **dict.fromkeys(("Contact", "Collider", "Obstacle", "find_allowed_collisions", "fit_shapes"), "mechanik.collision"),
    **dict.fromkeys(
        ("Arc", "FollowResult", "Line", "Path", "CartesianPath", "Spline", "follow"), "mechanik.motion.follow"
    ),
    **dict.fromkeys(("PlannedPath", "plan"), "mechanik.motion.plan"),
    **dict.fromkeys(("Trajectory", "retime"), "mechanik.motion.retime"),
    **dict.fromkeys(("Task", "Tracker", "TrackerState", "TrackerStatus"), "mechanik.motion.tracking"),
    **dict.fromkeys(
        (
            "AxisGoal",
            "CentreOfMass",
            "Clearance",
            "Custom",
            "Distance",
            "HingeGoal",
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
            "OrientationGoal",
            "LinkGoal",
            "PositionGoal",
            "PoseGoal",
            "RestPose",
            "SurfaceGoal",
            "Terrain",
            "from_points",
        ),
        "mechanik.objectives",
    ),
}


def __getattr__(name: str) -> object:
    if name in ("comparison", "formats", "gallery", "objectives"):
        return import_module(f"mechanik.{name}")
    if name in _LAZY_NAMES:
        value = globals()[name] = getattr(import_module(_LAZY_NAMES[name]), name)
        return value
    raise AttributeError(f"module 'mechanik' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
