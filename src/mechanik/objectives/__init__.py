"""Objectives: what can be wanted of a mechanism, in people's words, and the rows that it comes to.

In: links and joints by name, targets in metres and radians. Out: relations, residuals, Jacobians and errors.
May import `mechanism` and what stands below it, nothing else.
"""

from mechanik.objectives.axis import Axis
from mechanik.objectives.centre_of_mass import CentreOfMass
from mechanik.objectives.clearance import Clearance
from mechanik.objectives.custom import Custom
from mechanik.objectives.distance import Distance
from mechanik.objectives.from_points import from_points
from mechanik.objectives.hinge import Hinge
from mechanik.objectives.in_band import InBand
from mechanik.objectives.in_box import InBox
from mechanik.objectives.in_cone import InCone
from mechanik.objectives.joint_values import JointValues
from mechanik.objectives.look_at import LookAt
from mechanik.objectives.manipulability import Manipulability
from mechanik.objectives.objective import Error, Objective, jacobian, residual
from mechanik.objectives.objective_json import load_objectives, save_objectives
from mechanik.objectives.on_line import OnLine
from mechanik.objectives.on_plane import OnPlane
from mechanik.objectives.on_terrain import OnTerrain
from mechanik.objectives.orientation import Orientation
from mechanik.objectives.placement import Placement
from mechanik.objectives.point import Point
from mechanik.objectives.pose_goal import PoseGoal
from mechanik.objectives.position_rules import Fixed, Linear, Planar
from mechanik.objectives.relation import Kind, Relation
from mechanik.objectives.rest_pose import RestPose
from mechanik.objectives.rotation_rules import Aligned, FixedRotation, Square
from mechanik.objectives.surface import Surface
from mechanik.objectives.terrain import Terrain

__all__ = [
    "Aligned",
    "Axis",
    "CentreOfMass",
    "Clearance",
    "Custom",
    "Distance",
    "Error",
    "Fixed",
    "FixedRotation",
    "Hinge",
    "InBand",
    "InBox",
    "InCone",
    "JointValues",
    "Kind",
    "Linear",
    "LookAt",
    "Manipulability",
    "Objective",
    "OnLine",
    "OnPlane",
    "OnTerrain",
    "Orientation",
    "Placement",
    "Planar",
    "Point",
    "PoseGoal",
    "Relation",
    "RestPose",
    "Square",
    "Surface",
    "Terrain",
    "from_points",
    "jacobian",
    "load_objectives",
    "residual",
    "save_objectives",
]
