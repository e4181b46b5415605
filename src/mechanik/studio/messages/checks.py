"""What a value in a message may be: types that carry their bounds, for reading and for TypeScript."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True, slots=True)
class Between:
    """A finite number from `low` to `high`."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Size:
    """A text of some letters, or a list of some entries."""

    low: int
    high: int


FARTHEST = 1e6
"""m or rad: what is farther away than this is a mistake, and its square still fits into a float with ease."""

Number = Annotated[float, Between(-FARTHEST, FARTHEST)]
Positive = Annotated[float, Between(0.0, FARTHEST)]
Share = Annotated[float, Between(0.0, 1.0)]
Count = Annotated[int, Between(0, 1_000_000)]
Index = Annotated[int, Between(0, 100_000)]
Level = Annotated[int, Between(0, 9)]
Name = Annotated[str, Size(1, 200)]
Text = Annotated[str, Size(0, 200_000)]
Vector = tuple[Number, Number, Number]
PoseNumbers = tuple[Number, Number, Number, Number, Number, Number, Number]
"""Position (m) and wxyz."""
Value = float | bool | str
"""Of a scene's control or a solver's option; checked again by whoever takes it."""
