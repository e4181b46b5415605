"""Prepared calls of the general kernel: a target and a start, and nothing else to check or to resolve.

Targets are written into the tables by a small writer; all else in the tables stays as it is. The result of the call
does not depend on earlier calls, since every call writes all targets.
"""

from __future__ import annotations

import math
import time
from functools import partial
from typing import Any

import numpy as np

from mechanik.kernels.state_layout import DONE
from mechanik.objectives import Objective
from mechanik.problem import KernelOptions, PackedProblem
from mechanik.problem.kernel_report import SUCCESS_INDEX
from mechanik.solver.backends.chain import PreparedCall
from mechanik.solver.compiled_problem import CompiledProblem
from mechanik.solver.kernel_driver import NO_STARTS, NO_TARGET, descent_kernel
from mechanik.solver.options import Options
from mechanik.solver.solution import Solution
from mechanik.solver.target_writer import make_multi_target_writer, make_target_writer
from mechanik.spatial.array import Array

MIN_QUATERNION_NORM2 = 1e-6
"""Squared norm below which a quaternion is left to the checks of a resolved request; the kernel uses the same value."""


class FixedQuaternions:
    """Quaternions in q that the kernel does not move: they are checked and normalized outside of it."""

    def __init__(self, compiled: CompiledProblem) -> None:
        space = compiled.mechanism.space
        self._indices = [
            k
            for k, v in zip(space.quaternions_q.tolist(), space.quaternions_v.tolist(), strict=True)
            if not compiled.moving_dofs[v]
        ]

    @property
    def exist(self) -> bool:
        """Whether there are such quaternions."""
        return bool(self._indices)

    def are_valid(self, q: Array) -> bool:
        """Return whether no quaternion is nearly zero."""
        return all(q[k : k + 4] @ q[k : k + 4] > MIN_QUATERNION_NORM2 for k in self._indices)

    def normalize(self, q: Array) -> None:
        """Normalize the quaternions in place."""
        for k in self._indices:
            q[k : k + 4] /= np.linalg.norm(q[k : k + 4])


def rejection_of_prepared_call(compiled: CompiledProblem, options: Options) -> str | None:
    """Return the reason why calls cannot be prepared, as the end of a sentence; None if they can."""
    definition, problem = compiled.definition, compiled.problem
    if not definition.method.is_compiled:
        return "the method is written in Python"
    if definition.moves_joints or definition.given_objectives is None:
        return "the solver was made from frames"
    if options.max_seconds < math.inf:
        return "a time limit needs a clock"
    if options.rest_factor != 1.0:
        return "the rest pose depends on the start"
    if problem.closures_with_nodes:
        return "a closing joint has limits of several rotations"
    if any(subproblem.packed.has_functions for subproblem in problem.subproblems):
        return "an objective is computed in Python"
    return None


def make_prepared_kernel_call(
    compiled: CompiledProblem, options: Options, kernel_options: KernelOptions, may_return_failure: bool
) -> tuple[PreparedCall | None, str]:
    """Make the function for calls with targets and a start alone; None and the reason if there is none.

    Args:
        compiled: the compiled problem.
        options: options of these calls.
        kernel_options: the same, for the kernel.
        may_return_failure: whether a failure of the first start is the result of the call.
    """
    reason = rejection_of_prepared_call(compiled, options)
    if reason is not None:
        return None, reason
    call = _single_goal_call(compiled, kernel_options, may_return_failure)
    if call is None:
        call = _several_goals_call(compiled, kernel_options, may_return_failure)
    return (call, "") if call is not None else (None, "the target of an objective cannot be written into the tables")


def _copies(compiled: CompiledProblem, kernel_options: KernelOptions) -> list[PackedProblem]:
    copies = [subproblem.packed.copy() for subproblem in compiled.problem.subproblems]
    for packed in copies:
        packed.set_options(kernel_options)
    return copies


