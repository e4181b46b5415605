"""The distance methods of cylinders against GJK (`gjk_epa.py`), which serves all convex shapes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from shape_table import BOX, CAPSULE, CYLINDER, HULL, Table, check_form

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from shape_pairs import random_pairs

BOTH_METHODS = """
import math, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from shape_pairs import random_pairs
from mechanik.kernels.distance.core_distance import separation_vector
from mechanik.kernels.distance.gjk_epa import gjk_distance
from mechanik.kernels.distance.collision_layout import BOX, CAPSULE, CYLINDER, HULL
from mechanik.kernels.distance.gjk_epa import shape_core, relative_pose

W = np.empty((4, 7))
for kind, other_kind in [(CAPSULE, CYLINDER), (CYLINDER, BOX), (CYLINDER, CYLINDER), (HULL, CYLINDER)]:
    for rotations, positions in [("free", "free"), ("near", "free"), ("grid", "grid"), ("free", "far")]:
        pairs = random_pairs(np.random.default_rng([3, kind, other_kind]), kind, other_kind, 20, rotations, positions)
        for i in range(20):
            j = 20 + i
            (a, _), (b, _) = shape_core(pairs.S[i]), shape_core(pairs.S[j])
            T = tuple(map(float, relative_pose(pairs.X[i], pairs.X[j])))
            by_cylinder = separation_vector(a, pairs.P, b, pairs.P, T, W, *T[9:])
            by_gjk = gjk_distance(a, pairs.P, b, pairs.P, T, W, math.inf, *T[9:])
            print(*by_cylinder, *by_gjk)
"""


def test_cylinder_methods_give_the_separation_of_gjk():
    """Runs in plain Python, since these internal functions would have to be compiled separately."""
    command = [sys.executable, "-c", BOTH_METHODS, str(Path(__file__).parents[3] / "benchmarks")]
    output = subprocess.run(command, env=plain_environment(), capture_output=True, text=True, check=True).stdout
    results = np.array([line.split() for line in output.splitlines()], float)
    v, size, expected, is_separated = results[:, :3], results[:, 6], results[:, 7:10], results[:, 13] > 0.0
    assert 150 < is_separated.sum() < len(results) - 30
    np.testing.assert_array_equal(size > 0.0, is_separated)
    d = np.linalg.norm(expected, axis=1)
    scale = np.maximum(1.0, d)
    assert (np.abs(np.linalg.norm(v, axis=1) - d) <= 1e-13 * scale)[is_separated].all()
    assert (np.linalg.norm(v - expected, axis=1) <= 2e-7 * scale)[is_separated].all()  # where GJK stops on a rim


def plain_environment():
    return {**os.environ, "MECHANIK_KERNELS": "plain"}


@pytest.mark.parametrize(
    ("positions", "rotations", "row", "depth"),
    [
        ("same", "grid", 1196, 0.394111503805926),
        ("same", "grid", 2675, 0.644098572533098),
        ("tiny", "free", 2162, 0.445235133509381),
    ],
)
def test_of_two_nearly_equal_exits_the_shorter_one_is_returned(positions, rotations, row, depth):
    """The exits are 0.02 rad apart and differ by 1e-5: a polytope that grew less returned the longer one."""
    pairs = random_pairs(np.random.default_rng([9, CYLINDER, HULL]), CYLINDER, HULL, 5000, rotations, positions)
    assert -pairs.gaps()[row, 0] == pytest.approx(depth, abs=1e-12)


@pytest.mark.parametrize("tilt", [0.0, 1e-17, 1e-13, 1e-9, 1e-5])
@pytest.mark.parametrize("other_kind", [CAPSULE, BOX, CYLINDER, HULL])
def test_shape_above_a_cylinder_has_the_distance_of_its_lowest_point(other_kind, tilt):
    """Upright or nearly so, at or beside the axis: flat on flat, where many point pairs have the same distance."""
    table = Table()
    corners = [(x, y, z) for x in (-0.2, 0.2) for y in (-0.2, 0.2) for z in (-0.5, 0.5)]
    size = {CAPSULE: (0.1, 0.4), BOX: (0.2, 0.2, 0.5), CYLINDER: (0.2, 0.5), HULL: ()}[other_kind]
    R = [[np.cos(tilt), 0.0, np.sin(tilt)], [0.0, 1.0, 0.0], [-np.sin(tilt), 0.0, np.cos(tilt)]]
    cylinder, points = table.add(CYLINDER, 0.3, 0.5), corners if other_kind == HULL else None
    pairs = [
        (cylinder, table.add(other_kind, *size, points=points, R=R, p=(x, 0.0, 1.0 + height)))
        for x in (0.0, 0.05) for height in (0.3, 1e-3, 0.0, -1e-3)
    ]  # fmt: skip
    results = table.distances(pairs)
    check_form(results)
    expected = np.array([-table.separating_translation(i, j, np.array([0.0, 0.0, 1.0])) for i, j in pairs])
    np.testing.assert_allclose(results[:, 0], expected, rtol=0.0, atol=2e-15)
