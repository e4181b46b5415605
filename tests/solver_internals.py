"""Compiled data of a solver, for tests of the tables and of the methods themselves."""

import numpy as np

from mechanik.problem import PackedProblem, Problem
from mechanik.solver import Solution, Solver
from mechanik.solver.backends.backend import Partial
from mechanik.solver.backends.search import SearchBackend
from mechanik.solver.compiled_problem import CompiledProblem
from mechanik.solver.methods.least_squares_problem import LeastSquaresProblem
from mechanik.solver.request import SolveRequest
from mechanik.solver.workspace import Workspace


def compiled_problem(solver: Solver) -> CompiledProblem:
    """The compiled problem of a solver."""
    return solver.pipeline.backends().compiled


def packed_problem(solver: Solver) -> Problem:
    """The packed tables of a solver, one for each subproblem."""
    return compiled_problem(solver).problem


def row_length_units(solver: Solver) -> list[float]:
    """For each objective the unit of its rows that are lengths, m; 1 if it has no such rows.

    It is 1 in a level that adds lengths to angles in m and rad, otherwise the length unit of the mechanism.
    """
    problem = packed_problem(solver)
    units = [1.0] * len(solver.objectives)
    for subproblem in problem.subproblems:
        for block, owner in enumerate(subproblem.owners):
            row_units = subproblem.rows.units[subproblem.packed.row_range(block)]
            if 0 <= owner < len(units) and np.isclose(row_units, problem.length_unit).any():
                units[owner] = problem.length_unit
    return units


def bounds(solver: Solver):
    """The lower and upper limits of a solver, (nq,) each."""
    return compiled_problem(solver).bounds


def least_squares_problems(solver: Solver, targets=None, q=None, rng=None) -> list[LeastSquaresProblem]:
    """New least-squares problems with these targets, one for each subproblem; their state is the start."""
    backends, request = solver.pipeline.resolve(
        SolveRequest(targets=targets, q0=solver.mechanism.q if q is None else q, rng=rng)
    )
    workspace = Workspace(backends.compiled)
    workspace.load(request)
    for part in workspace.parts:
        part.set_configuration(request.start)
    return workspace.parts


def chain_search(solver: Solver):
    """The search of the chain kernel, or None."""
    return None if solver.chain is None else solver.chain.search


def solve_in_workspace(
    solver: Solver, targets=None, q0=None, lock=None, **options
) -> tuple[Solution, list[PackedProblem]]:
    """A solve by the general kernel or a method in Python, and the tables of each subproblem at its end."""
    backends, request = solver.pipeline.resolve(SolveRequest(targets=targets, q0=q0, lock=lock, options=options))
    answer = SearchBackend(backends.pool, solver.method, None).solve(request, None)
    tables = [part.packed for part in backends.pool._unused[-1].parts]
    solution = answer.solution if isinstance(answer, Partial) else answer
    assert solution is not None
    return solution, tables


def discard_copies_of_tables(solver: Solver) -> None:
    """Let the next calls copy the tables again, after a test has changed them."""
    backends = solver.pipeline.backends()
    backends.pool._unused.clear()
    backends._calls.clear()
