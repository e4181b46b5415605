"""A hexapod moves a workpiece below a mill that stands still: a bowl is cut in a spiral, square to its ground."""

import math

import numpy as np

import mechanik as mk
from mechanik.spatial import inverse, make_pose, rotation

hexapod = mk.gallery.hexapod()
print(hexapod, "with", mk.mobility(hexapod).dof, "dofs")

# m: radius of the bowl's ground, the height of its deepest place above the platform, and from there up to the mill
BOWL, HIGH, TURNS = 0.08, 0.02, 8
p_world_mill = hexapod.pose("platform")[:3, 3] + (0.0, 0.0, HIGH)


def workpiece(rim):
    """Poses of the platform for s from 0 to 1: from the rim inwards, turns equally far apart, always as fast."""

    def pose(s):
        share = math.sqrt(1 - 0.98 * s)
        angle, tilt = 2 * math.pi * TURNS * share, math.asin(rim / BOWL) * share
        up = np.array([-math.cos(angle) * math.sin(tilt), -math.sin(angle) * math.sin(tilt), math.cos(tilt)])
        R = rotation.between(up, (0.0, 0.0, 1.0))
        return make_pose(R, p_world_mill - R @ ((0.0, 0.0, HIGH + BOWL) - BOWL * up))

    return pose


cut = workpiece(rim=0.010)
path = mk.follow(hexapod, "platform", cut, 600, q0=hexapod.q).require()
ratio = path.largest_step / path.median_step
print(f"{len(path)} poses: the largest step is {path.largest_step:.4f} rad or m, {ratio:.1f} times the median")
print(f"loops stand open by at most {path.closure_error():.0e} m")

# struts are between their shortest and longest
names = [f"strut{k}_slide.Z" for k in range(1, 7)]
at = [hexapod.space.q_names.index(name) for name in names]
lower, upper = hexapod.space.lower[at], hexapod.space.upper[at]
lengths = path.q[:, at]
spare = min((lengths - lower).min(), (upper - lengths).min())
print(f"struts from {1e3 * lengths.min():.2f} to {1e3 * lengths.max():.2f} mm, {1e3 * spare:.2f} mm off their limits")

# between the poses as well the mill is on the bowl: as far from its centre as the ground is
X_world_platform = hexapod.pose("platform", path.at(np.linspace(0.0, 1.0, 4321)))
p_platform_mill = mk.spatial.apply(inverse(X_world_platform), p_world_mill)
off = np.abs(np.linalg.norm(p_platform_mill - (0.0, 0.0, HIGH + BOWL), axis=1) - BOWL).max()
print(f"the ground is true to {1e9 * off:.0f} nm")
assert spare > 0.0
assert off < 1e-6

# the rim of a wider bowl is out of reach, and it says by which struts
wide = mk.Solver(hexapod, mk.PoseGoal("platform", workpiece(rim=0.02)(0.0))).solve(None, hexapod.q)
print(wide.status.name, "with the limits of", *wide.active_limits)
