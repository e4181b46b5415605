"""Objectives of inverse kinematics, and the relations into which they are translated.

Input: links and joints by name, targets in m and rad. Output: relations, residuals, Jacobians, errors and JSON files.
Of the layers, this package may import `collision`, `model` and those below, nothing else.
"""

from mechanik.objectives.centre_of_mass import CentreOfMass
from mechanik.objectives.clearance import Clearance
from mechanik.objectives.function_objectives import Custom, Manipulability
from mechanik.objectives.joint_goals import JointValues, RestPose
from mechanik.objectives.objective import ErrorNorms, Objective, jacobian, residual
from mechanik.objectives.objective_file import load_objectives, save_objectives
from mechanik.objectives.pose_constraints import (
    AlignedAxes,
    FixedRotation,
    LineConstraint,
    PerpendicularAxes,
    PlaneConstraint,
    PointConstraint,
)
from mechanik.objectives.pose_goals import (
    AxisGoal,
    HingeGoal,
    LinkGoal,
    OnLine,
    OnPlane,
    OrientationGoal,
    PoseGoal,
    PositionGoal,
    SurfaceGoal,
    from_points,
)
from mechanik.objectives.region_goals import Distance, InBand, InBox, InCone, LookAt, OnTerrain
from mechanik.objectives.relation import Relation, RelationKind
from mechanik.objectives.terrain import Terrain

__all__ = [
    "AlignedAxes",
    "AxisGoal",
    "CentreOfMass",
    "Clearance",
    "Custom",
    "Distance",
    "ErrorNorms",
    "FixedRotation",
    "HingeGoal",
    "InBand",
    "InBox",
    "InCone",
    "JointValues",
    "LineConstraint",
    "LinkGoal",
    "LookAt",
    "Manipulability",
    "Objective",
    "OnLine",
    "OnPlane",
    "OnTerrain",
    "OrientationGoal",
    "PerpendicularAxes",
    "PlaneConstraint",
    "PointConstraint",
    "PoseGoal",
    "PositionGoal",
    "Relation",
    "RelationKind",
    "RestPose",
    "SurfaceGoal",
    "Terrain",
    "from_points",
    "jacobian",
    "load_objectives",
    "residual",
    "save_objectives",
]
