"""A Panda reaches through a window, as fast as its motors allow, without collisions. Needs mechanik[plan]."""

import math

import numpy as np

import mechanik as mk

arm = mk.gallery.panda()

# a wall 0.5 m ahead of the arm, and in it a window of 0.5 by 0.5 m: four boxes, each with a name
wall = [
    mk.Obstacle(mk.Box((0.04, 1.6, 0.35)), (0.5, 0.0, 0.175), name="sill"),
    mk.Obstacle(mk.Box((0.04, 1.6, 0.4)), (0.5, 0.0, 1.05), name="lintel"),
    mk.Obstacle(mk.Box((0.04, 0.55, 0.5)), (0.5, 0.525, 0.6), name="left of the window"),
    mk.Obstacle(mk.Box((0.04, 0.55, 0.5)), (0.5, -0.525, 0.6), name="right of the window"),
]
collider = mk.Collider(arm, ["self", *wall])
print(collider)

# the hand is low on this side of the wall, to the right; it must reach down at an angle on the other
start = arm.configurations["home"].copy()
start[[0, 1, 3, 5]] = -1.0, 0.1, -2.4, 2.5
R_world_tool = mk.spatial.rotation.about_y(0.75 * math.pi)
beyond = mk.PoseGoal("panda_hand_tcp", mk.spatial.make_pose(R_world_tool, (0.75, 0.1, 0.45)))

# without avoid= the solution is inside the wall; with avoid= that is never a success
blind = mk.solve(arm, beyond, start).require()
print("without avoidance:", *collider.contacts(blind.q))
print("with avoidance:", mk.solve(arm, beyond, start, avoid=collider, clearance=0.005).message)

# a collision-free path; it is free between its waypoints too, because no point can move far enough there
path = mk.plan(arm, start, beyond, avoid=collider, clearance=0.005, max_seconds=60)
straight = mk.Path(arm, [start, path.q[-1]]).densify()
print(f"the straight segment is {-1e3 * collider.distance(straight.q).min():.0f} mm deep in the wall")
print(
    f"by {path.planner}: {len(path)} waypoints, smallest distance {1e3 * path.min_distance:.1f} mm, "
    f"certain: {path.is_certain}"
)
assert path.min_distance >= 0.005

# with timing; then every millisecond is checked
move = mk.retime(path, velocity=2.0, acceleration=10.0)
each = move.resample(1e-3)
print(f"in {move.duration:.2f} s, with at most {abs(each.v).max():.3f} rad/s and {abs(each.a).max():.3f} rad/s^2")
print(f"smallest distance of {len(each)} configurations: {1e3 * collider.distance(each.q).min():.1f} mm")
assert np.all(collider.is_free(each.q, 0.005))
