"""Named configurations that follow the edits of their mechanism."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping

from mechanik.errors import ShapeError
from mechanik.mechanism.configuration import ConfigurationSpace
from mechanik.mechanism.door import read_only
from mechanik.spatial.array import Array, ArrayLike


class Configurations(MutableMapping[str, Array]):
    """Name to q (nq,), such as the key frames of a file.

    Each is kept by the names of its numbers, so that it still means the same when joints are added, removed or
    reordered; what is new then stands where `neutral` has it.
    """

    def __init__(self, space: Callable[[], ConfigurationSpace]) -> None:
        self._space = space
        self._kept: dict[str, dict[str, float]] = {}

    def __getitem__(self, name: str) -> Array:
        space, kept = self._space(), self._kept[name]
        q = space.neutral()
        for k, label in enumerate(space.q_names):
            q[k] = kept.get(label, q[k])
        return read_only(q)

    def __setitem__(self, name: str, q: ArrayLike) -> None:
        space = self._space()
        values = space.check_q(q)
        if values.ndim != 1:
            raise ShapeError(f"configuration {name!r} must be one q, not an array of shape {values.shape}")
        self._kept[name] = dict(zip(space.q_names, values.tolist(), strict=True))

    def __delitem__(self, name: str) -> None:
        del self._kept[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def __repr__(self) -> str:
        return f"<configurations {', '.join(self) or 'none'}>"
