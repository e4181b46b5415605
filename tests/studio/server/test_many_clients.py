"""A dozen clients at once; `benchmarks/studio_clients.py` is the long version."""

from __future__ import annotations

import math
import threading
import time

import numpy as np
from wire_client import PATIENCE, WireClient

CLIENTS, TURNS = 12, 80


def test_a_dozen_clients_drag_their_own_goals_and_are_never_mixed_up(server):
    answers = [0] * CLIENTS
    problems: list[str] = []
    all_are_here = threading.Barrier(CLIENTS)
    until = time.monotonic() + PATIENCE

    def drag(k: int) -> None:
        """On a circle of its own."""
        try:
            with WireClient(server) as client:
                goal, link = client.goal()["number"], client.goal()["link"]
                client.ask("StartGoalDrag", goal=goal)
                angle = float(k)
                all_are_here.wait(PATIENCE)
                while min(answers) < TURNS and time.monotonic() < until:
                    angle += 0.05
                    place = (1.2 + (0.02 + 0.01 * k) * math.cos(angle), 0.6 + (0.02 + 0.01 * k) * math.sin(angle))
                    frame = client.drag(goal, [*place, 0.0, 1.0, 0.0, 0.0, 0.0])
                    assert np.allclose(frame.goals[0, :2], place, atol=1e-12), "the goal of somebody else"
                    answers[k] += 1
                place = client.goal_pose()[:2].copy()
                client.wait(lambda: client.frame.header.is_at_rest)
                assert np.allclose(client.frame.links[link, :2], place, atol=1e-5), "the tool is not on its goal"
        except BaseException as error:
            problems.append(f"client {k}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=drag, args=(k,)) for k in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert min(answers) >= TURNS, "everybody has had a turn"
    assert server.is_running
