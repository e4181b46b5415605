"""JIT-compiled kernels of this process: loading from the cache, requests to compile missing kernels, and waiting."""

from __future__ import annotations

import atexit
import gc
import logging
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

from mechanik.errors import KernelsUnavailable
from mechanik.tiers import code_cache as cache
from mechanik.tiers import compile_service, numba_kernels
from mechanik.tiers.availability import POLL_SECONDS, SERVICE_ENDED, failure_summary, reason_not_compilable
from mechanik.tiers.compile_progress import CompileMonitor, ProgressLine
from mechanik.tiers.kernel_sources import KernelFunctions, with_callees

log = logging.getLogger("mechanik")

MAX_SERVICE_RESTARTS = 2
"""Largest number of times that a program restarts a compile service that was killed."""
FORK_SECONDS = 10.0
"""Longest time that a fork waits for a thread that loads machine code, s; loading takes about 1 s."""
SWITCH_SECONDS = 5e-4
"""Switch interval of threads while machine code is loaded, s.

It is shorter than the default of Python, 5e-3 s: other threads run sooner, but loading takes longer."""


class JitCache:
    """The compiled kernels of this process, their cache files, and the compile service that writes these files.

    Attributes:
        loading_lock: held while machine code is loaded.
    """

    def __init__(self) -> None:
        self._loaded_functions: dict[str, KernelFunctions] = {}
        self.loading_lock = threading.RLock()
        self._has_loading_lock = False
        self._import_error: str | None = None
        self._private_folder: Path | None = None
        self._service: subprocess.Popen[bytes] | None = None
        self._remaining_restart_count = MAX_SERVICE_RESTARTS
        self._retried_modules: set[str] = set()
        atexit.register(self._end)

    # ---- forks ----------------------------------------------------------------------------

    def prepare_fork(self) -> None:
        """Wait for a thread that loads machine code: its import locks would stay locked in the forked process."""
        self._has_loading_lock = self.loading_lock.acquire(timeout=FORK_SECONDS)

    def release_after_fork(self) -> None:
        """Release the loading lock in the parent process after a fork."""
        if self._has_loading_lock:
            self._has_loading_lock = False
            self.loading_lock.release()

    def reset_after_fork(self) -> None:
        """Reset the lock and drop the service in a forked process; service and private folder belong to the parent."""
        self.loading_lock, self._has_loading_lock = threading.RLock(), False
        self._service = None
        atexit.unregister(self._end)

    # ---- reading --------------------------------------------------------------------------

    def functions(self, name: str) -> KernelFunctions | None:
        """Return the compiled kernels of a kernel module; None if this or a called module cannot be loaded."""
        for module in with_callees([name]):
            if module not in self._loaded_functions and not self._load(module):
                return None
        return numba_kernels.bind_callees(name, self._loaded_functions[name], self._loaded_functions.__getitem__)

    def _load(self, name: str) -> bool:
        """Load a kernel module from the cache; returns whether it is loaded. An unusable file is removed."""
        with self.loading_lock:
            for file in self._files(name):
                if name in self._loaded_functions:
                    return True
                code = cache.read_code(file)
                if code is None or not self._has_numba():
                    continue
                try:
                    self._loaded_functions[name] = numba_kernels.load_functions(name, code)
                except Exception as error:  # Numba can raise any exception for foreign machine code
                    log.info("mechanik: the compiled kernels %s cannot be loaded (%s)", name, error)
                    with suppress(OSError):
                        file.unlink()
            return name in self._loaded_functions

    def _has_numba(self) -> bool:
        """Return whether Numba, which compiled kernels need, can be imported; a user's file numba.py can prevent it."""
        if self._import_error is None:
            try:
                numba_kernels.import_numba()
            except Exception as error:  # a broken installation can raise any exception
                self._import_error = f"{compile_service.NUMBA_NOT_IMPORTED}: {error}"
                log.warning("mechanik: %s; plain Python is used", self._import_error)
        return self._import_error is None

    def is_compiled(self, name: str) -> bool:
        """Return whether a kernel module and all modules that it calls are loaded or in the cache."""
        return all(
            module in self._loaded_functions or self.compiled_file(module) is not None
            for module in with_callees([name])
        )

    def compiled_file(self, name: str) -> Path | None:
        """Return the existing cache file of a kernel module; None if there is none."""
        return next((file for file in self._files(name) if _is_file(file)), None)

    def failure(self, name: str) -> str | None:
        """Return the reason why a kernel module could not be compiled; None if there was no failure."""
        return next(filter(None, map(compile_service.read_failure, self._files(name))), None)

    def is_requested(self, name: str) -> bool:
        """Return whether a kernel module waits for the compiler or is being compiled."""
        return any(map(compile_service.is_requested, self._files(name)))

    @property
    def is_private(self) -> bool:
        """Whether kernels are compiled to a private folder, which is removed when this process ends."""
        return self._private_folder is not None

    def _files(self, name: str) -> list[Path]:
        folders = (cache.cache_folder(), self._private_folder)
        return [cache.cache_file(folder, name) for folder in folders if folder is not None]

    # ---- compiling ------------------------------------------------------------------------

    def request(self, names: Iterable[str], is_urgent: bool) -> list[str]:
        """Request that the compile service compiles kernel modules and the modules that they call.

        Args:
            names: names of kernel modules; compiled modules are skipped.
            is_urgent: whether the program waits. Urgent modules are compiled with normal priority and on all cores,
                also if they failed before. A module that is not urgent is compiled at most once more after a failure,
                and only if the failure is transient.

        Returns:
            The modules for which requests were written.
        """
        missing_modules = [
            name for name in with_callees(names) if name not in self._loaded_functions and not self.compiled_file(name)
        ]
        folder = self._writable_folder() if missing_modules else None
        if folder is None:
            return []
        requested_modules: list[str] = []
        for name in missing_modules:
            file = cache.cache_file(folder, name)
            if is_urgent:
                compile_service.clear_failure(file)
            elif (reason := compile_service.read_failure(file)) is not None:
                if name in self._retried_modules or not compile_service.is_transient(reason):
                    continue
                self._retried_modules.add(name)
                compile_service.clear_failure(file)
            try:
                compile_service.write_request(name, file, is_urgent)
            except OSError as error:
                log.info("mechanik: kernels cannot be compiled: %s", error)
                break
            requested_modules.append(name)
        if requested_modules:
            self._start_service(folder)
        return requested_modules

    def ensure_service(self) -> bool:
        """Restart the service if none runs; returns False after too many restarts, or if it cannot be started."""
        if self._service is not None and self._service.poll() is None:
            return True
        folder = self._private_folder or cache.cache_folder()
        if folder is None:
            return False
        if compile_service.is_running(folder):
            return True
        self._remaining_restart_count -= 1
        return self._remaining_restart_count >= 0 and self._start_service(folder)

    def wait(
        self,
        names: Iterable[str],
        expected_seconds: dict[str, float],
        work: str = "",
        progress: CompileMonitor | None = None,
    ) -> None:
        """Wait until kernel modules, and the modules that they call, are compiled and loaded.

        Args:
            names: names of kernel modules.
            expected_seconds: expected processor time of each module, s, for the progress display.
            work: the work that needs the kernels, for the progress line.
            progress: progress display; None: a line on stderr.

        Raises:
            KernelsUnavailable: a module cannot be compiled, or Numba cannot be imported.
        """
        if (reason := reason_not_compilable()) is not None:
            raise KernelsUnavailable(reason)
        missing_modules = [
            name for name in with_callees(names) if name not in self._loaded_functions and not self._load(name)
        ]
        if self._import_error is not None:
            raise KernelsUnavailable(self._import_error)
        requested_modules = self.request(missing_modules, is_urgent=True)
        # another program may have compiled a module meanwhile
        if any(name not in requested_modules and not self.compiled_file(name) for name in missing_modules):
            raise KernelsUnavailable(
                "kernels cannot be compiled: there is no writable cache folder with "
                f"{cache.MIN_FREE_BYTES >> 20} MiB of free space. Set MECHANIK_CACHE_DIR to such a folder."
            )
        progress = ProgressLine(work) if progress is None else progress
        progress.begin({name: expected_seconds.get(name, 10.0) for name in missing_modules})
        try:
            while missing_modules:
                for name in list(missing_modules):
                    if self._load(name):
                        missing_modules.remove(name)
                        progress.finish(name)
                    elif self._import_error is not None:
                        raise KernelsUnavailable(self._import_error)
                    elif (reason := self.failure(name)) is not None:
                        raise KernelsUnavailable(f"the kernels {name} cannot be compiled: {failure_summary(reason)}")
                    elif not self.is_requested(name):  # the cache file was damaged or removed
                        self.request([name], is_urgent=True)
                if missing_modules and not self.ensure_service():
                    raise KernelsUnavailable(SERVICE_ENDED)
                progress.show()
                if missing_modules:
                    time.sleep(POLL_SECONDS)
        finally:
            progress.end()

    def _writable_folder(self) -> Path | None:
        """Return the cache folder or, if it cannot be written, a private folder; None if neither can be written.

        A private folder is used until the end of the process, even if the cache folder becomes writable.
        """
        if self._private_folder is None:
            folder = cache.cache_folder()
            if cache.is_writable(folder):
                return folder
            try:
                self._private_folder = Path(tempfile.mkdtemp(prefix="mechanik-kernels-"))
            except OSError:
                return None
            log.info("mechanik: %s cannot be written; kernels are compiled for this process alone", folder)
        return self._private_folder if cache.is_writable(self._private_folder) else None

    def _start_service(self, folder: Path) -> bool:
        service = compile_service.start_service(folder)
        if service is not None:
            self._service = service
            # an ended process stays a zombie until its parent waits for it
            threading.Thread(target=service.wait, name="mechanik compile service", daemon=True).start()
        return service is not None or compile_service.is_running(folder)

    def _end(self) -> None:
        """At exit, terminate the service of a private folder and remove the folder; other services continue."""
        if self._service is not None and self._service.poll() is None:
            if self._private_folder is None:
                self._service.returncode = 0  # prevents a warning of Python that the process still runs
            else:
                with suppress(OSError, subprocess.TimeoutExpired):
                    self._service.terminate()
                    self._service.wait(5.0)
        if self._private_folder is not None:
            shutil.rmtree(self._private_folder, ignore_errors=True)


@contextmanager
def short_switches() -> Generator[None]:
    """Shorten the thread switch interval and disable the garbage collector while machine code is loaded.

    The import of Numba creates many objects; a garbage collection of them would hold the interpreter lock for 40 ms. At
    the end all objects are moved to the oldest generation, which is collected rarely. The caller must hold
    `JitCache.loading_lock`, so that no fork happens meanwhile.
    """
    interval, is_gc_enabled = sys.getswitchinterval(), gc.isenabled()
    sys.setswitchinterval(min(interval, SWITCH_SECONDS))
    gc.disable()
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        gc.freeze()
        gc.unfreeze()
        if is_gc_enabled:
            gc.enable()


def _is_file(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError:
        return False
