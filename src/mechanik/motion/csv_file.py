"""A motion as CSV: a line a frame, a column a number of q, and behind them the freedoms that follow others."""

from __future__ import annotations

import csv
import io

import numpy as np

from mechanik.motion.motion import Motion
from mechanik.spatial.array import Array


def to_csv(motion: Motion) -> bytes:
    """`time` (s), then m and rad by name; a ball joint has the four numbers of its quaternion, as in q."""
    followers = followers_of(motion)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["time", *motion.mechanism.space.q_names, *followers])
    columns = [motion.times, *motion.q.T, *followers.values()]
    writer.writerows([repr(number) for number in row] for row in np.stack(columns, axis=1).tolist())
    return text.getvalue().encode()


def followers_of(motion: Motion) -> dict[str, Array]:
    """The values (N,) of freedoms that follow others, by the joint's name, or `joint.X` where it has several."""
    mechanism, found = motion.mechanism, dict[str, Array]()
    slots = mechanism.kinematics.slots
    for joint in slots:
        for coupling in joint.couplings:
            leader, dof, ratio, offset = coupling.resolve()
            name = mechanism.name_of(joint)
            label = name if len(joint.dof) == 1 else f"{name}.{coupling.dof.name}"
            found[label] = ratio * motion.q[:, slots[leader].q[dof]] + offset
    return found
