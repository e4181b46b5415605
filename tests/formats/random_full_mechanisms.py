"""Random mechanisms with every kind of content, for properties of writers and readers."""

from __future__ import annotations

import contextlib
import math

import numpy as np
from hypothesis import strategies as st

import mechanik.model as mk
from mechanik.errors import CouplingError, StructureError

NUMBERS = st.floats(-1e3, 1e3)
VECTORS = st.tuples(NUMBERS, NUMBERS, NUMBERS)
TURNS = st.tuples(*[st.floats(-1, 1)] * 4).filter(lambda q: math.hypot(*q) > 1e-3)
DOFS = st.lists(st.sampled_from(list(mk.DoF)), unique=True, max_size=6).map(sorted)
RATIOS = st.floats(-4, 4).filter(lambda ratio: ratio == 0 or abs(ratio) > 1e-6)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@st.composite
def shapes(draw):
    size = st.floats(0, 1e3)
    shape = draw(
        st.one_of(
            st.builds(mk.Box, st.tuples(size, size, size)),
            st.builds(mk.Sphere, size),
            st.builds(mk.Cylinder, size, size),
            st.builds(mk.Capsule, size, size),
            st.builds(mk.Mesh, NAMES, VECTORS),
        )
    )
    unit = st.floats(0, 1)
    colours = st.none() | st.tuples(unit, unit, unit, unit)
    material = draw(st.none() | st.builds(mk.Material, NAMES, colours, st.none() | NAMES))
    return mk.ShapeInstance(shape, draw(poses()), material, draw(NAMES))


@st.composite
def poses(draw):
    from mechanik.spatial import Pose

    return Pose(draw(VECTORS), draw(TURNS)) if draw(st.booleans()) else Pose()


@st.composite
def joints(draw, name):
    joint = mk.Joint(name, dof=draw(DOFS), position=draw(VECTORS), wxyz=draw(TURNS), axes_wxyz=draw(TURNS))
    for dof in joint.dof:
        if draw(st.booleans()):
            sides = sorted([draw(NUMBERS), draw(NUMBERS)])
            joint.set_limit(dof, *draw(st.sampled_from([(sides[0], None), (None, sides[1]), tuple(sides)])))
        if draw(st.booleans()):
            joint.set_value(dof, draw(NUMBERS))
        if draw(st.booleans()):
            joint.set_target(dof, draw(NUMBERS))
        if draw(st.booleans()):
            joint.set_rest_value(dof, draw(NUMBERS))
    if joint.has_quaternion and draw(st.booleans()):
        joint.rotation_wxyz = draw(TURNS)
    joint.track_turns = draw(st.booleans())
    if sum(dof.is_rotation for dof in joint.dof) > 1 and draw(st.booleans()):
        joint.set_cone(draw(st.floats(1e-3, 3.1)), draw(st.sampled_from(["x", "z", "yz", "xyz"])))
    return joint


@st.composite
def mechanisms(draw):
    """Trees with every joint type, closures, goals, couplings, joint constraints, shapes, inertias, configurations."""
    inertials = st.none() | st.builds(mk.Inertial, st.floats(0, 1e3), poses(), st.tuples(*[st.floats(-1e3, 1e3)] * 6))
    count = draw(st.integers(1, 6))
    unnamed = draw(st.booleans())
    links = [
        mk.Link(
            "" if unnamed and k % 2 else f"link {k}",
            position=draw(VECTORS),
            wxyz=draw(TURNS),
            visuals=draw(st.lists(shapes(), max_size=2)),
            collisions=draw(st.lists(shapes(), max_size=1)),
            inertial=draw(inertials),
        )
        for k in range(count)
    ]
    made = []
    for k in range(1, count):
        joint = draw(joints("" if unnamed and k % 3 == 0 else f"gelenk_{k}_ü"))
        links[draw(st.integers(0, k - 1))].add_child(joint)
        joint.add_child(links[k])
        made.append(joint)
    for k in range(draw(st.integers(0, 2))):
        joint = draw(joints(f"closing {k}"))
        a, b = draw(st.integers(0, count - 1)), draw(st.integers(0, count - 1))
        if a != b:
            links[a].add_child(joint)
            joint.make_closure(links[b], draw(poses()))
            if draw(st.booleans()):
                joint.closure.update_joint()
    goals = [
        mk.Goal(
            f"goal {k}",
            dof=draw(DOFS),
            axes=draw(st.sampled_from(["goal", "world"])),
            position=draw(VECTORS),
            wxyz=draw(TURNS),
        )
        for k in range(draw(st.integers(0, 2)))
    ]
    for goal in goals:
        if draw(st.booleans()):
            links[draw(st.integers(0, count - 1))].add_child(goal)
        with contextlib.suppress(StructureError):  # closed onto the link that carries it
            if draw(st.booleans()):
                goal.make_closure(links[draw(st.integers(0, count - 1))], draw(poses()))
    couple(draw, made)
    bind(draw, made)
    if draw(st.booleans()):
        mk.save_rest_pose(links[0])
    world = [mk.Frame("world", position=draw(VECTORS))] if draw(st.booleans()) else []
    for frame in world:
        frame.add_child(links[0])
    mechanism = mk.Mechanism([links[0], *goals], name=draw(NAMES))
    for k in range(draw(st.integers(0, 2))):
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        mechanism.configurations[f"key {k}"] = mechanism.random(rng)
    if draw(st.booleans()):
        mechanism.extras["safety"] = {"gelenk_1_ü": {"k_velocity": draw(NUMBERS), "note": draw(NAMES)}, "list": [None]}
    return mechanism


def couple(draw, joints):
    moving = [(joint, dof) for joint in joints for dof in joint.dof]
    if len(moving) < 2:
        return
    for _ in range(draw(st.integers(0, 3))):
        follower, leader = draw(st.sampled_from(moving)), draw(st.sampled_from(moving))
        with contextlib.suppress(CouplingError):  # of itself, of a ball, or a second time
            follower[0].mimic(leader[0], draw(RATIOS), draw(NUMBERS), dof=follower[1], leader_dof=leader[1])


def bind(draw, joints):
    single = [(joint, dof) for joint in joints for dof in joint.dof]
    single = [term for term in single if not (term[1].is_rotation and sum(d.is_rotation for d in term[0].dof) == 3)]
    for k in range(draw(st.integers(0, 2)) if single else 0):
        chosen = draw(st.lists(st.sampled_from(single), unique=True, min_size=1, max_size=3))
        factors = st.lists(RATIOS, max_size=3).map(lambda lower_factors: [*lower_factors, 1.5])
        mk.JointConstraint(
            {term: draw(factors) for term in chosen}, draw(NUMBERS), name=draw(st.sampled_from(["", f"constraint {k}"]))
        )
