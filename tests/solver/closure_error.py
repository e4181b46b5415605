"""The largest closure error of a solution."""

from __future__ import annotations

import mechanik as mk


def largest_closure_error(solution: mk.Solution) -> float:
    """The largest position (m) or rotation (rad) error of all closures."""
    return max(max(error.position, error.rotation) for error in solution.closure_errors.values())
