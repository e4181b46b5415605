"""A driven mechanism followed from one set of values to the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanik.assembly.assemble import Start, go, start_of
from mechanik.assembly.assembly import Assembly
from mechanik.assembly.door import Given, as_weights, named
from mechanik.assembly.kept import loops_of
from mechanik.errors import NotFinite, ShapeError
from mechanik.mechanism import Mechanism
from mechanik.spatial.array import Array, ArrayLike


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AssemblyPath:
    """
    Attributes:
        assemblies: one for each set of values.
    """

    assemblies: tuple[Assembly, ...]

    def __len__(self) -> int:
        return len(self.assemblies)

    def __iter__(self) -> Iterator[Assembly]:
        return iter(self.assemblies)

    def __getitem__(self, k: int) -> Assembly:
        return self.assemblies[k]

    def __repr__(self) -> str:
        met = int(self.success.sum())
        return f"<path of {len(self)} assemblies, of which {met} meet their drives>"

    @property
    def q(self) -> Array:
        """(T, nq)."""
        return np.array([one.q for one in self.assemblies])

    @property
    def success(self) -> npt.NDArray[np.bool_]:
        """(T,) whether all is met at each."""
        return np.array([one.success for one in self.assemblies], dtype=np.bool_)


def assembly_path(
    mechanism: Mechanism,
    drive: Given,
    q0: ArrayLike | Assembly | None = None,
    *,
    weights: Mapping[str, float] | None = None,
) -> AssemblyPath:
    """See `Mechanism.assembly_path`."""
    values = _as_paths(mechanism, drive)
    start = start_of(mechanism, q0)
    found: list[Assembly] = []
    with loops_of(mechanism, as_weights(weights)) as loops:
        for k in range(len(next(iter(values.values())))):
            found.append(go(loops, {name: row[k] for name, row in values.items()}, start))
            start = Start(found[-1].q, found[-1].heading, found[-1].turned)
    return AssemblyPath(tuple(found))


def _as_paths(mechanism: Mechanism, drive: Given) -> dict[str, Array]:
    """(T, n) for each name, all of the same length, finite."""
    if not isinstance(drive, Mapping) or not drive:
        raise ShapeError(
            f"drive is given by name, as in {{'crank_joint': angles}} with angles of shape (T,), not {drive!r}"
        )
    values: dict[str, Array] = {}
    for name, given in named(mechanism, drive).items():
        try:
            numbers = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise ShapeError(f"drive {name!r} is an array of numbers, (T,) or (T, n), not {given!r}") from None
        if numbers.ndim not in (1, 2) or not len(numbers):
            raise ShapeError(f"drive {name!r} is of shape (T,), or (T, n) for n freedoms, not {numbers.shape}")
        if not np.isfinite(numbers).all():
            raise NotFinite(f"drive {name!r} is not finite in row {int(np.argwhere(~np.isfinite(numbers))[0][0])}")
        values[name] = numbers[:, None] if numbers.ndim == 1 else numbers
    sizes = {name: len(rows) for name, rows in values.items()}
    if len(set(sizes.values())) > 1:
        raise ShapeError(f"drives have different numbers of rows: {', '.join(f'{k!r} {v}' for k, v in sizes.items())}")
    return values
