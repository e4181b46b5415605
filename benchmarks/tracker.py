"""The tracker at 1 kHz: time of a step, and whether limits hold and loops stay closed, with goals that jump at random.

    python benchmarks/tracker.py [--steps 100000] [--peers]

Goals jump to random poses every 0.3 s, many of them out of reach or through singularities; between jumps half of them
move on smoothly. With --peers a wave that the Panda can follow, and jumps, are also given to Pink and Mink, where they
are installed: each with one frame task of gain 1 and damping 1e-6, DAQP, and all limits that they
offer; Mink has none of acceleration.

Times are of the whole call from Python, by the clock of the thread: what the system does meanwhile does not count.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import mechanik as mk
from mechanik.model import Mechanism
from mechanik.motion.tracking import Tracker, TrackerStatus
from mechanik.spatial import make_pose, rotation

DT, VELOCITY, ACCELERATION = 1e-3, 2.0, 15.0
STRUT_VELOCITY, STRUT_ACCELERATION = 0.05, 1.0
JUMP_STEPS = 300
"""Steps between two jumps of the goal."""
CLOSURE_CHECK_STEPS = 50
"""Steps between two checks of the loops."""


@dataclass
class Statistics:
    """The worst of all steps, and their times (s).

    Attributes:
        velocity, acceleration: the largest share of a limit.
        outside: the farthest that a value was outside its limits, m or rad.
        gap: largest closure error, m or rad.
        limit_failures: steps whose status says that a limit could not be met.
        errors: m, how far the link is from its goal after each step.
    """

    seconds: list[float] = field(default_factory=list[float])
    velocity: float = 0.0
    acceleration: float = 0.0
    outside: float = 0.0
    gap: float = 0.0
    limit_failures: int = 0
    errors: list[float] = field(default_factory=list[float])


def goals(
    X0: np.ndarray, steps: int, position_scale: tuple[float, float, float], rotation_scale: float, seed: int
) -> Iterator[np.ndarray]:
    """Poses that jump, half of which then move on a slow wave."""
    rng = np.random.default_rng(seed)
    X, direction, moves = X0, np.zeros(3), False
    for k in range(steps):
        if k % JUMP_STEPS == 0:
            X = make_pose(
                rotation.exp(rotation_scale * rng.standard_normal(3)) @ X0[:3, :3],
                X0[:3, 3] + position_scale * rng.standard_normal(3),
            )
            direction, moves = 0.1 * np.asarray(position_scale) * rng.standard_normal(3), k % (2 * JUMP_STEPS) == 0
        Y = X.copy()
        if moves:
            Y[:3, 3] += direction * math.sin(6.0 * DT * (k % JUMP_STEPS))
        yield Y


def run(
    mechanism: Mechanism,
    link: str,
    step: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, bool]],
    targets: Iterator[np.ndarray],
    velocity: np.ndarray,
    acceleration: np.ndarray,
) -> Statistics:
    """
    Args:
        step: from a goal to q, v, and whether the status says that all limits hold.
        velocity, acceleration: (nv,) limits.
    """
    statistics, space = Statistics(), mechanism.space
    limited, hastened = np.isfinite(velocity), np.isfinite(acceleration)
    before, clock = np.zeros(mechanism.nv), time.thread_time
    for k, X in enumerate(targets):
        start = clock()
        q, v, is_within_limits = step(X)
        statistics.seconds.append(clock() - start)
        statistics.limit_failures += not is_within_limits
        statistics.velocity = max(statistics.velocity, float((np.abs(v) / velocity)[limited].max()))
        change = np.abs(v - before)[hastened] / DT / acceleration[hastened]
        statistics.acceleration = max(statistics.acceleration, float(change.max()))
        statistics.outside = max(statistics.outside, float((q - space.upper).max()), float((space.lower - q).max()))
        before = v
        if k % CLOSURE_CHECK_STEPS == 0 and mechanism.closures:
            mechanism.q = q
            gaps = [closure.gap() for closure in mechanism.closures.values()]
            statistics.gap = max(statistics.gap, *(max(gap.distance, gap.angle) for gap in gaps))
        statistics.errors.append(float(np.linalg.norm(mechanism.pose(link, q)[:3, 3] - X[:3, 3])))
    return statistics


def report(name: str, statistics: Statistics) -> None:
    p50, p99, most = np.percentile(np.array(statistics.seconds[10:]) * 1e6, [50, 99, 100])
    print(
        f"{name:10} {len(statistics.seconds):7} steps: {p50:6.0f} us p50, {p99:6.0f} p99, {most:7.0f} max, "
        f"{100 * np.mean(statistics.seconds) / DT:5.1f} % of a core | "
        f"largest share of velocity {statistics.velocity:.9f}, "
        f"of acceleration {statistics.acceleration:.9f}, outside limits {statistics.outside:.1e}, "
        f"closure error {statistics.gap:.1e} | "
        f"{statistics.limit_failures} steps not within limits | "
        f"from the goal {1e3 * np.median(statistics.errors):.5f} mm median, "
        f"{1e3 * np.max(statistics.errors[len(statistics.errors) // 2 :]):.5f} mm at most in the second half",
        flush=True,
    )


def tracked(mechanism: Mechanism, link: str, **limits: Any) -> tuple[Tracker, Callable[[np.ndarray], Any]]:
    tracker = Tracker(mechanism, mk.PoseGoal(link, mechanism.pose(link)), DT, **limits)
    tracker.step()  # compiled by now

    def step(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        state = tracker.step(X)
        return state.q, state.v, state.status is TrackerStatus.MOVED

    return tracker, step


def wave(X0: np.ndarray, steps: int) -> Iterator[np.ndarray]:
    """A path that the arm can follow: up to 0.35 m/s and 1 m/s^2, after a start from rest."""
    for k in range(steps):
        t = k * DT
        grown = min(t, 1.0) ** 2 * (3.0 - 2.0 * min(t, 1.0))
        X = X0.copy()
        X[:3, 3] += grown * np.array([0.08 * math.sin(2 * t), 0.12 * math.sin(3 * t), 0.04 * math.sin(t)])
        X[:3, :3] = rotation.exp(grown * np.array([0.0, 0.2 * math.sin(t), 0.3 * math.sin(2 * t)])) @ X[:3, :3]
        yield X


def panda_goals(arm: Mechanism, steps: int) -> Iterator[np.ndarray]:
    return goals(arm.pose("panda_link8"), steps, (0.25, 0.35, 0.25), 0.5, seed=1)


def urdf_of(arm: Mechanism) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arm.urdf"
        mk.save(arm, path)
        return path.read_text()


def in_mechanism_order(
    arm: Mechanism, names: list[str], q: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Values of a peer in the order of the mechanism; mimic joints are omitted."""
    indices = [names.index(name) for name in arm.space.q_names]
    return q[indices], v[indices], True


