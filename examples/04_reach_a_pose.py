"""A robot arm takes its hand to a pose: once, along a path, and for a target out of reach."""

import numpy as np

import mechanik as mk

arm = mk.gallery.panda()
X_world_cup = mk.Pose((0.45, 0.25, 0.30), wxyz=(0, 1, 0, 0))  # the hand points down

# once: if the current configuration as start does not lead to the target, other starts are tried
solution = mk.solve(arm, mk.PoseGoal("panda_hand_tcp", X_world_cup))
print(solution)
print("elbow at", round(solution["panda_joint4"], 4), "rad")
arm.apply(solution.require())  # require() raises if there is no solution

# often: prepared once, each solve starts from the previous solution and takes some microseconds
ik = mk.Solver(arm, mk.PoseGoal("panda_hand_tcp", X_world_cup))
q, seconds = arm.q, []
for angle in np.linspace(0, 2 * np.pi, 200):
    target = X_world_cup.matrix.copy()
    target[:2, 3] += 0.08 * np.cos(angle) - 0.08, 0.08 * np.sin(angle)
    step = ik.solve(target, q)
    assert step.success
    q, seconds = step.q, [*seconds, step.seconds]
print(f"200 poses along a circle, {np.median(seconds) * 1e6:.0f} us each")

# less than a pose: the hand anywhere on a vertical line, in any orientation
line = mk.OnLine("panda_hand_tcp", (0.5, 0.1, 0.0), (0, 0, 1))
print("on the line at height", arm.pose("panda_hand_tcp", mk.solve(arm, line).q)[2, 3].round(3))

# out of reach: the closest pose, and why
print(mk.solve(arm, mk.PositionGoal("panda_hand_tcp", (2, 0, 0.5)), restarts=0).message)
