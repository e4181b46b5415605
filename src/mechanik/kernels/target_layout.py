"""How the targets of several goals are laid out in one array."""

from __future__ import annotations

POSE, PLACE, VALUE = range(3)
"""Kinds of targets: 16 numbers, 3, and 1."""
NEVER = -1
"""In the place of the number of q that an angle shall be near to: near to none."""
