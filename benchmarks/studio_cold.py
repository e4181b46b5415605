"""How soon the studio follows a drag where no kernel is compiled: a real drag in a headless Chromium, an empty cache.

Starts `mechanik studio hexapod` with an empty cache folder, opens its page, and drags the platform along a circle
until all kernels of the studio are compiled, with a mouse that reports its position 125 times a second:
    link      from the start of the process until it has printed its link, s
    shown     until the page shows the mechanism
    follows   until the page has the first state that replies to the drag
    solves    a second, with how many of the kernels were ready then
    replies   states that reply to a new pointer position, per second; the page sends a position after the reply to the
              previous one, so the speed of the browser limits this rate too
    CPU       processor time of the studio's process for each solve, ms; on a busy machine it is more
              reliable than wall time

The browser is started before, and is not part of these times. Compiling takes minutes.

    python benchmarks/studio_cold.py [--scene hexapod] [--first 5] [--longest 900]
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from studio import RATE, Mouse, free_port
from studio_driving import Studio, chromium, studio_process

MOST_SECONDS, LEAST_SOLVES = 3.0, 20.0
GOALS = f"goals: follows within {MOST_SECONDS:g} s, {LEAST_SOLVES:g} solves a second at first, and the text is shown"
SECONDS_AFTER = 5.0
"""For which it is dragged on once all kernels are ready."""
WATCH = """(() => {
  const seen = { replies: 0, solves: m.store.frame.sequence, tag: m.store.connection.lastTag, texts: [] };
  m.store.on("frame", (frame) => {
    seen.solves = frame.sequence;
    if (frame.tag > seen.tag) { seen.tag = frame.tag; seen.replies += 1; }
  });
  const recordText = () => {
    const text = document.querySelector("[data-test='kernels']").innerText;
    if (text && seen.texts.at(-1) !== text) seen.texts.push(text);
  };
  m.store.on("kernels", () => setTimeout(recordText));
  recordText();
  window.seen = seen;
  return true;
})()"""
NOW = "((s, k) => [s.solves, s.replies, k.state, k.ready, k.count, s.texts])(window.seen, m.store.kernels)"


@dataclass
class Now:
    """What the page has seen up to now."""

    solves: int
    replies: int
    state: str
    ready: int
    count: int
    texts: list[str]


class CircleDrag:
    """Drag along a circle; `move_for` sends mouse events at the rate of a mouse."""

    def __init__(self, studio: Studio, mouse: Mouse) -> None:
        number = studio.eval("m.store.goals.find((goal) => !goal.pinned).number")
        studio.eval("(m.store.select({ kind: 'goal', goal: a }), true)", number)
        studio.drawn()
        self._mouse, self._sent = mouse, 0
        self._x, self._y = studio.goal_on_screen(number)
        studio.page.mouse.move(self._x, self._y)
        studio.page.wait_for_timeout(30)
        mouse.send("mousePressed", self._x, self._y)
        self._begun = time.perf_counter()

    def move_for(self, seconds: float, radius: float = 24.0) -> None:
        until = time.perf_counter() + seconds
        while (now := time.perf_counter()) < until:
            self._sent += 1
            angle = 2 * (now - self._begun)
            x, y = self._x + radius * (math.cos(angle) - 1), self._y + radius * math.sin(angle)
            self._mouse.send("mouseMoved", x, y)
            time.sleep(max(0.0, min(until, self._begun + self._sent / RATE) - time.perf_counter()))
            # a mouse makes up for nothing that it has not sent
            self._sent = max(self._sent, int((time.perf_counter() - self._begun) * RATE))

    def release(self) -> None:
        self._mouse.send("mouseReleased", self._x, self._y)


@contextmanager
def empty_cache() -> Iterator[Path]:
    """Processes that are started inside compile into an empty folder; those that still do at the end are ended."""
    names = ("MECHANIK_CACHE_DIR", "MECHANIK_KERNELS")
    before = {name: os.environ.pop(name, None) for name in names}
    with tempfile.TemporaryDirectory(prefix="mechanik-cold-", ignore_cleanup_errors=True) as folder:
        os.environ["MECHANIK_CACHE_DIR"] = folder
        try:
            yield Path(folder)
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value
            _end_compilers(folder)


def _end_compilers(folder: str) -> None:
    """End the compile service of this folder, which outlives the studio, and its compilers."""
    for process in psutil.process_iter(["cmdline"]):
        if any(part.startswith(folder) for part in process.info["cmdline"] or ()):
            process.kill()


def cpu_seconds(process: psutil.Process) -> float:
    return sum(process.cpu_times()[:2])


def drag(
    studio: Studio, drag_motion: CircleDrag, process: psutil.Process, start: float, first: float, longest: float
) -> tuple[float, Now]:
    """Print a row whenever another module is ready; the solves a second at first, and what was seen at the end."""
    print(f"{'from s':>8}{'to s':>8}{'solves/s':>10}{'replies/s':>11}{'CPU ms':>9}{'kernels ready':>15}", flush=True)
    rate_at_first, span_begun, cpu = 0.0, time.perf_counter(), cpu_seconds(process)
    last = now = Now(*studio.eval(NOW))
    length = first
    while True:
        drag_motion.move_for(length)
        ended, now = time.perf_counter(), Now(*studio.eval(NOW))
        rate, replies = (
            (b - a) / (ended - span_begun) for a, b in ((last.solves, now.solves), (last.replies, now.replies))
        )
        is_first, is_last = rate_at_first == 0.0, last.state != "compiling" or ended - start > longest
        if is_first or is_last or now.ready != last.ready:
            ready, cpu_before, cpu = f"{last.ready} of {last.count}", cpu, cpu_seconds(process)
            each = 1000 * (cpu - cpu_before) / max(1, now.solves - last.solves)
            span = f"{span_begun - start:8.1f}{ended - start:8.1f}"
            print(f"{span}{rate:10.1f}{replies:11.1f}{each:9.1f}{ready:>15}", flush=True)
            span_begun, last = ended, now
        rate_at_first = rate_at_first or rate
        if is_last:
            return rate_at_first, now
        length = SECONDS_AFTER if last.state != "compiling" else 1.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scene", default="hexapod")
    parser.add_argument("--first", type=float, default=5.0, help="s, length of the first interval of the drag")
    parser.add_argument("--longest", type=float, default=900.0, help="s, maximum duration of the drag")
    given = parser.parse_args()
    port = free_port()
    with chromium(f"--remote-debugging-port={port}") as browser, empty_cache():
        start = time.perf_counter()
        with studio_process(given.scene) as server:
            link = time.perf_counter() - start
            studio = Studio.open(browser, server.link)
            studio.wait("m.store.frame && m.store.frame.order === m.store.order && m.store.kernels")
            shown = time.perf_counter() - start
            studio.eval(WATCH)
            drag_motion = CircleDrag(studio, Mouse(port, studio.host))
            while not studio.eval("window.seen.replies"):
                drag_motion.move_for(0.05)
                if time.perf_counter() - start > given.longest:
                    raise SystemExit("the drag moved nothing")
            follows = time.perf_counter() - start
            process = psutil.Process(server.process.pid)
            print(f"{given.scene}: link after {link:.2f} s, shown after {shown:.2f} s, follows after {follows:.2f} s")
            print(f"processor time of the studio's process until then: {cpu_seconds(process):.2f} s")
            rate, end = drag(studio, drag_motion, process, start, given.first, given.longest)
            drag_motion.release()
    is_status_shown = any(text.startswith("compiling kernels") for text in end.texts)
    print(f"status bar: {'; '.join(end.texts) or 'nothing'}")
    print(GOALS)
    missed = [
        *([] if follows <= MOST_SECONDS else [f"follows after {follows:.2f} s"]),
        *([] if rate >= LEAST_SOLVES else [f"{rate:.1f} solves a second"]),
        *([] if is_status_shown else ["the status bar did not show that kernels are compiled"]),
        *([] if end.state == "ready" else [f"kernels are {end.state}"]),
    ]
    print("all goals met" if not missed else "missed: " + ", ".join(missed))
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
