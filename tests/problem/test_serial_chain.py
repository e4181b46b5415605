"""The canonical form of serial chains has their kinematics, and the kernel's residuals equal the relation's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from random_mechanisms import random_mechanism, random_pose, seeds

import mechanik as mk
from mechanik.kernels import chain_layout as at
from mechanik.objectives.relation import Relation, RelationKind, evaluate_relation
from mechanik.problem.kinematic_tree import build_kinematic_tree
from mechanik.problem.serial_chain import ChainWeights, find_serial_chain
from mechanik.solver.search.chain_search import ChainSearch
from mechanik.spatial import Pose, inverse, make_pose, rotation
from mechanik.tiers import kernel_module

ROWS = st.sets(st.integers(0, 5), min_size=1).map(lambda rows: tuple(sorted(rows)))


def chain_of(mechanism, relation, active=None):
    tree = build_kinematic_tree(mechanism)
    active = np.ones(mechanism.nv, dtype=bool) if active is None else active
    bounds = mechanism.space.lower, mechanism.space.upper
    return find_serial_chain(tree, [relation], active, bounds, ChainWeights(1e-6, 1e-6, max(tree.reach / 3, 1e-3)))


def random_chain(seed, joints, rows=(0, 1, 2, 3, 4, 5), own_axes=False):
    """A random tree, a relation between two of its links, and the serial chain between them (None if there is none)."""
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(seed, joints)
    links = list(mechanism.links)
    b = links[int(rng.integers(len(links)))]
    a = None if own_axes or rng.random() < 0.5 else links[int(rng.integers(len(links)))]
    axes = rotation.exp(rng.normal(size=3)) if own_axes else None
    X_a, X_b = (Pose(**random_pose(rng)).matrix for _ in range(2))
    relation = Relation(RelationKind.POSE, rows, a, b, X_a, X_b, world_axes=axes)
    return rng, mechanism, relation, chain_of(mechanism, relation)


def forward_kinematics_of(chain, q):
    """X_a_b of a chain at q by the formula, in plain NumPy, in metres."""
    model, m = chain.model, int(chain.model[at.N_JOINTS])
    nodes = model[at.MODEL_HEAD : at.MODEL_HEAD + at.JOINT_FLOATS * m].reshape(m, at.JOINT_FLOATS)
    X = make_pose(
        model[at.BASE_ROTATION : at.BASE_ROTATION + 9].reshape(3, 3), model[at.BASE_POSITION : at.BASE_POSITION + 3]
    )
    scale, columns = model[at.LENGTH_SCALE], model[at.MODEL_HEAD + at.JOINT_FLOATS * m :].reshape(-1, at.COLUMN_FLOATS)
    for row in nodes:
        j = int(row[at.JOINT_COLUMN])
        x = row[at.JOINT_RATIO] * q[chain.columns[j]] / columns[j, at.Q_UNIT]
        angle = row[at.JOINT_OFFSET] + (x if row[at.SLIDE_SCALE] == 0 else 0.0)
        alpha = np.arctan2(row[at.SIN_ALPHA], row[at.COS_ALPHA])
        translation = row[at.LINK_TRANSLATION : at.LINK_TRANSLATION + 3] / scale + [
            0,
            0,
            row[at.SLIDE_SCALE] / scale * x,
        ]
        X = X @ make_pose(rotation.about_z(angle), np.zeros(3)) @ make_pose(rotation.about_x(alpha), translation)
    return X @ make_pose(model[at.TOOL_ROTATION : at.TOOL_ROTATION + 9].reshape(3, 3), np.zeros(3))


@given(seeds, st.integers(1, 12))
def test_canonical_form_has_the_forward_kinematics_of_the_chain(seed, joints):
    rng, mechanism, relation, chain = random_chain(seed, joints)
    assume(chain is not None)
    q = mechanism.random(rng)
    X_a = np.eye(4) if relation.a is None else mechanism.pose(relation.a, q)
    expected = inverse(X_a) @ mechanism.pose(relation.b, q) @ relation.X_b
    np.testing.assert_allclose(forward_kinematics_of(chain, q), expected, atol=1e-12 * (1 + np.abs(expected).max()))


def kernel_residual_and_jacobian(mechanism, chain, target, q):
    """Residual (6,) and Jacobian (6, n) of the chain kernel at q, by its first iteration."""
    work = ChainSearch(chain, q).allocate_workspace()
    # the second evaluation ends the attempt and leaves both as they are
    work[at.MAX_ITERATIONS], work[at.POSITION_TOLERANCE2], work[at.ROTATION_TOLERANCE2] = 2, 0, 0
    kernel_module("chain_kernel").solve_target(
        work, np.ascontiguousarray(target), q, at.SINGLE_ATTEMPT, 0.0, np.empty_like(q)
    )
    work = work[int(work[at.MODEL_SIZE] + work[at.TABLE_SIZE]) :]
    slots = work[at.LANE_HEAD :][: at.COLUMN_SLOTS * chain.n].reshape(chain.n, at.COLUMN_SLOTS)
    return work[at.RESIDUAL : at.RESIDUAL + 6].copy(), slots[:, at.JACOBIAN : at.JACOBIAN + 6].T.copy()


@given(seeds, st.integers(2, 12), ROWS, st.booleans())
@example(0, 6, (0, 1, 2), False)
@settings(max_examples=200)
def test_kernel_residual_and_jacobian_equal_the_relation(seed, joints, rows, own_axes):
    rng, mechanism, relation, chain = random_chain(seed, joints, rows, own_axes)
    assume(chain is not None)
    q = mechanism.random(rng)
    e, J = kernel_residual_and_jacobian(mechanism, chain, relation.X_a, q)
    expected = evaluate_relation(mechanism, relation, q)[0]
    unit = np.array([chain.model[at.LENGTH_SCALE] if row < 3 else 1.0 for row in rows])
    full_rotation = Relation(
        RelationKind.POSE, (3, 4, 5), relation.a, relation.b, relation.X_a, relation.X_b, relation.world_axes
    )
    assume(
        np.linalg.norm(evaluate_relation(mechanism, full_rotation, q)[0]) < 3.0
    )  # beyond, a rotation vector may flip
    # residuals point to the target; full triples are not along the axes, which does not change their length
    if chain.model[at.IS_PARTIAL]:
        np.testing.assert_allclose(-e[list(rows)] / unit, expected, atol=1e-9)
        assert not np.delete(e, rows).any()
    else:
        is_position, is_rotation = [r < 3 for r in rows], [r >= 3 for r in rows]
        for mask, residual in ((is_position, e[:3]), (is_rotation, e[3:])):
            size = np.linalg.norm(residual) / (unit[0] if mask is is_position else 1.0)
            assert size == pytest.approx(np.linalg.norm(expected[np.array(mask)]), abs=1e-9)
    columns = chain.model[-at.COLUMN_FLOATS * chain.n :].reshape(chain.n, at.COLUMN_FLOATS)
    J = J / columns[:, at.Q_UNIT]
    for j, column in enumerate(chain.columns):
        h = 1e-6
        step = np.zeros(mechanism.nq)
        step[column] = h
        before, after = (
            kernel_residual_and_jacobian(mechanism, chain, relation.X_a, q + sign * step)[0] for sign in (-1, 1)
        )
        if chain.model[at.IS_PARTIAL]:
            np.testing.assert_allclose(J[:, j], (before - after) / (2 * h), atol=3e-6 * (1 + np.abs(J).max()))
        else:  # the rotation is no rotation vector, but both have the same slope of the sum of squares
            slope = (before @ before - after @ after) / (2 * h)
            assert 2 * (J[:, j] @ e) == pytest.approx(slope, abs=1e-5 * (1 + np.abs(J).max()) * (1 + e @ e))


def test_inactive_dofs_are_locked_columns():
    builder = mk.Builder("arm")
    builder.revolute("a", "base", "one", limits=(-1, 1))
    builder.revolute("b", "one", "two", at=(0.3, 0, 0), axis="y", limits=(0.4, 0.6))
    builder.prismatic("c", "two", "three", at=(0.2, 0, 0), axis="x", limits=(0, 0.5))
    arm = builder.build()
    relation = Relation(RelationKind.POSE, (0, 1, 2), None, "three")
    chain = chain_of(arm, relation, active=np.array([True, True, False]))
    assert chain.columns.tolist() == [0, 1, 2]
    assert chain.locked_columns.tolist() == [False, False, True]


def test_chain_with_a_spherical_joint_is_not_for_the_chain_kernel():
    builder = mk.Builder("arm")
    builder.revolute("a", "base", "one")
    builder.spherical("b", "one", "two", at=(0.3, 0, 0))
    assert chain_of(builder.build(), Relation(RelationKind.POSE, (0, 1, 2), None, "two")) is None


def test_bands_and_fine_tolerances_are_not_for_the_chain_kernel():
    arm = mk.gallery.ur5()
    tree, bounds = build_kinematic_tree(arm), (arm.space.lower, arm.space.upper)
    pose = Relation(RelationKind.POSE, (0, 1, 2), None, "tool0")
    band = Relation(RelationKind.POSE, (0,), None, "tool0", lower=-np.ones(1), upper=np.ones(1))
    active = [True] * arm.nv
    assert find_serial_chain(tree, [pose], active, bounds, ChainWeights(1e-6, 1e-6, 0.5)) is not None
    assert find_serial_chain(tree, [pose], active, bounds, ChainWeights(1e-13, 1e-6, 0.5)) is None
    assert find_serial_chain(tree, [band], active, bounds, ChainWeights(1e-6, 1e-6, 0.5)) is None
