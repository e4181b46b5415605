"""Compiled problems: a mechanism with its objectives and constraints as flat arrays for the kernels.

Input: a mechanism, the relations of its objectives, weights, and the dofs that may move. Output: independent
subproblems, each as two flat arrays for the general kernel. `serial_chain` makes the model of a chain for the chain
kernels. Solvers use this package; applications do not need it.
"""

from mechanik.problem.compilation import (
    Problem,
    ProblemSettings,
    Subproblem,
    closing_values,
    compile_problem,
    same_structure,
    write_targets,
)
from mechanik.problem.kernel_options import KernelOptions
from mechanik.problem.kernel_report import KernelReport
from mechanik.problem.packed_problem import PackedProblem

__all__ = [
    "KernelOptions",
    "KernelReport",
    "PackedProblem",
    "Problem",
    "ProblemSettings",
    "Subproblem",
    "closing_values",
    "compile_problem",
    "same_structure",
    "write_targets",
]
