"""The browser of the studio's tests: any Chromium that the system has. As a script with --install, Debian's is fetched.

Playwright downloads none of its own, so that the tests need no host but those of the system's packages.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge", "msedge", "chrome")
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
    "C:/Program Files (x86)/Microsoft/Edge/Application/msedge.exe",
    "C:/Program Files/Microsoft/Edge/Application/msedge.exe",
)
"""Where those stand that are not on PATH."""
ADVICE = (
    "There is no Chromium, Chrome or Edge, and the tests that need one are skipped; "
    "install one (on Debian: apt-get install chromium)."
)

ONE_CORE = Path(__file__).parents[1] / "src" / "mechanik" / "studio" / "web" / "one_core.py"


def find_browser() -> str | None:
    """The path of a browser, or None."""
    on_path = (shutil.which(name) for name in NAMES)
    return next((path for path in on_path if path is not None), None) or next(
        (place for place in PLACES if Path(place).is_file()), None
    )


def one_core() -> ModuleType:
    """The module that tests the clock; it belongs to the build of the page, and is in no package."""
    spec = importlib.util.spec_from_file_location("mechanik_one_core", ONE_CORE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def keep_to_one_core(say: Callable[[str], None] | None = None) -> None:
    """Keep this process, and the browser that it starts next, on one core where the clock runs backwards between cores.

    Args:
        say: called with a sentence if so; by default it is written to stderr.
    """
    one_core().pin_to_one_core(_say if say is None else say)


def install() -> None:
    """Debian's chromium, where this may be done without asking for a password; says how it went, and never fails."""
    if find_browser() is not None:
        return
    by_root = _as_root()
    if by_root is None or shutil.which("apt-get") is None:
        _say(ADVICE)
        return
    _say("installing chromium for the studio's tests (apt-get)")
    fetch = [*by_root, "apt-get", "install", "--yes", "--no-install-recommends", "chromium"]
    if not _did(fetch) and _did([*by_root, "apt-get", "update"]):
        _did(fetch)
    if find_browser() is None:
        _say(f"apt-get could not install it. {ADVICE}")


def _as_root() -> list[str] | None:
    """What to put before a command so that root runs it; None where that is not possible."""
    if getattr(os, "geteuid", lambda: 1)() == 0:
        return []
    return ["sudo", "--non-interactive"] if _did(["sudo", "--non-interactive", "true"]) else None


def _did(command: list[str]) -> bool:
    try:
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=900, env=quiet)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    if "--install" in sys.argv[1:]:
        install()
    else:
        _say(find_browser() or ADVICE)
