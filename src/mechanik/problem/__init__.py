"""Compiled problems: a mechanism with its objectives and constraints as flat arrays for the kernels.

Input: a mechanism, objectives and the dofs that may move. Output: independent subproblems, each as two flat arrays.
This package may import `objectives` and the layers below it. Solvers use it; applications do not need it.
"""

from mechanik.problem.compilation import (
    Problem,
    ProblemSettings,
    Subproblem,
    compile_problem,
    same_structure,
    write_targets,
)

__all__ = ["Problem", "ProblemSettings", "Subproblem", "compile_problem", "same_structure", "write_targets"]
