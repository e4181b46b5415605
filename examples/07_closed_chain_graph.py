"""The graph interface: build links and joints, close loops, attach goals, solve; joints hold the solution."""

import mechanik as mk

# two arms of two links on one base, whose hands hold one bar between them
base = mk.Link("base")


def arm(side, x):
    """Shoulder and elbow about z; returns the hand."""
    above, at = base, (x, 0, 0)
    for part in ("upper", "lower"):
        joint, link = mk.Joint(f"{side}_{part}", dof="EZ", position=at, values=0.8), mk.Link(f"{side}_{part}")
        above.add_child(joint)
        joint.add_child(link)
        above, at = link, (1, 0, 0)
    return above


left, right = arm("left", -0.75), arm("right", 0.75)
bar_joint, bar = mk.Joint("grip", dof="EZ", position=(1, 0, 0)), mk.Link("bar")
left.add_child(bar_joint)
bar_joint.add_child(bar)
pin = mk.Joint("pin", dof="EZ", position=(0.5, 0, 0))
bar.add_child(pin)
pin.make_closure(right, mk.Pose((1, 0, 0)))

goal = mk.Goal("carry", position=(0, 1.2, 0), dof=["X", "Y", "EZ"])
goal.make_closure(bar)
solver = mk.Solver(base)
print(solver.solve())
print("loop:", pin.closure.gap())

# anything may change between two solves: no update has to be called
goal.position = (0.2, 1.0, 0)
solver.solve()
print("the bar is at", bar.world_position.round(4))

shoulder = solver.mechanism.joint("left_upper")
goal.set_goal_dof("Y")  # only the height of the bar matters now,
shoulder.set_targets(shoulder.values[0] + 0.2)  # and the angle of the left shoulder
print(solver.solve())
print("shoulder at", shoulder.values, "and the bar at", bar.world_position.round(4))

pin.closure.undo()  # release the bar from the right hand
goal.position = (-1.5, 0.5, 0)
shoulder.clear_targets()
for chain in solver.solve().subproblems:
    print(chain.status.name, "moves", *chain.joints)
