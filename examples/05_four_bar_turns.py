"""A four-bar linkage: drive the crank, or ask the coupler for a point; the loop stays shut whatever is asked."""

import numpy as np

import mechanik as mk

linkage = mk.gallery.four_bar()
ik = mk.Solver(linkage, mk.JointValues({"crank_joint": 0.6}, angle_mode="exact"))

# three full turns of the crank: the rocker swings, and nothing opens
q, widest, swing = linkage.q, 0.0, []
for angle in np.arange(0.6, 0.6 + 6 * np.pi, 0.02):
    solution = ik.solve(float(angle), q)
    assert solution.success
    q = solution.q
    gap = solution.closure_errors["closing_joint"]
    widest = max(widest, gap.position, gap.rotation)
    swing.append(solution["rocker_joint"])
print(f"the rocker swings between {min(swing):.4f} and {max(swing):.4f} rad; the widest gap was {widest:.0e}")

# a point of the coupler, as near as the linkage lets it come to a place that it cannot reach
tip = mk.PositionGoal("coupler", (1.0, 2.0, 0.0), at=(0.9, 0.4, 0.0))
solution = mk.solve(linkage, tip, restarts=20)
print(solution)
print("shut all the same:", solution.closure_errors["closing_joint"])

# the closing pin can be driven as well, although it has no number in q
pin = mk.JointValues({"closing_joint": linkage.joint("closing_joint").values[0] + 0.2})
print("with the pin turned by 0.2 the crank is at", round(mk.solve(linkage, pin)["crank_joint"], 4))
