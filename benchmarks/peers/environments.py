"""A virtual environment for each peer, made once and used again; and one for the oracle."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

from arms import WORK

ORACLE = ("pin==4.1.0", "numpy==2.4.6")


@dataclass(frozen=True)
class Peer:
    """A library to compare with: `driver` names its file `drive_NAME.py`, `needs` what pip installs for it, pinned."""

    name: str
    driver: str
    needs: tuple[str, ...]


PEERS = (
    Peer("EAIK", "eaik", ("EAIK==1.2.2", "numpy==2.4.6")),
    Peer("ssik", "ssik", ("ssik[urdf]==8.2.0", "numpy==2.4.6")),
    Peer("roboticstoolbox", "roboticstoolbox", ("roboticstoolbox-python==1.5.0", "numpy==2.4.6")),
    Peer("optik", "optik", ("optik-py==0.5.0", "numpy==2.4.6")),
    Peer("TRAC-IK", "tracik", ("pytracik==0.0.3", "numpy==2.4.6")),
    Peer("placo", "placo", ("placo==0.10.2",)),
    Peer("klampt", "klampt", ("klampt==0.10.1.post1", "numpy==2.4.6")),
    Peer("pin", "pin", ("pin==4.1.0", "numpy==2.4.6")),
)


def version_of(peer: Peer) -> str:
    return peer.needs[0].partition("==")[2]


def environment(name: str, needs: tuple[str, ...]) -> Path:
    """The Python of the environment of this name, with what it needs installed.

    Raises:
        RuntimeError: pip could not; with the last line of its output.
    """
    folder = WORK / "env" / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = folder / "installed.txt"
    wanted = "\n".join([sys.version, *needs])
    if done.exists() and done.read_text(encoding="utf-8") == wanted:
        return python
    print(f"installing {', '.join(needs)}", file=sys.stderr, flush=True)
    venv.create(folder, with_pip=True, clear=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *needs]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    if completed.returncode:
        lines = [
            line for line in completed.stderr.splitlines() if line.startswith("ERROR")
        ] or completed.stderr.splitlines()
        raise RuntimeError(f"not installed: {lines[-1] if lines else 'pip failed without output'}")
    done.write_text(wanted, encoding="utf-8")
    return python
