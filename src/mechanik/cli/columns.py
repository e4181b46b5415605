"""Which columns of a table are meant, by their names in any order, or by their number."""

from __future__ import annotations

from collections.abc import Sequence

from mechanik.errors import FormatError


def find_columns(header: Sequence[str], choices: Sequence[Sequence[str]], where: str) -> list[int]:
    """Places of the first choice of names that is there whole; further columns are left alone.

    Half of a choice is refused: a pose that lost one number of its quaternion is not meant as a position.
    """
    names = [name.strip() for name in header]
    small = [name.lower() for name in names]
    known = {name for choice in choices for name in choice}
    places = {name: _place(name, names, small, where) for name in known}
    present = {name for name, k in places.items() if k is not None}
    for choice in choices:
        if present == set(choice):
            return [k for name in choice if (k := places[name]) is not None]
    needed = " or ".join(", ".join(choice[:8]) + (", ..." if len(choice) > 8 else "") for choice in reversed(choices))
    some = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    larger = next((choice for choice in reversed(choices) if present <= set(choice)), choices[0])
    missing = [name for name in larger if name not in present]
    if present:
        raise FormatError(f"{where}: column {', '.join(missing[:8])} is missing; needed are {needed}")
    raise FormatError(f"{where}: the columns are called {some}; needed are {needed}")


def count_columns(count: int, choices: Sequence[Sequence[str]], where: str) -> int:
    """How many numbers a row has, if that is one of the choices."""
    sizes = sorted(len(choice) for choice in choices)
    if count not in sizes:
        raise FormatError(f"{where}: a row has {' or '.join(map(str, sizes))} numbers, and this one has {count}")
    return count


def _place(name: str, names: list[str], small: list[str], where: str) -> int | None:
    found = [k for k, one in enumerate(names) if one == name] or [
        k for k, one in enumerate(small) if one == name.lower()
    ]
    if len(found) > 1:
        raise FormatError(f"{where}: {len(found)} columns are called {name!r}")
    return found[0] if found else None
