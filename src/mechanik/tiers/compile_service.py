"""Compile service: a background process that compiles kernels into a cache folder for all programs that use it.

A program writes request files (`write_request`) and starts the service (`start_service`). A lock file ensures that a
folder has only one service. The operating system releases the lock when the process ends. After a service is killed,
its requests remain, and the next program starts a new service. The service does not end with the program that started
it, unless the program terminates it.

The process runs `main`. If the only argument is a cache folder, the process is the service of this folder. If request
files follow, the process compiles these requests.
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

from mechanik.tiers.code_cache import numba_settings

POLL_SECONDS = 0.05
"""Interval at which the service checks for requests, s."""
START_DELAY_SECONDS = 2.0
"""Delay before compiling, s: the studio starts in about this time, so both do not compete for the processor."""
LOW_PRIORITY = 19
"""Niceness of compiler processes for which no program waits: the lowest priority on Unix."""
PYTHON_OPTIONS = ("-P", "-c")
"""Options of the interpreter; -P prevents imports from the working directory."""
SERVICE_CODE = "from mechanik.tiers.compile_service import main; main()"
GROUP_BY_MODULE = {
    "dense_evaluation": "descent",
    "write_targets": "descent",
    "lane_kernel": "chain_kernel",
    "methods.ccd_sweep": "methods",
}
"""Group of a kernel module: one process compiles all modules of a group. The default is the first part of the name."""
REQUEST_PATTERN, FAILURE_SUFFIX, LOCK_FILE, LOG_FILE = "*.request", ".failed", "service.lock", "compiled.log"
"""Names and suffixes of files in a cache folder. The log has a line for each compiled module: name, processor time (s),
file."""
SIGNALED = "the compiler was ended by signal"
NOT_STARTED = "the compiler could not be started"
NO_MEMORY_OR_DISK = "there was not enough memory, or the machine code could not be written"
SOURCES_CHANGED = "the sources have changed since the request"
FOLDER_REMOVED = "the cache folder was removed while kernels were compiled"
NUMBA_NOT_IMPORTED = "Numba could not be imported"
TRANSIENT_REASONS = (SIGNALED, NOT_STARTED, NO_MEMORY_OR_DISK, SOURCES_CHANGED, FOLDER_REMOVED, NUMBA_NOT_IMPORTED)
"""Prefixes of failure reasons after which the same request may succeed later, or a new request for changed sources."""
TERMINATING_SIGNALS = {
    1: "SIGHUP", 2: "SIGINT", 6: "SIGABRT", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM", 24: "SIGXCPU",
}  # fmt: skip
"""Signals from other processes that terminate a process, and signals that LLVM raises when memory is exhausted."""


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """A request to compile a kernel module, stored as JSON in the cache folder.

    Attributes:
        module: name of the kernel module.
        file: name of the cache file for the machine code.
        python: path of the interpreter of the requesting program.
        path: folder that contains the package `mechanik` of the requesting program.
        numba: environment variables of Numba in the requesting program that may change machine code.
        is_urgent: whether a program waits; then the module is compiled with normal priority and on all cores.
    """

    module: str
    file: str
    python: str
    path: str
    numba: dict[str, str]
    is_urgent: bool

    @classmethod
    def read(cls, path: Path) -> CompileRequest:
        """Read a request file; raises `OSError`, `ValueError`, `TypeError` or `RecursionError` if it is not valid."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    @property
    def is_installed(self) -> bool:
        """Whether the interpreter and the sources of the requesting program still exist."""
        return os.access(self.python, os.X_OK) and Path(self.path, "mechanik").is_dir()

    def shares_process_with(self, other_request: CompileRequest) -> bool:
        """Return whether both requests are compiled in the same process, which compiles their common code only once."""
        return self._group == other_request._group

    @property
    def _group(self) -> tuple[object, ...]:
        return (
            GROUP_BY_MODULE.get(self.module, self.module.partition(".")[0]),
            self.python, self.path, self.numba, self.is_urgent,
        )  # fmt: skip


# ---- for programs -------------------------------------------------------------------------------


def write_request(module: str, file: Path, is_urgent: bool) -> None:
    """Write a request to compile a kernel module; raises `OSError` if the folder cannot be written.

    Args:
        module: name of the kernel module.
        file: cache file for the machine code.
        is_urgent: whether a program waits; then the module is compiled with normal priority and on all cores.
    """
    package_folder = Path(__file__).parents[2]
    request = CompileRequest(module, file.name, sys.executable, str(package_folder), numba_settings(), is_urgent)
    temporary_file = file.with_suffix(f".{os.getpid()}.new")
    try:
        temporary_file.write_text(json.dumps(asdict(request)), encoding="utf-8")
        os.replace(temporary_file, _request_file(file))
    except OSError:
        with suppress(OSError):
            temporary_file.unlink()
        raise


