"""Machine code compiled on this machine: read from the cache, or asked for and waited for."""

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
from mechanik.tiers import cache, compile_service, numba_kernels
from mechanik.tiers.availability import POLL_SECONDS, SERVICE_ENDED, last_line, why_not_compiled
from mechanik.tiers.plain import Functions, with_callees
from mechanik.tiers.progress import CompileProgress, Progress

log = logging.getLogger("mechanik")

RESTARTS = 2
"""How often a compile service that was killed is started again by one program."""
FORK_SECONDS = 10.0
"""How long a fork waits for a thread that loads machine code, which takes about 1 s."""
SWITCH_SECONDS = 5e-4
"""How soon other threads get the interpreter while machine code is loaded; Python's default is 5e-3."""


class JitCache:
    """The compiled kernels of this process, the files they come from, and the service that writes the files."""

    def __init__(self) -> None:
        self._loaded: dict[str, Functions] = {}
        self.loading = threading.RLock()
        self._is_held = False
        self._import_error: str | None = None
        self._private: Path | None = None
        self._service: subprocess.Popen[bytes] | None = None
        self._restarts = RESTARTS
        self._tried_again: set[str] = set()
        atexit.register(self._end)

    # ---- forks ----------------------------------------------------------------------------

    def prepare_fork(self) -> None:
        """Let a thread that loads machine code finish: in the new process the locks of its imports would stay held."""
        self._is_held = self.loading.acquire(timeout=FORK_SECONDS)

    def end_fork(self) -> None:
        """In the process that forked."""
        if self._is_held:
            self._is_held = False
            self.loading.release()

    def renew_after_fork(self) -> None:
        """In a forked process: the service and the private folder belong to the process that forked."""
        self.loading, self._is_held = threading.RLock(), False
        self._service = None
        atexit.unregister(self._end)

    # ---- reading --------------------------------------------------------------------------

    def functions(self, name: str) -> Functions | None:
        """The kernels of a module; None if it, or one that it calls, is not compiled."""
        for one in with_callees([name]):
            if one not in self._loaded and not self._load(one):
                return None
        return numba_kernels.bind(name, self._loaded[name], self._loaded.__getitem__)

    def _load(self, name: str) -> bool:
        """Load one module from the cache; a file that cannot be loaded is removed."""
        with self.loading:
            for file in self._files(name):
                if name in self._loaded:
                    return True
                code = cache.read(file)
                if code is None or not self._has_numba():
                    continue
                try:
                    self._loaded[name] = numba_kernels.functions_from(name, code)
                except Exception as error:  # whatever Numba raises for machine code that is not its own
                    log.info("mechanik: the compiled kernels %s cannot be loaded (%s)", name, error)
                    with suppress(OSError):
                        file.unlink()
            return name in self._loaded

    def _has_numba(self) -> bool:
        """Whether Numba, which machine code needs, can be imported: a file of the user may have its name."""
        if self._import_error is None:
            try:
                numba_kernels.import_numba()
            except Exception as error:  # whatever a broken installation raises
                self._import_error = f"{compile_service.NO_NUMBA}: {error}"
                log.warning("mechanik: %s; plain Python is used", self._import_error)
        return self._import_error is None

    def is_compiled(self, name: str) -> bool:
        """Whether the files of a module, and of those that it calls, are there."""
        return all(one in self._loaded or self.compiled_file(one) is not None for one in with_callees([name]))

    def compiled_file(self, name: str) -> Path | None:
        """The file of a module, if it is there."""
        return next((file for file in self._files(name) if _is_file(file)), None)

    def failure(self, name: str) -> str | None:
        """Why a module could not be compiled, if it was tried."""
        return next(filter(None, map(compile_service.failure, self._files(name))), None)

    def is_requested(self, name: str) -> bool:
        """Whether a module waits to be compiled, or is being compiled."""
        return any(map(compile_service.is_requested, self._files(name)))

    @property
    def is_private(self) -> bool:
        """Whether machine code is compiled for this process alone, and compiling ends with it."""
        return self._private is not None

    def _files(self, name: str) -> list[Path]:
        folders = (cache.cache_folder(), self._private)
        return [cache.cache_file(folder, name) for folder in folders if folder is not None]

    # ---- compiling ------------------------------------------------------------------------

    def request(self, names: Iterable[str], is_urgent: bool) -> list[str]:
        """Ask for modules and those that they call.

        Returns:
            Those that are not compiled and will be.
        """
        missing = [name for name in with_callees(names) if name not in self._loaded and not self.compiled_file(name)]
        folder = self._writable_folder() if missing else None
        if folder is None:
            return []
        coming: list[str] = []
        for name in missing:
            file = cache.cache_file(folder, name)
            if is_urgent:
                compile_service.forget_failure(file)
            elif (reason := compile_service.failure(file)) is not None:
                if name in self._tried_again or not compile_service.is_passing(reason):
                    continue
                self._tried_again.add(name)
                compile_service.forget_failure(file)
            try:
                compile_service.request(name, file, is_urgent)
            except OSError as error:
                log.info("mechanik: kernels cannot be compiled: %s", error)
                break
            coming.append(name)
        if coming:
            self._start_service(folder)
        return coming

    def keep_service(self) -> bool:
        """Start the service again if it was killed; False if that was done too often, or cannot be."""
        if self._service is not None and self._service.poll() is None:
            return True
        folder = self._private or cache.cache_folder()
        if folder is None:
            return False
        if compile_service.is_running(folder):
            return True
        self._restarts -= 1
        return self._restarts >= 0 and self._start_service(folder)

    def wait(
        self, names: Iterable[str], expected: dict[str, float], what: str = "", progress: Progress | None = None
    ) -> None:
        """Until modules, and those that they call, are compiled and loaded.

        Args:
            expected: seconds that each takes, for the progress line.
            what: what needs them.
            progress: is told how far it is; None: a line on stderr.

        Raises:
            KernelsUnavailable: they cannot be compiled.
        """
        if (reason := why_not_compiled()) is not None:
            raise KernelsUnavailable(reason)
        missing = [name for name in with_callees(names) if name not in self._loaded and not self._load(name)]
        if self._import_error is not None:
            raise KernelsUnavailable(self._import_error)
        if len(self.request(missing, is_urgent=True)) < len(missing):
            raise KernelsUnavailable(
                "kernels cannot be compiled: there is no folder to write them to. Set MECHANIK_CACHE_DIR to one."
            )
        progress = CompileProgress(what) if progress is None else progress
        progress.begin({name: expected.get(name, 10.0) for name in missing})
        try:
            while missing:
                for name in list(missing):
                    if self._load(name):
                        missing.remove(name)
                        progress.finish(name)
                    elif self._import_error is not None:
                        raise KernelsUnavailable(self._import_error)
                    elif (reason := self.failure(name)) is not None:
                        raise KernelsUnavailable(f"the kernels {name} cannot be compiled: {last_line(reason)}")
                    elif not self.is_requested(name):  # its file was damaged, or removed
                        self.request([name], is_urgent=True)
                if missing and not self.keep_service():
                    raise KernelsUnavailable(SERVICE_ENDED)
                progress.show()
                if missing:
                    time.sleep(POLL_SECONDS)
        finally:
            progress.end()

    def _writable_folder(self) -> Path | None:
        """Where to compile to: the cache, or a folder that is removed with this process; None if neither can be."""
        if self._private is None:
            folder = cache.cache_folder()
            if cache.is_writable(folder):
                return folder
            try:
                self._private = Path(tempfile.mkdtemp(prefix="mechanik-kernels-"))
            except OSError:
                return None
            log.info("mechanik: %s cannot be written; kernels are compiled for this process alone", folder)
        return self._private if cache.is_writable(self._private) else None

    def _start_service(self, folder: Path) -> bool:
        service = compile_service.start(folder)
        if service is not None:
            self._service = service
            # a process that has ended is a zombie until its parent has waited for it
            threading.Thread(target=service.wait, name="mechanik compile service", daemon=True).start()
        return service is not None or compile_service.is_running(folder)

    def _end(self) -> None:
        """At exit: the service goes on, but for machine code that only this process can use."""
        if self._service is not None and self._service.poll() is None:
            if self._private is None:
                self._service.returncode = 0  # it is not waited for, and Python need not warn of that
            else:
                with suppress(OSError, subprocess.TimeoutExpired):
                    self._service.terminate()
                    self._service.wait(5.0)
        if self._private is not None:
            shutil.rmtree(self._private, ignore_errors=True)


@contextmanager
def short_switches() -> Generator[None]:
    """Let other threads have the interpreter sooner, while machine code is loaded in the background.

    The garbage collector rests meanwhile, and what was loaded counts as old: one collection over all that importing
    Numba makes would hold it for 40 ms. To be used with `JitCache.loading` held, so that no fork comes in between.
    """
    before, collects = sys.getswitchinterval(), gc.isenabled()
    sys.setswitchinterval(min(before, SWITCH_SECONDS))
    gc.disable()
    try:
        yield
    finally:
        sys.setswitchinterval(before)
        gc.freeze()
        gc.unfreeze()
        if collects:
            gc.enable()


def _is_file(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError:
        return False