def _single_goal_call(
    compiled: CompiledProblem, kernel_options: KernelOptions, may_return_failure: bool
) -> PreparedCall | None:
    """Make the call for the new target of a single objective, which a kernel argument or one table entry holds."""
    objectives, q_shape = compiled.all_objectives, (compiled.mechanism.nq,)
    if compiled.definition.constraints or len(objectives) != 1:
        return None
    if make_target_writer(compiled, compiled.problem.subproblems[0].packed) is None:
        return None
    pool: list[Any] = []
    fixed_quaternions = FixedQuaternions(compiled)
    array, empty, perf_counter, float64 = np.ndarray, np.empty, time.perf_counter, np.dtype(np.float64)
    has_fixed_quaternions = fixed_quaternions.exist

    def make_entry() -> Any:
        packed = _copies(compiled, kernel_options)[0]
        write = make_target_writer(compiled, packed)
        extra_state = packed.extra_state if len(packed.extra_state) else None
        return write, packed.ints, packed.floats, packed.report.table, extra_state

    def call(target: Any, q0: Any) -> Solution | None:
        if type(q0) is not array or q0.shape != q_shape:
            return None
        start_time = perf_counter()
        try:
            entry = pool.pop()
        except IndexError:
            entry = make_entry()
        write, ints, floats, report_table, extra_state = entry
        argument = write(target, q0)
        if argument is None or (has_fixed_quaternions and not fixed_quaternions.are_valid(q0)):
            pool.append(entry)
            return None
        if extra_state is not None:
            extra_state.fill(0.0)
        q = empty(q_shape)
        try:
            code = descent_kernel.search(ints, floats, argument, q0, NO_STARTS, q)
        except TypeError:  # not a contiguous array of float64
            pool.append(entry)
            return None
        success, report = report_table.item(SUCCESS_INDEX), report_table.tobytes()
        pool.append(entry)
        if code != DONE or not (success or may_return_failure):
            return None
        if has_fixed_quaternions:
            fixed_quaternions.normalize(q)
        if type(target) is array:
            target = target.tobytes() if target.dtype is float64 else target.copy()
        elif not isinstance(target, float):
            target = target.copy()
        return Solution(compiled, target, q, report, perf_counter() - start_time)

    return call


def _several_goals_call(
    compiled: CompiledProblem, kernel_options: KernelOptions, may_return_failure: bool
) -> PreparedCall | None:
    """Make the call for new targets of several objectives, which a small kernel writes into the tables."""
    mechanism, objective_count = compiled.mechanism, len(compiled.objectives)
    writer = make_multi_target_writer(
        mechanism, compiled.problem, compiled.objectives, compiled.relations[:objective_count], compiled.bounds
    )
    q_shape = (mechanism.nq,)
    if writer is None:
        return None
    pool: list[list[PackedProblem]] = []
    objectives: tuple[Objective, ...] = compiled.objectives
    fixed_quaternions = FixedQuaternions(compiled)

    def call(targets: Any, q0: Any) -> Solution | None:
        if type(q0) is not np.ndarray or q0.shape != q_shape or not fixed_quaternions.are_valid(q0):
            return None
        start_time = time.perf_counter()
        values = writer.pack_targets(targets)
        if values is None:
            return None
        try:
            copies = pool.pop()
        except IndexError:
            copies = _copies(compiled, kernel_options)
        try:
            answer = search(copies, values, q0)
        except TypeError:  # not a contiguous array of float64
            answer = None
        finally:
            pool.append(copies)
        if answer is None:
            return None
        q, reports = answer
        fixed_quaternions.normalize(q)
        source = partial(writer.objectives, objectives, values)
        return Solution(compiled, source, q, reports, time.perf_counter() - start_time)

    def search(copies: list[PackedProblem], values: Array, q: Array) -> tuple[Array, tuple[Any, ...]] | None:
        if not writer.write(copies, values, q):
            return None
        reports: list[Any] = []
        for packed in copies:
            if len(packed.extra_state):
                packed.extra_state[:] = 0.0
            next_q = np.empty(q_shape)
            code = descent_kernel.search(packed.ints, packed.floats, NO_TARGET, q, NO_STARTS, next_q)
            if code != DONE or not (may_return_failure or packed.report.success):
                return None
            reports.append(packed.report.copy())
            q = next_q
        return q, tuple(reports)

    return call
