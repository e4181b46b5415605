"""How deep two convex cores are in each other: the direction in which the shortest shift parts them.

Parting them along a unit vector n takes a shift of h(n), the farthest that A - B reaches along n. A polytope inside
A - B grows where it is nearest to the origin (the expanding polytope algorithm of van den Bergen, 2001): its nearest
face bounds the depth from below, and h of its normal from above. It starts with a tetrahedron as large as can be had,
which need not hold the origin: a face that has the origin outside is nearest of all and grows first.
"""

from __future__ import annotations

import math

from ..compiler import helper, part
from .support import farthest_difference

CORNERS, FACES = 160, 320
ENOUGH = 1e-10
"""The bounds may differ by this share of the size: round shapes would go on for ever."""
FLAT = 1e-13
VISIBLE = 1e-13
SLIVER = 1e-8
"""Triangles narrower than this share of the size have no normal of their own to speak of."""


@part
def look_along(a, U, b, V, T, C, n, x, y, z, best):
    """Put the farthest point of A - B along a unit vector into row n of C; keep the direction of the smallest depth."""
    wx, wy, wz, _, _, _ = farthest_difference(a, U, b, V, T, x, y, z)
    C[n, 0], C[n, 1], C[n, 2] = wx, wy, wz
    depth = wx * x + wy * y + wz * z
    if depth < best[3]:
        best[0], best[1], best[2], best[3] = x, y, z, depth
    return depth


@part
def first_tetrahedron(a, U, b, V, T, C, best):
    """The first four rows of C: a wide pair, what is farthest from its line, what is farthest from their plane.

    Returns:
        The width of A - B along the axis of the wide pair; and how thick the tetrahedron is. If A - B is flat, `best`
        has a direction across it.
    """
    widest, axis = -1.0, 0
    for k in range(3):
        width = 0.0
        for side in range(2):
            s = 1.0 - 2.0 * side
            x, y, z = s * (k == 0), s * (k == 1), s * (k == 2)
            width += look_along(a, U, b, V, T, C, 4 + side, x, y, z, best)
        if width > widest:
            widest, axis = width, k
            for c in range(3):
                C[0, c], C[1, c] = C[4, c], C[5, c]
    size = widest
    ex, ey, ez = C[1, 0] - C[0, 0], C[1, 1] - C[0, 1], C[1, 2] - C[0, 2]
    # two directions across the line, the first from the axis that is farthest from it
    x, y, z = 1.0 * (axis == 1), 1.0 * (axis == 2), 1.0 * (axis == 0)
    ux, uy, uz = unit(ey * z - ez * y, ez * x - ex * z, ex * y - ey * x)
    vx, vy, vz = unit(ey * uz - ez * uy, ez * ux - ex * uz, ex * uy - ey * ux)
    widest = -1.0
    for k in range(4):
        s = 1.0 - 2.0 * (k % 2)
        x, y, z = (s * ux, s * uy, s * uz) if k < 2 else (s * vx, s * vy, s * vz)
        reach = look_along(a, U, b, V, T, C, 4 + k % 2, x, y, z, best) - (C[0, 0] * x + C[0, 1] * y + C[0, 2] * z)
        if reach > widest:
            widest = reach
            for c in range(3):
                C[2, c] = C[4 + k % 2, c]
    fx, fy, fz = C[2, 0] - C[0, 0], C[2, 1] - C[0, 1], C[2, 2] - C[0, 2]
    nx, ny, nz = unit(ey * fz - ez * fy, ez * fx - ex * fz, ex * fy - ey * fx)
    thickest = -1.0
    for k in range(2):
        s = 1.0 - 2.0 * k
        x, y, z = s * nx, s * ny, s * nz
        reach = look_along(a, U, b, V, T, C, 4 + k, x, y, z, best) - (C[0, 0] * x + C[0, 1] * y + C[0, 2] * z)
        if reach > thickest:
            thickest = reach
            for c in range(3):
                C[3, c] = C[4 + k, c]
    return size, thickest


@helper
def unit(x, y, z):
    length = math.sqrt(x * x + y * y + z * z)
    return (x / length, y / length, z / length) if length > 0.0 else (0.0, 0.0, 1.0)


