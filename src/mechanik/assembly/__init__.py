"""Closed mechanisms as wholes: put together with some joints driven, in all ways that there are, and where it jams.

In: a mechanism, values of the joints that drive it, and where it stands. Out: configurations whose loops are shut, with
what was met on the way there: dead points, change points, limits. May import `ik` and what stands below it. A mechanism
finds these functions by name, as in `mechanism.assemble(drive={"crank_joint": 1.2})`.
"""

from mechanik.assembly.assembly import Assembly, Passed
from mechanik.assembly.modes import AssemblyModes
from mechanik.assembly.path import AssemblyPath

__all__ = ["Assembly", "AssemblyModes", "AssemblyPath", "Passed"]
