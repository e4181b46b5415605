"""Six equations with six unknowns, symmetric and positive, written out so that they stay in registers.

The numbers may be floats or vectors of lanes.
"""

from __future__ import annotations

from .compiler import helper


@helper
def solve_six(
    a00, a10, a11, a20, a21, a22, a30, a31, a32, a33, a40, a41, a42, a43, a44, a50, a51, a52, a53, a54, a55,
    y0, y1, y2, y3, y4, y5,
):  # fmt: skip
    """y of A y = y, for the lower triangle of A: LDL' without pivoting, which damped normal equations do not need."""
    d0 = 1.0 / a00
    f = a10 * d0
    a11, a21, a31, a41, a51, y1 = a11 - f * a10, a21 - f * a20, a31 - f * a30, a41 - f * a40, a51 - f * a50, y1 - f * y0
    f = a20 * d0
    a22, a32, a42, a52, y2 = a22 - f * a20, a32 - f * a30, a42 - f * a40, a52 - f * a50, y2 - f * y0
    f = a30 * d0
    a33, a43, a53, y3 = a33 - f * a30, a43 - f * a40, a53 - f * a50, y3 - f * y0
    f = a40 * d0
    a44, a54, y4 = a44 - f * a40, a54 - f * a50, y4 - f * y0
    f = a50 * d0
    a55, y5 = a55 - f * a50, y5 - f * y0
    d1 = 1.0 / a11
    f = a21 * d1
    a22, a32, a42, a52, y2 = a22 - f * a21, a32 - f * a31, a42 - f * a41, a52 - f * a51, y2 - f * y1
    f = a31 * d1
    a33, a43, a53, y3 = a33 - f * a31, a43 - f * a41, a53 - f * a51, y3 - f * y1
    f = a41 * d1
    a44, a54, y4 = a44 - f * a41, a54 - f * a51, y4 - f * y1
    f = a51 * d1
    a55, y5 = a55 - f * a51, y5 - f * y1
    d2 = 1.0 / a22
    f = a32 * d2
    a33, a43, a53, y3 = a33 - f * a32, a43 - f * a42, a53 - f * a52, y3 - f * y2
    f = a42 * d2
    a44, a54, y4 = a44 - f * a42, a54 - f * a52, y4 - f * y2
    f = a52 * d2
    a55, y5 = a55 - f * a52, y5 - f * y2
    d3 = 1.0 / a33
    f = a43 * d3
    a44, a54, y4 = a44 - f * a43, a54 - f * a53, y4 - f * y3
    f = a53 * d3
    a55, y5 = a55 - f * a53, y5 - f * y3
    d4 = 1.0 / a44
    f = a54 * d4
    a55, y5 = a55 - f * a54, y5 - f * y4
    y5 = y5 / a55
    y4 = (y4 - a54 * y5) * d4
    y3 = (y3 - a43 * y4 - a53 * y5) * d3
    y2 = (y2 - a32 * y3 - a42 * y4 - a52 * y5) * d2
    y1 = (y1 - a21 * y2 - a31 * y3 - a41 * y4 - a51 * y5) * d1
    y0 = (y0 - a10 * y1 - a20 * y2 - a30 * y3 - a40 * y4 - a50 * y5) * d0
    return y0, y1, y2, y3, y4, y5
