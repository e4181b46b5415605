"""The default solver beside Klampt's: the same problems, starts, tolerance and iterations, in one run.

Every problem has a solution: its target is where the link stands at a random configuration inside the limits. Klampt is
believed when it says that it has solved one; of ours the answer is looked at again.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mechanik as mk
from mechanik.formats.urdf.reader import read_urdf
from mechanik.objectives.pose_constraints import (
    AlignedAxes,
    FixedRotation,
    LineConstraint,
    PlaneConstraint,
    PointConstraint,
    PositionConstraint,
    RotationConstraint,
    random_point_in_ball,
)
from mechanik.objectives.pose_goals import LinkGoal
from mechanik.spatial import inverse, make_pose

DATA = Path(__file__).parent.parent / "data" / "klampt"
PROBLEMS, SHARED, TOLERANCE = 1000, 50, 1e-5
"""SHARED problems have the same points of the link and directions of lines, so that one solver serves them all."""
ITERATIONS = 100
"""Klampt's own default."""
RESTARTS = 100
SIZE = 0.1
"""m; how far from the link's origin the points may be that are to be placed."""
ROBOTS = {"tree9": ("r_tool", "l_tool"), "panda_nogeom": ("panda_hand_tcp",), "ur5_nogeom": ("tool0",)}
KINDS: dict[str, tuple[type[PositionConstraint] | None, type[RotationConstraint] | None]] = {
    "point": (PointConstraint, None),
    "line": (LineConstraint, None),
    "plane": (PlaneConstraint, None),
    "axis": (None, AlignedAxes),
    "orientation": (None, FixedRotation),
    "pose": (PointConstraint, FixedRotation),
    "hinge": (PointConstraint, AlignedAxes),
    "surface": (PlaneConstraint, AlignedAxes),
    "line and axis": (LineConstraint, AlignedAxes),
    "line and orientation": (LineConstraint, FixedRotation),
    "plane and orientation": (PlaneConstraint, FixedRotation),
}
KNOWN_BETWEEN_LINKS = ("point", "pose")
"""The other kinds, between two links, crash Klampt."""


@pytest.mark.klampt
@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("kind", KINDS)
def test_success_rate_is_at_least_that_of_klampt_and_restarts_always_succeed(kind: str, name: str) -> None:
    compare(name, kind, ROBOTS[name][0])


@pytest.mark.klampt
@pytest.mark.parametrize("kind", KNOWN_BETWEEN_LINKS)
def test_success_rate_between_two_links_is_at_least_that_of_klampt(kind: str) -> None:
    compare("tree9", kind, *ROBOTS["tree9"])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in KNOWN_BETWEEN_LINKS])
def test_restarts_always_succeed_between_two_links_in_kinds_without_klampt(kind: str) -> None:
    for _, target, q0, _, often in problems("tree9", kind, *ROBOTS["tree9"], count=200):
        assert often.solve(target, q0).success


def compare(name: str, kind: str, link: str, base: str | None = None) -> None:
    klampt = pytest.importorskip("klampt")
    theirs, places = klampt_robot(name)
    ours_solved = klampt_solved = 0
    for objective, target, q0, solver, often in problems(name, kind, link, base):
        once = solver.solve(target, q0)
        ours_solved += once.success
        if once.success:
            error = objective.error(solver.mechanism, once.q)
            assert max(error.position, error.rotation) <= TOLERANCE * (1 + 1e-6)
        assert often.solve(target, q0).success

        wanted = klampt.IKObjective()
        wanted.setLinks(theirs.link(link).getIndex(), -1 if base is None else theirs.link(base).getIndex())
        set_klampt_goal(wanted, objective)
        peer = klampt.IKSolver(theirs)
        peer.add(wanted)
        peer.setMaxIters(ITERATIONS)
        peer.setTolerance(TOLERANCE)
        configuration = np.zeros(theirs.numLinks())
        configuration[places] = q0
        theirs.setConfig(configuration)
        klampt_solved += peer.solve()
    assert ours_solved >= klampt_solved


