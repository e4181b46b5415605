"""A humanoid with strict priorities: feet and balance first, then a hand, then the gaze, then a comfortable pose."""

import mechanik as mk

body = mk.gallery.humanoid()


def goals(target):
    """Lower levels move only in what the levels above leave free."""
    feet = [mk.PoseGoal(foot, body.pose(foot), level=0, name=foot) for foot in ("left_foot", "right_foot")]
    return [
        *feet,
        mk.CentreOfMass((0.02, 0, 0), dof=["X", "Y"], level=0, name="balance"),
        mk.PositionGoal("left_hand", target, at=(0, 0, -0.15), level=1, name="hand"),
        mk.LookAt("eyes", target, axis=(1, 0, 0), level=2, name="gaze"),
        mk.RestPose(body.configurations["home"], name="comfort"),
    ]


targets = {"near": (0.35, 0.30, 0.80), "on the ground": (0.35, 0.30, 0.05), "too far": (1.5, 0.6, 1.2)}
for what, target in targets.items():
    solution = mk.solve(body, goals(target), restarts=0, max_iterations=300)
    print(f"{what}: {'solved' if solution.success else 'not solved'}")
    for name, error in solution.errors.items():
        print(f"    {name:10} {error}")
    if not solution.success:
        print("   ", solution.message)
