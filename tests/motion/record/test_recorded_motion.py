"""A motion holds what it was given, and says what is wrong with it; JSON, NPZ and CSV hold all of it."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_motions import NAMES, recorded

import mechanik as mk
from mechanik.errors import FormatError, MechanikError, NotFinite, ShapeError
from mechanik.formats import describe
from mechanik.motion.record import Motion, from_json, from_npz, to_csv, to_json, to_npz


def assert_equal(one: Motion, other: Motion) -> None:
    assert np.array_equal(one.times, other.times)
    assert np.array_equal(one.q, other.q)
    assert one.name == other.name
    assert describe(one.mechanism) == describe(other.mechanism)


@pytest.mark.parametrize("name", NAMES)
def test_json_and_npz_read_back_to_an_equal_motion(name: str):
    motion = recorded(name)
    assert_equal(from_json(to_json(motion)), motion)
    assert_equal(from_npz(to_npz(motion)), motion)


def test_json_is_what_other_programs_read_as_json():
    motion = recorded("panda")
    found = json.loads(to_json(motion))
    assert found["freedoms"] == list(motion.mechanism.space.q_names)
    assert found["q"] == motion.q.tolist()


def test_npz_holds_the_poses_of_all_links():
    motion = recorded("humanoid")
    with np.load(io.BytesIO(to_npz(motion))) as file:
        assert file["links"].tolist() == list(motion.mechanism.links)
        assert np.array_equal(file["poses"], motion.poses())


@pytest.mark.parametrize("name", NAMES)
def test_csv_has_a_column_for_each_number_of_q_and_for_each_follower(name: str):
    motion = recorded(name)
    rows = list(csv.reader(io.StringIO(to_csv(motion).decode())))
    table = {label: np.array(column, dtype=float) for label, *column in zip(*rows, strict=True)}
    assert np.array_equal(table["time"], motion.times)
    for k, label in enumerate(motion.mechanism.space.q_names):
        assert np.array_equal(table[label], motion.q[:, k])
    for k, q in enumerate(motion.q):
        for joint, value in motion.mechanism.values(q).items():
            if joint in table:
                assert table[joint][k] == pytest.approx(value, abs=1e-12)
    followers = [one for one in motion.mechanism.joints.values() if one.couplings]
    assert len(table) == 1 + motion.mechanism.nq + sum(len(one.couplings) for one in followers)


def test_the_gripper_and_the_panda_have_followers_or_the_test_above_is_empty():
    assert any(one.couplings for name in NAMES for one in mk.gallery.make(name).joints.values())


def test_a_motion_is_of_the_mechanism_as_it_was():
    arm = mk.gallery.make("planar_2r")
    motion = Motion(arm, [0.0, 1.0], np.zeros((2, 2)))
    before = motion.poses()
    next(iter(arm.links.values())).children[0].position = (9.0, 0.0, 0.0)
    assert np.array_equal(motion.poses(), before)


@given(st.floats(-1.0, 2.0))
def test_between_frames_it_goes_the_straight_way_and_ends_are_held(share: float):
    arm = mk.gallery.make("planar_2r")
    q = np.array([[0.0, 0.2], [1.0, -0.4]])
    motion = Motion(arm, [3.0, 5.0], q)
    inside = min(max(share, 0.0), 1.0)
    assert motion.at(3.0 + 2.0 * share) == pytest.approx((1 - inside) * q[0] + inside * q[1], abs=1e-12)


def test_frames_made_even_lie_on_the_way():
    motion = recorded("panda", is_even=False)
    even = motion.resample_evenly()
    assert np.ptp(np.diff(even.times)) < 1e-12
    assert np.array_equal(even.q, motion.at(even.times))
    assert even.resample_evenly() is even


@pytest.mark.parametrize(
    ("times", "q", "error"),
    [
        ([], np.zeros((0, 2)), ShapeError),
        ([0.0, 0.0], np.zeros((2, 2)), ShapeError),
        ([1.0, 0.0], np.zeros((2, 2)), ShapeError),
        ([0.0, np.nan], np.zeros((2, 2)), NotFinite),
        ([0.0, 1.0], np.zeros((3, 2)), ShapeError),
        ([0.0, 1.0], np.zeros((2, 3)), ShapeError),
        ([0.0, 1.0], np.full((2, 2), np.inf), NotFinite),
        ("soon", np.zeros((2, 2)), ShapeError),
    ],
)
def test_what_is_no_motion_is_refused(times, q, error):
    with pytest.raises(error):
        Motion(mk.gallery.make("planar_2r"), times, q)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"q": [[0, 0], [0]]}, r"q\[1\]"),
        ({"q": [[0, 0], [0, "x"]]}, r"q\[1\]\[1\]"),
        ({"times": [0, None]}, r"times\[1\]"),
        ({"times": [1, 0]}, "not after"),
        ({"freedoms": ["a", "b"]}, "freedoms"),
        ({"mechanism": 3}, "mechanism"),
        ({"mechanism": {}}, "missing"),
        ({"mechanik_motion": 99}, "mechanik_motion"),
        ({"more": 1}, "more"),
    ],
)
def test_json_that_is_no_motion_is_refused_with_the_place(change, place):
    good = json.loads(to_json(Motion(mk.gallery.make("planar_2r"), [0.0, 1.0], np.zeros((2, 2)))))
    with pytest.raises(MechanikError, match=place):
        from_json(good | change)


@given(st.binary(max_size=200))
def test_bytes_that_are_no_motion_are_refused_and_nothing_else(data: bytes):
    with pytest.raises(FormatError):
        from_npz(data)
    with pytest.raises(FormatError):
        from_json(data)


def test_an_npz_file_with_objects_in_it_is_refused():
    file = io.BytesIO()
    np.savez(file, times=np.array([{}], dtype=object), q=0, names=0, mechanism=0, name=0)
    with pytest.raises(FormatError):
        from_npz(file.getvalue())


def test_an_npz_file_that_was_cut_short_is_refused():
    data = to_npz(recorded("panda"))
    for size in (10, len(data) // 2, len(data) - 1):
        with pytest.raises(FormatError):
            from_npz(data[:size])
