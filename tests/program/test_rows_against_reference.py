"""The compiled rows and their Jacobian against the plain NumPy reference, for every kind of row and any mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_mechanisms import mechanisms, random_mechanism, random_pose, random_turn, seeds

import mechanik as mk
from mechanik.kernels import problem_layout as problem
from mechanik.objectives import Relation, RelationKind
from mechanik.objectives.constraint_relations import closure_relations
from mechanik.objectives.objective import length_row_mask
from mechanik.objectives.relation import band_violation, evaluate_relation
from mechanik.objectives.terrain import Terrain
from mechanik.spatial import from_position_wxyz, make_pose, quaternion, rotation

SIZES = {
    RelationKind.POSE: 6,
    RelationKind.AXIS: 5,
    RelationKind.COSINE: 1,
    RelationKind.LOOK_AT: 2,
    RelationKind.DISTANCE: 1,
}
IN_WORLD_AXES = (RelationKind.POSE, RelationKind.AXIS, RelationKind.COSINE)
CURRENT = 5  # where the kernel's state says which of its two buffers is the accepted one


@dataclass(frozen=True, slots=True, eq=False)
class Rows(mk.Objective):
    """Whatever rows one likes."""

    wanted: tuple[Relation, ...]

    def relations(self, mechanism):
        return self.wanted


# ---- what the kernel says -----------------------------------------------------------------------


def kernel_rows(solver, q):
    """q as accepted; and for each relation its rows without weight (m,), and how they change with v (m, nv)."""
    solution = solver.solve(q0=q, max_iterations=0, kick=0.0)
    found, nv = {}, solver.mechanism.nv
    for part in solver._problem.subproblems:
        packed, at = part.packed, part.packed.tables
        buffer = int(at["state"][CURRENT])
        rows = at["residual"][buffer * packed.sizes["rows"] :]
        jacobian = at["jacobian"][buffer * packed.sizes["jacobian"] :]
        for block, owner, number in zip(
            at["blocks"].reshape(-1, problem.BLOCK_INTS), part.owners, part.relation_indices, strict=True
        ):
            height, width, row = (int(block[k]) for k in (problem.ROW_COUNT, problem.COLUMN_COUNT, problem.FIRST_ROW))
            weight = at["weight"][row : row + height]
            J = jacobian[int(block[problem.FIRST_JACOBIAN]) :][: height * width].reshape(height, width)
            by_v = np.zeros((height, nv))
            for u, column in enumerate(at["block_columns"][block[problem.FIRST_COLUMN] :][:width]):
                if 0 <= packed.columns[column] < nv:
                    by_v[:, packed.columns[column]] = J[:, u] / at["scale"][column] / weight
            found[owner, number] = rows[row : row + height] / weight, by_v
    return solution.q, found


def compare(mechanism, relations, q, **options):
    """The compiled rows of relations equal the reference to rounding, and so do their Jacobians."""
    solver = mk.Solver(mechanism, Rows(tuple(relations)), **options)
    q_accepted, found = kernel_rows(solver, q)
    np.testing.assert_allclose(q_accepted, q, rtol=0, atol=1e-14)
    size = solver._problem.length_unit
    for number, relation in enumerate(relations):
        rows, J = evaluate_relation(mechanism, relation, q_accepted)
        mine, by_v = found[0, number]
        # lengths are differences of numbers as large as the mechanism, and so are the arms of its turns
        unit = np.where(length_row_mask(mechanism, relation, len(rows)), max(3 * size, 1.0), 1.0)
        np.testing.assert_allclose(mine / unit, band_violation(relation, rows) / unit, rtol=1e-12, atol=1e-12)
        J, by_v = J / unit[:, None], by_v / unit[:, None]
        np.testing.assert_allclose(by_v, J, rtol=1e-12, atol=1e-12 * np.abs(J).max(initial=1.0))


# ---- random relations ---------------------------------------------------------------------------


def random_frame(rng):
    pose = random_pose(rng)
    return from_position_wxyz(pose["position"], pose["wxyz"])


def random_relation(rng, mechanism, kind, *, world_axes=False):
    links = [None, *mechanism.links]
    a, b = (links[rng.integers(len(links))] for _ in range(2))
    rows = tuple(row for row in range(SIZES[kind]) if rng.random() < 0.7) or (int(rng.integers(SIZES[kind])),)
    C = quaternion.to_matrix(random_turn(rng)) if world_axes else None
    ends = a, b, random_frame(rng), random_frame(rng)
    return Relation(kind, rows, *ends, world_axes=C, weight=float(rng.uniform(0.2, 5)))


def is_well_posed(mechanism, relation, q):
    """Whether the reference itself has full precision there: no half turns, no eye in what it sees."""
    if relation.kind in (RelationKind.POSE, RelationKind.AXIS):
        whole = replace(relation, rows=tuple(range(SIZES[relation.kind])))
        return np.linalg.norm(evaluate_relation(mechanism, whole, q)[0][3:]) < math.pi - 0.05
    if relation.kind in (RelationKind.LOOK_AT, RelationKind.DISTANCE):
        apart = replace(relation, kind=RelationKind.DISTANCE, rows=(0,))
        near = evaluate_relation(mechanism, apart, q)[0][0] < 0.05
        gaze = np.linalg.norm(
            evaluate_relation(mechanism, replace(relation, kind=RelationKind.LOOK_AT, rows=(0, 1)), q)[0]
        )
        return not near and gaze < math.pi - 0.05
    return True


# ---- the kinds ----------------------------------------------------------------------------------


@pytest.mark.parametrize("world_axes", [False, True], ids=["own axes", "world axes"])
@pytest.mark.parametrize("kind", SIZES, ids=lambda kind: kind.name)
@given(mechanisms, seeds)
def test_frames_are_related_as_in_the_reference(kind, world_axes, mechanism, seed):
    if world_axes and kind not in IN_WORLD_AXES:
        pytest.skip("only poses and axes can be seen along the axes of the world")
    rng = np.random.default_rng(seed)
    q = mechanism.random(rng)
    relations = [random_relation(rng, mechanism, kind, world_axes=world_axes) for _ in range(3)]
    relations = [one for one in relations if is_well_posed(mechanism, one, q)]
    assume(relations)
    compare(mechanism, relations, q)


@given(mechanisms, seeds)
def test_all_kinds_at_once_do_not_disturb_each_other(mechanism, seed):
    rng = np.random.default_rng(seed)
    q = mechanism.random(rng)
    relations = [random_relation(rng, mechanism, kind) for kind in SIZES for _ in range(2)]
    relations += [random_relation(rng, mechanism, kind, world_axes=True) for kind in IN_WORLD_AXES]
    relations += [random_mass(rng, mechanism), *random_values(rng, mechanism)]
    relations = [one for one in relations if is_well_posed(mechanism, one, q)]
    rng.shuffle(relations)
    compare(mechanism, relations, q)


def random_mass(rng, mechanism):
    links = list(mechanism.links)
    chosen = rng.choice(len(links), size=rng.integers(1, len(links) + 1), replace=False)
    masses = tuple((links[k], float(rng.uniform(0.1, 3)), rng.uniform(-1, 1, 3)) for k in chosen)
    a = [None, *links][rng.integers(len(links) + 1)]
    rows = tuple(row for row in range(3) if rng.random() < 0.7) or (1,)
    return Relation(RelationKind.CENTRE_OF_MASS, rows, a, None, random_frame(rng), masses=masses)


def random_values(rng, mechanism):
    space, found = mechanism.space, []
    for name in (space.q_names[k] for k in space.scalars_q):
        found.append(Relation(RelationKind.JOINT_VALUE, (0,), dof_name=name, target=rng.uniform(-2, 2, 1)))
    for joint, slot in mechanism.kinematics.joint_indices.items():
        if slot.quaternion_q is not None:
            target = random_turn(rng)
            found.append(
                Relation(RelationKind.SPHERICAL_JOINT, (0, 1, 2), dof_name=mechanism.name_of(joint), target=target)
            )
    return found


@given(mechanisms, seeds)
def test_a_centre_of_mass_is_weighed_as_in_the_reference(mechanism, seed):
    rng = np.random.default_rng(seed)
    compare(mechanism, [random_mass(rng, mechanism) for _ in range(3)], mechanism.random(rng))


@given(mechanisms, seeds)
def test_joint_values_and_turns_of_balls_are_as_in_the_reference(mechanism, seed):
    rng = np.random.default_rng(seed)
    relations, q = random_values(rng, mechanism), mechanism.random(rng)
    turns = [evaluate_relation(mechanism, one, q)[0] for one in relations if one.kind is RelationKind.SPHERICAL_JOINT]
    assume(relations)
    assume(all(np.linalg.norm(turn) < math.pi - 0.05 for turn in turns))
    compare(mechanism, relations, q)


def random_terrain(rng):
    shape = rng.integers(2, 7, 2)
    return Terrain(rng.uniform(-1, 1, shape), float(rng.uniform(0.3, 1.0)), rng.uniform(-2, 0, 2))


@pytest.mark.parametrize("world_axes", [False, True], ids=["own axes", "world axes"])
@settings(max_examples=40)
@given(mechanisms, seeds)
def test_heights_above_a_terrain_are_as_in_the_reference(world_axes, mechanism, seed):
    rng = np.random.default_rng(seed)
    terrains = random_terrain(rng), random_terrain(rng)
    relations = []
    for k in range(4):  # two of them share a terrain
        one = random_relation(rng, mechanism, RelationKind.DISTANCE)
        C = quaternion.to_matrix(random_turn(rng)) if world_axes else None
        relations.append(replace(one, kind=RelationKind.HEIGHT, terrain=terrains[k % 2], world_axes=C))
    compare(mechanism, relations, mechanism.random(rng))


def random_polynomials(rng, mechanism):
    space = mechanism.space
    names = [space.q_names[k] for k in space.scalars_q]
    rng.shuffle(names)
    return tuple((name, rng.uniform(-1, 1, rng.integers(1, 6))) for name in names[:4])


@settings(max_examples=40)
@given(mechanisms, seeds)
def test_polynomials_of_joint_values_add_up_as_in_the_reference(mechanism, seed):
    rng = np.random.default_rng(seed)
    q = mechanism.clamp(np.clip(mechanism.random(rng), -2, 2))
    assume(len(mechanism.space.scalars_q) > 0)
    assume(np.abs(q).max() <= 2)  # limits may lie elsewhere, and fifth powers of that are large
    relations = [
        Relation(
            RelationKind.JOINT_CONSTRAINT,
            (0,),
            polynomials=random_polynomials(rng, mechanism),
            target=rng.uniform(-1, 1, 1),
        )
        for _ in range(3)
    ]
    compare(mechanism, relations, q)


@given(mechanisms, seeds)
def test_of_a_band_only_what_lies_outside_counts(mechanism, seed):
    rng = np.random.default_rng(seed)
    q, relations = mechanism.random(rng), []
    for kind in SIZES:
        one = random_relation(rng, mechanism, kind)
        if is_well_posed(mechanism, one, q):
            lower = rng.uniform(-1, 0.5, len(one.rows))
            upper = lower + rng.uniform(0, 1, len(one.rows))
            sides = [(lower, upper), (lower, None), (None, upper), (lower, lower)][rng.integers(4)]
            relations.append(replace(one, lower=sides[0], upper=sides[1]))
    assume(relations)
    compare(mechanism, relations, q)


@given(mechanisms, seeds, st.floats(0.2, 5), st.floats(0.2, 5))
def test_weights_and_reluctance_change_nothing_but_the_scale(mechanism, seed, position_weight, rotation_weight):
    rng = np.random.default_rng(seed)
    q = mechanism.random(rng)
    relation = random_relation(rng, mechanism, RelationKind.POSE)
    assume(is_well_posed(mechanism, relation, q))
    names = [mechanism.space.q_names[k] for k in mechanism.space.scalars_q]
    weights = {name: float(rng.uniform(0.1, 10)) for name in names}
    compare(mechanism, [relation], q, weights=weights, position_weight=position_weight, rotation_weight=rotation_weight)


@given(mechanisms, seeds)
def test_of_what_may_not_move_there_is_no_column(mechanism, seed):
    rng = np.random.default_rng(seed)
    q = mechanism.random(rng)
    relation = random_relation(rng, mechanism, RelationKind.POSE)
    assume(is_well_posed(mechanism, relation, q))
    locked = [name for name, joint in mechanism.joints.items() if rng.random() < 0.5 and not joint.couplings]
    solver = mk.Solver(mechanism, Rows((relation,)), lock=locked)
    _, found = kernel_rows(solver, q)
    _, J = evaluate_relation(mechanism, relation, q)
    moves = np.ones(mechanism.nv, dtype=bool)
    for joint, slot in mechanism.kinematics.joint_indices.items():
        if mechanism.name_of(joint) in locked:
            moves[list(slot.v.values())] = False
            if slot.quaternion_v is not None:
                moves[slot.quaternion_v : slot.quaternion_v + 3] = False
    np.testing.assert_allclose(found[0, 0][1], np.where(moves, J, 0.0), rtol=1e-11, atol=1e-11)


@given(mechanisms, seeds)
def test_a_function_written_in_python_is_asked_at_the_right_place(mechanism, seed):
    rng = np.random.default_rng(seed)
    A, b = rng.uniform(-1, 1, (2, mechanism.nq)), rng.uniform(-1, 1, 2)
    wish = mk.Custom(lambda mechanism, q: A @ np.sin(q) + b, residual_size=2)
    q = mechanism.random(rng)
    solver = mk.Solver(mechanism, wish)
    _, found = kernel_rows(solver, q)
    rows, J = wish.residual(mechanism, q), wish.jacobian(mechanism, q)
    np.testing.assert_allclose(found[0, 0][0], rows, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found[0, 0][1], J, atol=1e-9)  # differences, of a quaternion's last bit too


# ---- corners ------------------------------------------------------------------------------------


def on_ball():
    builder = mk.Builder()
    builder.spherical("ball", "world", "body")
    return builder.build()


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-6, 1e-4, 0.9e-4, 1e-3, 1.0, 3.0, 3.1, math.pi - 0.01, math.pi - 1e-3])
@pytest.mark.parametrize(
    "axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.6, 0.0, 0.8), (-0.48, 0.64, 0.6), (0.1, -0.7, -0.7)]
)
def test_turns_from_nothing_to_nearly_half_a_turn_are_as_in_the_reference(angle, axis):
    mechanism = on_ball()
    v = angle * np.array(axis) / np.linalg.norm(axis)
    q = quaternion.exp(v)
    pose = Relation(RelationKind.POSE, (0, 1, 2, 3, 4, 5), None, "body")
    turn = Relation(RelationKind.SPHERICAL_JOINT, (0, 1, 2), dof_name="ball", target=np.array([1.0, 0, 0, 0]))
    solver = mk.Solver(mechanism, Rows((pose, turn)))
    _, found = kernel_rows(solver, q)
    # near half a turn an angle is read off a cosine that hardly changes
    tolerance = 1e-12 if angle < 3 else 1e-12 / (math.pi - angle)
    for number, rows in ((0, slice(3, 6)), (1, slice(0, 3))):
        mine, by_v = found[0, number]
        np.testing.assert_allclose(mine[rows], v, rtol=0, atol=tolerance)
        _, J = evaluate_relation(mechanism, (pose, turn)[number], q)
        np.testing.assert_allclose(by_v[rows], J[rows], rtol=0, atol=10 * tolerance)


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.6, 0.0, 0.8), (-0.48, 0.64, 0.6)])
@pytest.mark.parametrize("less", [0.0, 1e-12, 1e-9, 1e-7, 1e-5])
def test_the_rows_of_half_a_turn_are_finite_and_as_long_as_they_should_be(axis, less):
    mechanism = on_ball()
    v = (math.pi - less) * np.array(axis) / np.linalg.norm(axis)
    pose = Relation(RelationKind.POSE, (3, 4, 5), None, "body")
    leans = Relation(RelationKind.AXIS, (3, 4), None, "body")
    solver = mk.Solver(mechanism, Rows((pose, leans)))
    _, found = kernel_rows(solver, quaternion.exp(v))
    mine, by_v = found[0, 0]
    assert np.isfinite(by_v).all()
    assert abs(np.linalg.norm(mine) - (math.pi - less)) < 1e-7
    np.testing.assert_allclose(rotation.exp(mine), rotation.exp(v), atol=1e-7)
    leaning, by_v = found[0, 1]
    assert np.isfinite(by_v).all()
    cosine = rotation.exp(v)[2, 2]
    assert math.isclose(math.cos(np.linalg.norm(leaning)), cosine, abs_tol=1e-12)


@pytest.mark.parametrize("angle", [0.0, 1e-10, 1e-6, 0.9e-4, 1.1e-4, 1e-2, 1.5, 3.0, 3.14])
@pytest.mark.parametrize("side", [(1, 0), (0, 1), (0.6, -0.8)])
def test_an_axis_leans_as_in_the_reference_from_nothing_to_nearly_over(angle, side):
    mechanism = on_ball()
    q = quaternion.exp(angle * np.array([*side, 0.0]))
    leans = Relation(RelationKind.AXIS, (3, 4), None, "body")
    looks = Relation(RelationKind.LOOK_AT, (0, 1), "body", None, X_b=make_pose(np.eye(3), np.array([0.0, 0.0, 2.0])))
    solver = mk.Solver(mechanism, Rows((leans, looks)))
    _, found = kernel_rows(solver, q)
    for number, relation in enumerate((leans, looks)):
        rows, J = evaluate_relation(mechanism, relation, q)
        near = 1e-12 / max(math.sin(angle), 1e-2) if angle > 3 else 1e-12
        np.testing.assert_allclose(found[0, number][0], rows, rtol=0, atol=near)
        np.testing.assert_allclose(found[0, number][1], J, rtol=0, atol=1e3 * near if angle > 3 else 1e-12)


def test_an_eye_in_what_it_sees_and_points_that_meet_are_as_in_the_reference():
    builder = mk.Builder()
    builder.free("float", "world", "body")
    mechanism = builder.build()
    look = Relation(RelationKind.LOOK_AT, (0, 1), "body", None)
    apart = Relation(RelationKind.DISTANCE, (0,), "body", None, lower=np.array([0.5]), upper=np.array([np.inf]))
    q = mechanism.neutral()
    _, found = kernel_rows(mk.Solver(mechanism, Rows((look, apart))), q)
    for number, relation in enumerate((look, apart)):
        rows, J = evaluate_relation(mechanism, relation, q)
        np.testing.assert_array_equal(found[0, number][0], band_violation(relation, rows))
        np.testing.assert_allclose(found[0, number][1], J, atol=1e-15)


# ---- closures -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make_one", [mk.gallery.four_bar, mk.gallery.stewart_platform, mk.gallery.delta_robot], ids=lambda m: m.__name__
)
def test_the_rows_of_closures_are_those_of_the_reference(make_one):
    mechanism = make_one()
    rng = np.random.default_rng(3)
    space = mechanism.space
    link = list(mechanism.links)[1]
    solver = mk.Solver(mechanism, mk.PositionGoal(link, mechanism.pose(link)[:3, 3] + 0.01))
    for _ in range(20):
        v = rng.uniform(-0.02, 0.02, space.nv)
        q, found = kernel_rows(solver, space.clamp(space.integrate(mechanism.q, v)))
        for number, closure in enumerate(mechanism.closures.values()):
            for i, relation in enumerate(closure_relations(mechanism, closure)):
                rows, J = evaluate_relation(mechanism, relation, q)
                mine, by_v = found[-1 - number, i]
                np.testing.assert_allclose(mine, rows, rtol=0, atol=1e-14)
                np.testing.assert_allclose(by_v, J, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_new_targets_are_the_same_as_a_new_solver(seed):
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(seed, 12)
    q, link = mechanism.random(rng), list(mechanism.links)[-1]
    other = random_frame(rng)
    goals = [mk.PoseGoal(link, random_frame(rng)), mk.LookAt(link, (1, 2, 3)), mk.AxisGoal(link, (0, 1, 1))]
    solver = mk.Solver(mechanism, goals)
    solver.solve([other, (3, 2, 1), (1, 0, 0)], q, max_iterations=0)
    fresh = mk.Solver(mechanism, [mk.PoseGoal(link, other), mk.LookAt(link, (3, 2, 1)), mk.AxisGoal(link, (1, 0, 0))])
    fresh.solve(q0=q, max_iterations=0)
    for mine, its in zip(solver._problem.subproblems, fresh._problem.subproblems, strict=True):
        for table in ("residual", "jacobian", "block_data", "blocks", "weight"):
            np.testing.assert_array_equal(mine.packed.tables[table], its.packed.tables[table])
