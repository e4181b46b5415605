"""Plots as SVG text: lines over axes that may be logarithmic. Colours come from the page around them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

WIDTH, HEIGHT = 440, 300
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 12, 42
PALETTE = ("#3b82f6", "#f07a13", "#22a35a", "#e5484d", "#8b5cf6", "#b07d10", "#e0489b", "#0f9bab", "#86a113", "#7b8794")
"""Tones that can be told apart on white and on black."""
DASHES = ("", "6 3", "2 3")
"""For what has no colour of its own any more."""


@dataclass(frozen=True, slots=True)
class Line:
    """
    Attributes:
        number: which says colour and dash, the same in every plot.
        points: x and y.
    """

    name: str
    number: int
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Axis:
    """
    Attributes:
        label: with its unit.
        low, high: its ends.
    """

    label: str
    low: float
    high: float
    is_log: bool = False

    def share(self, value: float) -> float:
        """Where a value lies, 0 to 1; what lies outside is brought to the end."""
        value = min(max(value, self.low), self.high)
        if self.is_log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[tuple[float, str]]:
        """Values with their texts: decades, or about five round numbers."""
        if self.is_log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            stride = max(1, math.ceil((last - first) / 6))
            return [(10.0**k, _power(k)) for k in range(first, last + 1, stride)]
        raw = (self.high - self.low) / 5
        size = 10.0 ** math.floor(math.log10(raw))
        step = next(size * k for k in (1, 2, 5, 10) if size * k >= raw * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        return [(k * step, f"{k * step:g}") for k in range(first, math.floor(self.high / step + 1e-9) + 1)]


def plot(title: str, lines: Sequence[Line], x: Axis, y: Axis) -> str:
    """One plot as an `svg` element; each line has its number as `data-s`, for legends to find it."""
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}" class="plot">',
        *_axes(x, y),
    ]
    for line in lines:
        places = (f"{_x(x.share(a)):.1f},{_y(y.share(b)):.1f}" for a, b in line.points)
        text = " ".join(place for place, _ in groupby(places))
        dash = DASHES[(line.number // len(PALETTE)) % len(DASHES)]
        parts.append(
            f'<polyline data-s="{line.number}" points="{text}" stroke="{colour(line.number)}"'
            + (f' stroke-dasharray="{dash}"' if dash else "")
            + f"><title>{escape(line.name)}</title></polyline>"
        )
    return "".join([*parts, "</svg>"])


def key(number: int) -> str:
    """A short stroke in a line's colour and dash, for a legend."""
    dash = DASHES[(number // len(PALETTE)) % len(DASHES)]
    style = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<svg viewBox="0 0 26 8" class="key"><line x1="1" y1="4" x2="25" y2="4" stroke="{colour(number)}"'
        f'{style}/></svg>'
    )  # fmt: skip


def colour(number: int) -> str:
    return PALETTE[number % len(PALETTE)]


def decades(values: Sequence[float], lowest: float, highest: float) -> tuple[float, float]:
    """Powers of ten around the values, not beyond the bounds, and at least one apart."""
    usable = [value for value in values if 0 < value < math.inf]
    if not usable:
        return lowest, highest
    low = max(lowest, 10.0 ** math.floor(math.log10(min(usable)) + 1e-9))
    high = min(highest, 10.0 ** math.ceil(math.log10(max(usable)) - 1e-9))
    return (low, high) if high > low else (low, 10 * low)


def _axes(x: Axis, y: Axis) -> list[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts: list[str] = []
    for value, text in x.ticks():
        at = _x(x.share(value))
        parts.append(f'<line class="grid" x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{bottom}"/>')
        parts.append(f'<text x="{at:.1f}" y="{bottom + 15}" text-anchor="middle">{text}</text>')
    for value, text in y.ticks():
        at = _y(y.share(value))
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{at:.1f}" x2="{right}" y2="{at:.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{at + 3.5:.1f}" text-anchor="end">{text}</text>')
    middle, centre = (TOP + bottom) / 2, (LEFT + right) / 2
    parts.append(f'<rect class="frame" x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{bottom - TOP}"/>')
    parts.append(f'<text class="name" x="{centre:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x.label)}</text>')
    parts.append(
        f'<text class="name" x="14" y="{middle:.0f}" text-anchor="middle" '
        f'transform="rotate(-90 14 {middle:.0f})">{escape(y.label)}</text>'
    )
    return parts


def _power(exponent: int) -> str:
    if -3 < exponent < 4:
        return f"{10.0**exponent:g}"
    return f'10<tspan dy="-4" font-size="8">{exponent}</tspan>'


def _x(share: float) -> float:
    return LEFT + share * (WIDTH - RIGHT - LEFT)


def _y(share: float) -> float:
    return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)
