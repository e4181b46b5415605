"""Links and joints are a graph that can be edited at any time; everything computed from it follows."""

import mechanik as mk

base, shoulder, arm = mk.Link("base"), mk.Joint("shoulder", dof="EZ", values=0.5), mk.Link("arm")
base.add_child(shoulder)
shoulder.add_child(arm)
robot = mk.Mechanism(base, name="grows")
print(robot)

# any subset of the six freedoms, about any axis
wrist, hand = mk.Joint("wrist", dof=["X", "EX", "EY", "EZ"], position=(0.4, 0, 0)), mk.Link("hand")
arm.add_child(wrist)
wrist.add_child(hand)
print(robot, robot.space.q_names)

# take the hand off where it is, and put it onto the base: its place in the world stays
arm.detach_child(wrist)
base.attach_child(wrist)
print("the hand is at", hand.world_position.round(3))

goal = mk.Goal("reach", position=(0.5, 0.2, 0), dof=["X", "Y", "Z"])
goal.make_closure(hand)
print("from its goal it is", round(goal.closure.gap().distance, 3), "m away")
