"""Forward kinematics: one pose, a million poses, and how they change."""

import time

import numpy as np

import mechanik as mk

arm = mk.gallery.panda()
q = arm.configuration({"panda_joint2": 0.4, "panda_joint4": -1.8})
X_world_hand = arm.pose("panda_hand", q)
print("the hand is at", X_world_hand[:3, 3].round(4))

J = arm.jacobian("panda_hand", q, point=(0, 0, 0.1))
print("turning joint 1 at 1 rad/s moves the fingertips at", J[:3, 0].round(3), "m/s")

many = arm.random(np.random.default_rng(0), 1_000_000)
start = time.perf_counter()
X = arm.pose("panda_hand", many)
seconds = time.perf_counter() - start
reach = np.linalg.norm(X[:, :3, 3] - (0, 0, 0.333), axis=1).max()
print(f"a million poses in {seconds:.2f} s; the hand reaches {reach:.3f} m from the shoulder")
