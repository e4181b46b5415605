"""Programs: a mechanism with its objectives and closures as rows, laid out for the kernels.

In: a mechanism, objectives, which freedoms may move. Out: parts that share nothing, each as two flat arrays.
May import `objectives` and what stands below it. Solvers use it; people do not have to.
"""

from mechanik.program.part_io import rewrite, same_shape
from mechanik.program.program import Part, Program, Settings, compile_program

__all__ = ["Part", "Program", "Settings", "compile_program", "rewrite", "same_shape"]