def problems(
    name: str, kind: str, link: str, base: str | None = None, count: int = PROBLEMS
) -> Iterator[tuple[LinkGoal, Any, np.ndarray, mk.Solver, mk.Solver]]:
    """Objectives, their targets alone, starts, and solvers that take such targets: of one attempt, and of many."""
    mechanism = robot(name)
    rng = np.random.default_rng([list(KINDS).index(kind), list(ROBOTS).index(name), base is not None])
    # no new target brings a new axis along, so that each such target has a solver of its own, and five starts
    has_axis = kind in ("hinge", "surface", "line and axis")
    every = 5 if has_axis else SHARED
    for number, (q, q0) in enumerate(zip(mechanism.random(rng, count), mechanism.random(rng, count), strict=True)):
        if number % every == 0 or not has_axis:
            X = mechanism.pose(link, q) if base is None else inverse(mechanism.pose(base, q)) @ mechanism.pose(link, q)
        if number % every == 0:
            template = draw(kind, link, base, X, rng)
            # one start and up to four large perturbations; with the default, one small perturbation, goals on planes
            # are met in 975 and 998 of 1,000, and by Klampt in 981 and 1,000
            once = mk.Solver(mechanism, template, max_iterations=ITERATIONS, perturbation=1.0, max_perturbations=4)
            often = mk.Solver(mechanism, template, max_iterations=ITERATIONS, restarts=RESTARTS)
        objective = template.match_destination(X)
        yield objective, bare_target(objective), q0, once, often


def draw(kind: str, link: str, base: str | None, X: np.ndarray, rng: np.random.Generator) -> LinkGoal:
    """A random objective of a kind that is fulfilled where the link stands at X."""
    place, turn = KINDS[kind]
    local, axis, direction = random_point_in_ball(rng, SIZE), rng.standard_normal(3), rng.standard_normal(3)
    if kind == "surface":
        direction = X[:3, :3] @ axis
    p = X[:3, :3] @ local + X[:3, 3]
    options: Any = {"relative_to": base, "tolerance": TOLERANCE, "angle_tolerance": TOLERANCE}
    if kind == "pose":
        return mk.PoseGoal(link, make_pose(X[:3, :3], p), at=local, **options)
    if kind == "point":
        return mk.PositionGoal(link, p, local, **options)
    position = (
        None if place is None else PointConstraint(p, local) if place is PointConstraint else place(p, direction, local)
    )
    rotation = None if turn is None else AlignedAxes(X[:3, :3] @ axis, axis) if turn is AlignedAxes else turn(X[:3, :3])
    return LinkGoal(link, position, rotation, **options)


def bare_target(objective: LinkGoal) -> Any:
    """Return the target alone, without the points and directions in the link."""
    position, rotation = objective.position, objective.rotation
    if isinstance(rotation, FixedRotation):
        return make_pose(rotation.target, np.zeros(3) if position is None else position.target)
    return rotation.target if position is None else position.target


def set_klampt_goal(wanted: Any, objective: LinkGoal) -> None:
    """Set the constraints of `objective` in the IK objective of Klampt."""
    position, rotation = objective.position, objective.rotation
    if isinstance(position, PointConstraint):
        wanted.setFixedPosConstraint(position.local, position.target)
    elif isinstance(position, LineConstraint):
        wanted.setLinearPosConstraint(position.local, position.target, position.direction)
    elif isinstance(position, PlaneConstraint):
        wanted.setPlanarPosConstraint(position.local, position.direction, float(position.direction @ position.target))
    if isinstance(rotation, FixedRotation):
        wanted.setFixedRotConstraint(rotation.link_rotation.T.ravel())
    elif isinstance(rotation, AlignedAxes):
        wanted.setAxialRotConstraint(rotation.local, rotation.target)


@cache
def robot(name: str) -> mk.Mechanism:
    return read_urdf(DATA / f"{name}.urdf")


@cache
def klampt_robot(name: str) -> tuple[Any, list[int]]:
    """Klampt's robot, and where in its configuration our q stands."""
    import klampt

    world = klampt.WorldModel()
    assert world.readFile(str(DATA / f"{name}.urdf"))
    theirs, mechanism = world.robot(0), robot(name)
    OPEN_WORLDS.append(world)
    return theirs, [theirs.link(mechanism.joint(joint).child.name).getIndex() for joint in mechanism.space.q_names]


OPEN_WORLDS: list[Any] = []
"""Klampt's worlds, which their robots do not keep alive."""
