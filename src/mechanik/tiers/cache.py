"""The cache on disk: one file for each module of kernels, written at once or not at all.

A file's name holds the stamp of the sources and of all else that machine code depends on: versions of Python and Numba,
Numba's settings, and the processor. So what is there is never stale, and machines that share a home do not disturb each
other.
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
from mechanik.tiers.sources import source_stamp

log = logging.getLogger("mechanik")

VERSIONS_KEPT = 8
"""Of each module: enough for some branches of the sources, versions of Python and machines."""
SPACE_NEEDED = 16 << 20
"""Bytes; the largest file has two million."""
WITHOUT_EFFECT = ("NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT", "NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER")
HEAD = b"mechanik kernels 1\n"


def cache_folder() -> Path | None:
    """Where machine code is kept; None where there is no home at all, as in some containers."""
    try:
        if given := os.environ.get("MECHANIK_CACHE_DIR"):
            return Path(given).expanduser().absolute() / "kernels"
        if sys.platform == "win32":
            home = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "Cache"
        elif sys.platform == "darwin":
            home = Path.home() / "Library" / "Caches"
        else:
            home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None
    return home / "mechanik" / "kernels"


def is_writable(folder: Path | None) -> bool:
    """Whether the folder can be made and has room for machine code."""
    if folder is None:
        return False
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):  # os.access says nothing of read-only file systems on Windows
            pass
        return shutil.disk_usage(folder).free >= SPACE_NEEDED
    except OSError:
        return False


def cache_file(folder: Path, module: str) -> Path:
    """The file of a module of kernels, as its sources are now, for this Python, Numba (as it is set) and processor."""
    key = _digest(source_stamp(module), numba_version() or "", str(numba_settings()), sys.version, _processor())
    return folder / f"{module}-{key}.kernels"


def numba_settings() -> dict[str, str]:
    """What the environment says to Numba that may change machine code."""
    settings = {name: value for name, value in os.environ.items() if name.startswith("NUMBA_")}
    return {name: settings[name] for name in sorted(settings) if name not in WITHOUT_EFFECT}


def read(file: Path) -> dict[str, bytes] | None:
    """What was written, by names of kernels; None if there is nothing. A damaged file is removed."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    body = content[len(HEAD) + 32 :]
    if content[: len(HEAD)] == HEAD and hashlib.sha256(body).digest() == content[len(HEAD) : len(HEAD) + 32]:
        return pickle.loads(body)
    log.info("mechanik: %s is damaged and is compiled again", file)
    with suppress(OSError):
        file.unlink()
    return None


def write(file: Path, kernels: dict[str, bytes]) -> None:
    """Write the machine code of a module, by names of kernels, beside the file and then rename; OSError if it fails."""
    body = pickle.dumps(kernels)
    beside = file.with_name(f"{file.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(HEAD + hashlib.sha256(body).digest() + body)
        os.replace(beside, file)
    except OSError:
        with suppress(OSError):
            beside.unlink()
        raise
    _drop_old(file)


def _drop_old(file: Path) -> None:
    """Leave the last few versions of a module; the parts that a killed process left go as well."""
    module = file.name.rsplit("-", 1)[0]
    with suppress(OSError):
        for pattern, kept in ((f"{module}-*.kernels", VERSIONS_KEPT), (f"{module}-*.part", 0)):
            versions = sorted(file.parent.glob(pattern), key=lambda one: one.stat().st_mtime, reverse=True)
            for old in versions[kept:]:
                old.unlink()


@functools.cache
def _processor() -> str:
    """A name of the processor and of what it can do, without importing LLVM."""
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        wanted = ("vendor_id", "cpu family", "model", "model name", "flags", "Features", "CPU implementer", "CPU part")
        found: list[str] = []
        for line in lines:
            if not line.strip():
                break  # the other cores are the same
            if line.split(":")[0].strip() in wanted:
                found.append(line)
        if found:
            return "".join(found)
    return f"{platform.machine()} {platform.processor()}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
