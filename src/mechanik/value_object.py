"""Base class of immutable values with arrays: equality, hash, copies and pickling by value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, Self, cast

import numpy as np

HASHED_ENTRIES = 16
"""Number of entries of an array that its hash depends on; the hash of a large array takes no longer."""


class ValueObject:
    """Base class: objects of the same class are equal if all public fields are; arrays are compared entry by entry.

    Copies and restored pickles have equal fields, and arrays that were read-only stay read-only.
    """

    __slots__ = ()

    def __eq__(self, value: object) -> bool:
        if self is value:
            return True
        if type(self) is not type(value):
            return NotImplemented
        return are_values_equal(self._compared_fields(), cast("ValueObject", value)._compared_fields())

    def __hash__(self) -> int:
        return hash((type(self), hash_of_value(self._compared_fields())))

    def __copy__(self) -> Self:
        return _restore(type(self), dict(self._fields()), (), ())

    def __reduce__(self) -> tuple[Any, ...]:
        values = dict(self._fields())
        read_only_names = tuple(name for name, value in values.items() if _is_read_only(value))
        proxy_names = tuple(name for name, value in values.items() if isinstance(value, MappingProxyType))
        values |= {name: dict(cast("Mapping[Any, Any]", values[name])) for name in proxy_names}
        return _restore, (type(self), values, read_only_names, proxy_names)

    def _fields(self) -> Iterator[tuple[str, object]]:
        """Yield name and value of each field, including those that subclasses without slots add."""
        for name in _slot_names(type(self)):
            if hasattr(self, name):
                yield name, getattr(self, name)
        yield from getattr(self, "__dict__", {}).items()

    def _compared_fields(self) -> dict[str, object]:
        """Return the values by which objects are compared and hashed, by name: the public fields."""
        return {name: value for name, value in self._fields() if not name.startswith("_")}


def are_values_equal(a: object, b: object) -> bool:
    """Return whether two values are equal: arrays entry by entry, mappings and sequences item by item."""
    if a is b:
        return True
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        are_arrays = isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
        return are_arrays and np.array_equal(cast("Any", a), cast("Any", b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        items, other_items = cast("Mapping[Any, Any]", a), cast("Mapping[Any, Any]", b)
        return items.keys() == other_items.keys() and all(are_values_equal(items[k], other_items[k]) for k in items)
    if isinstance(a, tuple | list) and type(cast("object", a)) is type(b):
        sequence, other_sequence = cast("Sequence[Any]", a), cast("Sequence[Any]", b)
        return len(sequence) == len(other_sequence) and all(map(are_values_equal, sequence, other_sequence))
    return bool(a == b)


def hash_of_value(value: object) -> int:
    """Return a hash that is equal for values for which `are_values_equal` is true."""
    if isinstance(value, np.ndarray):
        array = cast("np.ndarray[Any, Any]", value)
        return hash((array.shape, *array.ravel()[:HASHED_ENTRIES].tolist()))
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value)
        return hash(frozenset((key, hash_of_value(item)) for key, item in items.items()))
    if isinstance(value, tuple | list):
        return hash(tuple(map(hash_of_value, cast("Sequence[Any]", value))))
    try:
        return hash(value)
    except TypeError:  # a mutable value of a subclass
        return 0


def _restore(
    value_class: type[ValueObject],
    values: Mapping[str, Any],
    read_only_names: Sequence[str],
    proxy_names: Sequence[str],
) -> Any:
    """Make an object with the given fields, without a call of its constructor.

    Args:
        value_class: class of the object.
        values: value of each field by name.
        read_only_names: fields whose arrays are made read-only.
        proxy_names: fields whose mapping is made read-only.
    """
    value = object.__new__(value_class)
    for name, field in values.items():
        if name in read_only_names:
            _make_read_only(field)
        object.__setattr__(value, name, MappingProxyType(field) if name in proxy_names else field)
    return value


@cache
def _slot_names(value_class: type) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for base in reversed(value_class.__mro__):
        slots = base.__dict__.get("__slots__", ())
        names |= dict.fromkeys([slots] if isinstance(slots, str) else slots)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))


def _arrays(value: object) -> Iterator[np.ndarray[Any, Any]]:
    """Yield an array, or the arrays in a mapping or sequence."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, Mapping):
        for item in cast("Mapping[Any, Any]", value).values():
            yield from _arrays(item)
    elif isinstance(value, tuple | list):
        for item in cast("Sequence[Any]", value):
            yield from _arrays(item)


def _is_read_only(value: object) -> bool:
    arrays = list(_arrays(value))
    return bool(arrays) and not any(array.flags.writeable for array in arrays)


def _make_read_only(value: object) -> None:
    for array in _arrays(value):
        array.flags.writeable = False
