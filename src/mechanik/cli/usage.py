"""What was asked for cannot be done that way."""

from __future__ import annotations

from mechanik.errors import MechanikError


class UsageError(MechanikError):
    """Wrong use of the command line; exit code 2."""
