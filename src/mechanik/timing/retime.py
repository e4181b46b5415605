"""The door: a path and limits become a trajectory."""

from __future__ import annotations

import numpy as np

from mechanik.errors import ShapeError, WrongKind
from mechanik.mechanism.door import as_number
from mechanik.paths import Path
from mechanik.timing.curve import curve_through
from mechanik.timing.fastest import along_a_line, has_toppra, is_straight
from mechanik.timing.rates import Rates, as_rates
from mechanik.timing.trajectory import Trajectory, made_of
from mechanik.timing.within_jerk import fast_within_jerk
from mechanik.timing.within_limits import fast_within

DEVIATION = 5e-3
"""Rad or m."""
LONG = 1000.0
"""s: of longer trajectories there are as many samples as of this one, if nobody asks for more."""
SHARPEST = 1000.0
"""1/s: of the acceleration; a jerk that hardly binds, for where toppra is not to be had."""


def retime(
    path: Path,
    velocity: Rates | None = None,
    acceleration: Rates | None = None,
    jerk: Rates | None = None,
    *,
    deviation: float = DEVIATION,
    samples: int | None = None,
) -> Trajectory:
    """The fastest way along a path, from standing to standing, within limits.

    The way is a smooth curve through all knots; what `s` the path had does not matter. A straight way is gone as fast
    as can be (ruckig), and so is any other without a limit of the jerk (toppra; where there is none, to a few parts in
    a thousand). With one, it takes a few parts in a hundred longer than the fastest would.

    Args:
        velocity: rad/s or m/s: one number for all freedoms, nv numbers, or by joint or freedom. Where nothing is given,
            what the mechanism's URDF or SDF says (`mechanism.extras["limits"]`). Of a ball, for each of its own axes. A
            follower binds its leader by its ratio.
        acceleration: likewise, by s squared; must be given.
        jerk: likewise, by s cubed; None: it may be anything.
        deviation: how far the curve may leave the straight ways between knots, rad or m. At a sharp corner, the less,
            the slower.
        samples: how many there are in the trajectory, evenly in time; about 100 a second if not given, and
            about 100,000 in all at most.
    """
    if not isinstance(path, Path):
        raise WrongKind(f"what is retimed is a path, as mk.plan and mk.follow make it, not {path!r}")
    tight = as_number(deviation, "deviation")
    if not tight > 0.0:
        raise ShapeError(f"deviation must be above 0 (rad or m), not {tight:g}: no corner is passed without stopping")
    if samples is not None and (isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < 2):
        raise ShapeError(f"samples must be a whole number of 2 or more, not {samples!r}")
    curve = curve_through(path, tight)
    moves = np.abs(curve.at(curve.s)[1]).max(axis=0)
    moves[moves < 1e-12 * moves.max()] = 0.0
    fast = as_rates(path.mechanism, velocity, "velocity", moves)
    gain = as_rates(path.mechanism, acceleration, "acceleration", moves)
    sharp = np.full(len(gain), np.inf) if jerk is None else as_rates(path.mechanism, jerk, "jerk", moves)
    if is_straight(curve):
        profile = along_a_line(curve, fast, gain, sharp)
    elif jerk is None and has_toppra():
        profile = fast_within(curve, fast, gain)
    else:
        profile = fast_within_jerk(curve, fast, gain, SHARPEST * gain if jerk is None else sharp)
    count = max(2, round(100 * min(profile.duration, LONG)) + 1) if samples is None else samples
    return made_of(path.mechanism, curve, profile, np.linspace(0.0, profile.duration, count))
