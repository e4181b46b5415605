"""A four-bar linkage: drive the crank, or set a target for a point of the coupler; the loop stays closed."""

import numpy as np

import mechanik as mk

linkage = mk.gallery.four_bar()
ik = mk.Solver(linkage, mk.JointValues({"crank_joint": 0.6}, angle_mode="exact"))

# three full turns of the crank: the rocker swings, and the loop stays closed
q, max_error, swing = linkage.q, 0.0, []
for angle in np.arange(0.6, 0.6 + 6 * np.pi, 0.02):
    solution = ik.solve(float(angle), q)
    assert solution.success
    q = solution.q
    gap = solution.closure_errors["closing_joint"]
    max_error = max(max_error, gap.position, gap.rotation)
    swing.append(solution["rocker_joint"])
print(f"the rocker swings between {min(swing):.4f} and {max(swing):.4f} rad; closure error at most {max_error:.0e}")

# a point of the coupler, as near as possible to a target out of reach
tip = mk.PositionGoal("coupler", (1.0, 2.0, 0.0), at=(0.9, 0.4, 0.0))
solution = mk.solve(linkage, tip, restarts=20)
print(solution)
print("the loop is closed:", solution.closure_errors["closing_joint"])

# the closing pin can be driven as well, although it has no number in q
pin = mk.JointValues({"closing_joint": linkage.joint("closing_joint").values[0] + 0.2})
print("with the pin rotated by 0.2 rad the crank is at", round(mk.solve(linkage, pin)["crank_joint"], 4))
