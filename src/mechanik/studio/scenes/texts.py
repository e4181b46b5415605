"""Models as text that people like to edit."""

from __future__ import annotations

import json
import re
from typing import Any


def tidy(data: Any) -> str:
    """JSON with each list of plain values on one line, so that a row of a table is a row."""
    text = json.dumps(data, indent=2)
    return re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda found: f"[{' '.join(found[1].split())}]", text)