def is_requested(file: Path) -> bool:
    """Return whether there is a pending request for a cache file."""
    with suppress(OSError):  # a folder that cannot be read has no requests of this program
        return _request_file(file).is_file()
    return False


def read_failure(file: Path) -> str | None:
    """Return the reason why a cache file could not be compiled; None if there was no failure."""
    with suppress(OSError):
        return file.with_suffix(FAILURE_SUFFIX).read_text(encoding="utf-8")
    return None


def is_transient(reason: str) -> bool:
    """Return whether compiling may succeed later, after a failure with this reason."""
    return reason.startswith(TRANSIENT_REASONS)


def clear_failure(file: Path) -> None:
    with suppress(OSError):
        file.with_suffix(FAILURE_SUFFIX).unlink()


def is_running(folder: Path) -> bool:
    """Return whether a service runs for a cache folder; also true if its lock file cannot be opened."""
    with _service_lock(folder) as has_lock:
        return not has_lock


def start_service(folder: Path) -> subprocess.Popen[bytes] | None:
    """Start the service of a cache folder; returns None if a service already runs or no process can be started."""
    if is_running(folder):
        return None
    creation_flags = 0
    if sys.platform == "win32":
        creation_flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
    devnull = subprocess.DEVNULL
    try:
        return subprocess.Popen(
            [sys.executable, *PYTHON_OPTIONS, SERVICE_CODE, str(folder)], env=_environment(), stdin=devnull,
            stdout=devnull, stderr=devnull, start_new_session=True, creationflags=creation_flags, cwd=folder,
        )  # fmt: skip
    except OSError:
        return None


# ---- the service --------------------------------------------------------------------------------


def main() -> None:
    """Run the process: serve a cache folder, or compile the request files in the further arguments."""
    folder, *request_files = map(Path, sys.argv[1:])
    if request_files:
        compile_modules(folder, request_files)
    else:
        signal.signal(signal.SIGTERM, _exit_on_signal)
        serve(folder)


def _exit_on_signal(signal_number: int, frame: object) -> None:
    """Handle a signal: exit by an exception, so that the service also terminates its compiler processes."""
    sys.exit(128 + signal_number)


def serve(folder: Path) -> None:
    """Compile the requests of a cache folder, several modules in parallel, until no request is left."""
    while _read_requests(folder):
        with _service_lock(folder) as has_lock:
            if not has_lock:
                return
            _delay_start(folder)
            _serve_requests(folder)


def _delay_start(folder: Path) -> None:
    """Wait while the requesting program starts, unless a request is urgent."""
    deadline = time.monotonic() + START_DELAY_SECONDS
    while time.monotonic() < deadline and not any(request.is_urgent for request in _read_requests(folder).values()):
        time.sleep(POLL_SECONDS)


def _serve_requests(folder: Path) -> None:
    files_by_process: dict[subprocess.Popen[bytes], list[Path]] = {}
    try:
        while True:
            requests = _read_requests(folder)
            for process in [candidate for candidate in files_by_process if candidate.poll() is not None]:
                for file in files_by_process.pop(process):
                    if file in requests:  # otherwise the module is compiled, or its sources no longer exist
                        _remove_request(file, _exit_reason(process.returncode))
                        del requests[file]
            files_in_progress = {file for files in files_by_process.values() for file in files}
            waiting_files: list[Path] = [file for file in requests if file not in files_in_progress]
            if not files_by_process and not waiting_files:
                return
            core_count = _core_count()
            max_process_count = (
                core_count if any(candidate.is_urgent for candidate in requests.values()) else max(1, core_count - 1)
            )
            while waiting_files and len(files_by_process) < max_process_count:
                request = requests[waiting_files[0]]
                group_files: list[Path] = [
                    file for file in waiting_files if requests[file].shares_process_with(request)
                ]
                try:
                    files_by_process[_start_compiler(folder, group_files, request)] = group_files
                except OSError as error:
                    for file in group_files:
                        _remove_request(file, f"{NOT_STARTED}: {error}")
                waiting_files = [file for file in waiting_files if file not in group_files]
            time.sleep(POLL_SECONDS)
    finally:
        for process in files_by_process:
            process.kill()


def _read_requests(folder: Path) -> dict[Path, CompileRequest]:
    """Return the pending requests by cache file: urgent requests first, then in order of age.

    Completed requests, requests of removed installations and invalid request files are deleted.
    """
    requests: list[tuple[bool, float, Path, CompileRequest]] = []
    for path in folder.glob(REQUEST_PATTERN):
        try:
            request = CompileRequest.read(path)
            file = folder / request.file
            if file.is_file() or not request.is_installed:
                path.unlink()
            else:
                requests.append((not request.is_urgent, path.stat().st_mtime, file, request))
        except (OSError, ValueError, TypeError, RecursionError):
            with suppress(OSError):
                path.unlink()
    return {file: request for _, _, file, request in sorted(requests, key=lambda entry: entry[:3])}


