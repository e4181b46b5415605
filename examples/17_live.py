"""A solver in the background: it follows a moving goal and reports each state."""

import math
import threading
import time

import numpy as np

import mechanik as mk

# two cranks carry a tool; their loop stays closed for any target
linkage = mk.gallery.five_bar()
start = linkage.pose("tool")[:3, 3]

max_error = 0.0


def record_state(state):
    """Called in the solver's thread with each state."""
    global max_error
    max_error = max(max_error, *(error.position for error in state.solution.closure_errors.values()))


goal = mk.PositionGoal("tool", start, name="tool")
with mk.LiveSolver(linkage, goal, on_state=record_state) as live:
    # targets arrive at any time: the newest replaces the previous one, without a queue
    for k in range(120):
        angle = 2 * math.pi * k / 60
        live.set_targets(start + np.array([0.02 * math.sin(angle), 0.02 * math.cos(angle), 0.0]), tag=k)
        time.sleep(1 / 240)
    state = live.solve().result(timeout=10)
    print(f"120 targets, the last of them solved: {state.tag == 119}; {state.status.name}")
    print(f"the closure error is less than {max(max_error, 1e-12):.0e} m in every state")

    # a crank is held while it runs
    live.set(lock="left_crank_joint")
    state = live.solve(start).result(timeout=10)
    print("with a crank held:", state.status.name)

    # one step at a time
    live.stop()
    live.set(lock=())
    live.set_targets(start + np.array([0.1, 0.1, 0.0]))
    off = [live.step().error for _ in range(4)]
    print("by steps:", ", ".join(f"{error:.0e}" for error in off), "m off")

print("running:", live.running, "and threads left:", threading.active_count() - 1)
