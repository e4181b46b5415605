"""Twenty thousand random problems: never worse than the start, never outside, never a false claim."""

from __future__ import annotations

import pytest
from independent_verification import SolutionVerifier
from random_problems import FAMILIES, problems

COUNTS = {
    "arm": 4000,
    "tree": 3000,
    "levels": 3000,
    "bands": 1500,
    "planar loop": 3500,
    "platform": 1500,
    "spatial loop": 2000,
    "two loops": 1400,
    "function": 100,
}
CHUNK, EACH = 500, 50
"""Problems of a test, and of one solver."""

CASES = [(kind, first) for kind in FAMILIES for first in range(0, COUNTS[kind], CHUNK)]


def test_there_are_twenty_thousand_problems():
    assert sum(COUNTS.values()) == 20_000


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "first"), CASES, ids=[f"{kind} {first}" for kind, first in CASES])
def test_no_solution_is_worse_than_its_start_and_its_status_is_true(kind, first):
    faults, given_up, count = [], [], min(CHUNK, COUNTS[kind] - first)
    for seed in range(first // EACH, (first + count) // EACH):
        verifier = None
        for number, (family, _, q0, solution) in enumerate(problems(kind, seed, EACH)):
            verifier = verifier or SolutionVerifier(family.solver)
            result = verifier.verify(solution, q0)
            faults += [f"problems({kind!r}, {seed}), number {number}: {fault}" for fault in result.faults]
            if solution.status.name in ("STALLED", "TIMEOUT") and result.slope > 1e-3:
                given_up.append(
                    f"problems({kind!r}, {seed}), number {number}: {solution.status!r}, slope {result.slope:.2g}"
                )
    assert not faults, f"{len(faults)} faults in {count} problems, such as:\n" + "\n".join(faults[:8])
    # giving up far from a minimum is allowed only rarely
    assert len(given_up) <= 0.01 * count, f"{len(given_up)} of {count} gave up, such as:\n" + "\n".join(given_up[:8])
