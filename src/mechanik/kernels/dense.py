"""Small dense linear algebra for the steps of methods; sizes are those of a problem's rows or columns."""

from __future__ import annotations

import math

from .compiler import part

SWEEPS = 40
"""Of Jacobi's rotations. Six to eight do for what joints and goals look like; more are for matrices made to be hard."""
ORTHOGONAL = 1e-15
"""The cosine below which two vectors count as orthogonal."""
NOTHING = 1e-15
"""The share of the matrix below which a singular value is rounding and counts as zero."""


@part
def solve_positive(A, b):
    """b = A^-1 b for a symmetric positive definite A, which is used up (Cholesky); False if it is none.

    Only the lower triangle of A is looked at.
    """
    n = b.shape[0]
    for j in range(n):
        for k in range(j):
            b[j] -= A[j, k] * b[k]
            for i in range(j, n):
                A[i, j] -= A[i, k] * A[j, k]
        if not A[j, j] > 0.0:
            return False
        pivot = math.sqrt(A[j, j])
        for i in range(j, n):
            A[i, j] /= pivot
        b[j] /= pivot
    for j in range(n - 1, -1, -1):
        for i in range(j + 1, n):
            b[j] -= A[i, j] * b[i]
        b[j] /= A[j, j]
    return True


@part
def singular_values(A, U, s, V):
    """A = sum of s_i u_i v_i', by one-sided Jacobi rotations (Hestenes 1958): small values are as exact as large ones.

    Args:
        A: (m, n), of any shape and rank; it stays.
        U: (k, m), written: u_i are its rows; k is the smaller of m and n.
        s: (k,), written: from the largest to the smallest, none below zero.
        V: (k, n), written: v_i are its rows. Where s_i is zero, the longer of u_i and v_i is zero too.
    """
    m, n = A.shape
    largest = 0.0
    for i in range(m):
        for j in range(n):
            largest = max(largest, abs(A[i, j]))
    unit = 1.0 / largest if largest > 0.0 else 0.0  # so that squares are neither too large nor too small
    if m <= n:
        for i in range(m):
            for j in range(n):
                V[i, j] = A[i, j] * unit
        orthogonalise(V, U, s)
    else:
        for j in range(n):
            for i in range(m):
                U[j, i] = A[i, j] * unit
        orthogonalise(U, V, s)
    for i in range(s.shape[0]):
        s[i] *= largest


@part
def orthogonalise(W, R, s):
    """Turn the rows of W (k, l) until they are orthogonal; then s has their lengths, and W their directions.

    R (k, k) becomes the turn: R times the old W is diag(s) times the new one. Both are sorted by s.
    """
    k, length = W.shape
    whole = 0.0
    for i in range(k):
        for j in range(k):
            R[i, j] = 1.0 if i == j else 0.0
        for j in range(length):
            whole += W[i, j] * W[i, j]
    nothing = NOTHING * NOTHING * whole
    for _ in range(SWEEPS):
        turned = False
        for p in range(k - 1):
            for q in range(p + 1, k):
                pp, qq, pq = 0.0, 0.0, 0.0
                for j in range(length):
                    pp += W[p, j] * W[p, j]
                    qq += W[q, j] * W[q, j]
                    pq += W[p, j] * W[q, j]
                if min(pp, qq) <= nothing or abs(pq) <= ORTHOGONAL * math.sqrt(pp * qq):
                    continue
                turned = True
                t = (qq - pp) / (2.0 * pq)
                t = math.copysign(1.0, t) / (abs(t) + math.sqrt(t * t + 1.0))
                c = 1.0 / math.sqrt(t * t + 1.0)
                turn(W, p, q, c, t * c)
                turn(R, p, q, c, t * c)
        if not turned:
            break
    for i in range(k):
        square = 0.0
        for j in range(length):
            square += W[i, j] * W[i, j]
        s[i] = math.sqrt(square) if square > nothing else 0.0
        unit = 1.0 / s[i] if s[i] > 0.0 else 0.0
        for j in range(length):
            W[i, j] *= unit
    for i in range(k):
        first = i
        for j in range(i + 1, k):
            if s[j] > s[first]:
                first = j
        if first != i:
            s[i], s[first] = s[first], s[i]
            for j in range(length):
                W[i, j], W[first, j] = W[first, j], W[i, j]
            for j in range(k):
                R[i, j], R[first, j] = R[first, j], R[i, j]


@part
def turn(W, p, q, c, s):
    """Rows p and q of W, turned in their plane."""
    for j in range(W.shape[1]):
        a, b = W[p, j], W[q, j]
        W[p, j], W[q, j] = c * a - s * b, s * a + c * b
