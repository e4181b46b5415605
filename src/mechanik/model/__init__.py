"""The model layer: the kinematic graph that users edit, the flat arrays that kernels read, and the mobility of loops.

Readers of `mechanik.formats`, the `Builder` or user code create frames. A `Mechanism` gives access to the frames by
name and computes configurations, poses and Jacobians. This package imports only `spatial`, `kernels`, `tiers`, `errors`
and `validation`; `Mechanism` imports `closure` on the first call of a function from there.
"""

from mechanik.model.builder import Builder, trim
from mechanik.model.closed_jacobian import ClosedJacobian
from mechanik.model.dof import DoF
from mechanik.model.frame import Frame, Goal, Link
from mechanik.model.joint import Joint, find_roots
from mechanik.model.joint_constraint import Coupling, JointConstraint
from mechanik.model.kinematic_graph import IndependentChain, independent_chains, save_rest_pose
from mechanik.model.loop_closure import Closure, ClosureGap
from mechanik.model.mechanism import Mechanism
from mechanik.model.mobility import Loop, Mobility, Structure, mobility, structure
from mechanik.model.shapes import (
    Box,
    Capsule,
    ConvexMesh,
    Cylinder,
    HalfSpace,
    HeightField,
    Inertial,
    Material,
    Mesh,
    ShapeInstance,
    Sphere,
)

__all__ = [
    "Box",
    "Builder",
    "Capsule",
    "ClosedJacobian",
    "Closure",
    "ClosureGap",
    "ConvexMesh",
    "Coupling",
    "Cylinder",
    "DoF",
    "Frame",
    "Goal",
    "HalfSpace",
    "HeightField",
    "IndependentChain",
    "Inertial",
    "Joint",
    "JointConstraint",
    "Link",
    "Loop",
    "Material",
    "Mechanism",
    "Mesh",
    "Mobility",
    "ShapeInstance",
    "Sphere",
    "Structure",
    "find_roots",
    "independent_chains",
    "mobility",
    "save_rest_pose",
    "structure",
    "trim",
]
