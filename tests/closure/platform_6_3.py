"""A platform with three corners, each on two legs: its modes by a polynomial of degree 16.

A corner on two legs lies on a circle about the line through their feet. That two corners are as far apart as on the
platform is an equation, of degree 2 in the half-angle tangent of each; of the three equations two of the tangents
are eliminated by resultants. The coefficients of the resultant come from its values on the unit circle.
"""

from __future__ import annotations

import numpy as np

from mechanik.spatial.array import Array

HALF = np.array([[1.0, 0, 1], [1, 0, -1], [0, 2, 0]])
"""(1, cos, sin) times 1 + t^2, in powers of t, where t is the tangent of half of the angle."""


def circles(base: Array, lengths: Array) -> list[tuple[Array, Array, Array]]:
    """Middle and two radii (3,), at right angles, of the circle of each corner; the first radius lies in the plane."""
    circle_list: list[tuple[Array, Array, Array]] = []
    for k in range(0, 6, 2):
        direction = base[k + 1] - base[k]
        apart = float(np.linalg.norm(direction))
        direction = direction / apart
        along = (lengths[k] ** 2 - lengths[k + 1] ** 2 + apart**2) / (2 * apart)
        radius = np.sqrt(lengths[k] ** 2 - along**2)
        aside = np.cross([0.0, 0, 1], direction)
        circle_list.append((base[k] + along * direction, radius * aside, radius * np.cross(direction, aside)))
    return circle_list


def real_angles(base: Array, sides: tuple[float, float, float], lengths: Array) -> Array:
    """Angles of the first corner on its circle, one for each mode.

    Args:
        base: (6, 3) feet of the legs, in the plane z = 0.
        sides: between the corners, first to second, first to third, second to third.
    """
    first, second, third = circles(base, lengths)
    E12, E13 = _distance(first, second, sides[0]), _distance(first, third, sides[1])
    E23 = _distance(second, third, sides[2])

    def resultant(t: complex) -> complex:
        powers = np.array([1, t, t * t])
        in_second = _coefficients(lambda x: _sylvester(np.array([1, x, x * x]) @ E23, powers @ E13), 8)[:5]
        return _sylvester(in_second, powers @ E12)

    c = _coefficients(resultant, 32)
    assert np.abs(c[17:]).max() < 1e-9 * np.abs(c).max()
    roots = np.roots(c[16::-1].real)
    return 2 * np.arctan(roots[np.abs(roots.imag) < 1e-7 * (1 + np.abs(roots))].real)


def _distance(
    first_circle: tuple[Array, Array, Array], second_circle: tuple[Array, Array, Array], wanted: float
) -> Array:
    """(3, 3) coefficients, by powers of both tangents, of the squared distance of two corners less the wanted one."""
    (p, u, v), (r, x, y) = first_circle, second_circle
    e = p - r
    M = np.array(
        [
            [e @ e + u @ u + x @ x - wanted**2, -2 * e @ x, -2 * e @ y],
            [2 * e @ u, -2 * u @ x, -2 * u @ y],
            [2 * e @ v, -2 * v @ x, -2 * v @ y],
        ]
    )
    return HALF.T @ M @ HALF


def _coefficients(polynomial: object, count: int) -> Array:
    """Ascending, of a polynomial of a degree below `count`, from its values at the roots of unity."""
    places = np.exp(2j * np.pi * np.arange(count) / count)
    return np.fft.fft([polynomial(z) for z in places]) / count  # type: ignore[operator]


def _sylvester(p: Array, q: Array) -> complex:
    """The resultant of two polynomials, given by ascending coefficients."""
    m, n = len(p) - 1, len(q) - 1
    S = np.zeros((m + n, m + n), dtype=np.complex128)
    for k in range(n):
        S[k, k : k + m + 1] = p[::-1]
    for k in range(m):
        S[n + k, k : k + n + 1] = q[::-1]
    return complex(np.linalg.det(S))
