"""Kernel residuals and Jacobians against the plain NumPy reference, for every kind of relation and any mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_mechanisms import mechanisms, random_mechanism, random_pose, random_turn, seeds
from solver_internals import packed_problem, solve_in_workspace

import mechanik as mk
from mechanik.kernels.tables import matrix_at
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
KINDS_WITH_WORLD_AXES = (RelationKind.POSE, RelationKind.AXIS, RelationKind.COSINE)
CURRENT_BUFFER = 5  # index in the state of the buffer of the accepted x


@dataclass(frozen=True, slots=True, eq=False)
class RelationList(mk.Objective):
    """An objective with given relations."""

    wanted: tuple[Relation, ...]

    def relations(self, mechanism):
        return self.wanted


# ---- residuals of the kernel --------------------------------------------------------------------


def kernel_residuals(solver, q):
    """The accepted q, and for each relation its unweighted residual (m,) and Jacobian (m, nv)."""
    solution, packed_of_each = solve_in_workspace(solver, q0=q, max_iterations=0, perturbation=0.0, restarts=0)
    residuals, nv = {}, solver.mechanism.nv
    for subproblem, packed in zip(packed_problem(solver).subproblems, packed_of_each, strict=True):
        tables = packed.tables
        # a solve that does not reach its goals ends with rows in m and rad
        is_si = subproblem.si_rows is not None and not packed.report.success
        scaling = subproblem.si_rows if is_si else subproblem.rows
        buffer = tables.state.current_buffer
        for block, owner, relation_index in zip(
            tables.blocks, subproblem.owners, subproblem.relation_indices, strict=True
        ):
            height, width, rows = block.row_count, block.column_count, slice(block.first_row, None)
            weight = scaling.weights[rows][:height]
            J = matrix_at(tables.jacobian[buffer], block.first_jacobian, height, width)
            by_v = np.zeros((height, nv))
            for u, column in enumerate(tables.block_columns[block.first_column :][:width]):
                if 0 <= packed.columns[column] < nv:
                    by_v[:, packed.columns[column]] = J[:, u] / tables.scale[column] / weight
            residuals[owner, relation_index] = tables.residual[buffer, rows][:height] / weight, by_v
    return solution.q, residuals


def compare(mechanism, relations, q, **options):
    """Assert that kernel residuals and Jacobians equal the reference to rounding."""
    solver = mk.Solver(mechanism, RelationList(tuple(relations)), **options)
    q_accepted, residuals = kernel_residuals(solver, q)
    np.testing.assert_allclose(q_accepted, q, rtol=0, atol=1e-14)
    size = packed_problem(solver).length_unit
    for k, relation in enumerate(relations):
        expected, J = evaluate_relation(mechanism, relation, q_accepted)
        residual, by_v = residuals[0, k]
        # lengths are differences of numbers as large as the mechanism, and so are the levers of rotations
        unit = np.where(length_row_mask(mechanism, relation, len(expected)), max(3 * size, 1.0), 1.0)
        np.testing.assert_allclose(residual / unit, band_violation(relation, expected) / unit, rtol=1e-12, atol=1e-12)
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
    """Whether the reference has full precision at q: no rotation by pi, no coincident points."""
    if relation.kind in (RelationKind.POSE, RelationKind.AXIS):
        full = replace(relation, rows=tuple(range(SIZES[relation.kind])))
        return np.linalg.norm(evaluate_relation(mechanism, full, q)[0][3:]) < math.pi - 0.05
    if relation.kind in (RelationKind.LOOK_AT, RelationKind.DISTANCE):
        distance = replace(relation, kind=RelationKind.DISTANCE, rows=(0,))
        is_near = evaluate_relation(mechanism, distance, q)[0][0] < 0.05
        angle = np.linalg.norm(
            evaluate_relation(mechanism, replace(relation, kind=RelationKind.LOOK_AT, rows=(0, 1)), q)[0]
        )
        return not is_near and angle < math.pi - 0.05
    return True


# ---- the kinds ----------------------------------------------------------------------------------


@pytest.mark.parametrize("world_axes", [False, True], ids=["own axes", "world axes"])
@pytest.mark.parametrize("kind", SIZES, ids=lambda kind: kind.name)
@given(mechanisms, seeds)
def test_residuals_of_frames_equal_the_reference(kind, world_axes, mechanism, seed):
    if world_axes and kind not in KINDS_WITH_WORLD_AXES:
        pytest.skip("only poses and axes can use world axes")
    rng = np.random.default_rng(seed)
    q = mechanism.random(rng)
    relations = [random_relation(rng, mechanism, kind, world_axes=world_axes) for _ in range(3)]
    relations = [relation for relation in relations if is_well_posed(mechanism, relation, q)]
    assume(relations)
    compare(mechanism, relations, q)


@given(mechanisms, seeds)
def test_residuals_of_all_kinds_together_equal_the_reference(mechanism, seed):
    rng = np.random.default_rng(seed)
    q = mechanism.random(rng)
    relations = [random_relation(rng, mechanism, kind) for kind in SIZES for _ in range(2)]
    relations += [random_relation(rng, mechanism, kind, world_axes=True) for kind in KINDS_WITH_WORLD_AXES]
    relations += [random_mass(rng, mechanism), *random_values(rng, mechanism)]
    relations = [relation for relation in relations if is_well_posed(mechanism, relation, q)]
    rng.shuffle(relations)
    compare(mechanism, relations, q)


def random_mass(rng, mechanism):
    links = list(mechanism.links)
    indices = rng.choice(len(links), size=rng.integers(1, len(links) + 1), replace=False)
    masses = tuple((links[k], float(rng.uniform(0.1, 3)), rng.uniform(-1, 1, 3)) for k in indices)
    a = [None, *links][rng.integers(len(links) + 1)]
    rows = tuple(row for row in range(3) if rng.random() < 0.7) or (1,)
    return Relation(RelationKind.CENTRE_OF_MASS, rows, a, None, random_frame(rng), masses=masses)


def random_values(rng, mechanism):
    space, relations = mechanism.space, []
    for name in (space.q_names[k] for k in space.scalars_q):
        relations.append(Relation(RelationKind.JOINT_VALUE, (0,), dof_name=name, target=rng.uniform(-2, 2, 1)))
    for joint, slot in mechanism.kinematics.joint_indices.items():
        if slot.quaternion_q is not None:
            target = random_turn(rng)
            relations.append(
                Relation(RelationKind.SPHERICAL_JOINT, (0, 1, 2), dof_name=mechanism.name_of(joint), target=target)
            )
    return relations


@given(mechanisms, seeds)
def test_centre_of_mass_equals_the_reference(mechanism, seed):
    rng = np.random.default_rng(seed)
    compare(mechanism, [random_mass(rng, mechanism) for _ in range(3)], mechanism.random(rng))


@given(mechanisms, seeds)
def test_joint_values_and_spherical_rotations_equal_the_reference(mechanism, seed):
    rng = np.random.default_rng(seed)
    relations, q = random_values(rng, mechanism), mechanism.random(rng)
    rotations = [
        evaluate_relation(mechanism, relation, q)[0]
        for relation in relations
        if relation.kind is RelationKind.SPHERICAL_JOINT
    ]
    assume(relations)
    assume(all(np.linalg.norm(rotation_vector) < math.pi - 0.05 for rotation_vector in rotations))
    compare(mechanism, relations, q)


def random_terrain(rng):
    shape = rng.integers(2, 7, 2)
    return Terrain(rng.uniform(-1, 1, shape), float(rng.uniform(0.3, 1.0)), rng.uniform(-2, 0, 2))


@pytest.mark.parametrize("world_axes", [False, True], ids=["own axes", "world axes"])
@settings(max_examples=40)
@given(mechanisms, seeds)
def test_heights_above_a_terrain_equal_the_reference(world_axes, mechanism, seed):
    rng = np.random.default_rng(seed)
    terrains = random_terrain(rng), random_terrain(rng)
    relations = []
    for k in range(4):  # two of them share a terrain
        relation = random_relation(rng, mechanism, RelationKind.DISTANCE)
        C = quaternion.to_matrix(random_turn(rng)) if world_axes else None
        relations.append(replace(relation, kind=RelationKind.HEIGHT, terrain=terrains[k % 2], world_axes=C))
    compare(mechanism, relations, mechanism.random(rng))


def random_polynomials(rng, mechanism):
    space = mechanism.space
    names = [space.q_names[k] for k in space.scalars_q]
    rng.shuffle(names)
    return tuple((name, rng.uniform(-1, 1, rng.integers(1, 6))) for name in names[:4])


@settings(max_examples=40)
@given(mechanisms, seeds)
def test_joint_constraints_equal_the_reference(mechanism, seed):
    rng = np.random.default_rng(seed)
    q = mechanism.clamp(np.clip(mechanism.random(rng), -2, 2))
    assume(len(mechanism.space.scalars_q) > 0)
    assume(np.abs(q).max() <= 2)  # limits may be elsewhere, where fifth powers are large
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
def test_band_residual_is_the_violation_of_the_band(mechanism, seed):
    rng = np.random.default_rng(seed)
    q, relations = mechanism.random(rng), []
    for kind in SIZES:
        relation = random_relation(rng, mechanism, kind)
        if is_well_posed(mechanism, relation, q):
            lower = rng.uniform(-1, 0.5, len(relation.rows))
            upper = lower + rng.uniform(0, 1, len(relation.rows))
            sides = [(lower, upper), (lower, None), (None, upper), (lower, lower)][rng.integers(4)]
            relations.append(replace(relation, lower=sides[0], upper=sides[1]))
    assume(relations)
    compare(mechanism, relations, q)


@given(mechanisms, seeds, st.floats(0.2, 5), st.floats(0.2, 5))
def test_weights_change_only_the_scale_of_residuals(mechanism, seed, position_weight, rotation_weight):
    rng = np.random.default_rng(seed)
    q = mechanism.random(rng)
    relation = random_relation(rng, mechanism, RelationKind.POSE)
    assume(is_well_posed(mechanism, relation, q))
    names = [mechanism.space.q_names[k] for k in mechanism.space.scalars_q]
    weights = {name: float(rng.uniform(0.1, 10)) for name in names}
    compare(mechanism, [relation], q, weights=weights, position_weight=position_weight, rotation_weight=rotation_weight)


@given(mechanisms, seeds)
def test_locked_dofs_have_zero_columns(mechanism, seed):
    rng = np.random.default_rng(seed)
    q = mechanism.random(rng)
    relation = random_relation(rng, mechanism, RelationKind.POSE)
    assume(is_well_posed(mechanism, relation, q))
    locked = [name for name, joint in mechanism.joints.items() if rng.random() < 0.5 and not joint.couplings]
    solver = mk.Solver(mechanism, RelationList((relation,)), lock=locked)
    _, residuals = kernel_residuals(solver, q)
    _, J = evaluate_relation(mechanism, relation, q)
    is_active = np.ones(mechanism.nv, dtype=bool)
    for joint, slot in mechanism.kinematics.joint_indices.items():
        if mechanism.name_of(joint) in locked:
            is_active[list(slot.v.values())] = False
            if slot.quaternion_v is not None:
                is_active[slot.quaternion_v : slot.quaternion_v + 3] = False
    np.testing.assert_allclose(residuals[0, 0][1], np.where(is_active, J, 0.0), rtol=1e-11, atol=1e-11)


@given(mechanisms, seeds)
def test_python_residual_is_evaluated_at_the_solver_configuration(mechanism, seed):
    rng = np.random.default_rng(seed)
    A, b = rng.uniform(-1, 1, (2, mechanism.nq)), rng.uniform(-1, 1, 2)
    objective = mk.Custom(lambda mechanism, q: A @ np.sin(q) + b, residual_size=2)
    q = mechanism.random(rng)
    solver = mk.Solver(mechanism, objective)
    _, residuals = kernel_residuals(solver, q)
    expected, J = objective.residual(mechanism, q), objective.jacobian(mechanism, q)
    np.testing.assert_allclose(residuals[0, 0][0], expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(residuals[0, 0][1], J, atol=1e-9)  # by finite differences


# ---- corner cases -------------------------------------------------------------------------------


def spherical_body():
    builder = mk.Builder()
    builder.spherical("ball", "world", "body")
    return builder.build()


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-6, 1e-4, 0.9e-4, 1e-3, 1.0, 3.0, 3.1, math.pi - 0.01, math.pi - 1e-3])
@pytest.mark.parametrize(
    "axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.6, 0.0, 0.8), (-0.48, 0.64, 0.6), (0.1, -0.7, -0.7)]
)
def test_rotations_from_zero_to_nearly_pi_equal_the_reference(angle, axis):
    mechanism = spherical_body()
    v = angle * np.array(axis) / np.linalg.norm(axis)
    q = quaternion.exp(v)
    pose = Relation(RelationKind.POSE, (0, 1, 2, 3, 4, 5), None, "body")
    spherical = Relation(RelationKind.SPHERICAL_JOINT, (0, 1, 2), dof_name="ball", target=np.array([1.0, 0, 0, 0]))
    solver = mk.Solver(mechanism, RelationList((pose, spherical)))
    _, residuals = kernel_residuals(solver, q)
    # near pi the angle comes from a cosine that hardly changes
    tolerance = 1e-12 if angle < 3 else 1e-12 / (math.pi - angle)
    for k, rows in ((0, slice(3, 6)), (1, slice(0, 3))):
        residual, by_v = residuals[0, k]
        np.testing.assert_allclose(residual[rows], v, rtol=0, atol=tolerance)
        _, J = evaluate_relation(mechanism, (pose, spherical)[k], q)
        np.testing.assert_allclose(by_v[rows], J[rows], rtol=0, atol=10 * tolerance)


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.6, 0.0, 0.8), (-0.48, 0.64, 0.6)])
@pytest.mark.parametrize("deficit", [0.0, 1e-12, 1e-9, 1e-7, 1e-5])
def test_residuals_near_pi_are_finite_and_have_the_right_length(axis, deficit):
    mechanism = spherical_body()
    v = (math.pi - deficit) * np.array(axis) / np.linalg.norm(axis)
    pose = Relation(RelationKind.POSE, (3, 4, 5), None, "body")
    axis_relation = Relation(RelationKind.AXIS, (3, 4), None, "body")
    solver = mk.Solver(mechanism, RelationList((pose, axis_relation)))
    _, residuals = kernel_residuals(solver, quaternion.exp(v))
    residual, by_v = residuals[0, 0]
    assert np.isfinite(by_v).all()
    assert abs(np.linalg.norm(residual) - (math.pi - deficit)) < 1e-7
    np.testing.assert_allclose(rotation.exp(residual), rotation.exp(v), atol=1e-7)
    axis_residual, by_v = residuals[0, 1]
    assert np.isfinite(by_v).all()
    cosine = rotation.exp(v)[2, 2]
    assert math.isclose(math.cos(np.linalg.norm(axis_residual)), cosine, abs_tol=1e-12)


@pytest.mark.parametrize("angle", [0.0, 1e-10, 1e-6, 0.9e-4, 1.1e-4, 1e-2, 1.5, 3.0, 3.14])
@pytest.mark.parametrize("side", [(1, 0), (0, 1), (0.6, -0.8)])
def test_axis_residuals_from_zero_to_nearly_pi_equal_the_reference(angle, side):
    mechanism = spherical_body()
    q = quaternion.exp(angle * np.array([*side, 0.0]))
    axis_relation = Relation(RelationKind.AXIS, (3, 4), None, "body")
    look_at = Relation(RelationKind.LOOK_AT, (0, 1), "body", None, X_b=make_pose(np.eye(3), np.array([0.0, 0.0, 2.0])))
    solver = mk.Solver(mechanism, RelationList((axis_relation, look_at)))
    _, residuals = kernel_residuals(solver, q)
    for k, relation in enumerate((axis_relation, look_at)):
        expected, J = evaluate_relation(mechanism, relation, q)
        tolerance = 1e-12 / max(math.sin(angle), 1e-2) if angle > 3 else 1e-12
        np.testing.assert_allclose(residuals[0, k][0], expected, rtol=0, atol=tolerance)
        np.testing.assert_allclose(residuals[0, k][1], J, rtol=0, atol=1e3 * tolerance if angle > 3 else 1e-12)


def test_look_at_and_distance_of_coincident_points_equal_the_reference():
    builder = mk.Builder()
    builder.free("float", "world", "body")
    mechanism = builder.build()
    look_at = Relation(RelationKind.LOOK_AT, (0, 1), "body", None)
    distance = Relation(RelationKind.DISTANCE, (0,), "body", None, lower=np.array([0.5]), upper=np.array([np.inf]))
    q = mechanism.neutral()
    _, residuals = kernel_residuals(mk.Solver(mechanism, RelationList((look_at, distance))), q)
    for k, relation in enumerate((look_at, distance)):
        expected, J = evaluate_relation(mechanism, relation, q)
        np.testing.assert_array_equal(residuals[0, k][0], band_violation(relation, expected))
        np.testing.assert_allclose(residuals[0, k][1], J, atol=1e-15)


# ---- closures -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make_mechanism",
    [mk.gallery.four_bar, mk.gallery.stewart_platform, mk.gallery.delta_robot],
    ids=lambda m: m.__name__,
)
def test_closure_residuals_equal_the_reference(make_mechanism):
    mechanism = make_mechanism()
    rng = np.random.default_rng(3)
    space = mechanism.space
    link = list(mechanism.links)[1]
    solver = mk.Solver(mechanism, mk.PositionGoal(link, mechanism.pose(link)[:3, 3] + 0.01))
    for _ in range(20):
        v = rng.uniform(-0.02, 0.02, space.nv)
        q, residuals = kernel_residuals(solver, space.clamp(space.integrate(mechanism.q, v)))
        for k, closure in enumerate(mechanism.closures.values()):
            for i, relation in enumerate(closure_relations(mechanism, closure)):
                expected, J = evaluate_relation(mechanism, relation, q)
                residual, by_v = residuals[-1 - k, i]
                np.testing.assert_allclose(residual, expected, rtol=0, atol=1e-14)
                np.testing.assert_allclose(by_v, J, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_new_targets_give_the_tables_of_a_new_solver(seed):
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(seed, 12)
    q, link = mechanism.random(rng), list(mechanism.links)[-1]
    new_pose = random_frame(rng)
    goals = [mk.PoseGoal(link, random_frame(rng)), mk.LookAt(link, (1, 2, 3)), mk.AxisGoal(link, (0, 1, 1))]
    solver = mk.Solver(mechanism, goals)
    options = {"max_iterations": 0, "restarts": 0}
    _, rewritten = solve_in_workspace(solver, [new_pose, (3, 2, 1), (1, 0, 0)], q, **options)
    new_solver = mk.Solver(
        mechanism, [mk.PoseGoal(link, new_pose), mk.LookAt(link, (3, 2, 1)), mk.AxisGoal(link, (1, 0, 0))]
    )
    _, new = solve_in_workspace(new_solver, q0=q, **options)
    for packed, new_packed in zip(rewritten, new, strict=True):
        for name in ("residual", "jacobian", "weight"):
            np.testing.assert_array_equal(getattr(packed.tables, name), getattr(new_packed.tables, name))
        for name in ("block_data", "blocks"):
            np.testing.assert_array_equal(getattr(packed.tables, name).rows, getattr(new_packed.tables, name).rows)
