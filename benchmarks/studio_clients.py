"""Many clients at once, each with its own session and its own targets: python benchmarks/studio_clients.py

    python benchmarks/studio_clients.py [--clients 50] [--seconds 60] [--mechanism planar_3r]

The server runs in a process of its own; clients run here and drag along circles of their own as fast as the server
replies, up to 60 times a second. Prints the rate and latency of replies, and memory and processor
time of the server while they drag. Fails if a client was dropped or refused, if a state shows a goal that another
client has set, if a tool does not come to its goal, if a client gets no replies, or if memory grows on after the first
quarter of the time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
from websockets.asyncio.client import ClientConnection, connect

from mechanik.studio.messages.message_codec import DRAG_GOAL, DragUpdate, StateFrame, read_state, write_drag_update

RATE = 60.0
GROWTH = 30e6
"""Bytes by which memory may grow after the first quarter: what a few large messages leave in the allocator's pools."""
START = """
import sys
from pathlib import Path
import mechanik as mk
from mechanik.studio.server.server import serve
server = serve(mk.gallery.make(sys.argv[1]), port=0, page=Path(sys.argv[2]))
print(server.link, flush=True)
sys.stdin.read()
server.close()
"""


@dataclass
class Client:
    """A client and its measurements."""

    number: int
    replies: int = 0
    trips: list[float] = field(default_factory=list[float])
    """s, from a drag update to the state that replies to it."""
    off: float = math.nan
    """m, of the tool from its goal, at the end."""
    problem: str = ""


async def drag(client: Client, link: str, seconds: float, all_in: asyncio.Barrier) -> None:
    host, port, token = re.findall(r"//([\d.]+):(\d+)/\?token=(\S+)", link)[0]
    own = f"{host}:{port}"
    headers = {"Cookie": f"mechanik_{port}={token}"}
    page = {"origin": f"http://{own}", "additional_headers": headers, "compression": None, "max_size": None}
    async with connect(f"ws://{own}/ws", **page) as wire:
        goal: dict = {}
        while not goal:
            message = await wire.recv()
            event = json.loads(message) if isinstance(message, str) else {"is": ""}
            if event["is"] == "RequestRefused":
                raise RuntimeError(event["message"])
            if event["is"] == "Goals" and event["goals"]:
                goal = event["goals"][0]
        await wire.send(json.dumps({"do": "StartGoalDrag", "goal": goal["number"], "id": 1}))
        await all_in.wait()
        await _circle(client, wire, goal, time.monotonic() + seconds)


async def _circle(client: Client, wire: ClientConnection, goal: dict, until: float) -> None:
    radius = 0.01 + 0.001 * client.number
    centre, turn = np.array(goal["pose"][:3]), goal["pose"][3:]
    start, tag = time.monotonic(), 0
    state: StateFrame | None = None
    while time.monotonic() < until:
        tag += 1
        angle = time.monotonic() - start + client.number
        place = centre + radius * np.array([math.cos(angle) - 1.0, math.sin(angle), 0.0])
        sent = time.perf_counter()
        await wire.send(write_drag_update(DragUpdate(DRAG_GOAL, tag, goal["number"], (*place.tolist(), *turn))))
        state = await _receive_reply(wire, tag)
        client.trips.append(max(0.0, time.perf_counter() - sent))
        client.replies += 1
        if not np.allclose(state.goals[0, :3], place, atol=1e-12):
            raise RuntimeError(f"a goal at {state.goals[0, :3]}, which is not its own")
        await asyncio.sleep(max(0.0, 1 / RATE - (time.perf_counter() - sent)))
    while state is not None and not state.header.is_at_rest:
        state = await _receive_reply(wire, tag)
    if state is not None:
        client.off = float(state.goals[0, 7])


