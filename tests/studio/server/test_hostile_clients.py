"""Hostile clients are refused, the server lives, and another client that drags all the while does not notice."""

from __future__ import annotations

import math
import threading

import attacks_by_file  # noqa: F401  (each adds to the table)
import attacks_by_flood  # noqa: F401
import attacks_by_mesh  # noqa: F401
import attacks_by_message  # noqa: F401
import attacks_by_origin  # noqa: F401
import numpy as np
import pytest
from attacks import ATTACKS, Attacker
from wire_client import PATIENCE, WireClient


class Bystander:
    """Drags its own goal along a circle, and looks after each answer that it is where it asked to be."""

    def __init__(self, server) -> None:
        self.client = WireClient(server)
        self.goal = self.client.goal()
        assert self.client.ask("StartGoalDrag", goal=self.goal["number"])["is"] == "RequestDone"
        self.answers = 0
        self.problem = ""
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._drag, daemon=True)
        self._thread.start()

    def _drag(self) -> None:
        k = 0
        while not self._ends.wait(0.005):
            k += 1
            pose = [1.2 + 0.2 * math.cos(0.1 * k), 0.8 + 0.2 * math.sin(0.1 * k), 0.0, 1.0, 0.0, 0.0, 0.0]
            try:
                frame = self.client.drag(self.goal["number"], pose)
            except BaseException as error:
                self.problem = f"{type(error).__name__}: {error}"
                return
            if not np.allclose(frame.goals[0, :7], pose, atol=1e-12):
                self.problem = f"its goal is at {frame.goals[0, :7]}, not where it was dragged: {pose}"
                return
            self.answers += 1

    def close(self) -> None:
        self._ends.set()
        self._thread.join(PATIENCE)
        self.client.close()


@pytest.fixture(scope="module")
def bystander(server):
    client = Bystander(server)
    yield client
    client.close()


@pytest.fixture(scope="module")
def attacker(server):
    client = Attacker(server)
    yield client
    client.close()


def test_there_are_many_attacks_and_each_has_its_own_name():
    assert len(ATTACKS) >= 40
    assert len({name for name, _ in ATTACKS}) == len(ATTACKS)


@pytest.mark.parametrize("attack", [function for _, function in ATTACKS], ids=[name for name, _ in ATTACKS])
def test_it_is_refused_and_nobody_else_notices(server, bystander, attacker, attack):
    before = bystander.answers
    try:
        attack(attacker)
    finally:
        attacker.leave()
    bystander.client.wait(lambda: bystander.answers >= before + 2 or bystander.problem)
    assert bystander.problem == ""
    assert server.is_running


def test_server_accepts_new_pages_after_all_attacks(server, bystander, attacker):
    assert attacker.http("GET", "/").status_code == 200
    with WireClient(server) as client:
        assert client.wait_for("Model")["name"] == "planar_3r"
        assert client.ask("EndDrag")["is"] == "RequestDone"
    assert bystander.problem == ""
