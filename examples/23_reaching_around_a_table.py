"""A person takes a hand from above a table to below it: feet stand, balance holds, no limb collides with the table."""

import math

import numpy as np

import mechanik as mk

person = mk.gallery.humanoid()
person.joint("left_shoulder").set_values((0.0, 0.6, 0.4))  # the left arm held away from the body
top = mk.Obstacle(mk.Box((0.7, 1.4, 0.04)), (0.65, 0.0, 0.75), name="table top")
leg = mk.Obstacle(mk.Box((0.08, 0.08, 0.73)), (0.8, 0.0, 0.365), name="table leg")
floor = mk.Obstacle(mk.HalfSpace(), name="floor")
soles = ["left_foot", "right_foot"]
collider = mk.Collider(person, ["self", top, leg, floor], allow=[(foot, "floor") for foot in soles])
print(collider)

# both soles stay, and the centre of mass 2 cm inside the ground that they cover
corners = [person.pose(foot) @ (x, y, 0.0, 1.0) for foot in soles for x in (-0.059, 0.199) for y in (-0.046, 0.046)]
stand = [
    *(mk.PoseGoal(foot, person.pose(foot), level=0) for foot in soles),
    mk.CentreOfMass(support=np.array(corners)[:, :2], margin=0.02, level=0),
]
fingertip = (0.0, 0.0, -0.18)

# below the table: without avoidance an arm goes through it
below = mk.PositionGoal("right_hand", (0.5, -0.2, 0.6), fingertip)
blind = mk.solve(person, [*stand, below]).require()
print("without avoidance:", *collider.contacts(blind.q)[:1])
careful = mk.solve(person, [*stand, below], avoid=collider, clearance=0.01).require()
print("with avoidance:", collider.nearest_pairs(careful.q)[0])


# the whole path, on a circle about the edge of the table, which is at x = 0.3 m
def around(s):
    angle = math.radians(50 + 260 * s)
    return {"hand": (0.3 + 0.25 * math.cos(angle), -0.3, 0.75 + 0.25 * math.sin(angle))}


left = ["left_shoulder", "left_elbow", "left_wrist"]
hand = mk.PositionGoal("right_hand", (0.0, 0.0, 0.0), fingertip, name="hand")
path = mk.follow(person, [*stand, hand], around, 60, q0=person.q, lock=left, avoid=collider, clearance=0.01).require()
print(f"{len(path)} waypoints, largest step {path.largest_step:.3f} rad or m, median {path.median_step:.3f}")

gaps = collider.distance(path.q)
slip = max(np.abs(person.pose(foot, path.q) - person.pose(foot)).max() for foot in soles)
lean = max(stand[-1].error(person, q).position for q in path.q)
print(f"smallest distance {1e3 * gaps.min():.1f} mm; feet slip by {slip:.0e}, and balance is off by {lean:.0e} m")
print("nearest on the path:", collider.nearest_pairs(path.q[np.argmin(gaps)])[0])
assert gaps.min() > 0.01 - 1e-6
assert path.is_free(collider)