async def _receive_reply(wire: ClientConnection, tag: int) -> StateFrame:
    """Return the next state that replies to this drag update or a later one."""
    while True:
        message = await asyncio.wait_for(wire.recv(), 30.0)
        if isinstance(message, bytes):
            state = read_state(message)
            if state.header.layer == 0 and state.header.tag >= tag:
                return state


async def drag_or_record_problem(client: Client, link: str, seconds: float, all_in: asyncio.Barrier) -> None:
    try:
        await drag(client, link, seconds, all_in)
    except Exception as error:
        client.problem = f"{type(error).__name__}: {error}"
        await all_in.abort()


async def watch(process: psutil.Process, seconds: float, all_in: asyncio.Barrier) -> tuple[list[int], float]:
    """Bytes of memory of the server, once a second, and seconds of processor time that it takes meanwhile."""
    await all_in.wait()
    sizes: list[int] = []
    spent = sum(process.cpu_times()[:2])
    for _ in range(max(4, round(seconds))):
        sizes.append(process.memory_info().rss)
        await asyncio.sleep(seconds / max(4, round(seconds)))
    return sizes, sum(process.cpu_times()[:2]) - spent


async def run(
    link: str, process: psutil.Process, many: int, seconds: float
) -> tuple[list[Client], tuple[list[int], float]]:
    clients = [Client(k) for k in range(many)]
    all_in = asyncio.Barrier(many + 1)
    watched = asyncio.create_task(watch(process, seconds, all_in))
    await asyncio.gather(*(drag_or_record_problem(client, link, seconds, all_in) for client in clients))
    return clients, await watched


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--mechanism", default="planar_3r")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "index.html").write_text("<!doctype html><title>studio</title>")
        command = [sys.executable, "-c", START, arguments.mechanism, folder]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            link = server.stdout.readline().strip()
            process = psutil.Process(server.pid)
            alone = process.memory_info().rss
            clients, (sizes, spent) = asyncio.run(run(link, process, arguments.clients, arguments.seconds))
            is_alive = server.poll() is None
            server.stdin.close()
    return report(clients, sizes, alone, spent, arguments.seconds, is_alive)


def report(clients: list[Client], sizes: list[int], alone: int, spent: float, seconds: float, is_alive: bool) -> int:
    trips = [1e3 * trip for client in clients for trip in client.trips] or [math.nan]
    rates = [client.replies / seconds for client in clients]
    quarter = max(sizes[: max(1, len(sizes) // 4)])
    problems = [f"client {client.number}: {client.problem}" for client in clients if client.problem]
    problems += [] if is_alive else ["the server has died"]
    problems += [f"client {c.number} is {c.off:.1e} m off" for c in clients if not c.problem and not c.off < 1e-4]
    problems += ["a client got fewer than 5 replies"] if min(rates) * seconds < 5 else []
    problems += ["memory grows"] if max(sizes) - quarter > GROWTH else []
    replies = max(1, sum(client.replies for client in clients))
    memory = (alone, sizes[0], quarter, sizes[-1])
    rows = (
        ("clients", f"{len(clients)}"),
        ("states a second and client: least, median, most", _row((min(rates), statistics.median(rates), max(rates)))),
        ("drag update to state, ms: median, 95 in 100, most", _row((*np.percentile(trips, (50, 95)), max(trips)))),
        ("farthest tool from its goal, m", f"{max(client.off for client in clients):.1e}"),
        ("memory, MB: alone, at first, in the first quarter, at the end", _row(size / 1e6 for size in memory)),
        ("cores of the server", f"{spent / seconds:.2f}"),
        ("processor time of the server per reply, ms", f"{1e3 * spent / replies:.2f}"),
        ("problems", "; ".join(problems[:5]) or "none"),
    )
    for name, value in rows:
        print(f"{name:64} {value}")
    return 1 if problems else 0


def _row(numbers: Iterable[float]) -> str:
    return "  ".join(f"{number:.1f}" for number in numbers)


if __name__ == "__main__":
    sys.exit(main())
