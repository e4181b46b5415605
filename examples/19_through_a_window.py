"""A Panda reaches through a window in a wall, in the shortest time that its motors allow, and bumps into nothing."""

import numpy as np

import mechanik as mk

arm = mk.gallery.panda()
home = arm.configurations["home"]

# a wall 0.5 m ahead, and in it a hole of 0.5 by 0.4 m whose middle is 0.6 m up: four boxes, each with a name
wall = [
    mk.Obstacle(mk.Box((0.04, 1.5, 0.4)), (0.5, 0.0, 0.2), name="sill"),
    mk.Obstacle(mk.Box((0.04, 1.5, 0.4)), (0.5, 0.0, 1.0), name="lintel"),
    mk.Obstacle(mk.Box((0.04, 0.5, 0.4)), (0.5, 0.5, 0.6), name="left of the window"),
    mk.Obstacle(mk.Box((0.04, 0.5, 0.4)), (0.5, -0.5, 0.6), name="right of the window"),
]
collider = mk.Collider(arm, ["self", *wall])
print(collider)

# the tool behind the wall, pointing ahead
X_world_tool = mk.spatial.make(mk.spatial.rotation.turn_y(3 * np.pi / 4), (0.75, 0.2, 0.4))
goal = mk.PoseGoal("panda_hand_tcp", X_world_tool)
blind = mk.solve(arm, goal, q0=home).require()
print("without looking:", *collider.clashes(blind.q))
print("looking:", mk.solve(arm, goal, q0=home, avoid=collider, clearance=0.01).message)

# the whole way there keeps off by 1 cm
path = mk.plan(arm, home, goal, avoid=collider, clearance=0.01, max_seconds=20)
print(path, path.planner, path.gap, path.is_certain, path.seconds)
straight = mk.Path(arm, [home, path.q[-1]])
print(f"straight there: {collider.distance(straight.finer(0.02).q).min() * 1e3:.1f} mm")

move = mk.retime(path, acceleration=10.0)
print(move, move.deviation)
q = move.sampled(0.001).q
print(f"every ms of it: smallest gap {1e3 * collider.distance(q).min():.1f} mm, free: {bool(np.all(collider.is_free(q, 0.01)))}")
