"""The process that compiles kernels into the cache, for all programs of a machine.

`main` with a cache folder serves the requests in it and ends; with a request as well it compiles one module.

A program writes requests (`request`) and starts the service (`start`). One lock file makes sure that there is one
service; it ends by itself with the process that holds it, so a killed service blocks nobody: its requests are still
there, and the next program starts another. The service outlives the program that started it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

PAUSE = 0.05
"""Seconds between two looks at the requests."""
LOW_PRIORITY = 10
OPTIONS = ("-P", "-c")
"""Of Python: nothing is imported from the folder in which it is started."""
MAIN = "from mechanik.tiers.compile_service import main; main()"
REQUESTS, FAILED, LOCK, LOG = "*.request", ".failed", "service.lock", "compiled.log"
"""Names of files in a cache folder. The log has a line for each module compiled: its name, processor seconds, file."""


# ---- for programs -------------------------------------------------------------------------------


def request(module: str, file: Path, is_urgent: bool) -> None:
    """Ask for `file`, the machine code of a module of kernels; OSError if the folder cannot be written.

    Args:
        is_urgent: somebody waits: compile with normal priority, and on all cores.
    """
    here = str(Path(__file__).parents[2])
    text = json.dumps(
        {"module": module, "file": file.name, "python": sys.executable, "path": here, "urgent": is_urgent}
    )
    beside = file.with_suffix(f".{os.getpid()}.new")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, _request_of(file))


def is_requested(file: Path) -> bool:
    """Whether the service has still to compile a file."""
    with suppress(OSError):  # a folder that cannot be read has no requests of ours
        return _request_of(file).exists()
    return False


def failure(file: Path) -> str | None:
    """Why a file could not be compiled; None if it was not tried."""
    with suppress(OSError):
        return file.with_suffix(FAILED).read_text(encoding="utf-8")
    return None


def forget_failure(file: Path) -> None:
    with suppress(OSError):
        file.with_suffix(FAILED).unlink()


def is_running(folder: Path) -> bool:
    """Whether a service serves a folder."""
    with _locked(folder) as is_mine:
        return not is_mine


def start(folder: Path) -> subprocess.Popen[bytes] | None:
    """Start the service unless one runs; None then, and where no process can be started."""
    if is_running(folder):
        return None
    flags = 0
    if sys.platform == "win32":
        flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
    nothing = subprocess.DEVNULL
    try:
        return subprocess.Popen(
            [sys.executable, *OPTIONS, MAIN, str(folder)], env=_environment(), stdin=nothing,
            stdout=nothing, stderr=nothing, start_new_session=True, creationflags=flags, cwd=folder,
        )  # fmt: skip
    except OSError:
        return None


# ---- the service --------------------------------------------------------------------------------


def main() -> None:
    """Run in a process of its own: arguments are a cache folder, and a request if one module is to be compiled."""
    folder, *requests = map(Path, sys.argv[1:])
    if requests:
        compile_one(folder, requests[0])
    else:
        signal.signal(signal.SIGTERM, _end)
        serve(folder)


def _end(number: int, frame: object) -> None:
    """Leave by an exception when the service is ended, so that its compilers are ended, too."""
    sys.exit(128 + number)


def serve(folder: Path) -> None:
    """Compile what is asked for, several modules at a time, until nothing is."""
    while any(folder.glob(REQUESTS)):
        with _locked(folder) as is_mine:
            if not is_mine:
                return
            _serve_all(folder)


def _serve_all(folder: Path) -> None:
    running: dict[Path, subprocess.Popen[bytes]] = {}
    try:
        while True:
            requests = _read_requests(folder)
            for file, process in list(running.items()):
                if process.poll() is not None:
                    del running[file]
                    _finish(file, process)
                    requests.pop(file, None)
            waiting = [file for file in requests if file not in running]
            if not running and not waiting:
                return
            cores = _cores()
            limit = cores if any(one["urgent"] for one in requests.values()) else max(1, cores - 1)
            for file in waiting[: max(0, limit - len(running))]:
                running[file] = _start_one(folder, file, requests[file])
            time.sleep(PAUSE)
    finally:
        for process in running.values():
            process.kill()


def _read_requests(folder: Path) -> dict[Path, dict[str, object]]:
    """Requests by the file that is asked for: urgent ones first, then the oldest. Those that are met are removed."""
    found: list[tuple[bool, float, Path, dict[str, object]]] = []
    for path in folder.glob(REQUESTS):
        try:
            wanted = json.loads(path.read_text(encoding="utf-8"))
            file = folder / wanted["file"]
            if file.exists():
                path.unlink()
            else:
                found.append((not wanted["urgent"], path.stat().st_mtime, file, wanted))
        except (OSError, ValueError, KeyError):
            with suppress(OSError):
                path.unlink()  # not a request
    return {file: wanted for _, _, file, wanted in sorted(found, key=lambda one: (one[0], one[1], one[2]))}


def _start_one(folder: Path, file: Path, wanted: dict[str, object]) -> subprocess.Popen[bytes]:
    """A process that compiles one module with the Python and the sources of the program that asked."""
    command = [str(wanted["python"]), *OPTIONS, MAIN, str(folder), str(_request_of(file))]
    flags = 0
    if sys.platform == "win32" and not wanted["urgent"]:  # elsewhere the process lowers its priority by itself
        flags = subprocess.BELOW_NORMAL_PRIORITY_CLASS
    return subprocess.Popen(
        command, env=_environment(str(wanted["path"])), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, creationflags=flags,
    )  # fmt: skip


def _finish(file: Path, process: subprocess.Popen[bytes]) -> None:
    """Remove the request; if the file is not there, say why beside it."""
    error = b"" if process.stderr is None else process.stderr.read()
    with suppress(OSError):
        if not file.exists():
            file.with_suffix(FAILED).write_bytes(error[-4000:] or f"exit code {process.returncode}".encode())
    with suppress(OSError):
        _request_of(file).unlink()


def compile_one(folder: Path, path: Path) -> None:
    """Compile one module into the cache."""
    from mechanik.tiers import cache, numba_kernels

    wanted = json.loads(path.read_text(encoding="utf-8"))
    if not wanted["urgent"] and sys.platform != "win32":
        os.nice(LOW_PRIORITY)
    file = cache.cache_file(folder, wanted["module"])
    if file.name != wanted["file"]:
        raise SystemExit(f"the sources of {wanted['module']} have changed since it was asked for")
    cache.write(file, numba_kernels.compile_module(wanted["module"]))
    with suppress(OSError), open(folder / LOG, "a", encoding="utf-8") as log:
        log.write(f"{wanted['module']} {time.process_time():.1f} {file.name}\n")


# ---- common -------------------------------------------------------------------------------------


def _request_of(file: Path) -> Path:
    return file.with_suffix(REQUESTS[1:])


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _environment(path: str | None = None) -> dict[str, str]:
    """That of this process, with the package to be found where this one is."""
    here = path or str(Path(__file__).parents[2])
    if Path(here).name in ("site-packages", "dist-packages"):
        return dict(os.environ)  # found anyway, and not to be put before the standard library
    others = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([here, *([others] if others else [])])}


@contextmanager
def _locked(folder: Path) -> Generator[bool]:
    """Hold the lock of the service, if nobody else does: whether it is held."""
    file: IO[bytes] | None = None
    try:
        file = open(folder / LOCK, "ab")  # noqa: SIM115
        _lock(file)
    except OSError:
        if file is not None:
            file.close()
        yield False
        return
    try:
        yield True
    finally:
        file.close()  # which unlocks it


def _lock(file: IO[bytes]) -> None:
    """OSError if another process holds it."""
    if sys.platform == "win32":
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
