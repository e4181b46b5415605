"""Declared tables: disjoint, complete, and the same in plain Python and in compiled code."""

from __future__ import annotations

import importlib
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanik.kernels.distance.collision_layout import Shape, open_shapes
from mechanik.kernels.planning.search_state import GrowthState, open_growth
from mechanik.kernels.problem_layout import Block, ProblemTables
from mechanik.kernels.tables import MatrixView, RecordArray, Size, Tables, matrix_at, vector_at
from mechanik.kernels.tracking.tracking_layout import TrackingTables

DECLARATIONS = ProblemTables, TrackingTables
SIZES = {size.name: st.integers(0, 5) for tables in DECLARATIONS for size in tables.declared_sizes}


def allocate(declaration: type[Tables], sizes: dict[str, int]) -> Tables:
    return declaration.allocate(**{size.name: sizes[size.name] for size in declaration.declared_sizes})


def all_views(tables):
    """Arrays that share memory with each table, by name."""
    views = {table.name: getattr(tables, table.name) for table in tables.declared_tables}
    return {
        name: view.rows if isinstance(view, RecordArray) else getattr(view, "numbers", view)
        for name, view in views.items()
    }


@pytest.mark.parametrize("declaration", DECLARATIONS)
@given(sizes=st.fixed_dictionaries(SIZES))
@settings(max_examples=50)
def test_tables_fill_their_arrays_without_overlap(declaration, sizes):
    tables = allocate(declaration, sizes)
    views = all_views(tables)
    for k, view in enumerate(views.values()):
        view[...] = k
    for k, view in enumerate(views.values()):
        np.testing.assert_array_equal(view, k)
    header = len(declaration.declared_sizes) + len(declaration.declared_tables)
    int_views = [view for view in views.values() if view.dtype == np.int64]
    assert header + sum(view.size for view in int_views) == len(tables.ints)
    assert sum(view.size for view in views.values() if view.dtype == np.float64) + 1 == len(tables.floats)
    assert all(getattr(tables, size.name) == sizes[size.name] for size in declaration.declared_sizes)


@pytest.mark.parametrize("declaration", DECLARATIONS)
@given(sizes=st.fixed_dictionaries(SIZES))
@settings(max_examples=10)
def test_copies_and_pickled_tables_are_equal_and_independent(declaration, sizes):
    tables = allocate(declaration, sizes)
    tables.lower[:] = 1.0
    for copy in (tables.copy(), pickle.loads(pickle.dumps(tables))):
        np.testing.assert_array_equal(copy.ints, tables.ints)
        np.testing.assert_array_equal(copy.floats, tables.floats)
        copy.lower[:] = 2.0
        assert copy.floats is not tables.floats
        assert np.shares_memory(copy.lower, copy.floats) or not len(copy.lower)
        np.testing.assert_array_equal(tables.lower, 1.0)


def test_missing_sizes_are_named():
    with pytest.raises(TypeError, match="the sizes of ProblemTables are node_count, column_count"):
        ProblemTables.allocate(node_count=1)


def test_fields_of_a_record_are_consecutive_and_aliases_share_their_numbers():
    numbers = np.arange(2 * Block.size)
    block = RecordArray(Block, numbers)[1]
    assert (block.kind, block.row_mask, block.mass_count) == (Block.size, Block.size + 1, Block.size + 14)
    assert block.in_world is True
    block.first_coefficient = 7
    assert block.first_mass == numbers[Block.size + Block.first_mass.offset] == 7
    assert "first_mass=7" in repr(block)


def test_matrices_of_memory_views_are_the_same_as_those_of_arrays():
    numbers = np.arange(20.0)
    array, view = matrix_at(numbers, 2, 3, 4), matrix_at(memoryview(numbers), 2, 3, 4)
    assert isinstance(view, MatrixView)
    assert array.shape == view.shape == (3, 4)
    view[1, 2] = -1.0
    assert [[view[i, k] for k in range(4)] for i in range(3)] == array.tolist() == [list(view[i]) for i in range(3)]
    assert list(vector_at(memoryview(numbers), 3, 2)) == vector_at(numbers, 3, 2).tolist()


