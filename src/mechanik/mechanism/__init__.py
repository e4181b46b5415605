"""Mechanisms: the graph that people edit, and the arrays that kernels read.

In: frames made by hand, by `Builder` or by a reader of `formats/`. Out: a `Mechanism` with names,
configurations, poses and Jacobians. May import `spatial` and `kernels`, nothing else.
"""

from mechanik.mechanism.builder import Builder
from mechanik.mechanism.chains import Chain, independent_chains
from mechanik.mechanism.closure import Closure, Gap
from mechanik.mechanism.coupling import Coupling
from mechanik.mechanism.dof import DoF
from mechanik.mechanism.frame import Frame
from mechanik.mechanism.goal import Goal
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.law import Law
from mechanik.mechanism.link import Link
from mechanik.mechanism.mechanism import Mechanism
from mechanik.mechanism.mobility import Mobility, mobility
from mechanik.mechanism.roots import find_roots, save_rest_pose
from mechanik.mechanism.shapes import (
    Box,
    Capsule,
    ConvexMesh,
    Cylinder,
    HalfSpace,
    HeightField,
    Inertial,
    Material,
    Mesh,
    PlacedShape,
    Sphere,
)
from mechanik.mechanism.structure import Loop, Structure, structure
from mechanik.mechanism.trim import trim
from mechanik.mechanism.velocities import ClosedJacobian

__all__ = [
    "Box",
    "Builder",
    "Capsule",
    "Chain",
    "ClosedJacobian",
    "Closure",
    "ConvexMesh",
    "Coupling",
    "Cylinder",
    "DoF",
    "Frame",
    "Gap",
    "Goal",
    "HalfSpace",
    "HeightField",
    "Inertial",
    "Joint",
    "Law",
    "Link",
    "Loop",
    "Material",
    "Mechanism",
    "Mesh",
    "Mobility",
    "PlacedShape",
    "Sphere",
    "Structure",
    "find_roots",
    "independent_chains",
    "mobility",
    "save_rest_pose",
    "structure",
    "trim",
]