def pink_step(arm: Mechanism) -> Callable[[np.ndarray], Any]:
    import pink
    import pinocchio
    from pink.limits import AccelerationLimit, ConfigurationLimit, VelocityLimit

    model = pinocchio.buildModelFromXML(urdf_of(arm))
    names = list(model.names)[1:]
    model.velocityLimit[:] = VELOCITY
    start = np.array([arm.q[arm.space.q_names.index(n)] if n in arm.space.q_names else 0.0 for n in names])
    start[-1] = start[-2]
    configuration = pink.Configuration(model, model.createData(), start)
    task = pink.tasks.FrameTask("panda_link8", position_cost=1.0, orientation_cost=1.0, lm_damping=1e-6)
    acceleration = AccelerationLimit(model, np.full(model.nv, ACCELERATION))
    limits = [ConfigurationLimit(model), VelocityLimit(model), acceleration]

    def step(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        task.set_target(pinocchio.SE3(X))
        v = pink.solve_ik(configuration, [task], DT, solver="daqp", limits=limits, safety_break=False)
        configuration.integrate_inplace(v, DT)
        acceleration.set_last_integration(v, DT)
        return in_mechanism_order(arm, names, configuration.q, v)

    return step


def mink_step(arm: Mechanism) -> Callable[[np.ndarray], Any]:
    import mink
    import mujoco

    text = urdf_of(arm)
    end = text.index(">", text.index("<robot")) + 1
    setting = '<mujoco><compiler fusestatic="false" balanceinertia="true"/></mujoco>'
    model = mujoco.MjModel.from_xml_string(text[:end] + setting + text[end:])
    names = [model.joint(k).name for k in range(model.njnt)]
    start = np.array([arm.q[arm.space.q_names.index(n)] if n in arm.space.q_names else 0.0 for n in names])
    start[-1] = start[-2]
    configuration = mink.Configuration(model, start)
    task = mink.FrameTask("panda_link8", "body", position_cost=1.0, orientation_cost=1.0, lm_damping=1e-6)
    limits = [mink.ConfigurationLimit(model), mink.VelocityLimit(model, dict.fromkeys(names, VELOCITY))]

    def step(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        task.set_target(mink.SE3.from_matrix(X))
        v = mink.solve_ik(configuration, [task], DT, solver="daqp", limits=limits)
        configuration.integrate_inplace(v, DT)
        return in_mechanism_order(arm, names, configuration.q.copy(), v)

    return step


def compare(steps: int) -> None:
    """The same arm, the same goals and limits; Mink has no limits of acceleration."""
    arm = mk.gallery.panda()
    makers = {
        "mechanik": lambda: tracked(arm, "panda_link8", velocity=VELOCITY, acceleration=ACCELERATION)[1],
        "pink": lambda: pink_step(arm),
        "mink": lambda: mink_step(arm),
    }
    velocity, acceleration = np.full(arm.nv, VELOCITY), np.full(arm.nv, ACCELERATION)
    for title, make_goals in (
        ("a wave", lambda: wave(arm.pose("panda_link8"), steps)),
        ("jumps", lambda: panda_goals(arm, steps)),
    ):
        print(title)
        for name, maker in makers.items():
            try:
                step = maker()
            except ImportError as missing:
                print(f"{name:10} is not installed ({missing})")
                continue
            try:
                report(name, run(arm, "panda_link8", step, make_goals(), velocity, acceleration))
            except Exception as error:  # an exception of a peer is its result
                print(f"{name:10} gave up: {type(error).__name__}: {error}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--peers", action="store_true", help="compare with Pink and Mink on a tenth of the steps")
    options = parser.parse_args()
    arm = mk.gallery.panda()
    tracker, step = tracked(arm, "panda_link8", velocity=VELOCITY, acceleration=ACCELERATION)
    report(
        "panda",
        run(arm, "panda_link8", step, panda_goals(arm, options.steps), tracker.velocity, tracker.acceleration),
    )
    hexapod = mk.gallery.hexapod()
    struts = [f"strut{k}_slide.Z" for k in range(1, 7)]
    tracker, step = tracked(
        hexapod,
        "platform",
        velocity=dict.fromkeys(struts, STRUT_VELOCITY),
        acceleration=dict.fromkeys(struts, STRUT_ACCELERATION),
    )
    poses = goals(hexapod.pose("platform"), options.steps, (0.012, 0.012, 0.006), 0.12, seed=2)
    report("hexapod", run(hexapod, "platform", step, poses, tracker.velocity, tracker.acceleration))
    if options.peers:
        compare(max(options.steps // 10, 1))


if __name__ == "__main__":
    main()
