"""Forward kinematics of loops: drive some joints, compute the passive joints, and find all assembly modes."""

import numpy as np

import mechanik as mk

linkage = mk.gallery.four_bar()

# the crank is the input, the rocker is passive; the linkage stays on its branch over any distance
there = linkage.assemble({"crank_joint": 3.5})
print(there)
print("the rocker is at", np.round(there["rocker_joint"], 4))

# beyond its swing the rocker cannot be driven: it stops at its dead point, with the loop closed
beyond = linkage.assemble({"rocker_joint": 3.5})
print(beyond.message)
print(beyond.singular)

# a full turn of a parallelogram, straight through both poses in which it lies flat and could change its branch
flat = mk.gallery.four_bar(ground=2.0, crank=0.5, coupler=2.0, rocker=0.5)
turn = flat.assembly_path({"crank_joint": np.linspace(0.6, 0.6 + 2 * np.pi, 9)})
print("still a parallelogram:", bool(np.abs(turn.q[:, 2] - turn.q[:, 0]).max() < 1e-9))
print("singularities on the path:", [singularity.kind for assembly in turn for singularity in assembly.singularities])

# all assembly modes of a five-bar for given cranks
robot = mk.gallery.five_bar()
modes = robot.assembly_modes({"left_crank_joint": 2.0, "right_crank_joint": 1.2})
print(modes)
for q in modes:
    print("tool at", robot.pose("tool", q)[:2, 3].round(4))

# what the inputs leave free stays as near as possible to its previous value
print(robot.assemble({"left_crank_joint": 2.3}))
