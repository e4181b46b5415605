"""Access to the tables of a chain: settings of its model, its seed table, workspaces, and reports of the kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanik.kernels import chain_layout
from mechanik.kernels.chain_layout import ChainHeader, ChainReport
from mechanik.kernels.tables import RecordArray
from mechanik.spatial.array import Array

Float32Array = np.ndarray[tuple[int], np.dtype[np.float32]]
Indices = np.ndarray[tuple[int], np.dtype[np.int64]]
Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


def set_iteration_budget(model: Array, iterations: float) -> None:
    """Set the number of iterations for a target after which no further attempt begins; `model` may be a workspace."""
    ChainHeader(model).iteration_budget = iterations


def set_attempt_count(model: Array, attempts: int) -> None:
    """Let the kernel make all of a number of attempts, also for targets that are out of reach."""
    header = ChainHeader(model)
    header.max_attempts, header.iteration_budget, header.reach = attempts, np.inf, np.inf


def new_seed_table(model: Array) -> Float32Array:
    """Return an empty seed table for a model."""
    return np.zeros(2 * ChainHeader(model).table_size, dtype=np.float32)


def new_workspace(joint_count: int, lane_count: int = 1) -> Array:
    """Return a workspace for a chain, with one lane or eight."""
    return np.zeros(chain_layout.workspace_size(joint_count, lane_count))


def error_weights(model: Array) -> tuple[float, float]:
    """Return the weights of the errors of position (per m) and of rotation that a report contains."""
    header = ChainHeader(model)
    return float(header.length_scale), float(header.rotation_weight)


def residual_weights(model: Array) -> tuple[float, float]:
    """Return the weights of the position (per m) and of the rotation; each is 0 if that part has no effect."""
    length_weight, angle_weight = error_weights(model)
    return length_weight * (ChainHeader(model).position_weight != 0.0), angle_weight


def report_of(workspace: Array) -> ChainReport:
    """Return the report of the last search in a workspace with one lane, as a view."""
    return ChainReport(workspace, len(workspace) - ChainReport.size)


@dataclass(frozen=True, slots=True, eq=False)
class ChainReports:
    """Reports of the lane kernel for many targets.

    Attributes:
        numbers: (M, 6), written by the kernel.

    Example:
        >>> from mechanik.problem.chain_tables import ChainReports
        >>> ChainReports.allocate(3).is_solved.tolist()
        [True, True, True]
    """

    numbers: Array

    @classmethod
    def allocate(cls, count: int) -> ChainReports:
        """Return reports for the kernel to write."""
        return cls(np.zeros((count, ChainReport.size)))

    @property
    def _records(self) -> RecordArray[ChainReport]:
        return RecordArray(ChainReport, self.numbers.reshape(-1))

    @property
    def is_solved(self) -> Mask:
        """Mask of the solved targets, (M,)."""
        return self._records.column(ChainReport.result) == chain_layout.SOLVED

    @property
    def is_unsolved(self) -> Mask:
        """Mask of the valid targets without a solution, (M,)."""
        return self._records.column(ChainReport.result) == chain_layout.NOT_SOLVED

    @property
    def is_rejected(self) -> Mask:
        """Mask of the targets or starts that are not valid, (M,)."""
        return self._records.column(ChainReport.result) == chain_layout.BAD_INPUT

    @property
    def iterations(self) -> Indices:
        """Numbers of iterations, (M,)."""
        return self._records.column(ChainReport.iterations).astype(np.int64)

    @property
    def errors(self) -> Array:
        """Errors of position (m) and rotation (rad, or a cosine), (M, 2)."""
        records = self._records
        return np.stack(
            [records.column(ChainReport.position_error), records.column(ChainReport.rotation_error)], axis=1
        )
