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
import traceback
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from mechanik.tiers.cache import numba_settings

PAUSE = 0.05
"""Seconds between two looks at the requests."""
HEAD_START = 2.0
"""Seconds: about as long as the studio takes to start."""
LOW_PRIORITY = 19
OPTIONS = ("-P", "-c")
"""Of Python: nothing is imported from the folder in which it is started."""
MAIN = "from mechanik.tiers.compile_service import main; main()"
GROUPS = {"look": "descent", "put_targets": "descent", "lanes": "chain", "ccd_sweep": "methods"}
"""Modules that are compiled in one process with another; else with those of their package."""
REQUESTS, FAILED, LOCK, LOG = "*.request", ".failed", "service.lock", "compiled.log"
"""Names of files in a cache folder. The log has a line for each module compiled: its name, processor seconds, file."""
ENDED = "the compiler was ended by signal"
NOT_STARTED = "the compiler could not be started"
NO_SPACE = "there was no space for machine code"
CHANGED = "the sources have changed since they were asked for"
REMOVED = "the cache folder was removed while kernels were compiled"
NO_NUMBA = "Numba could not be imported"
PASSING = (ENDED, NOT_STARTED, NO_SPACE, CHANGED, REMOVED, NO_NUMBA)
"""How reasons of failures begin that are no fault of the sources, and may have passed when it is tried again."""
ENDING_SIGNALS = {
    1: "SIGHUP", 2: "SIGINT", 6: "SIGABRT", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM", 24: "SIGXCPU",
}  # fmt: skip
"""Those that end a process from outside, and those by which LLVM ends where memory runs out."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a program asks for, kept as JSON in the cache folder.

    Attributes:
        module: a module of kernels.
        file: the name of the file with its machine code.
        python: the interpreter of the program.
        path: the folder that has its package `mechanik`.
        numba: its settings of Numba, by names of environment variables.
        is_urgent: somebody waits: compile with normal priority, and on all cores.
    """

    module: str
    file: str
    python: str
    path: str
    numba: dict[str, str]
    is_urgent: bool

    @classmethod
    def read(cls, path: Path) -> Request:
        """OSError, ValueError, TypeError or RecursionError if there is no request."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    @property
    def is_installed(self) -> bool:
        """Whether the Python and the sources of the program that asked are still there."""
        return os.access(self.python, os.X_OK) and Path(self.path, "mechanik").is_dir()

    def goes_with(self, other: Request) -> bool:
        """Whether both are for one process: parts that both modules contain are then compiled once."""
        return self._group == other._group

    @property
    def _group(self) -> tuple[object, ...]:
        return (
            GROUPS.get(self.module, self.module.partition(".")[0]),
            self.python, self.path, self.numba, self.is_urgent,
        )  # fmt: skip


# ---- for programs -------------------------------------------------------------------------------


def request(module: str, file: Path, is_urgent: bool) -> None:
    """Ask for `file`, the machine code of a module of kernels; OSError if the folder cannot be written.

    Args:
        is_urgent: somebody waits: compile with normal priority, and on all cores.
    """
    package = Path(__file__).parents[2]
    wanted = Request(module, file.name, sys.executable, str(package), numba_settings(), is_urgent)
    beside = file.with_suffix(f".{os.getpid()}.new")
    try:
        beside.write_text(json.dumps(asdict(wanted)), encoding="utf-8")
        os.replace(beside, _request_of(file))
    except OSError:
        with suppress(OSError):
            beside.unlink()
        raise


def is_requested(file: Path) -> bool:
    """Whether the service has still to compile a file."""
    with suppress(OSError):  # a folder that cannot be read has no requests of ours
        return _request_of(file).is_file()
    return False


def failure(file: Path) -> str | None:
    """Why a file could not be compiled; None if it was not tried."""
    with suppress(OSError):
        return file.with_suffix(FAILED).read_text(encoding="utf-8")
    return None


def is_passing(reason: str) -> bool:
    """Whether compiling that failed for this reason may succeed when it is tried again."""
    return reason.startswith(PASSING)


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
    """Run in a process of its own: arguments are a cache folder, and the requests that are to be compiled, if any."""
    folder, *requests = map(Path, sys.argv[1:])
    if requests:
        compile_modules(folder, requests)
    else:
        signal.signal(signal.SIGTERM, _end)
        serve(folder)


def _end(number: int, frame: object) -> None:
    """Leave by an exception when the service is ended, so that its compilers are ended, too."""
    sys.exit(128 + number)


def serve(folder: Path) -> None:
    """Compile what is asked for, several modules at a time, until nothing is."""
    while _read_requests(folder):
        with _locked(folder) as is_mine:
            if not is_mine:
                return
            _give_head_start(folder)
            _serve_all(folder)


def _give_head_start(folder: Path) -> None:
    """Leave the processor to the program that asked while it starts, unless somebody waits."""
    until = time.monotonic() + HEAD_START
    while time.monotonic() < until and not any(one.is_urgent for one in _read_requests(folder).values()):
        time.sleep(PAUSE)


def _serve_all(folder: Path) -> None:
    running: dict[subprocess.Popen[bytes], list[Path]] = {}
    try:
        while True:
            requests = _read_requests(folder)
            for process in [one for one in running if one.poll() is not None]:
                for file in running.pop(process):
                    if file in requests:  # else it is compiled, or its sources were removed meanwhile
                        _finish(file, _why_ended(process.returncode))
                        del requests[file]
            begun = {file for files in running.values() for file in files}
            waiting: list[Path] = [file for file in requests if file not in begun]
            if not running and not waiting:
                return
            cores = _cores()
            limit = cores if any(one.is_urgent for one in requests.values()) else max(1, cores - 1)
            while waiting and len(running) < limit:
                first = requests[waiting[0]]
                together: list[Path] = [file for file in waiting if requests[file].goes_with(first)]
                try:
                    running[_start_compiler(folder, together, first)] = together
                except OSError as error:
                    for file in together:
                        _finish(file, f"{NOT_STARTED}: {error}")
                waiting = [file for file in waiting if file not in together]
            time.sleep(PAUSE)
    finally:
        for process in running:
            process.kill()


def _read_requests(folder: Path) -> dict[Path, Request]:
    """Requests by the file that is asked for: urgent ones first, then the oldest.

    Those that are met are removed, those of installations that are gone, and what is no request.
    """
    waiting: list[tuple[bool, float, Path, Request]] = []
    for path in folder.glob(REQUESTS):
        try:
            request = Request.read(path)
            file = folder / request.file
            if file.is_file() or not request.is_installed:
                path.unlink()
            else:
                waiting.append((not request.is_urgent, path.stat().st_mtime, file, request))
        except (OSError, ValueError, TypeError, RecursionError):
            with suppress(OSError):
                path.unlink()
    return {file: request for _, _, file, request in sorted(waiting, key=lambda one: one[:3])}


def _start_compiler(folder: Path, files: list[Path], request: Request) -> subprocess.Popen[bytes]:
    """A process that compiles modules with the Python and the sources of the program that asked."""
    command = [request.python, *OPTIONS, MAIN, str(folder), *(str(_request_of(file)) for file in files)]
    flags = 0
    if sys.platform == "win32" and not request.is_urgent:  # elsewhere the process lowers its priority by itself
        flags = subprocess.BELOW_NORMAL_PRIORITY_CLASS
    nothing, own = subprocess.DEVNULL, numba_settings()
    environment = {name: value for name, value in _environment(request.path).items() if name not in own}
    environment.update(request.numba)
    return subprocess.Popen(
        command, env=environment, stdin=nothing, stdout=nothing, stderr=nothing, creationflags=flags
    )


def _finish(file: Path, reason: str) -> None:
    """Remove the request; if there is neither the file nor a reason why, this one is written."""
    with suppress(OSError):
        if not file.is_file() and failure(file) is None:
            file.with_suffix(FAILED).write_text(reason, encoding="utf-8")
    with suppress(OSError):
        _request_of(file).unlink()


def _why_ended(exit_code: int) -> str:
    """The reason of a compiler that has left neither machine code nor a reason."""
    if exit_code == 0:
        return REMOVED
    name = ENDING_SIGNALS.get(-exit_code)
    return f"the compiler ended with exit code {exit_code}" if name is None else f"{ENDED} {name}"


def compile_modules(folder: Path, requests: list[Path]) -> None:
    """Compile modules into the cache; of those that fail, the reason is written beside where they should be."""
    from mechanik.tiers.numba_kernels import import_numba

    for request in map(Request.read, requests):
        if not request.is_urgent and sys.platform != "win32" and os.nice(0) < LOW_PRIORITY:
            os.nice(LOW_PRIORITY)
        try:
            import_numba()
        except Exception as error:  # whatever a broken installation raises
            _fail(folder, request, f"{NO_NUMBA}: {error}")
            continue
        try:
            if not _compile(folder, request):
                _fail(folder, request, CHANGED)
        except (OSError, MemoryError) as error:
            _fail(folder, request, f"{NO_SPACE}: {error}")
        except Exception:  # whatever Numba raises
            _fail(folder, request, traceback.format_exc()[-4000:])


def _fail(folder: Path, request: Request, reason: str) -> None:
    """Write why a module could not be compiled, unless its sources were removed: the same may be elsewhere."""
    if request.is_installed:
        with suppress(OSError):
            (folder / request.file).with_suffix(FAILED).write_text(reason, encoding="utf-8")


def _compile(folder: Path, request: Request) -> bool:
    """Compile one module; False if its sources are no longer those that were asked for."""
    from mechanik.tiers import cache, numba_kernels

    begun = time.process_time()
    file = cache.cache_file(folder, request.module)
    if file.name != request.file:
        return False
    cache.write(file, numba_kernels.compile_module(request.module))
    with suppress(OSError), open(folder / LOG, "a", encoding="utf-8") as log:
        log.write(f"{request.module} {time.process_time() - begun:.1f} {file.name}\n")
    return True


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
