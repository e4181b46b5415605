"""One thing that a check has found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """
    Attributes:
        severity: "error" (it will not work), "warning" (it may not be what was meant) or "note" (worth knowing).
        code: a short name for the kind of finding, such as "mesh-missing".
        where: the part that it is about, such as "joint 'elbow'"; empty for the whole.
        message: what is the matter, continuing `where`.
    """

    severity: Severity
    code: str
    where: str
    message: str
