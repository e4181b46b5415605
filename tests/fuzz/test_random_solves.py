"""A thousand random solves, verified from their configurations alone; `make fuzz` runs a million."""

from __future__ import annotations

import warnings
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np
import pytest
from fuzz_campaign import FUNCTIONS, Campaign, check_seed
from fuzz_cases import FuzzCase
from fuzz_checks import FALSE_FAILURE, WRONG_SUCCESS, Fault, Tally, check_case
from fuzz_objectives import KINDS
from fuzz_shrinking import shrink

from mechanik.solver import Solution

SOLVES = 1000


def test_a_thousand_random_solves_are_right():
    tally, seed = Tally(), 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        while tally.counts["solves"] < SOLVES:
            tally.add(check_case(FuzzCase(seed)))
            seed += 1
    faults = [f"case {case}: {fault.category} in call {fault.call}: {fault.detail}" for case, fault in tally.faults]
    assert not faults, "\n".join(["run: python tests/fuzz/run_fuzz.py solves --case SEED", *faults])


def test_a_case_follows_from_its_seed():
    for seed in (3, 11, 42):
        assert FuzzCase(seed).describe() == FuzzCase(seed).describe()


def test_a_part_that_is_left_out_changes_no_other_part():
    case = next(case for case in map(FuzzCase, range(100)) if len(case.objectives) > 1 and len(case.calls) > 2)
    smaller = FuzzCase(case.seed, frozenset({"objective 1", "call 0"}))
    assert [repr(item.objective) for item in smaller.objectives] == [
        repr(item.objective) for k, item in enumerate(case.objectives) if k != 1
    ]
    assert [call.function for call in smaller.calls] == [call.function for call in case.calls[1:]]


def test_errors_of_all_objectives_are_those_of_their_definition():
    """The verification computes them without the relations of the objectives, and both agree."""
    seen = set()
    for seed in range(150):
        case = FuzzCase(seed)
        q = case.configurations
        poses = case.verifier.numpy_poses.poses(q)
        for item in case.objectives:
            seen.add(item.kind)
            if item.kind in ("rest pose", "joint values"):
                continue  # angles are nearest to the start inside the limits
            position, rotation = case.verifier.errors(item.objective, q, poses)
            errors = [item.objective.error(case.mechanism, row) for row in q]
            np.testing.assert_allclose(position, [e.position for e in errors], atol=1e-11 * max(case.size, 1.0))
            np.testing.assert_allclose(rotation, [e.rotation for e in errors], atol=1e-8)
            if item.objective.required:
                assert case.verifier.unmet([item.objective], q[:1], {k: X[:1] for k, X in poses.items()})[0] <= 1.0
    assert seen >= set(KINDS) - {"clearance", "manipulability"}


@pytest.mark.parametrize(("value", "category"), [(True, WRONG_SUCCESS), (False, FALSE_FAILURE)])
def test_a_wrong_success_flag_is_found(monkeypatch, value, category):
    monkeypatch.setattr(Solution, "_is_met", property(lambda self: value))
    tally = Tally()
    for seed in range(12):
        tally.add(check_case(FuzzCase(seed)))
    assert category in {fault.category for _, fault in tally.faults}


def test_a_fault_is_shrunk_to_the_parts_that_it_needs():
    def has_fault(case: FuzzCase) -> bool:
        return any("lock" in call.options for call in case.calls)

    seed = next(seed for seed in range(200) if has_fault(FuzzCase(seed)))
    small = shrink(seed, has_fault).make()
    assert has_fault(small)
    assert len(small.calls) == 1
    assert set(small.calls[0].options) <= {"lock", "max_deviation", "max_iterations"}
    assert len(small.objectives) <= 1


def test_a_stopped_campaign_goes_on_where_it_was(tmp_path: Path):
    campaign = Campaign("histories", 5, tmp_path)
    campaign.tally.counts["histories"] = 7
    campaign.tally.faults.append((9, Fault("used differs from fresh", "q", 1)))
    campaign.finished = {0, 1, 4}
    campaign.save()
    resumed = Campaign("histories", 5, tmp_path)
    assert resumed.finished == {0, 1, 4}
    assert resumed.tally == campaign.tally
    assert "seeds 9" in resumed.table()
    assert set(FUNCTIONS) == {"solves", "histories"}


def test_a_case_that_cannot_be_made_does_not_end_a_campaign(monkeypatch, tmp_path: Path):
    """It is a fault, but it cannot be shrunk: the campaign ended with a traceback."""

    def fail(*arguments):
        raise ValueError("no such case")

    monkeypatch.setattr("fuzz_campaign.FuzzCase", fail)
    monkeypatch.setattr("fuzz_shrinking.FuzzCase", fail)
    campaign = Campaign("solves", 0, tmp_path)
    campaign.tally.add(check_seed("solves", 3))
    campaign.shrink_faults()
    assert "seeds 3" in campaign.table()
    assert not list(tmp_path.iterdir())


def test_dead_processes_of_another_campaign_are_not_counted(monkeypatch, tmp_path: Path):
    """Campaigns in one folder took each other's files."""
    campaign = Campaign("solves", 5, tmp_path)

    def die(*arguments):
        for prefix, seed in (("solves-5", 31), ("solves-50", 61), ("histories-5", 7)):
            (tmp_path / f"running-{prefix}-123").write_text(str(seed))
        campaign.tally.counts["solves"] = 1
        raise BrokenProcessPool

    monkeypatch.setattr(campaign, "_run_pool", die)
    campaign.run(1, 1)
    assert [seed for seed, _ in campaign.tally.faults] == [31]
    assert {file.name for file in tmp_path.glob("running-*")} == {"running-solves-50-123", "running-histories-5-123"}
