"""Assembly of mechanisms with closed loops: forward kinematics from driven joints, and assembly modes.

The input is a mechanism, the values of its driven joints (the inputs) and a start configuration. The output is
configurations with closed loops, with the dead points and change points on the path. The functions are methods of
`Mechanism`, as in `mechanism.assemble({"crank_joint": 1.2})`. This package imports `solver` and lower layers.
"""

from mechanik.closure.assemble_loops import AssemblyPath
from mechanik.closure.assembly import Assembly, PassedSingularity
from mechanik.closure.assembly_modes import AssemblyModes

__all__ = ["Assembly", "AssemblyModes", "AssemblyPath", "PassedSingularity"]