def change_tables(open_problem, ints, floats, matrix):
    """A kernel that reads and writes sizes, arrays, matrices, records and fields of all types."""
    problem = open_problem(ints, floats)
    state, total = problem.state, 0.0
    for b in range(problem.block_count):
        block, data = problem.blocks[b], problem.block_data[b]
        block.row_count += b
        block.has_bands = b == 1
        for k in range(9):
            data.axes_c[k] = data.frame_b[k] + block.row_count
        total += data.axes_c[8]
    for r in range(problem.row_count):
        problem.residual[1, r] = total + r
        problem.residual[0][r] = problem.residual[1][r] * 2.0
    state.stage = problem.stage_count
    state.cost, state.is_feasible, state.relative_damping = total, total > 3.0, state.stage
    rows = matrix(problem.dense_rows, 1, 2, 3)
    rows[1, 2] = 5.0 if state.is_feasible else 6.0
    rows[0, 1] += rows.shape[1]
    return state.relative_damping + state.stage


def test_compiled_code_reads_and_writes_the_same_numbers_as_plain_python():
    numba = pytest.importorskip("numba")
    numba_kernels = importlib.import_module("mechanik.tiers.numba_kernels")
    package = numba_kernels.compiled_package()
    compiled = importlib.import_module(f"{package}.problem_layout")
    compiled_matrix_at = importlib.import_module(f"{package}.tables").matrix_at
    open_compiled, open_plain = compiled.open_problem, ProblemTables

    def plain(ints, floats):
        return change_tables(open_plain, ints, floats, matrix_at)

    change = numba.njit(change_tables)

    @numba.njit
    def run(ints, floats):
        return change(open_compiled, ints, floats, compiled_matrix_at)

    sizes = {size.name: 3 for size in ProblemTables.declared_sizes}
    tables = ProblemTables.allocate(**sizes)
    tables.block_data.rows[:] = np.random.default_rng(0).normal(size=tables.block_data.rows.shape)
    tables.blocks.rows[:] = np.arange(tables.blocks.rows.size).reshape(tables.blocks.rows.shape)
    expected, views, actual = tables.copy(), tables.copy(), tables.copy()
    result = plain(expected.ints, expected.floats)
    assert plain(views.ints.data, views.floats.data) == result == run(actual.ints, actual.floats)
    for written in (views, actual):
        np.testing.assert_array_equal(written.ints, expected.ints)
        np.testing.assert_array_equal(written.floats, expected.floats)
    assert not np.array_equal(expected.floats, tables.floats)


def change_rows(open_shapes, open_growth, shape_rows, state_ints):
    """A kernel that opens rows of floats and a record of integers."""
    shapes, state = open_shapes(shape_rows), open_growth(state_ints)
    first, second = shapes[0], shapes[1]
    for k in range(3):
        second.centre[k] = first.sizes[k] * 2.0
    second.kind = first.kind + 1
    state.node_count[1] += second.kind
    state.random_count += 2
    second.values[second.values.shape[0] - 1] = 9.0
    return second.radius + second.body


def test_rows_of_an_array_are_the_same_records_in_compiled_code():
    numba = pytest.importorskip("numba")
    package = importlib.import_module("mechanik.tiers.numba_kernels").compiled_package()
    compiled_shapes = importlib.import_module(f"{package}.distance.collision_layout").open_shapes
    compiled_growth = importlib.import_module(f"{package}.planning.search_state").open_growth
    change = numba.njit(change_rows)

    @numba.njit
    def run(shape_rows, state_ints):
        return change(compiled_shapes, compiled_growth, shape_rows, state_ints)

    rows, ints = np.random.default_rng(0).integers(1, 9, (2, Shape.size)).astype(float), np.arange(GrowthState.size)
    expected_rows, expected_ints = rows.copy(), ints.copy()
    assert change_rows(open_shapes, open_growth, expected_rows, expected_ints) == run(rows, ints)
    np.testing.assert_array_equal(rows, expected_rows)
    np.testing.assert_array_equal(ints, expected_ints)
    assert RecordArray(Shape, rows.reshape(-1))[1].body == 9


def test_allocated_records_are_zeros_with_names():
    shapes, state = Shape.allocate_rows(2), GrowthState.allocate(np.int64)
    shapes[1].sizes[:], state.node_count[1] = (1.0, 2.0, 3.0), 4
    assert shapes.column(Shape.sizes).tolist() == [[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]]
    assert state.values.tolist() == [0, 4, 0, 0, 0, 0, 0, 0]


def test_sizes_can_be_written():
    tables = ProblemTables.allocate(**{size.name: 2 for size in ProblemTables.declared_sizes})
    tables.stage_count = 1
    assert tables.stage_count == tables.ints[ProblemTables.stage_count.index] == 1
    assert isinstance(ProblemTables.stage_count, Size)
