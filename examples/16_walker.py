"""A walker on six legs: its body moves over feet that stand, then it takes a step; goals are added and removed."""

import math

import numpy as np

import mechanik as mk

robot = mk.gallery.walker()
feet = [f"foot{k}" for k in range(1, 7)]
stand = {foot: robot.pose(foot) for foot in feet}
body = robot.pose("body")
print(robot)

# feet come first, the body as far as they let it: six legs of six joints leave it all six dofs
goals = [mk.PoseGoal(foot, X, level=0, name=foot) for foot, X in stand.items()]
ik = mk.Solver(robot, [*goals, mk.PoseGoal("body", body, name="body")])

q, slip = robot.q, 0.0
for t in np.arange(0, 2 * math.pi, 0.05):
    X = body.copy()
    X[:3, 3] += (0.2 * math.sin(t), 0.2 * (1 - math.cos(t)), 0.1 * math.sin(2 * t))
    solution = ik.solve({"body": X, **stand}, q).require()
    q = solution.q
    slip = max(slip, *(np.abs(robot.pose(foot, q) - stand[foot]).max() for foot in feet))
print(f"the body went around once; no foot moved by more than {slip:.0e}")

# for a target out of reach of the legs, it goes as far as the feet allow, and says so
far = body.copy()
far[2, 3] += 2.0
solution = ik.solve({"body": far, **stand}, robot.q)
risen = robot.pose("body", solution.q)[2, 3] - body[2, 3]
print(f"2 m up: {solution.status.name}, {risen:.2f} m risen, not met: {', '.join(solution.unmet)}")

# three feet are let go and the others hold it: a solver without their goals, started from the same pose
tripod = mk.Solver(robot, [*goals[::2], mk.PoseGoal("body", body, name="body")])
solution = tripod.solve(None, robot.q)
print("on three feet:", solution.message)

# a step: one tripod swings ahead while the other stands and the body goes half as far
q = robot.q
for share in np.linspace(0, 1, 20):
    swung = {foot: X.copy() for foot, X in stand.items()}
    for foot in feet[1::2]:
        swung[foot][:3, 3] += (0.4 * share, 0.0, 0.2 * math.sin(math.pi * share))
    ahead = body.copy()
    ahead[0, 3] += 0.2 * share
    q = ik.solve({"body": ahead, **swung}, q).require().q
print(
    "after a step the body is at",
    robot.pose("body", q)[:3, 3].round(3),
    "and foot2 at",
    robot.pose("foot2", q)[:3, 3].round(3),
)
