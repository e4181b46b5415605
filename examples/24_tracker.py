"""A loop of 1 kHz: an arm follows a target that moves, within the limits of its motors, and halts before a wall."""

import math

import numpy as np

import mechanik as mk

arm = mk.gallery.panda()
home = arm.configurations["home"]
start = arm.pose("panda_hand_tcp", home)
wall = mk.Obstacle(mk.Box((0.6, 0.04, 1.2)), (0.5, 0.4, 0.6), name="wall")
collider = mk.Collider(arm, ["self", wall])

goal = mk.PoseGoal("panda_hand_tcp", start)
limits = {"velocity": 2.0, "acceleration": 10.0}
tracker = mk.Tracker(arm, goal, dt=1e-3, q0=home, avoid=collider, clearance=0.005, **limits)


def target(t):
    """Two circles of 0.1 m, 2 s each; then ahead into the wall and on, 0.2 m/s fast."""
    X = start.copy()
    if t < 4.0:
        X[:3, 3] += 0.1 * np.array([0.0, math.sin(math.pi * t), math.cos(math.pi * t) - 1.0])
    else:
        X[1, 3] += 0.2 * (t - 4.0)
    return X


off, nearest = [], math.inf
velocities, braked = [np.zeros(arm.nv)], 0
while tracker.time < 7.0:
    X_world_target = target(tracker.time)
    state = tracker.step(X_world_target)
    off.append(float(np.linalg.norm((arm.pose("panda_hand_tcp", state.q) - X_world_target)[:3, 3])))
    nearest = min(nearest, collider.distance(state.q))
    velocities.append(state.v)
    braked += state.status is not mk.TrackerStatus.MOVED

fastest = np.abs(velocities).max()
hardest = np.abs(np.diff(velocities, axis=0)).max() / tracker.dt
print(f"on the circle, from 1 s on, the tool is off by at most {1e3 * max(off[1000:4000]):.3f} mm")
print(f"at most {fastest:.2f} rad/s and {hardest:.2f} rad/s^2 in {len(off)} steps, {braked} of them out of limits")
print(f"never nearer than {1e3 * nearest:.1f} mm; in the end {collider.nearest_pairs(state.q)[0]}")
print(f"and {off[-1]:.2f} m from a target that went through it")
assert fastest < 2.0 + 1e-9
assert nearest > 0.0
