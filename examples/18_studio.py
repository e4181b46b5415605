"""A studio that a program drives: people drag the same arm in the browser, and the program sees where they drag it.

Opens no browser here; `mk.Studio(arm)` would, and `studio.wait()` would keep it open.
"""

import math

import numpy as np

import mechanik as mk

arm = mk.gallery.panda()
arm.q = arm.configurations["home"]

with mk.Studio(arm, open_browser=False) as studio:
    print("open", studio.link.split("?")[0])
    hand = studio.handle("panda_hand")
    seen = []
    hand.on_move(lambda pose: seen.append(pose[:3, 3]))  # moved by the page or by the program

    start = hand.pose
    radius = 0.1

    def around(studio, seconds):
        """A circle in two seconds, at its own pace."""
        angle = math.pi * seconds
        pose = start.copy()
        pose[:3, 3] += radius * np.array([0.0, math.sin(angle), math.cos(angle) - 1.0])
        hand.move(pose)
        return angle < 2 * math.pi

    studio.loop(around, rate=60)
    hand.move(start)
    studio.settle()
    reached = studio.mechanism.pose("panda_hand", studio.q)
    off = np.linalg.norm(reached[:3, 3] - start[:3, 3])
    print(f"the handle was moved {len(seen)} times, and the hand is {off:.0e} m from it")
    assert off < 1e-5
    assert len(seen) > 10

    # the elbow is pinned, and the hand moves as far as that allows
    elbow = studio.pin("panda_link4", kind="point")
    held = studio.mechanism.pose("panda_link4", studio.q)[:3, 3]
    hand.move(start[:3, 3] + (0.0, 0.1, 0.0))
    studio.settle()
    moved = np.linalg.norm(studio.mechanism.pose("panda_link4", studio.q)[:3, 3] - held)
    print(f"with its elbow pinned, which moved by {moved:.0e} m")
    assert moved < 1e-5

    # a solution of the program is shown, and stays
    elbow.remove()
    solution = mk.solve(arm, mk.PositionGoal("panda_hand", (0.5, 0.2, 0.5)), q0=arm.configurations["home"]).require()
    studio.show(solution)
    studio.settle()
    assert np.allclose(studio.mechanism.pose("panda_hand", studio.q)[:3, 3], (0.5, 0.2, 0.5), atol=1e-5)
print("closed")
