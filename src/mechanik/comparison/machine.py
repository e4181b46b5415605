"""What a comparison ran on: timings mean nothing without it."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mechanik.version import __version__


def describe_machine() -> dict[str, str]:
    """Processor, cores, Python, versions and the date, for people."""
    return {
        "processor": processor(),
        "cores": str(os.cpu_count() or 1),
        "system": f"{platform.system()} {platform.release()}".strip(),
        "python": platform.python_version(),
        "mechanik": __version__,
        "numpy": _version("numpy"),
        "numba": _version("numba"),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def processor() -> str:
    """Its maker's name for it, where the system tells."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.lower().startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine() or "unknown"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"