def _start_compiler(folder: Path, files: list[Path], request: CompileRequest) -> subprocess.Popen[bytes]:
    """Start a process that compiles modules with the interpreter and the sources of the requesting program."""
    command = [
        request.python,
        *PYTHON_OPTIONS,
        SERVICE_CODE,
        str(folder),
        *(str(_request_file(file)) for file in files),
    ]
    creation_flags = 0
    if sys.platform == "win32" and not request.is_urgent:  # on other platforms `compile_modules` lowers the priority
        creation_flags = subprocess.BELOW_NORMAL_PRIORITY_CLASS
    devnull, service_settings = subprocess.DEVNULL, numba_settings()
    environment = {name: value for name, value in _environment(request.path).items() if name not in service_settings}
    environment.update(request.numba)
    return subprocess.Popen(
        command, env=environment, stdin=devnull, stdout=devnull, stderr=devnull, creationflags=creation_flags
    )


def _remove_request(file: Path, reason: str) -> None:
    """Remove a request; if neither a cache file nor a failure reason was written, write `reason`."""
    with suppress(OSError):
        if not file.is_file() and read_failure(file) is None:
            file.with_suffix(FAILURE_SUFFIX).write_text(reason, encoding="utf-8")
    with suppress(OSError):
        _request_file(file).unlink()


def _exit_reason(exit_code: int) -> str:
    """Return the failure reason for a compiler process that wrote neither machine code nor a reason."""
    if exit_code == 0:
        return FOLDER_REMOVED
    name = TERMINATING_SIGNALS.get(-exit_code)
    return f"the compiler ended with exit code {exit_code}" if name is None else f"{SIGNALED} {name}"


def compile_modules(folder: Path, request_files: list[Path]) -> None:
    """Compile requested modules into the cache; the reason of a failure is written to a file next to the cache file."""
    from mechanik.tiers.numba_kernels import import_numba

    for request in map(CompileRequest.read, request_files):
        if not request.is_urgent and sys.platform != "win32" and os.nice(0) < LOW_PRIORITY:
            os.nice(LOW_PRIORITY)
        try:
            import_numba()
        except Exception as error:  # a broken installation can raise any exception
            _write_failure(folder, request, f"{NUMBA_NOT_IMPORTED}: {error}")
            continue
        try:
            if not _compile_module(folder, request):
                _write_failure(folder, request, SOURCES_CHANGED)
        except (OSError, MemoryError) as error:
            _write_failure(folder, request, f"{NO_MEMORY_OR_DISK}: {error}")
        except Exception:  # Numba can raise any exception
            _write_failure(folder, request, traceback.format_exc()[-4000:])


def _write_failure(folder: Path, request: CompileRequest, reason: str) -> None:
    """Write a failure reason, unless the requesting installation was removed.

    Another installation with the same sources uses the same cache file, and may succeed.
    """
    if request.is_installed:
        with suppress(OSError):
            (folder / request.file).with_suffix(FAILURE_SUFFIX).write_text(reason, encoding="utf-8")


def _compile_module(folder: Path, request: CompileRequest) -> bool:
    """Compile a kernel module into the cache; returns False if its sources have changed since the request."""
    from mechanik.tiers import code_cache as cache
    from mechanik.tiers import numba_kernels

    start_time = time.process_time()
    file = cache.cache_file(folder, request.module)
    if file.name != request.file:
        return False
    cache.write_code(file, numba_kernels.compile_module(request.module))
    with suppress(OSError), open(folder / LOG_FILE, "a", encoding="utf-8") as log:
        log.write(f"{request.module} {time.process_time() - start_time:.1f} {file.name}\n")
    return True


# ---- common -------------------------------------------------------------------------------------


def _request_file(file: Path) -> Path:
    return file.with_suffix(REQUEST_PATTERN[1:])


def _core_count() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _environment(path: str | None = None) -> dict[str, str]:
    """Return the environment of this process, with a PYTHONPATH by which Python imports `mechanik` from `path`.

    Args:
        path: folder that contains the package; None: the folder of the package of this module.
    """
    package_folder = path or str(Path(__file__).parents[2])
    if Path(package_folder).name in ("site-packages", "dist-packages"):
        return dict(os.environ)  # already on the path; in PYTHONPATH it could shadow the standard library
    python_path = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([package_folder, *([python_path] if python_path else [])])}


@contextmanager
def _service_lock(folder: Path) -> Generator[bool]:
    """Hold the service lock of a folder if no other process holds it; yields whether this process holds it."""
    file: IO[bytes] | None = None
    try:
        file = open(folder / LOCK_FILE, "ab")  # noqa: SIM115
        _lock(file)
    except OSError:
        if file is not None:
            file.close()
        yield False
        return
    try:
        yield True
    finally:
        file.close()  # releases the lock


def _lock(file: IO[bytes]) -> None:
    """Lock a file; raises `OSError` if another process holds the lock."""
    if sys.platform == "win32":
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
