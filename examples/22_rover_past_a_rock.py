"""A rover drives past a rock: all wheels on the ground, and nothing else on it. How far aside must it swing?"""

import math

import numpy as np

import mechanik as mk
from mechanik.gallery.mobile_robots import WHEELS

rover = mk.gallery.rover()

# heights every 0.2 m and a rock, higher than the body: the terrain of the wheels, and an obstacle for the body
x, y = np.meshgrid(np.linspace(-7, 7, 71), np.linspace(-4, 4, 41))
heights = 0.08 * np.sin(1.3 * x) * np.cos(1.1 * y) + 0.95 * np.exp(-(x**2 + y**2) / 0.5**2)
rolling = mk.Terrain(heights, cell=0.2, origin=(-7, -4)).offset_by(0.25)
ground = mk.Obstacle(mk.HeightField(heights, size=(14, 8)), name="ground")
collider = mk.Collider(rover, [ground], allow=[(wheel, "ground") for wheel in WHEELS])
print(collider, "about", ", ".join(a for a, _ in collider.pairs))

# x, y and heading are given; height, tilt, rockers and bogies are solved for
drag = mk.PoseGoal("body", np.eye(4), dof=("X", "Y", "EZ"), level=0, name="drag")
goals = [drag, *(mk.OnTerrain(wheel, rolling, name=wheel) for wheel in WHEELS)]
start = rover.configuration({"base": (-5, 0, 0.9, 0, 0, 0)})


def swing(aside):
    """From x = -5 m to 5 m, heading where it goes."""

    def place(s):
        x = 10 * s - 5
        y = aside * math.exp(-((x / 2) ** 2))
        return {"drag": mk.spatial.make_pose(mk.spatial.rotation.about_z(math.atan(-x * y / 2)), (x, y, 0))}

    return place


for aside in (0.0, 0.5, 2.0):
    path = mk.follow(rover, goals, swing(aside), 100, q0=start).require()
    nearest = collider.nearest_pairs(path.q[np.argmin(collider.distance(path.q))])[0]
    print(f"{aside} m aside: {nearest}")

# the last path, with all constraints checked
path = mk.follow(rover, goals, swing(2.0), 100, q0=start, avoid=collider, clearance=0.1).require()
fine = path.densify(0.02)
centres = rover.poses(path.q, WHEELS)[..., :3, 3]
off = np.abs(centres[..., 2] - rolling.height(centres[..., 0], centres[..., 1])).max()
print(f"wheels: at most {off:.0e} m off the ground; differential: closure error {path.closure_error():.0e} m")
print(f"smallest distance at {len(fine)} points: {1e3 * collider.distance(fine.q).min():.0f} mm")
print(f"largest step {path.largest_step:.3f} rad or m, median {path.median_step:.3f}")
assert off < 1e-6
assert np.all(collider.is_free(fine.q, 0.1))
