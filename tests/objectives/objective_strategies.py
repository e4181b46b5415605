"""Hypothesis strategies: every kind of objective, with values for all of its fields."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mechanik as mk
from mechanik.objectives import (
    AlignedAxes,
    FixedRotation,
    LineConstraint,
    PerpendicularAxes,
    PlaneConstraint,
    PointConstraint,
)

numbers = st.floats(-1e3, 1e3, allow_subnormal=False)
names = st.text(min_size=1, max_size=8)
points = st.tuples(numbers, numbers, numbers)
directions = points.filter(lambda v: np.linalg.norm(v) > 1e-3)
angles = st.floats(-3.0, 3.0)
rotations = st.builds(lambda v: mk.spatial.quaternion.exp(np.array(v)), st.tuples(angles, angles, angles))
poses = st.builds(mk.Pose, points, rotations)
links = st.just("link")
references = st.none() | st.just("other")
dofs = st.lists(st.sampled_from(["X", "Y", "Z", "EX", "EY", "EZ"]), min_size=1, unique=True).map(
    lambda chosen: sorted(chosen, key=["X", "Y", "Z", "EX", "EY", "EZ"].index)
)
values_by_name = st.dictionaries(names, st.lists(numbers, min_size=1, max_size=4), min_size=1, max_size=3)
grids = hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=4), elements=numbers)
terrains = st.builds(mk.Terrain, grids, st.floats(0.1, 2.0), st.tuples(numbers, numbers))
positive = st.floats(1e-9, 1e3)
bounds = st.sampled_from(
    [((-1, -1, -1), (1, 2, 3)), ((-np.inf, 0, -1), (np.inf, np.inf, 1)), ((0.1, -np.inf, -np.inf), (0.1, np.inf, 3))]
)
shapes = st.sampled_from([
    mk.Box((0.1, 0.2, 0.3)), mk.Sphere(0.1), mk.Cylinder(0.1, 0.3), mk.Capsule(0.1, 0.3), mk.HalfSpace(),
    mk.Mesh("part.stl", (1.0, 2.0, 0.1), "/models/part.stl"),
    mk.ConvexMesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1 / 3]]),
    mk.HeightField([[0.1, 0.2], [0.3, 0.7]], (1.0, 2.0), -0.5),
])  # fmt: skip
obstacles = st.builds(mk.Obstacle, shapes, points, rotations, name=st.sampled_from(["", "cup", "table"]))
positions = st.builds(PointConstraint, points, points) | st.builds(LineConstraint, points, directions, points)
positions |= st.builds(PlaneConstraint, points, directions, points)
rotation_rules = st.builds(FixedRotation, rotations, rotations) | st.builds(AlignedAxes, directions, directions)
rotation_rules |= st.builds(PerpendicularAxes, directions, directions)


def double_angle(mechanism, q):
    """A function of a `Custom` objective that can be pickled."""
    return 2 * q[0]


@st.composite
def options(draw):
    return {
        "weight": draw(positive),
        "level": draw(st.integers(0, 200)),
        "tolerance": draw(positive),
        "angle_tolerance": draw(positive),
        "required": draw(st.booleans()),
        "name": draw(st.text(max_size=8)),
    }


def kind(make, *positional, **named):
    """A strategy for a kind of objective: its own arguments, and the options of all objectives."""

    @st.composite
    def strategy(draw):
        return make(*(draw(s) for s in positional), **{name: draw(s) for name, s in named.items()}, **draw(options()))

    return strategy()


def distance(**arguments):
    pair = sorted(arguments.pop("pair"))
    which = arguments.pop("which")
    limits = {"equal": {"equal": pair[0]}, "least": {"at_least": pair[0]}, "most": {"at_most": pair[1]}}
    limits["both"] = {"at_least": pair[0], "at_most": pair[1]}
    return mk.Distance(**arguments, **limits[which])


def clearance(avoid, **arguments):
    pairs = arguments.pop("pairs")
    names = {obstacle.name for obstacle in avoid if isinstance(obstacle, mk.Obstacle)}
    return mk.Clearance(avoid, allow=pairs, forbid=[("a", name) for name in sorted(names) if name], **arguments)


def centre_of_mass(**arguments):
    if arguments.pop("has_support"):
        arguments["support"], arguments["target"] = [(-1, -1), (2, -1), (2, 1.5), (-1, 1)], None
        arguments["margin"] = 0.1
    return mk.CentreOfMass(arguments.pop("target"), **arguments)


bands = st.sampled_from([(-1.0, 0.5), (None, 0.1), (0.1, None)])
OBJECTIVES = {
    "PositionGoal": kind(mk.PositionGoal, links, points, points, relative_to=references),
    "OrientationGoal": kind(mk.OrientationGoal, links, rotations, rotations, relative_to=references),
    "AxisGoal": kind(mk.AxisGoal, links, directions, directions, relative_to=references),
    "HingeGoal": kind(mk.HingeGoal, links, points, directions, points, directions, relative_to=references),
    "SurfaceGoal": kind(mk.SurfaceGoal, links, points, directions, points, directions, relative_to=references),
    "OnLine": kind(mk.OnLine, links, points, directions, points, relative_to=references),
    "OnPlane": kind(mk.OnPlane, links, points, directions, points, relative_to=references),
    "PoseGoal": kind(
        mk.PoseGoal, links, poses, at=poses, dof=dofs, axes=st.sampled_from(["goal", "world"]), relative_to=references
    ),
    "LinkGoal": kind(mk.LinkGoal, links, positions, st.none() | rotation_rules, relative_to=references),
    "InBox": kind(
        lambda link, pair, frame, at, **rest: mk.InBox(link, *pair, frame, at, **rest),
        links, bounds, poses | points, points, relative_to=references,
    ),
    "InBand": kind(
        lambda link, coordinate, pair, frame, at, **rest: mk.InBand(link, coordinate, *pair, frame, at, **rest),
        links, st.sampled_from(["x", "y", "z", "rx", "ry", "rz"]), bands, poses | points, poses | points,
        relative_to=references,
    ),
    "InCone": kind(mk.InCone, links, directions, directions, st.floats(0.01, 3.0), relative_to=references),
    "Distance": kind(
        distance, link=links, other_link=references, at=points, other_at=points,
        pair=st.tuples(st.floats(0, 10), st.floats(0, 10)), which=st.sampled_from(["equal", "least", "most", "both"]),
    ),
    "LookAt": kind(mk.LookAt, links, points, directions, points, relative_to=references),
    "OnTerrain": kind(mk.OnTerrain, links, terrains, points, st.floats(0.0, 1.0), relative_to=references),
    "JointValues": kind(mk.JointValues, values_by_name, angle_mode=st.sampled_from(["nearest", "exact"])),
    "RestPose": kind(
        mk.RestPose, st.none() | st.lists(numbers, max_size=5) | values_by_name,
        weights=st.none() | st.dictionaries(names, st.floats(0, 10), max_size=3),
        angle_mode=st.sampled_from(["nearest", "exact"]),
    ),
    "CentreOfMass": kind(
        centre_of_mass, has_support=st.booleans(), target=points, relative_to=references,
        links=st.none() | st.lists(names, min_size=1, max_size=3), dof=st.sampled_from([["X"], ["X", "Y"], ["Z"]]),
    ),
    "Manipulability": kind(
        mk.Manipulability, links, dofs, points, joints=st.none() | st.lists(names, min_size=1, max_size=3),
        reference=st.none() | positive,
    ),
    "Clearance": kind(
        clearance, st.lists(st.just("self") | obstacles, max_size=3), clearance=st.floats(-0.1, 1.0),
        pairs=st.lists(st.tuples(names, names), max_size=2),
    ),
}  # fmt: skip
"""A strategy for each kind of objective without Python functions, by the name of its class."""

custom_objectives = kind(
    mk.Custom, st.just(double_angle), st.none() | st.just(double_angle), st.none() | st.integers(1, 3),
    lower=st.none() | numbers.map(lambda x: x - 3e3), upper=st.none() | st.just(np.inf) | numbers, step=positive,
)  # fmt: skip
objectives = st.one_of(*OBJECTIVES.values())
