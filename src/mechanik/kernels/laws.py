"""The rows of laws that bind joint values."""

from __future__ import annotations

from .compiler import part
from .problem import *


@part
def add_up(I, F, b, x, E, J):
    """The row of a law: polynomials of single freedoms, added up, less a constant."""
    block, columns, scale = I[AT_BLOCKS] + BLOCK_INTS * b, I[AT_BLOCK_COLUMNS], I[AT_SCALE]
    row, j, first = I[block + FIRST_ROW], J + I[block + FIRST_J], I[block + FIRST_COLUMN]
    weight, at = F[I[AT_WEIGHT] + row], I[AT_NUMBERS] + I[block + FIRST_NUMBER]
    total = -F[I[AT_DATA] + BLOCK_FLOATS * b]
    for _ in range(I[block + MASSES]):
        value, own, degree = F[x + int(F[at])], int(F[at + 1]), int(F[at + 2])
        at += FACTORS
        height, slope = 0.0, 0.0
        for k in range(degree - 1, -1, -1):  # Horner's rule, for the polynomial without its last factor `value`
            slope = slope * value + height
            height = height * value + F[at + k]
        total += height * value
        if own >= 0:
            F[j + own] += weight * (slope * value + height) * F[scale + I[columns + first + own]]
        at += degree
    F[E + row] = weight * total
