"""Memory for a call: copies of the packed tables of all subproblems, from a pool."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

from mechanik.problem import closing_values, write_targets
from mechanik.solver.compiled_problem import CompiledProblem
from mechanik.solver.methods.least_squares_problem import LeastSquaresProblem
from mechanik.solver.request import ResolvedRequest


class Workspace:
    """Memory for one call at a time: a least-squares problem, with its own tables, for each subproblem.

    Attributes:
        compiled: the compiled problem, whose tables are the templates.
        parts: the least-squares problem of each subproblem.
    """

    __slots__ = ("compiled", "parts")

    def __init__(self, compiled: CompiledProblem) -> None:
        self.compiled, problem = compiled, compiled.problem
        self.parts = [
            LeastSquaresProblem(compiled.mechanism, problem, replace(subproblem, packed=subproblem.packed.copy()))
            for subproblem in problem.subproblems
        ]
        for part, relations in zip(self.parts, compiled.relations_by_block, strict=True):
            part.set_request(compiled.all_objectives, relations, compiled.bounds, None)

    def load(self, request: ResolvedRequest) -> None:
        """Write all inputs of a call; of earlier calls only `LeastSquaresProblem.cache` remains."""
        compiled = self.compiled
        problem, mechanism = compiled.problem, compiled.mechanism
        extra_values = closing_values(mechanism, problem, request.start)
        copies = [part.packed for part in self.parts]
        for subproblem, packed in zip(problem.subproblems, copies, strict=True):
            packed.reset(subproblem.packed)
            packed.set_extra_values(extra_values)
            packed.write_bounds(*request.bounds)
        for owner, (relations, compiled_relations) in enumerate(
            zip(request.relations, compiled.relations, strict=True)
        ):
            if any(a is not b for a, b in zip(relations, compiled_relations, strict=True)):
                write_targets(problem, owner, relations, copies)
        for part, relations in zip(self.parts, compiled.arrange_by_block(request.relations), strict=True):
            part.packed.lock_columns(part.subproblem.columns_of_dofs(request.locked_dofs))
            part.set_request(request.objectives, relations, request.bounds, request.rng)


class WorkspacePool:
    """Unused workspaces of a compiled problem; threads need no lock, since pop and append of a list are atomic."""

    __slots__ = ("_compiled", "_unused")

    def __init__(self, compiled: CompiledProblem) -> None:
        self._compiled = compiled
        self._unused: list[Workspace] = []

    @contextmanager
    def loaded(self, request: ResolvedRequest) -> Generator[Workspace]:
        """Provide a workspace with the inputs of a call, for exclusive use."""
        try:
            workspace = self._unused.pop()
        except IndexError:
            workspace = Workspace(self._compiled)
        try:
            workspace.load(request)
            yield workspace
        finally:
            self._unused.append(workspace)
