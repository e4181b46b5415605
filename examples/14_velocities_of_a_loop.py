"""Structure, velocities and singularities of a closed mechanism."""

import numpy as np

import mechanik as mk

# inputs and passive joints, from the geometry
robot = mk.gallery.stewart_platform()
structure = mk.structure(robot)
print("mobility", structure.mobility.dof, "- driven by", ", ".join(structure.inputs))

# leg velocities to the platform's velocity (linear, angular): raise all legs by 1 mm/s
J = robot.closed_jacobian("platform")
print("all legs by 1 mm/s lift the platform by", np.round(1000 * J.matrix @ np.full(6, 0.001), 3)[2], "mm/s")
print(f"condition {J.condition:.2f}")

# a crank cannot be started by its piston at a dead point
engine = mk.gallery.slider_crank(angle=0.0)
J = engine.closed_jacobian("crank", inputs="slider_joint")
print("at the dead point", ", ".join(J.dependent), "cannot drive;", ", ".join(J.undetermined), "may move all the same")
solution = mk.solve(engine, mk.JointValues({"slider_joint": 1.3}), q0=engine.q)
print(solution.singularity)

# a stretched arm cannot reach further: a target out of reach is reported
arm = mk.Builder("arm")
arm.revolute("shoulder", "base", "upper", value=0.5)
arm.revolute("elbow", "upper", "lower", at=(1.0, 0.0, 0.0), value=0.8)
arm.fixed("wrist", "lower", "hand", at=(0.7, 0.0, 0.0))
solution = mk.solve(arm.build(), mk.PositionGoal("hand", (2.0, 1.0, 0.0)))
print(solution.status.name, "-", solution.singularity)
