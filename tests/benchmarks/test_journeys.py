"""Few files lie on the path of a common call: what a newcomer must read to follow it."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "journeys.py"


def test_loading_and_solving_touch_at_most_the_allowed_number_of_files():
    output = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=True).stdout
    counts = {
        name: (int(count), int(goal)) for name, count, goal in re.findall(r"(.+?) +(\d+) files, at most (\d+)", output)
    }
    assert len(counts) == 4
    for name, (count, goal) in counts.items():
        # which files the threads of a drag call depends on their timing, so its number is only printed
        assert count <= goal or name == "one drag update", f"{name}: {count} files"
