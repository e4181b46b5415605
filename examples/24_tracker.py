"""A loop of 1 kHz: an arm follows a target that moves, within the limits of its motors, and stops before a wall."""

import math

import numpy as np

import mechanik as mk

arm = mk.gallery.panda()
home = arm.configurations["home"]
start = arm.pose("panda_hand_tcp", home)
wall = mk.Obstacle(mk.Box((0.6, 0.04, 1.2)), (0.5, 0.4, 0.6), name="wall")
collider = mk.Collider(arm, ["self", wall])

goal = mk.PoseGoal("panda_hand_tcp", start)
tracker = mk.Tracker(
    arm, goal, dt=1e-3, q0=home, velocity=2.0, acceleration=10.0, avoid=collider, clearance=0.02
)  # fmt: skip


def target(t):
    """Circles of 0.1 m, one in 2 s; after 4 s a place inside the wall."""
    X = start.copy()
    if t < 4.0:
        X[:3, 3] += 0.1 * np.array([0.0, math.sin(math.pi * t), math.cos(math.pi * t) - 1.0])
    else:
        X[1, 3] = 0.5
    return X


late, fastest, hardest, nearest, before = 0.0, 0.0, 0.0, math.inf, np.zeros(arm.nv)
while tracker.time < 6.0:
    state = tracker.step(target(tracker.time))
    fastest, hardest = max(fastest, abs(state.v).max()), max(hardest, abs(state.v - before).max() / tracker.dt)
    nearest, before = min(nearest, collider.distance(state.q)), state.v
    if 1.0 < state.time < 4.0:
        off = arm.pose("panda_hand_tcp", state.q)[:3, 3] - target(state.time - tracker.dt)[:3, 3]
        late = max(late, float(np.linalg.norm(off)))

print(f"on the circle the tool is off by at most {1e3 * late:.3f} mm")
print(f"at most {fastest:.3f} rad/s and {hardest:.3f} rad/s^2 in {round(tracker.time / tracker.dt)} steps")
print(f"never nearer than {1e3 * nearest:.1f} mm: in the end {collider.nearest(state.q)[0]}, {state.status.value}")
assert fastest < 2.0 + 1e-9
assert hardest < 10.0 + 1e-6
assert nearest > 0.0
