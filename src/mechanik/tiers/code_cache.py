"""Disk cache of JIT-compiled kernels: one file for each version of a kernel module, written atomically.

A file name contains a hash of everything on which machine code depends: the sources, the versions of Python and Numba,
the settings of Numba, and the processor. So a file is never outdated, and machines with a common home folder but
different processors use different files.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import pickle
import platform
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from mechanik.tiers.availability import numba_version
from mechanik.tiers.kernel_sources import source_stamp

log = logging.getLogger("mechanik")

MAX_VERSIONS = 8
"""Largest number of files per kernel module: enough for a few source branches, Python versions and machines."""
MIN_FREE_BYTES = 16 << 20
"""Free disk space that the cache needs, bytes; much more than the size of the largest file."""
IGNORED_SETTINGS = ("NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT", "NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER")
"""Environment variables of Numba that do not change machine code."""
FILE_HEADER = b"mechanik kernels 1\n"
"""Start of a cache file; the SHA-256 hash of the body (32 bytes) and the body follow."""


def cache_folder() -> Path | None:
    """Return the folder of the cache; None if there is no home folder, as in some containers.

    The environment variable MECHANIK_CACHE_DIR overrides the default folder.
    """
    try:
        if folder := os.environ.get("MECHANIK_CACHE_DIR"):
            return Path(folder).expanduser().absolute() / "kernels"
        if sys.platform == "win32":
            base_folder = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "Cache"
        elif sys.platform == "darwin":
            base_folder = Path.home() / "Library" / "Caches"
        else:
            base_folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None
    return base_folder / "mechanik" / "kernels"


def is_writable(folder: Path | None) -> bool:
    """Return whether the folder exists or can be created, can be written, and has enough free space."""
    if folder is None:
        return False
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):  # os.access does not detect read-only file systems on Windows
            pass
        return shutil.disk_usage(folder).free >= MIN_FREE_BYTES
    except OSError:
        return False


def cache_file(folder: Path, module: str) -> Path:
    """Return the cache file of a kernel module for the present sources, Python, Numba, Numba settings and processor."""
    key = _digest(
        source_stamp(module), numba_version() or "", str(numba_settings()), sys.version, _processor_description()
    )
    return folder / f"{module}-{key}.kernels"


def numba_settings() -> dict[str, str]:
    """Return the environment variables of Numba that may change machine code, sorted by name."""
    settings = {name: value for name, value in os.environ.items() if name.startswith("NUMBA_")}
    return {name: settings[name] for name in sorted(settings) if name not in IGNORED_SETTINGS}


def read_code(file: Path) -> dict[str, bytes] | None:
    """Read the machine code of a cache file, by kernel name; None if it cannot be read. A damaged file is removed."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    body = content[len(FILE_HEADER) + 32 :]
    if (
        content[: len(FILE_HEADER)] == FILE_HEADER
        and hashlib.sha256(body).digest() == content[len(FILE_HEADER) : len(FILE_HEADER) + 32]
    ):
        return pickle.loads(body)
    log.info("mechanik: %s is damaged and is compiled again", file)
    with suppress(OSError):
        file.unlink()
    return None


def write_code(file: Path, kernels: dict[str, bytes]) -> None:
    """Write the machine code of a kernel module, by kernel name, atomically; raises `OSError` if it fails."""
    body = pickle.dumps(kernels)
    temporary_file = file.with_name(f"{file.name}.{os.getpid()}.part")
    try:
        temporary_file.write_bytes(FILE_HEADER + hashlib.sha256(body).digest() + body)
        os.replace(temporary_file, file)
    except OSError:
        with suppress(OSError):
            temporary_file.unlink()
        raise
    _remove_old_versions(file)


def _remove_old_versions(file: Path) -> None:
    """Remove all files of a kernel module except the newest `MAX_VERSIONS`, and its partial files.

    A process that is killed leaves a partial file.
    """
    module = file.name.rsplit("-", 1)[0]
    with suppress(OSError):
        for pattern, max_file_count in ((f"{module}-*.kernels", MAX_VERSIONS), (f"{module}-*.part", 0)):
            files = sorted(file.parent.glob(pattern), key=lambda path: path.stat().st_mtime, reverse=True)
            for outdated_file in files[max_file_count:]:
                outdated_file.unlink()


@functools.cache
def _processor_description() -> str:
    """Return a text that identifies the processor and its instruction sets, without importing LLVM."""
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        fields = ("vendor_id", "cpu family", "model", "model name", "flags", "Features", "CPU implementer", "CPU part")
        description: list[str] = []
        for line in lines:
            if not line.strip():
                break  # the other cores have the same description
            if line.split(":")[0].strip() in fields:
                description.append(line)
        if description:
            return "".join(description)
    return f"{platform.machine()} {platform.processor()}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
