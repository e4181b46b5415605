"""Sine and cosine at once, without a call into a library: what forward kinematics does most."""

from __future__ import annotations

import math

from .compiler import helper

INVERSE_PI = 1.0 / math.pi
# pi in three parts, the first two of 33 bits, so that a whole multiple of them up to 2**20 is exact
PI_HIGH = 3.1415926534682512
PI_MIDDLE = 1.2154201012607932e-10
PI_LOW = 4.044532497591901e-21
# adding and taking away 1.5 * 2**52 rounds to a whole number
ROUNDER = 6755399441055744.0
FAR = 1.0e6


@helper
def near_sincos(x):
    """(sin x, cos x) for |x| below a million; x may be a vector of lanes."""
    turns = (x * INVERSE_PI + ROUNDER) - ROUNDER
    half = (turns * 0.5 + ROUNDER) - ROUNDER
    odd = turns - 2.0 * half
    sign = 1.0 - 2.0 * odd * odd
    r = ((x - turns * PI_HIGH) - turns * PI_MIDDLE) - turns * PI_LOW
    u = r * r
    s = 2.731459307858414e-15 * u - 7.643971552545003e-13
    s = s * u + 1.6058977355068084e-10
    s = s * u - 2.5052107617712934e-08
    s = s * u + 2.755731921916942e-06
    s = s * u - 0.00019841269841254999
    s = s * u + 0.008333333333333316
    s = s * u - 0.16666666666666666
    c = 4.6277064517587724e-14 * u - 1.1464692516831921e-11
    c = c * u + 2.087663095668969e-09
    c = c * u - 2.7557317768822317e-07
    c = c * u + 2.4801587292459183e-05
    c = c * u - 0.0013888888888860763
    c = c * u + 0.04166666666666634
    c = c * u - 0.5
    return sign * (r + r * u * s), sign * (1.0 + u * c)


@helper
def sincos(x):
    """(sin x, cos x) to 4e-16; minimax polynomials on [-pi/2, pi/2] after taking away a multiple of pi."""
    if not abs(x) < FAR:
        return math.sin(x), math.cos(x)
    return near_sincos(x)
