"""One mechanism, every method: the same goal from the same start, and the result of each."""

import numpy as np

import mechanik as mk

arm = mk.gallery.panda()
q0 = arm.q
goal = mk.PoseGoal("panda_hand_tcp", arm.pose("panda_hand_tcp", q0 + 0.3))

for name in ("lm", "dls", "sdls", "newton", "jacobian_transpose", "ccd", "lbfgsb"):
    solution = mk.solve(arm, goal, q0, solver=name, restarts=0)
    print(f"{name:20}{'solved' if solution.success else solution.status.name:10}{solution.iterations:6} iterations")

# a method rejects what it does not support, and names one that does
try:
    mk.Solver(arm, goal, rest=q0, solver="ccd")
except mk.MechanikError as error:
    print(error)

# one iteration at a time, for animation and teaching
ik = mk.Solver(arm, goal, solver="jacobian_transpose")
q = q0
for _ in range(3):
    q = ik.step(q0=q).q
    print("error", goal.error(arm, q))

# or watch the iterations, and stop when the error is small enough
errors: list[float] = []


def watch(iterate: mk.Iterate) -> bool:
    errors.append(iterate.error)
    return iterate.error < 1e-3


print(
    ik.solve(q0=q0, callback=watch).status, "after", len(errors), "iterations; decades:", np.log10(errors[-1]).round(1)
)

print(mk.Solver(mk.gallery.ur5(), mk.PoseGoal("tool0", np.eye(4)), solver="auto").method_reason)
