"""How live the studio is: a real drag in a headless Chromium that draws in software, at 960 x 600.

For each mechanism the first goal is dragged along a circle by its gizmo, with the real mouse:
    pose   from the event of the mouse until the page has the new pose, ms: median and 95 in 100
    drawn  until the frame with that pose has been drawn
    solves answers to new positions of the hand, a second
    CPU    of the server's process, cores

    python benchmarks/studio.py [--seconds 8] [NAME ...]
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from studio_driving import Studio, chromium, studio_process

GOALS = "goals: pose <= 40 ms in the median, solves >= 40 a second, CPU < 1"
WATCH = """(() => {
  const sent = new Map(), pose = [], drawn = [];
  let event = 0, tag = m.store.wire.lastTag;
  const look = () => { if (m.store.wire.lastTag !== tag) sent.set((tag = m.store.wire.lastTag), event); };
  addEventListener("pointermove", (moved) => { event = moved.timeStamp; }, { capture: true });
  addEventListener("pointermove", () => look());
  m.store.on("frame", (frame) => {
    look();
    for (const [one, time] of sent) {
      if (one > frame.tag) continue;
      sent.delete(one);
      pose.push(performance.now() - time);
      requestAnimationFrame(() => setTimeout(() => drawn.push(performance.now() - time)));
    }
  });
  window.watched = { pose, drawn };
  return true;
})()"""
DEFAULT = ("panda", "stewart_platform", "hexapod", "humanoid", "ur5", "delta_robot")


def measure(studio: Studio, process: psutil.Process, name: str, seconds: float) -> list[str]:
    """A row of the table."""
    studio.show("gallery", name)
    number = studio.eval("m.store.goals.find((goal) => !goal.pinned).number")
    studio.eval("(m.store.select({ kind: 'goal', goal: a }), true)", number)
    studio.still()
    x, y = studio.goal_on_screen(number)
    studio.eval("(window.watched.pose.length = 0, window.watched.drawn.length = 0, true)")
    mouse, radius = studio.page.mouse, 24
    mouse.move(x, y)
    studio.page.wait_for_timeout(50)
    mouse.down()
    busy = sum(process.cpu_times()[:2])
    begun = time.perf_counter()
    while (now := time.perf_counter() - begun) < seconds:
        mouse.move(x + radius * (math.cos(2 * now) - 1), y + radius * math.sin(2 * now))
    took = time.perf_counter() - begun
    cpu = (sum(process.cpu_times()[:2]) - busy) / took
    mouse.up()
    studio.page.wait_for_timeout(100)
    pose, drawn = (sorted(studio.eval(f"window.watched.{what}")) for what in ("pose", "drawn"))
    if len(pose) < 10:
        raise SystemExit(f"{name}: the drag moved nothing ({len(pose)} answers)")
    return [
        name,
        f"{statistics.median(pose):.1f}",
        f"{pose[int(0.95 * len(pose))]:.1f}",
        f"{statistics.median(drawn):.1f}",
        f"{len(pose) / took:.0f}",
        f"{cpu:.2f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=DEFAULT)
    parser.add_argument("--seconds", type=float, default=8.0)
    given = parser.parse_args()
    heads = ["mechanism", "pose ms", "95 %", "drawn ms", "solves/s", "CPU"]
    print("".join(f"{head:>18}" if k == 0 else f"{head:>10}" for k, head in enumerate(heads)))
    with studio_process() as server, chromium() as browser:
        process = psutil.Process(server.process.pid)
        studio = Studio.open(browser, server.link)
        studio.eval(WATCH)
        for name in given.names:
            row = measure(studio, process, name, given.seconds)
            print("".join(f"{cell:>18}" if k == 0 else f"{cell:>10}" for k, cell in enumerate(row)), flush=True)
    print(GOALS)


if __name__ == "__main__":
    main()
