"""Pairs that can never be as far apart as is asked for are named before anything is tried."""

import logging

import numpy as np
import pytest

import mechanik as mk
from mechanik.collision.collider import always_close_pairs

WRIST = ("wrist_1_link", "wrist_3_link")


@pytest.fixture(scope="module")
def ur5() -> mk.Mechanism:
    return mk.gallery.ur5()


@pytest.mark.parametrize("clearance", [0.002, 0.006, 0.01, 0.02])
def test_tight_pairs_are_those_that_are_too_near_wherever_one_looks(ur5, clearance):
    collider, rng = mk.Collider(ur5), np.random.default_rng(5)
    found = always_close_pairs(collider, clearance)
    often = dict.fromkeys(collider.pairs, 0)
    for _ in range(100):
        for clash in collider.contacts(ur5.space.random(rng), clearance):
            often[clash.a, clash.b] += 1
    assert {pair for pair, count in often.items() if count == 100} == set(found)
    assert all(gap < clearance for gap in found.values())


def test_no_clearance_and_loops_are_not_asked(ur5):
    assert always_close_pairs(mk.Collider(ur5), 0.0) == {}
    hexapod = mk.gallery.hexapod()
    assert always_close_pairs(mk.Collider(hexapod), 0.05) == {}


def test_a_solver_that_can_never_be_free_says_so_once_and_how_to_help_it(ur5, caplog):
    collider, goal = mk.Collider(ur5), mk.PoseGoal("tool0", ur5.pose("tool0"))
    with caplog.at_level(logging.WARNING, "mechanik"):
        mk.Solver(ur5, goal, avoid=collider, clearance=0.005)
        assert caplog.messages == []
        for _ in range(2):
            mk.Solver(ur5, goal, avoid=collider, clearance=0.01)
        mk.Tracker(ur5, goal, 0.001, avoid=collider, clearance=0.01)
    (said,) = caplog.messages
    assert all(name in said for name in WRIST)
    assert "10 mm" in said
    assert "allow=" in said


def test_with_the_pairs_allowed_that_are_named_there_are_free_answers_again(ur5, caplog):
    tight = list(always_close_pairs(mk.Collider(ur5), 0.01))
    solver = mk.Solver(ur5, mk.PoseGoal("tool0", ur5.pose("tool0")), avoid="self", allow=tight, clearance=0.01)
    rng = np.random.default_rng(1)
    targets = np.array([ur5.pose("tool0", ur5.space.random(rng)) for _ in range(20)])
    assert solver.solve_batch(targets, threads=1).success.any()
    assert caplog.messages == []
