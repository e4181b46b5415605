"""The rule by which a search continues from partial answers: the answer of the start, unless another is clearly closer.

So small changes of a target that is out of reach do not make the answer jump between distant configurations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from mechanik.problem import KernelReport
from mechanik.spatial.array import Array

MAX_COST_RATIO = 0.99
"""The closest configuration from another start replaces the one from the first start only if the ratio of their costs
is below this value."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchResult:
    """Result of a search in one subproblem.

    Attributes:
        q: (nq,) configuration.
        report: report of the search.
        required_stages: indices of the stages that success depends on.
        is_rejected: whether `feasible` rejected every solution.
    """

    q: Array
    report: KernelReport
    required_stages: tuple[int, ...]
    is_rejected: bool = False

    @property
    def success(self) -> bool:
        """Whether the targets are reached."""
        return self.report.success

    @property
    def is_accepted(self) -> bool:
        """Whether the targets are reached, at a configuration that `feasible` accepts."""
        return self.success and not self.is_rejected

    @property
    def costs(self) -> tuple[float, ...]:
        """Remaining cost of each required stage, in the order of priority; 0 for a stage that has converged."""
        return tuple(
            0.0 if self.report.stage_status(k) == 0 else self.report.stage_cost(k) for k in self.required_stages
        )

    def is_clearly_better_than(self, earlier: SearchResult) -> bool:
        """Return whether this result replaces the result of an earlier start."""
        if self.is_accepted or earlier.is_accepted:
            return self.is_accepted and not earlier.is_accepted
        if self.success or earlier.success:
            return self.success and not earlier.success
        return are_costs_clearly_lower(self.costs, earlier.costs)


def are_costs_clearly_lower(costs: Iterable[float], reference_costs: Iterable[float]) -> bool:
    """Return whether the first costs that differ clearly, in the order of priority, are lower."""
    for cost, reference_cost in zip(costs, reference_costs, strict=True):
        if cost < MAX_COST_RATIO * reference_cost:
            return True
        if reference_cost < MAX_COST_RATIO * cost:
            return False
    return False


def search_from_starts(
    starts: Iterable[Array], known_cost: float, descend: Callable[[Array], SearchResult]
) -> SearchResult:
    """Descend from the starts in order, while a known configuration is clearly closer than the best result.

    Args:
        starts: start configurations (nq,), at least one; the later ones lead to the known configuration.
        known_cost: cost at the known configuration.
        descend: function that descends from a start.

    Returns:
        The result of the first start, or that of a later start which is clearly better.
    """
    best: SearchResult | None = None
    for start in starts:
        if best is not None and (best.success or not known_cost < MAX_COST_RATIO * sum(best.costs)):
            break
        result = descend(start)
        if best is None or result.is_clearly_better_than(best):
            best = result
    assert best is not None
    return best
