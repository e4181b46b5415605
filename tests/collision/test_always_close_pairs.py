"""Pairs that never keep a clearance are reported before solving."""

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
def test_always_close_pairs_are_too_close_at_every_sample(ur5, clearance):
    collider, rng = mk.Collider(ur5), np.random.default_rng(5)
    pairs = always_close_pairs(collider, clearance)
    counts = dict.fromkeys(collider.pairs, 0)
    for _ in range(100):
        for contact in collider.contacts(ur5.space.random(rng), clearance):
            counts[contact.a, contact.b] += 1
    assert {pair for pair, count in counts.items() if count == 100} == set(pairs)
    assert all(distance < clearance for distance in pairs.values())


def test_clearance_zero_and_loops_give_no_always_close_pairs(ur5):
    assert always_close_pairs(mk.Collider(ur5), 0.0) == {}
    hexapod = mk.gallery.hexapod()
    assert always_close_pairs(mk.Collider(hexapod), 0.05) == {}


def test_an_impossible_clearance_gives_one_warning_with_advice(ur5, caplog):
    collider, goal = mk.Collider(ur5), mk.PoseGoal("tool0", ur5.pose("tool0"))
    with caplog.at_level(logging.WARNING, "mechanik"):
        mk.Solver(ur5, goal, avoid=collider, clearance=0.005)
        assert caplog.messages == []
        for _ in range(2):
            mk.Solver(ur5, goal, avoid=collider, clearance=0.01)
        mk.Tracker(ur5, goal, 0.001, avoid=collider, clearance=0.01)
    (message,) = caplog.messages
    assert all(name in message for name in WRIST)
    assert "10 mm" in message
    assert "allow=" in message


def test_allowing_the_reported_pairs_gives_free_solutions(ur5, caplog):
    pairs = list(always_close_pairs(mk.Collider(ur5), 0.01))
    solver = mk.Solver(ur5, mk.PoseGoal("tool0", ur5.pose("tool0")), avoid="self", allow=pairs, clearance=0.01)
    rng = np.random.default_rng(1)
    targets = np.array([ur5.pose("tool0", ur5.space.random(rng)) for _ in range(20)])
    assert solver.solve_batch(targets, threads=1).success.any()
    assert caplog.messages == []
