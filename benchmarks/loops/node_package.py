"""The original and what it needs, installed by npm into a folder of its own, once."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

ORIGINAL = "closed-chain-ik@0.0.3"
THREE = "three@0.138.3"
ONE_CORE = Path(__file__).parents[2] / "src" / "mechanik" / "studio" / "web" / "one_core.py"


def node_packages(folder: Path, original: str = ORIGINAL) -> tuple[Path, str]:
    """The folder with `node_modules`, and the version that is in it.

    Args:
        original: what `npm install` takes: a name and version, `github:gkjohnson/closed-chain-ik-js`, or a folder.
    Raises:
        RuntimeError: there is no Node, or npm could not; with its output.
    """
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise RuntimeError("not installed: it needs node and npm on the PATH")
    done, wanted = folder / "installed.txt", f"{original}\n{THREE}"
    if not done.exists() or done.read_text(encoding="utf-8") != wanted:
        print(f"installing {original}, {THREE}", file=sys.stderr, flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "package.json").write_text('{"name": "race", "private": true}', encoding="utf-8")
        command = [
            sys.executable,
            str(ONE_CORE),
            npm,
            "install",
            "--no-audit",
            "--no-fund",
            "--legacy-peer-deps",
            original,
            THREE,
        ]
        completed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if completed.returncode:
            lines = [line for line in completed.stderr.splitlines() if "error" in line]
            raise RuntimeError(f"not installed: {lines[0] if lines else 'npm failed without output'}")
        done.write_text(wanted, encoding="utf-8")
    about = folder / "node_modules" / "closed-chain-ik" / "package.json"
    return folder, json.loads(about.read_text(encoding="utf-8"))["version"]
