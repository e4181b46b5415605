"""Latency of the studio: a real drag in a headless Chromium that draws in software, at 960 x 600.

For each mechanism the first goal is dragged along a circle by its gizmo, with a mouse that reports its position 125
times a second without waiting for replies:
    pose   from the event of the mouse until the page has the new pose, ms: median and 95 in 100
    drawn  until the frame with that pose has been drawn
    solves solutions for new pointer positions, per second
    CPU    of the server's process, cores

    python benchmarks/studio.py [--seconds 8] [NAME ...]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import socket
import statistics
import sys
import threading
import time
from pathlib import Path
from urllib.request import urlopen

import psutil
from websockets.sync.client import connect

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from studio_driving import Studio, chromium, studio_process

MOST_MS, LEAST_SOLVES, MOST_CPU = 40.0, 40.0, 1.0
GOALS = f"goals: pose <= {MOST_MS:g} ms in the median, solves >= {LEAST_SOLVES:g} a second, CPU < {MOST_CPU:g}"
WATCH = """(() => {
  const sent = new Map(), pose = [], drawn = [];
  let event = 0, tag = m.store.connection.lastTag;
  const record = () => { if (m.store.connection.lastTag !== tag) sent.set((tag = m.store.connection.lastTag), event); };
  for (const kind of ["pointermove", "pointerrawupdate"]) {
    addEventListener(kind, (moved) => { event = moved.timeStamp; }, { capture: true });
    addEventListener(kind, () => record());
  }
  m.store.on("frame", (frame) => {
    record();
    for (const [sentTag, time] of sent) {
      if (sentTag > frame.tag) continue;
      sent.delete(sentTag);
      pose.push(performance.now() - time);
      requestAnimationFrame(() => setTimeout(() => drawn.push(performance.now() - time)));
    }
  });
  window.watched = { pose, drawn };
  return true;
})()"""
RATE = 125.0
DEFAULT = ("panda", "stewart_platform", "hexapod", "humanoid", "ur5", "delta_robot")


class Mouse:
    """The mouse of a page, over a connection of its own that waits for no reply."""

    def __init__(self, port: int, host: str) -> None:
        with urlopen(f"http://127.0.0.1:{port}/json/list") as response:
            pages = [page for page in json.load(response) if page["type"] == "page" and host in page["url"]]
        self._line = connect(pages[0]["webSocketDebuggerUrl"])
        self._count = 0
        threading.Thread(target=self._forget, daemon=True).start()

    def send(self, kind: str, x: float, y: float) -> None:
        self._count += 1
        held = {"button": "left", "buttons": 1, "clickCount": 1} if kind != "mouseReleased" else {"button": "left"}
        event = {"type": kind, "x": x, "y": y, **held}
        self._line.send(json.dumps({"id": self._count, "method": "Input.dispatchMouseEvent", "params": event}))

    def _forget(self) -> None:
        with contextlib.suppress(Exception):
            for _ in self._line:
                pass


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def measure(studio: Studio, mouse: Mouse, process: psutil.Process, name: str, seconds: float) -> tuple[list[str], bool]:
    """A row of the table, and whether it meets the goals."""
    studio.show("gallery", name)
    number = studio.eval("m.store.goals.find((goal) => !goal.pinned).number")
    studio.eval("(m.store.select({ kind: 'goal', goal: a }), true)", number)
    studio.still()
    x, y = studio.goal_on_screen(number)
    studio.eval("(window.watched.pose.length = 0, window.watched.drawn.length = 0, true)")
    radius = 24
    studio.page.mouse.move(x, y)
    studio.page.wait_for_timeout(50)
    mouse.send("mousePressed", x, y)
    busy, start = sum(process.cpu_times()[:2]), time.perf_counter()
    for k in range(1, int(seconds * RATE)):
        angle = 2 * k / RATE
        mouse.send("mouseMoved", x + radius * (math.cos(angle) - 1), y + radius * math.sin(angle))
        time.sleep(max(0.0, start + k / RATE - time.perf_counter()))
    took = time.perf_counter() - start
    cpu = (sum(process.cpu_times()[:2]) - busy) / took
    mouse.send("mouseReleased", x, y)
    studio.page.wait_for_timeout(200)
    pose, drawn = (sorted(studio.eval(f"window.watched.{what}")) for what in ("pose", "drawn"))
    if len(pose) < 10:
        raise SystemExit(f"{name}: the drag moved nothing ({len(pose)} solutions)")
    median, solves = statistics.median(pose), len(pose) / took
    row = [name, f"{median:.1f}", f"{pose[int(0.95 * len(pose))]:.1f}", f"{statistics.median(drawn):.1f}"]
    is_met = median <= MOST_MS and solves >= LEAST_SOLVES and cpu < MOST_CPU
    return [*row, f"{solves:.0f}", f"{cpu:.2f}"], is_met


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=DEFAULT)
    parser.add_argument("--seconds", type=float, default=8.0)
    given = parser.parse_args()
    heads = ["mechanism", "pose ms", "95 %", "drawn ms", "solves/s", "CPU"]
    print("".join(f"{head:>18}" if k == 0 else f"{head:>10}" for k, head in enumerate(heads)))
    port, missed = free_port(), list[str]()
    with studio_process() as server, chromium(f"--remote-debugging-port={port}") as browser:
        process = psutil.Process(server.process.pid)
        studio = Studio.open(browser, server.link)
        studio.eval(WATCH)
        mouse = Mouse(port, studio.host)
        for name in given.names:
            row, is_met = measure(studio, mouse, process, name, given.seconds)
            missed += [] if is_met else [name]
            print("".join(f"{cell:>18}" if k == 0 else f"{cell:>10}" for k, cell in enumerate(row)), flush=True)
    print(GOALS)
    print("all goals met" if not missed else "missed: " + ", ".join(missed))
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
