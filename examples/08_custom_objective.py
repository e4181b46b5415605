"""An objective of your own: a function of the configuration that must be zero or within a band."""

import numpy as np

import mechanik as mk

arm = mk.gallery.ur5()


def lean(mechanism, q):
    """How far the tool's z axis is from horizontal, as a sine."""
    return mechanism.pose("tool0", q)[2, 2]


# at level 0; finite differences give the derivative, since no function for it is passed
level = mk.Custom(lean, level=0, name="level")
reach = mk.PositionGoal("tool0", (0.4, 0.3, 0.4), name="reach")
solution = mk.solve(arm, [level, reach])
print(solution)
print("the tool leans by", f"{lean(arm, solution.q):.1e}", "and is at", arm.pose("tool0", solution.q)[:3, 3].round(6))


def elbow_height(mechanism, q):
    return mechanism.pose("forearm_link", q)[2, 3]


def elbow_jacobian(mechanism, q):
    """(1, nv): with a derivative it is faster."""
    return mechanism.jacobian("forearm_link", q)[2:3]


# a band: the elbow between 0.3 and 0.45 m above the table, whatever else happens
band = mk.Custom(elbow_height, elbow_jacobian, lower=0.30, upper=0.45, level=0, name="elbow")
solution = mk.solve(arm, [band, reach])
print("the elbow is", round(float(elbow_height(arm, solution.q)), 4), "m high;", solution)

# a soft objective, on which success does not depend: joints near the middle of their range
middle = mk.Custom(lambda mechanism, q: 0.1 * q, required=False, level=3, name="middle")
far, near = mk.solve(arm, reach), mk.solve(arm, [reach, middle])
print(
    "distance from the middle:", np.linalg.norm(far.q).round(3), "without and", np.linalg.norm(near.q).round(3), "with"
)
