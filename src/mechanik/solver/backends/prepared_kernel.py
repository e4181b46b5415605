"""Prepared calls of the general kernel: a target and a start, and nothing else to check or to resolve.

Targets are written into the tables by a small writer; all else in the tables stays as it is. The result of the call
does not depend on earlier calls, since every call writes all targets.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mechanik.kernels.state_layout import DONE
from mechanik.problem import KernelOptions, PackedProblem, Subproblem
from mechanik.problem.kernel_report import SUCCESS_INDEX
from mechanik.solver.backends.backend import Partial, PreparedCall, as_start
from mechanik.solver.compiled_problem import CompiledProblem, FixedQuaternions
from mechanik.solver.kernel_driver import NO_STARTS, NO_TARGET, descent_kernel
from mechanik.solver.options import Options
from mechanik.solver.solution import Solution
from mechanik.solver.target_writer import (
    SingleNumber,
    TargetWriter,
    WriteTable,
    make_target_writer,
    write_targets_kernel,
)
from mechanik.spatial.array import Array


def rejection_of_prepared_call(compiled: CompiledProblem, options: Options) -> str:
    """Return the reason why calls cannot be prepared, as the end of a sentence; empty if they can."""
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
    if not problem.subproblems:
        return "nothing moves"
    if any(subproblem.packed.has_functions for subproblem in problem.subproblems):
        return "an objective is computed in Python"
    return ""


def make_prepared_kernel_call(
    compiled: CompiledProblem,
    options: Options,
    kernel_options: KernelOptions,
    may_return_failure: bool,
    starts_from_mechanism: bool,
) -> tuple[PreparedCall | None, str]:
    """Make the function for calls with targets and a start alone; None and the reason if there is none.

    Args:
        compiled: the compiled problem.
        options: options of these calls.
        kernel_options: the same, for the kernel.
        may_return_failure: whether a failure of the first start is the result of the call.
        starts_from_mechanism: whether calls without a start begin at the configuration of the mechanism.
    """
    reason = rejection_of_prepared_call(compiled, options)
    if reason:
        return None, reason
    writer, reason = compiled_target_writer(compiled)
    if writer is None:
        return None, reason
    if any(subproblem.balanced_stages for subproblem in compiled.problem.subproblems):
        may_return_failure = False  # the descent continues with other rows
    return _prepared_call(compiled, writer, kernel_options, may_return_failure, starts_from_mechanism), ""


def compiled_target_writer(compiled: CompiledProblem) -> tuple[TargetWriter | None, str]:
    """Make the target writer of a compiled problem, or return None and the reason, as the end of a sentence."""
    relations = compiled.relations[: len(compiled.objectives)]
    return make_target_writer(compiled.mechanism, compiled.problem, compiled.objectives, relations, compiled.bounds)


def _prepared_call(
    compiled: CompiledProblem,
    writer: TargetWriter,
    kernel_options: KernelOptions,
    may_return_failure: bool,
    starts_from_mechanism: bool,
) -> PreparedCall:
    """Make the function for calls with targets and a start alone, with everything that stays the same between them."""
    mechanism, objectives = compiled.mechanism, compiled.objectives
    subproblems, q_shape = compiled.problem.subproblems, (compiled.mechanism.nq,)
    pool: list[list[_Workspace]] = []
    fixed_quaternions = FixedQuaternions(compiled)
    has_fixed_quaternions = fixed_quaternions.exist
    takes_pose_argument = writer.takes_pose_argument()
    array, empty, float64 = np.ndarray, np.empty, np.dtype(np.float64)
    perf_counter, pack = time.perf_counter, writer.pack
    # a single target stays as the caller gives it, since the solution rarely needs the numbers
    single_shape = writer.slices[0].shape if len(writer.slices) == 1 else None

    def make_workspaces() -> list[_Workspace]:
        return [
            _Workspace.of(subproblem, table, kernel_options, takes_pose_argument)
            for subproblem, table in zip(subproblems, writer.tables, strict=True)
        ]

    def call(targets: Any, q0: Any) -> Solution | None:
        start_time = perf_counter()
        if type(q0) is not array or q0.shape != q_shape:
            q0 = np.array(mechanism.q) if q0 is None and starts_from_mechanism else as_start(q0, q_shape)
            if q0 is None:
                return None
        if has_fixed_quaternions and not (q0.dtype is float64 and fixed_quaternions.are_valid(q0)):
            return None
        is_single = type(targets) is array and targets.shape == single_shape and targets.dtype is float64
        values = targets.ravel() if is_single else pack(targets)
        if values is None:
            return None
        try:
            workspaces = pool.pop()
        except IndexError:
            workspaces = make_workspaces()
        argument: Array = NO_TARGET
        if takes_pose_argument:
            argument = targets if is_single else values.reshape(4, 4)
        else:
            write = write_targets_kernel.write_targets
            try:
                for work in workspaces:
                    if not write(work.floats, work.table, work.constants, values, q0):
                        pool.append(workspaces)
                        return None
            except TypeError:  # not a contiguous array of float64
                pool.append(workspaces)
                return None
        search, q = descent_kernel.search, q0
        reports: list[bytes] = []
        for work in workspaces:
            if work.extra_state is not None:
                work.extra_state.fill(0.0)
            next_q = empty(q_shape)
            try:
                code = search(work.ints, work.floats, argument, q, NO_STARTS, next_q)
            except TypeError:  # not a contiguous array of float64
                code = NOT_STARTED
            if code != DONE or not (work.report_view[SUCCESS_INDEX] or may_return_failure):
                pool.append(workspaces)
                return None
            reports.append(work.report_table.tobytes())
            q = next_q
        pool.append(workspaces)
        if has_fixed_quaternions:
            fixed_quaternions.normalize(q)
        source: Any = values.tobytes() if is_single else partial(writer.objectives, objectives, values)
        return Solution(compiled, source, q, tuple(reports), perf_counter() - start_time)

    number = writer.single_number()
    if number is None or has_fixed_quaternions:
        return call
    return _prepared_number_call(compiled, number, call, make_workspaces, may_return_failure)


def _prepared_number_call(
    compiled: CompiledProblem,
    number: SingleNumber,
    general_call: PreparedCall,
    make_workspaces: Callable[[], list[_Workspace]],
    may_return_failure: bool,
) -> PreparedCall:
    """Make the function for calls with a joint value as the only target, without any work that it does not need.

    Args:
        compiled: the compiled problem.
        number: the target.
        general_call: takes targets and starts in all other forms.
        make_workspaces: makes the workspace of the only subproblem.
        may_return_failure: whether a failure of the first start is the result of the call.
    """
    q_shape = (compiled.mechanism.nq,)
    name, slot, reference, half_period = number.name, number.slot, number.reference, number.half_period
    lower, upper = number.lower, number.upper
    pool: list[_Workspace] = []
    array, empty, perf_counter, float64 = np.ndarray, np.empty, time.perf_counter, np.dtype(np.float64)

    def call(targets: Any, q0: Any) -> Solution | Partial | None:
        start_time = perf_counter()
        target: Any = targets
        if type(targets) is dict and len(targets) == 1:  # type: ignore[arg-type]
            target = targets.get(name)  # type: ignore[union-attr]
        if not isinstance(target, float) or not lower <= target <= upper or type(q0) is not array:
            return general_call(targets, q0)
        if q0.dtype is not float64 or q0.shape != q_shape:
            return general_call(targets, q0)
        # an angle farther than half a period from the start stands for an equivalent angle nearer to it
        if not -half_period <= target - q0.item(reference) <= half_period:
            return general_call(targets, q0)
        try:
            work = pool.pop()
        except IndexError:
            (work,) = make_workspaces()
        work.float_view[slot] = target
        if work.extra_state is not None:
            work.extra_state.fill(0.0)
        q = empty(q_shape)
        try:
            code = descent_kernel.search(work.ints, work.floats, NO_TARGET, q0, NO_STARTS, q)
        except TypeError:  # not a contiguous array of float64
            code = NOT_STARTED
        if code != DONE or not (work.report_view[SUCCESS_INDEX] or may_return_failure):
            pool.append(work)
            return None
        reports = (work.report_table.tobytes(),)
        pool.append(work)
        return Solution(compiled, target, q, reports, perf_counter() - start_time)

    return call


NOT_STARTED = -1
"""Code of a kernel call that was not made, because an argument has the wrong type."""


class _Workspace:
    """Memory of a prepared call for one subproblem: the tables, what targets write there, and the report."""

    __slots__ = ("constants", "extra_state", "float_view", "floats", "ints", "report_table", "report_view", "table")

    def __init__(self, packed: PackedProblem, table: WriteTable) -> None:
        self.ints, self.floats, self.report_table = packed.ints, packed.floats, packed.report.table
        # a number of a memory view takes half as long to read or write as one of an array
        self.float_view: Any = self.floats.data
        self.report_view: Any = self.report_table.data
        self.table, self.constants = table.table, table.constants
        self.extra_state = packed.extra_state if len(packed.extra_state) else None

    @staticmethod
    def of(
        subproblem: Subproblem, table: WriteTable, kernel_options: KernelOptions, takes_pose_argument: bool
    ) -> _Workspace:
        """Copy the tables of a subproblem and write the options."""
        packed = subproblem.packed.copy()
        packed.set_options(kernel_options)
        if takes_pose_argument:
            packed.set_target_block(subproblem.owners.index(0))
        return _Workspace(packed, table)
