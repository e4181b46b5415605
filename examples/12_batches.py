"""Many targets at once: from an array or a file, in lanes and threads, interrupted and resumed."""

from pathlib import Path

import numpy as np

import mechanik as mk

arm = mk.gallery.ur5()
ik = mk.Solver(arm, mk.PoseGoal("tool0", np.eye(4)))

# 20,000 poses, of which two are invalid and one is out of reach: each row has its own status
X_world_tool = arm.pose("tool0", arm.random(np.random.default_rng(0), 20_000))
X_world_tool[7, 0, 3] = np.nan
X_world_tool[11, :3, :3] *= -1.0
X_world_tool[42, :3, 3] = (3.0, 0.0, 0.0)
result = ik.solve_batch(X_world_tool)
print(result.summary())
print("rows without a solution:", np.flatnonzero(~result.success), "error of row 42:", result.errors[42, 0, 0], "m")

# position and wxyz work as well, and so do starts to stay near
position, wxyz = mk.spatial.to_position_wxyz(X_world_tool[100:200])
again = ik.solve_batch(np.hstack([position, wxyz]), q0=result.q[100:200])
print("moved by at most", np.abs(again.q - result.q[100:200]).max(), "rad")

# more than fits into memory: targets from a mapped file, the result in a folder
np.save("poses.npy", X_world_tool)
poses = np.load("poses.npy", mmap_mode="r")


def impatient(done: int, total: int) -> None:
    if done > total // 2:
        raise KeyboardInterrupt


# Ctrl-C keeps the solved rows, and the same call resumes
try:
    ik.solve_batch(poses, out="solutions", progress=impatient, chunk=1000)
except KeyboardInterrupt as stopped:
    print(stopped)
finished = ik.solve_batch(poses, out="solutions")
print(
    finished, "equal:", np.array_equal(finished.q, result.q), sorted(path.name for path in Path("solutions").iterdir())
)

# the same from a terminal: mechanik batch gallery:ur5 --targets poses.npy --out solutions.npz