@part
def put_face(C, F, N, f, i, j, k, size):
    """A face in row f: its corners; its normal, its distance from the origin, and how far its plane can be trusted."""
    F[f, 0], F[f, 1], F[f, 2] = i, j, k
    ex, ey, ez = C[j, 0] - C[i, 0], C[j, 1] - C[i, 1], C[j, 2] - C[i, 2]
    fx, fy, fz = C[k, 0] - C[i, 0], C[k, 1] - C[i, 1], C[k, 2] - C[i, 2]
    gx, gy, gz = fx - ex, fy - ey, fz - ez
    nx, ny, nz = ey * fz - ez * fy, ez * fx - ex * fz, ex * fy - ey * fx
    area = math.sqrt(nx * nx + ny * ny + nz * nz)
    long = math.sqrt(max(ex * ex + ey * ey + ez * ez, fx * fx + fy * fy + fz * fz, gx * gx + gy * gy + gz * gz))
    if area <= SLIVER * size * long:
        g = other_side(F, f, i, j)
        if g >= 0:  # the new corner is on the line of an edge: part of the face beyond the edge
            for c in range(5):
                N[f, c] = N[g, c]
            return
        area = max(area, 1e-300)
    nx, ny, nz = nx / area, ny / area, nz / area
    N[f, 0], N[f, 1], N[f, 2] = nx, ny, nz
    N[f, 3] = (
        (C[i, 0] + C[j, 0] + C[k, 0]) * nx + (C[i, 1] + C[j, 1] + C[k, 1]) * ny + (C[i, 2] + C[j, 2] + C[k, 2]) * nz
    ) / 3.0
    N[f, 4] = size * max(VISIBLE, min(1e-15 * size * long / area, 1e-7))


@helper
def other_side(F, faces, i, j):
    """The face that has the edge from j to i; -1 if there is none."""
    for g in range(faces):
        p, q, r = F[g, 0], F[g, 1], F[g, 2]
        if (p == j and q == i) or (q == j and r == i) or (r == j and p == i):
            return g
    return -1


@part
def grow(C, F, N, E, faces, n, size):
    """Take away the faces that see corner n from outside, and join their rim to it.

    Returns:
        How many faces there are now; 0 if there is no room.
    """
    edges, g = 0, 0
    while g < faces:
        if C[n, 0] * N[g, 0] + C[n, 1] * N[g, 1] + C[n, 2] * N[g, 2] - N[g, 3] <= N[g, 4]:
            g += 1
            continue
        for k in range(3):
            i, j = F[g, k], F[g, (k + 1) % 3]
            met = False
            for e in range(edges):
                if E[e, 0] == j and E[e, 1] == i:  # inside the part that goes: no rim
                    edges -= 1
                    E[e, 0], E[e, 1] = E[edges, 0], E[edges, 1]
                    met = True
                    break
            if not met:
                E[edges, 0], E[edges, 1] = i, j
                edges += 1
        faces -= 1
        for k in range(3):
            F[g, k] = F[faces, k]
        for k in range(5):
            N[g, k] = N[faces, k]
    if faces + edges > FACES:
        return 0
    for e in range(edges):
        put_face(C, F, N, faces, E[e, 0], E[e, 1], n, size)
        faces += 1
    return faces


@part
def first_polytope(a, U, b, V, T, C, F, N, E, best):
    """The tetrahedron to begin with: the size of A - B, and 4 faces, or none if it is flat: `best` is across it."""
    best[3] = math.inf
    size, thickness = first_tetrahedron(a, U, b, V, T, C, best)
    if thickness <= FLAT * size:
        return size, 0
    ex, ey, ez = C[1, 0] - C[0, 0], C[1, 1] - C[0, 1], C[1, 2] - C[0, 2]
    fx, fy, fz = C[2, 0] - C[0, 0], C[2, 1] - C[0, 1], C[2, 2] - C[0, 2]
    gx, gy, gz = C[3, 0] - C[0, 0], C[3, 1] - C[0, 1], C[3, 2] - C[0, 2]
    i, j = 1, 2
    if ex * (fy * gz - fz * gy) + ey * (fz * gx - fx * gz) + ez * (fx * gy - fy * gx) > 0.0:
        i, j = 2, 1  # corner 3 shall be below the first face
    E[0, 0], E[0, 1], E[1, 0], E[1, 1], E[2, 0], E[2, 1], E[3, 0], E[3, 1] = i, 0, j, i, 0, j, 0, i
    for f in range(4):
        put_face(C, F, N, f, E[f, 0], E[f, 1], 3 if f < 3 else j, size)
    return size, 4


@part
def grow_until(a, U, b, V, T, C, F, N, E, best, n, faces, size, share):
    """Let a polytope grow until its bounds differ by no more than `share` of the depth; corners and faces then.

    Args:
        n, faces: how many corners and faces it has.
    """
    while n < CORNERS:
        f = 0
        for g in range(1, faces):
            if N[g, 3] < N[f, 3]:
                f = g
        enough = max(ENOUGH * size, share * best[3])
        if N[f, 3] >= best[3] - enough:
            break
        depth = look_along(a, U, b, V, T, C, n, N[f, 0], N[f, 1], N[f, 2], best)
        if depth - N[f, 3] <= max(enough, N[f, 4]):
            break
        faces = grow(C, F, N, E, faces, n, size)
        n = n + 1 if faces > 0 else CORNERS
    return n, faces
