"""Closed forms: all solutions of an arm for a pose, and why a formula exists."""

import numpy as np

import mechanik as mk

arm = mk.gallery.ur5()
print(arm.explain())

form = mk.closed_form(arm, "tool0")
q = arm.q
X_world_tool = arm.pose("tool0", q)
for branch in form.branches(X_world_tool, q):  # nearest first, inside the limits
    print(branch.round(3), "off by", np.abs(arm.pose("tool0", branch) - X_world_tool).max())

# many at once: every branch of 10,000 poses
X = arm.pose("tool0", arm.random(np.random.default_rng(0), 10_000))
angles, exists = form.solve_all(X)
print(angles.shape, "on average", exists.sum(axis=1).mean(), "branches")

# seven joints: the elbow may go round while shoulder and hand stay
redundant = mk.gallery.iiwa14()
form = mk.closed_form(redundant, "iiwa_link_ee")
q = redundant.random(np.random.default_rng(1))
hand = redundant.pose("iiwa_link_ee", q)
for elbow in np.linspace(-1, 1, 3):
    there = form.branches(hand, q, elbow=form.elbow_angle(q) + elbow, within_limits=False)
    print(f"elbow turned by {elbow:+.0f} rad: {len(there)} branches, the nearest {there[0].round(2)}")

# as a solver: the nearest branch, or the closest pose where there is none
ik = mk.Solver(arm, mk.PoseGoal("tool0", np.eye(4)), solver="closed_form")
print(ik.solve(X[0], arm.q))

try:
    mk.closed_form(mk.gallery.panda(), "panda_hand_tcp")
except mk.MechanikError as error:
    print(error)
