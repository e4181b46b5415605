"""What Gauss and Newton leave out: the second derivatives of rows that cannot become zero.

Out of reach, the error stays large, and with it the part of the second derivatives that J'J does not hold: steps then
converge slowly. A matrix S learns that part from how the reduced gradient changes from step to step, by the update of
Dennis, Gay and Welsch (NL2SOL, ACM TOMS 7, 1981). The reduced gradient knows closures and held levels,
so S learns their curvature too. It is used only where progress has become slow.
"""

from __future__ import annotations

from .compiler import part
from .probes import take_what_was_seen
from .problem import *


@part
def bend_matrix(I, F, n, moved):
    """Learn from the last step, if it was taken in the same columns, and add S to H0."""
    S, H, independent, old = I[AT_S], I[AT_H0], I[AT_INDEPENDENT], I[AT_OLD_COLUMNS]
    same, fresh = True, False
    for i in range(n):
        if I[old + i] != I[independent + i]:
            same = False
        fresh |= I[I[AT_PROBED] + I[independent + i]] == 2
    if not same:
        for k in range(n * n):
            F[S + k] = 0.0
        for v in range(I[N_COLUMNS]):
            I[I[AT_PROBED] + v] = 0
    elif fresh:
        take_what_was_seen(I, F, n)
    elif moved == 1.0:
        learn(I, F, n)
    for i in range(n):
        I[I[AT_FIRST] + i] = 0
        for k in range(i + 1):
            F[H + i * n + k] += F[S + i * n + k]


@part
def learn(I, F, n):
    """S s = y - A'A s for the last step s, over which the gradient changed by y."""
    S, H, gradient = I[AT_S], I[AT_H0], I[AT_GRADIENT]
    old, s, y, u = I[AT_OLD_GRADIENT], I[AT_OLD_STEP], I[AT_FULL], I[AT_LINE]
    ys, su, sSs = 0.0, 0.0, 0.0
    for i in range(n):
        F[y + i] = F[old + i] - F[gradient + i]  # `gradient` is the negative one
        As, Ss = 0.0, 0.0
        for k in range(n):
            As += (F[H + i * n + k] if k <= i else F[H + k * n + i]) * F[s + k]
            Ss += F[S + i * n + k] * F[s + k]
        F[u + i] = F[y + i] - As
        ys += F[y + i] * F[s + i]
        su += F[s + i] * F[u + i]
        sSs += F[s + i] * Ss
    size = 0.0
    for i in range(n):
        size += F[s + i] * F[s + i]
    if ys <= 1e-8 * size:  # no convex direction: nothing that a step could use
        return
    shrink = min(1.0, abs(su) / abs(sSs)) if sSs != 0.0 else 1.0
    rest = 0.0
    for i in range(n):
        Ss = 0.0
        for k in range(n):
            Ss += F[S + i * n + k] * F[s + k]
        F[u + i] -= shrink * Ss
        rest += F[u + i] * F[s + i]
    for i in range(n):
        for k in range(n):
            F[S + i * n + k] = (
                shrink * F[S + i * n + k]
                + (F[u + i] * F[y + k] + F[y + i] * F[u + k]) / ys
                - rest * F[y + i] * F[y + k] / (ys * ys)
            )


@part
def remember(I, F, n):
    """Keep this step, which is in `line`, and its gradient for the next one."""
    independent, old = I[AT_INDEPENDENT], I[AT_OLD_COLUMNS]
    for i in range(n):
        I[old + i] = I[independent + i]
        F[I[AT_OLD_STEP] + i] = F[I[AT_LINE] + i]
        F[I[AT_OLD_GRADIENT] + i] = F[I[AT_GRADIENT] + i]


@part
def forget(I, F):
    """Begin anew, with nothing known."""
    for v in range(I[N_COLUMNS]):
        I[I[AT_OLD_COLUMNS] + v] = -1
