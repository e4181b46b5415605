"""DH tables against the product of their elementary matrices, golden data, and invalid tables."""

import json
import math
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanik.errors import FormatError
from mechanik.formats.arm_tables import from_dh

GOLDEN = json.loads((Path(__file__).parents[1] / "data/seed_arms/seed_fk_golden.json").read_text())
SEED = GOLDEN["dh_modified_order_d_a_alpha_theta"]
ORDER = ("d", "a", "alpha", "theta")

lengths = st.floats(-2, 2)
angles = st.floats(-7, 7)
rows = st.tuples(lengths, lengths, angles, angles, st.sampled_from("RP"), st.floats(-3, 3))
tables = st.lists(rows, min_size=1, max_size=8)


def Rx(t):
    return np.array([[1, 0, 0, 0], [0, math.cos(t), -math.sin(t), 0], [0, math.sin(t), math.cos(t), 0], [0, 0, 0, 1]])


def Rz(t):
    return np.array([[math.cos(t), -math.sin(t), 0, 0], [math.sin(t), math.cos(t), 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


def T(x, z):
    X = np.eye(4)
    X[0, 3], X[2, 3] = x, z
    return X


def product(convention, table):
    """All frames of a table of (d, a, alpha, theta, kind, q), multiplied out."""
    X, frames = np.eye(4), [np.eye(4)]
    for d, a, alpha, theta, kind, q in table:
        d, theta = (d, theta + q) if kind == "R" else (d + q, theta)
        if convention == "classic":
            X = X @ Rz(theta) @ T(0, d) @ T(a, 0) @ Rx(alpha)
        else:
            X = X @ Rx(alpha) @ T(a, 0) @ Rz(theta) @ T(0, d)
        frames.append(X)
    return np.array(frames)


def arm_of(table, convention, **options):
    settings = {"columns": "d a alpha theta", "degrees": False, "kinds": "".join(row[4] for row in table)} | options
    return from_dh([row[:4] for row in table], convention=convention, **settings)


@pytest.mark.parametrize("convention", ["classic", "modified"])
@settings(deadline=None)  # the first example compiles
@given(table=tables)
def test_each_frame_is_the_product_of_the_four_elementary_transforms(convention, table):
    arm = arm_of(table, convention)
    X = arm.poses([row[5] for row in table])
    expected = product(convention, table)
    np.testing.assert_allclose(X[:-1], expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(X[-1], expected[-1], rtol=0, atol=1e-12)


@settings(deadline=None)  # the first example compiles
@given(table=tables, order=st.sampled_from(list(permutations(range(4)))))
def test_order_of_the_columns_does_not_matter(table, order):
    q = [row[5] for row in table]
    straight = arm_of(table, "modified")
    shuffled = from_dh(
        [[row[k] for k in order] for row in table],
        convention="modified",
        columns=[ORDER[k] for k in order],
        degrees=False,
        kinds=[row[4] for row in table],
    )
    np.testing.assert_array_equal(straight.poses(q), shuffled.poses(q))


@settings(deadline=None)  # the first example compiles
@given(table=tables)
def test_tables_in_degrees_and_radians_give_the_same_arm(table):
    q = [row[5] for row in table]
    degrees = [(d, a, math.degrees(alpha), math.degrees(theta), kind, q) for d, a, alpha, theta, kind, q in table]
    np.testing.assert_allclose(
        arm_of(table, "classic").poses(q), arm_of(degrees, "classic", degrees=True).poses(q), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("convention", ["classic", "modified"])
@settings(deadline=None)  # the first example compiles
@given(table=tables)
def test_start_values_give_the_pose_of_offsets_at_zero(convention, table):
    start = arm_of(table, convention, theta="start")
    offset = arm_of(table, convention)
    moves = [row[3] if row[4] == "R" else row[0] for row in table]
    np.testing.assert_allclose(start.q, moves, rtol=0, atol=0)
    np.testing.assert_allclose(start.poses(), offset.poses(np.zeros(len(table))), rtol=0, atol=1e-12)


@pytest.mark.parametrize("convention", ["classic", "modified"])
def test_graph_and_kernel_give_the_same_poses(convention):
    rng = np.random.default_rng(3)
    table = [(*rng.uniform(-1, 1, 4), kind, q) for kind, q in zip("RPRRPR", rng.uniform(-1, 1, 6), strict=True)]
    arm = arm_of(table, convention, base=(0.1, 0.2, 0.3), tool=Rx(0.4) @ T(0.5, 0.6))
    arm.q = [row[5] for row in table]
    for k, link in enumerate(arm.links.values()):
        np.testing.assert_allclose(link.world_matrix, arm.poses()[k], rtol=0, atol=1e-13)


@pytest.mark.parametrize("case", SEED["cases"])
def test_dh_arm_has_the_poses_of_the_golden_data(case):
    arm = from_dh(SEED["table"], convention="modified", columns="d a alpha theta", degrees=True, theta="start")
    q = np.radians(case["theta_deg"])
    np.testing.assert_allclose(arm.pose("tool", q), case["T_tip"], rtol=0, atol=1e-12)
    for k, X in enumerate(case["T_all"]):
        np.testing.assert_allclose(arm.pose(f"link{k + 1}", q), X, rtol=0, atol=1e-12)


def test_dh_arm_starts_in_the_pose_of_its_table():
    arm = from_dh(SEED["table"], convention="modified", columns="d a alpha theta", degrees=True, theta="start")
    np.testing.assert_allclose(np.degrees(arm.q), [0, 125, -35, 0, 90, 0], rtol=0, atol=1e-12)


def test_standard_and_modified_conventions_give_different_arms():
    arms = [
        from_dh([[0.3, 0.2, 90, 0]] * 2, convention=c, columns="d a alpha theta", degrees=True)
        for c in ("classic", "modified")
    ]
    assert not np.allclose(arms[0].pose("tool", [0.1, 0.2]), arms[1].pose("tool", [0.1, 0.2]))


def test_base_and_tool_are_multiplied_before_and_after_the_table():
    base, tool = Rz(0.3) @ T(1, 2), Rx(0.5) @ T(0.1, 0.2)
    table = [(0.1, 0.2, 0.3, 0.4, "R", 0.5), (0.2, 0.1, -0.3, 0.7, "P", 0.4)]
    arm = arm_of(table, "classic", base=base, tool=tool)
    X = base @ product("classic", table)[-1]
    np.testing.assert_allclose(arm.pose("link2", [0.5, 0.4]), X, rtol=0, atol=1e-12)
    np.testing.assert_allclose(arm.pose("tool", [0.5, 0.4]), X @ tool, rtol=0, atol=1e-12)


def test_limits_and_values_are_degrees_for_revolute_and_metres_for_prismatic_rows():
    arm = from_dh(
        [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]],
        convention="classic",
        columns="theta, d, a, alpha",
        degrees=True,
        kinds="RPR",
        limits=[(-90, 180), (0.1, 0.4), None],
        values=[45, 0.2, 10],
    )
    np.testing.assert_allclose(arm.space.lower, [-math.pi / 2, 0.1, -math.inf])
    np.testing.assert_allclose(arm.space.upper, [math.pi, 0.4, math.inf])
    np.testing.assert_allclose(arm.q, [math.pi / 4, 0.2, math.radians(10)])


def test_default_value_zero_is_clamped_to_the_limits():
    arm = from_dh([[0, 0, 0, 0]], convention="classic", columns="d a alpha theta", degrees=False, limits=[(-3.0, -0.1)])
    assert arm.q.tolist() == [-0.1]


def test_links_and_joints_get_the_given_names_or_numbers():
    options = {"convention": "classic", "columns": "d a alpha theta", "degrees": False}
    plain = from_dh([[0, 0, 0, 0]] * 2, **options)
    assert list(plain.links) == ["link0", "link1", "link2", "tool"]
    assert list(plain.joints) == ["joint1", "joint2", "tool_joint"]
    named = from_dh([[0, 0, 0, 0]], joints=["hip"], links=["body", "leg", "foot"], name="hopper", **options)
    assert list(named.links) == ["body", "leg", "foot"]
    assert list(named.joints) == ["hip", "foot_joint"]
    assert named.name == "hopper"


GOOD = {"rows": [[0, 1, 0, 0], [0, 1, 0, 0]], "convention": "classic", "columns": "d a alpha theta", "degrees": True}
BAD = {
    "no such convention": ({"convention": "standard"}, "'standard'.*'classic' or 'modified'"),
    "convention none": ({"convention": None}, "'classic' or 'modified'"),
    "degrees a word": ({"degrees": "yes"}, "degrees='yes'"),
    "theta a wrong word": ({"theta": "zero"}, "'offset' or 'start'"),
    "unknown column": ({"columns": "d a alhpa theta"}, "'alhpa'.*did you mean 'alpha'"),
    "column twice": ({"columns": "d a a theta"}, "'a' is named 2 times"),
    "column missing": ({"columns": "d a alpha"}, "has no theta"),
    "not rows": ({"rows": 7}, "list of rows"),
    "numbers for rows": ({"rows": [1, 2, 3]}, "list of rows"),
    "no rows": ({"rows": []}, "no rows"),
    "short row": ({"rows": [[0, 1, 0, 0], [0, 1, 0]]}, "row 2 has 3 numbers"),
    "long row": ({"rows": [[0, 1, 0, 0, 5]]}, "row 1 has 5 numbers"),
    "nan": ({"rows": [[0, 1, 0, 0], [0, 1, math.nan, 0]]}, "row 2, alpha is nan"),
    "infinite": ({"rows": [[0, math.inf, 0, 0]]}, "row 1, a is inf"),
    "a word for a number": ({"rows": [[0, 1, "pi", 0]]}, "row 1, alpha: 'pi' is not a number"),
    "none for a number": ({"rows": [[0, 1, 0, None]]}, "row 1, theta: None is not a number"),
    "wrong letter": ({"kinds": "RX"}, "row 2: 'X' is not a kind of joint"),
    "too many kinds": ({"kinds": "RRR"}, "names 3 joints.*2 rows"),
    "one letter for two rows": ({"kinds": "R"}, "names 1 joint, .*2 rows"),
    "kinds of a wrong type": ({"kinds": ["R", 1]}, "row 2: 1 is not a kind"),
    "too few limits": ({"limits": [(0, 1)]}, "limits: the number of entries is 1.*2 rows"),
    "limits not a list": ({"limits": 3.0}, "one entry for each row"),
    "limits not a pair": ({"limits": [(0, 1), (0, 1, 2)]}, "row 2: limits must be"),
    "limits a number": ({"limits": [1.0, None]}, "row 1: limits must be"),
    "limits inverted": ({"limits": [None, (2, 1)]}, "row 2: the lower limit, 2, is above the upper limit, 1"),
    "limits nan": ({"limits": [None, (math.nan, 1)]}, "row 2, limits is nan"),
    "too many values": ({"values": [1, 2, 3]}, "values: the number of entries is 3"),
    "value nan": ({"values": [1, math.nan]}, "row 2, values is nan"),
    "value outside": (
        {"values": [0, 50], "limits": [None, (-10, 10)]},
        "row 2: the initial value 0.872665 rad is outside the limits -0.174533 to 0.174533 rad",
    ),
    "start outside": (
        {"theta": "start", "rows": [[0, 0, 0, 90]], "limits": [(-10, 10)]},
        "row 1: the initial value 1.5708 rad is outside the limits -0.174533 to 0.174533 rad",
    ),
    "base of a wrong shape": ({"base": np.eye(3)}, "base"),
    "tool that mirrors": ({"tool": np.diag([1, 1, -1, 1])}, "tool"),
    "too few joint names": ({"joints": ["a"]}, "joints: 1 name instead of 2"),
    "joint name twice": ({"joints": ["a", "a"]}, "'a' occurs 2 times"),
    "empty joint name": ({"joints": ["a", ""]}, "'' is not a name"),
    "too few link names": ({"links": ["a", "b"]}, "links: 2 names instead of 4"),
}


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD)
def test_invalid_table_raises_an_error_that_names_the_row(change, message):
    with pytest.raises(FormatError, match=message):
        from_dh(**(GOOD | change))


@pytest.mark.parametrize("left_out", ["convention", "columns", "degrees"])
def test_convention_and_units_have_no_default(left_out):
    with pytest.raises(TypeError, match=left_out):
        from_dh(**{key: value for key, value in GOOD.items() if key != left_out})
