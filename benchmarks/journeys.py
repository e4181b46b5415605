"""Count the source files that a reader meets on four journeys through the package.

    python benchmarks/journeys.py [--files]

Each journey runs once under `sys.setprofile`; a file counts if one of its functions is called. Kernels run as machine
code; those that Python calls count, too. What runs once, when modules are imported and tables are built, does not
count: each journey runs several times before in the same process. `--files` lists the files.
"""

from __future__ import annotations

import os

os.environ["MECHANIK_KERNELS"] = "jit"

import functools
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import mechanik as mk
from mechanik.studio.messages import message_codec, requests
from mechanik.studio.session.session import Session

PACKAGE = str(Path(mk.__file__).parent)
GOALS = {"load a URDF": 15, "first mk.solve on a UR5": 30, "a prepared call": 4, "one drag update": 25}
"""Files, at most."""
SOLVE_SECONDS = 0.5
"""s that the session's threads have for one update."""
WARMUP_RUNS = 4
"""Runs of a journey before the one that is traced."""


called: set[str] = set()
"""Files of the package in which a function was called, relative to it, since the set was last cleared."""


def note(frame: FrameType, event: str, _argument: object) -> None:
    name = frame.f_code.co_filename
    # a module's own code runs once, when it is imported
    if event == "call" and name.startswith(PACKAGE) and frame.f_code.co_name != "<module>":
        called.add(name[len(PACKAGE) + 1 :])


def drag_journey() -> None:
    session, update = drag()
    session.drag_to(update)
    time.sleep(SOLVE_SECONDS)


@functools.cache
def drag() -> tuple[Session, message_codec.DragUpdate]:
    """A session with a goal that is being dragged; its threads start here, so that they do not disturb the others."""
    session = Session(lambda event: None, lambda frame: None)
    session.handle_request(requests.OpenGallery("ur5"))
    session.handle_request(requests.StartGoalDrag(1))
    return session, message_codec.DragUpdate(message_codec.DRAG_GOAL, 1, 1, (0.4, 0.2, 0.5, 1.0, 0.0, 0.0, 0.0))


def journeys() -> dict[str, Callable[[], object]]:
    folder = Path(tempfile.mkdtemp())
    urdf = folder / "ur5.urdf"
    mk.save(mk.gallery.make("ur5"), urdf)
    arm = mk.gallery.make("ur5")
    target = arm.pose("tool0", [0.3, -1.0, 1.2, -0.5, 0.8, 0.1])
    goal = mk.PoseGoal("tool0", target)
    solver = mk.Solver(arm, goal)
    return {
        "load a URDF": lambda: mk.load(urdf),
        "first mk.solve on a UR5": lambda: mk.solve(arm, goal),
        "a prepared call": lambda: solver.solve(target),
        "one drag update": drag_journey,
    }


def main() -> None:
    threading.setprofile(note)  # for the threads of the session
    all_journeys = journeys()
    for name, journey in all_journeys.items():
        for _ in range(WARMUP_RUNS):
            journey()
        called.clear()
        sys.setprofile(note)
        journey()
        sys.setprofile(None)
        files = set(called)
        print(f"{name:26} {len(files):3} files, at most {GOALS[name]}")
        if "--files" in sys.argv:
            print("   ", "\n    ".join(sorted(files)))


if __name__ == "__main__":
    main()
