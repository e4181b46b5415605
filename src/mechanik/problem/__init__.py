"""Compiled problems: a mechanism with its objectives and constraints as flat arrays for the kernels.

Input: a mechanism, the relations of its objectives, weights, and the dofs that may move. Output: independent
subproblems, each as two flat arrays for the general kernel. `serial_chain` makes the model of a chain for the chain
kernels. Solvers use this package; applications do not need it.
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
