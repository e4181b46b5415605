"""Links and joints are a graph that can be edited at any time; everything computed from it follows."""

import mechanik as mk

base, shoulder, arm = mk.Link("base"), mk.Joint("shoulder", dof="EZ", values=0.5), mk.Link("arm")
base.add_child(shoulder)
shoulder.add_child(arm)
robot = mk.Mechanism(base, name="grows")
print(robot)

# any subset of the six dofs, about any axis
wrist, hand = mk.Joint("wrist", dof=["X", "EX", "EY", "EZ"], position=(0.4, 0, 0)), mk.Link("hand")
arm.add_child(wrist)
wrist.add_child(hand)
print(robot, robot.space.q_names)

# detach the hand and attach it to the base: its pose in the world stays the same
arm.detach_child(wrist)
base.attach_child(wrist)
print("the hand is at", hand.world_position.round(3))

goal = mk.Goal("reach", position=(0.5, 0.2, 0), dof=["X", "Y", "Z"])
goal.make_closure(hand)
print("distance to its goal:", round(goal.closure.gap().distance, 3), "m")
