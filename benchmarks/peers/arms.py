"""The arms, the tolerance and the folders of the comparison; read in every environment, so it needs nothing."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data" / "peers"
WORK = Path(os.environ.get("MECHANIK_BENCH", ROOT / ".bench"))
"""Folder where environments, targets, solutions and logs are stored; created again if deleted."""

TOLERANCE = 1e-5
"""m and rad, of all but the rows that say otherwise."""

PROTOCOLS = {
    "A": "one solve each: random targets",
    "near": "one solve each, from a seed that is 0.3 rad away",
    "B": "a path, each pose from the previous solution",
    "C": "a batch of random targets",
}


@dataclass(frozen=True)
class Arm:
    """A serial arm in a URDF file, from its root to its tool."""

    name: str
    stem: str
    base: str
    tool: str

    @property
    def urdf(self) -> Path:
        return DATA / f"{self.stem}.urdf"

    @property
    def targets(self) -> Path:
        """T, q0 (A), Tpath, q_start, largest_step (B), Tnear, q_near, q_made (near), Tb (C), lower, upper."""
        return WORK / "targets" / f"{self.stem}.npz"


ARMS = {
    "panda": Arm("Panda", "panda", "panda_link0", "panda_link8"),
    "ur5": Arm("UR5", "ur5", "base_link", "tool0"),
}
