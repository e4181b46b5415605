"""Forward kinematics of loops: drive some joints, let the rest follow, and find all ways to put it together."""

import numpy as np

import mechanik as mk

linkage = mk.gallery.four_bar()

# the crank is given, the rocker follows; however far it goes, the linkage stays on its branch
there = linkage.assemble({"crank_joint": 3.5})
print(there)
print("the rocker follows to", np.round(there["rocker_joint"], 4))

# beyond its swing the rocker cannot be driven: it stands at its dead point, the loop shut
beyond = linkage.assemble({"rocker_joint": 3.5})
print(beyond.message)
print(beyond.singular)

# a full turn of a parallelogram, straight through both poses in which it lies flat and could change its branch
flat = mk.gallery.four_bar(ground=2.0, crank=0.5, coupler=2.0, rocker=0.5)
turn = flat.assembly_path({"crank_joint": np.linspace(0.6, 0.6 + 2 * np.pi, 9)})
print("still a parallelogram:", bool(np.abs(turn.q[:, 2] - turn.q[:, 0]).max() < 1e-9))
print("on the way:", [singularity.kind for assembly in turn for singularity in assembly.singularities])

# all ways to put a five-bar together with both cranks where they are
robot = mk.gallery.five_bar()
modes = robot.assembly_modes({"left_crank_joint": 2.0, "right_crank_joint": 1.2})
print(modes)
for q in modes:
    print("the tool at", robot.pose("tool", q)[:2, 3].round(4))

# what the drives leave free stays as near as it can to where it was
print(robot.assemble({"left_crank_joint": 2.3}))
