"""A rover on rough terrain: x, y and heading are given; height, tilt, rockers and bogies are solved for."""

import math

import numpy as np

import mechanik as mk
from mechanik.gallery.mobile_robots import WHEELS

rover = mk.gallery.rover()
print(rover, "with", mk.mobility(rover).dof, "dofs")

# a field of heights, 12 m wide, and the surface on which the middle of a wheel of 0.25 m rolls
x, y = np.meshgrid(np.arange(-6, 6.1, 0.2), np.arange(-6, 6.1, 0.2))
ground = mk.Terrain(0.25 * np.sin(1.3 * x) * np.cos(1.1 * y) + 0.1 * np.sin(2.3 * y + x), cell=0.2, origin=(-6, -6))
rolling = ground.offset_by(0.25)

# x, y and heading come first; then every wheel touches
drag = mk.PoseGoal("body", np.eye(4), dof=("X", "Y", "EZ"), level=0, name="drag")
ik = mk.Solver(rover, [drag, *(mk.OnTerrain(wheel, rolling, name=wheel) for wheel in WHEELS)])


def place(angle):
    """On a circle of 3 m, heading along it."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[-s, -c, 0, 3 * c], [c, -s, 0, 3 * s], [0, 0, 1, 0], [0, 0, 0, 1]])


# put down level and with its heading, then dragged all around
q = rover.configuration({"base": (3.0, 0.0, 0.9, 0.0, 0.0, math.pi / 2)})
widest, rockers = 0.0, []
for angle in np.arange(0, 2 * math.pi, 0.02):
    solution = ik.solve({"drag": place(angle)}, q).require()
    q = solution.q
    centres = rover.poses(q, WHEELS)[:, :3, 3]
    widest = max(widest, *(abs(p[2] - rolling.height(p[0], p[1])) for p in centres))
    rockers.append((solution["left_rocker_joint"], solution["right_rocker_joint"]))
print(f"once around: wheels off the ground by at most {widest:.0e} m")

# the bar between the rockers lets one rise only as the other sinks
left, right = np.transpose(rockers)
print(
    f"the left rocker turns by up to {abs(left).max():.3f} rad; left + right is below {abs(left + right).max():.1g} rad"
)
tilt = math.degrees(math.acos(rover.pose("body", q)[2, 2]))
print(f"at the end the body leans by {tilt:.1f} degrees; the last solve took {1e3 * solution.seconds:.2f} ms")

# over a pit so deep that no bogie can follow, the solution is the nearest possible, and its status says so
deep = -2.5 / (1 + np.exp((np.hypot(x, y - 1.1) - 0.7) / 0.06))
pit = mk.Terrain(deep, cell=0.2, origin=(-6, -6)).offset_by(0.25)
goals = [drag, *(mk.OnTerrain(wheel, pit, name=wheel) for wheel in WHEELS)]
solution = mk.Solver(rover, goals).solve(None, rover.q)
print("over a pit:", solution.status.name, "with the limit of", *solution.active_limits)
