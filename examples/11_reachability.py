"""Reachability of an arm, in position and orientation: a map of voxels to query, save and plot."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import mechanik as mk

arm = mk.gallery.scara()
reach = mk.reachability(arm, "tool", resolution=0.05, orientations=12)
print(reach)
print("from", reach.extent[0].round(2), "to", reach.extent[1].round(2))

# any positions at once
positions = np.array([[0.4, 0.1, 0.3], [0.0, 0.0, 0.3], [0.9, 0.0, 0.3]])
print("reached:", reach.reachable(positions), "share of rotations about the tool:", reach.share(positions))

# every voxel has a configuration that reaches it
best = reach.best
print("best position", reach.positions[best].round(3), "with q =", reach.q[best].round(2))
assert np.allclose(arm.pose("tool", reach.q[best])[:3, 3], reach.positions[best])

# two links in a plane reach an annulus; with tighter limits of the elbow they reach less
two = mk.gallery.planar_2r((1.0, 0.6))
free = mk.reachability(two, "tool", 0.05)
tight = mk.reachability(two, "tool", 0.05, limits={"joint2": (0.5, 2.0)})
print(f"{free.area:.2f} m², by formula {np.pi * (1.6**2 - 0.4**2):.2f}; with a stiff elbow {tight.area:.2f} m²")

# share of all orientations of an arm with six joints, and its directions of approach
six = mk.reachability(mk.gallery.ur5(), "tool0", 0.3, orientations=24)
directions, shares = six.by_direction()
print(f"{six.shares.max():.0%} at best, {six.shares.min():.0%} at the rim")
print("easiest direction of approach:", directions[shares.mean(axis=0).argmax()].round(2))

with TemporaryDirectory() as folder:
    reach.save(Path(folder) / "scara.npz")
    again = mk.ReachMap.load(Path(folder) / "scara.npz")
    print(len(again), "voxels loaded")
# reach.plot().savefig("scara.png") draws it, with mechanik[plot]
