"""Ways to cylinders by themselves, beside the walk of `gjk.py`, which serves all convex shapes."""

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

BOTH_WAYS = """
import math, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from shape_pairs import random_pairs
from mechanik.kernels.distance.core_distance import separation_vector
from mechanik.kernels.distance.gjk_epa import gjk_distance
from mechanik.kernels.distance.collision_layout import BOX, CAPSULE, CYLINDER, HULL
from mechanik.kernels.distance.gjk_epa import shape_core, relative_to

W = np.empty((4, 7))
for kind, other in [(CAPSULE, CYLINDER), (CYLINDER, BOX), (CYLINDER, CYLINDER), (HULL, CYLINDER)]:
    for turns, places in [("free", "free"), ("near", "free"), ("grid", "grid"), ("free", "far")]:
        pairs = random_pairs(np.random.default_rng([3, kind, other]), kind, other, 20, turns, places)
        for i in range(20):
            j = 20 + i
            (a, _), (b, _) = shape_core(pairs.S, i), shape_core(pairs.S, j)
            T = tuple(map(float, relative_to(pairs.X[i], pairs.X[j])))
            one = separation_vector(a, pairs.P, b, pairs.P, T, W, *T[9:])
            two = gjk_distance(a, pairs.P, b, pairs.P, T, W, math.inf, *T[9:])
            print(*one, *two)
"""


def test_ways_to_cylinders_are_those_of_the_walk():
    """In Python, not compiled: the kernels that are would have to be compiled once more for it."""
    asked = [sys.executable, "-c", BOTH_WAYS, str(Path(__file__).parents[3] / "benchmarks")]
    out = subprocess.run(asked, env=without_compiling(), capture_output=True, text=True, check=True).stdout
    found = np.array([line.split() for line in out.splitlines()], float)
    v, size, expected, is_apart = found[:, :3], found[:, 6], found[:, 7:10], found[:, 13] > 0.0
    assert 150 < is_apart.sum() < len(found) - 30
    np.testing.assert_array_equal(size > 0.0, is_apart)
    d = np.linalg.norm(expected, axis=1)
    scale = np.maximum(1.0, d)
    assert (np.abs(np.linalg.norm(v, axis=1) - d) <= 1e-13 * scale)[is_apart].all()
    assert (np.linalg.norm(v - expected, axis=1) <= 2e-7 * scale)[is_apart].all()  # where the walk stops on a rim


def without_compiling():
    return {**os.environ, "MECHANIK_KERNELS": "plain"}


@pytest.mark.parametrize(
    ("places", "turns", "row", "depth"),
    [
        ("same", "grid", 1196, 0.394111503805926),
        ("same", "grid", 2675, 0.644098572533098),
        ("tiny", "free", 2162, 0.445235133509381),
    ],
)
def test_of_two_ways_out_that_are_nearly_one_the_shorter_counts(places, turns, row, depth):
    """0.02 rad from each other, and a hundred-thousandth apart: a polytope that grew less took the longer one."""
    pairs = random_pairs(np.random.default_rng([9, CYLINDER, HULL]), CYLINDER, HULL, 5000, turns, places)
    assert -pairs.gaps()[row, 0] == pytest.approx(depth, abs=1e-12)


@pytest.mark.parametrize("tilt", [0.0, 1e-17, 1e-13, 1e-9, 1e-5])
@pytest.mark.parametrize("other", [CAPSULE, BOX, CYLINDER, HULL])
def test_what_stands_on_a_cylinder_is_as_far_as_its_lowest_point(other, tilt):
    """Upright or nearly so, beside its middle: flat on flat, where many ways are as short."""
    table = Table()
    corners = [(x, y, z) for x in (-0.2, 0.2) for y in (-0.2, 0.2) for z in (-0.5, 0.5)]
    size = {CAPSULE: (0.1, 0.4), BOX: (0.2, 0.2, 0.5), CYLINDER: (0.2, 0.5), HULL: ()}[other]
    R = [[np.cos(tilt), 0.0, np.sin(tilt)], [0.0, 1.0, 0.0], [-np.sin(tilt), 0.0, np.cos(tilt)]]
    below = table.add(CYLINDER, 0.3, 0.5)
    pairs = [
        (below, table.add(other, *size, points=corners if other == HULL else None, R=R, p=(x, 0.0, 1.0 + gap)))
        for x in (0.0, 0.05) for gap in (0.3, 1e-3, 0.0, -1e-3)
    ]  # fmt: skip
    found = table.gaps(pairs)
    check_form(found)
    expected = np.array([-table.needed_shift(i, j, np.array([0.0, 0.0, 1.0])) for i, j in pairs])
    np.testing.assert_allclose(found[:, 0], expected, rtol=0.0, atol=2e-15)
