"""Recorded motions: validation, interpolation, and the JSON, NPZ and CSV formats."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_motions import NAMES, random_motion

import mechanik as mk
from mechanik.errors import FormatError, MechanikError, NotFinite, ShapeError
from mechanik.formats import describe
from mechanik.motion.record import Motion, from_json, from_npz, to_csv, to_json, to_npz


def assert_equal(motion: Motion, expected: Motion) -> None:
    assert np.array_equal(motion.times, expected.times)
    assert np.array_equal(motion.q, expected.q)
    assert motion.name == expected.name
    assert describe(motion.mechanism) == describe(expected.mechanism)


@pytest.mark.parametrize("name", NAMES)
def test_json_and_npz_read_back_to_an_equal_motion(name: str):
    motion = random_motion(name)
    assert_equal(from_json(to_json(motion)), motion)
    assert_equal(from_npz(to_npz(motion)), motion)


def test_json_is_valid_json():
    motion = random_motion("panda")
    content = json.loads(to_json(motion))
    assert content["q_names"] == list(motion.mechanism.space.q_names)
    assert content["q"] == motion.q.tolist()


def test_npz_contains_the_poses_of_all_links():
    motion = random_motion("humanoid")
    with np.load(io.BytesIO(to_npz(motion))) as file:
        assert file["links"].tolist() == list(motion.mechanism.links)
        assert np.array_equal(file["poses"], motion.poses())


@pytest.mark.parametrize("name", NAMES)
def test_csv_has_a_column_for_each_entry_of_q_and_each_mimic_joint(name: str):
    motion = random_motion(name)
    rows = list(csv.reader(io.StringIO(to_csv(motion).decode())))
    table = {label: np.array(column, dtype=float) for label, *column in zip(*rows, strict=True)}
    assert np.array_equal(table["time"], motion.times)
    for k, label in enumerate(motion.mechanism.space.q_names):
        assert np.array_equal(table[label], motion.q[:, k])
    for k, q in enumerate(motion.q):
        for joint, value in motion.mechanism.values(q).items():
            if joint in table:
                assert table[joint][k] == pytest.approx(value, abs=1e-12)
    mimics = [joint for joint in motion.mechanism.joints.values() if joint.couplings]
    assert len(table) == 1 + motion.mechanism.nq + sum(len(joint.couplings) for joint in mimics)


def test_some_test_mechanisms_have_mimic_joints():
    assert any(joint.couplings for name in NAMES for joint in mk.gallery.make(name).joints.values())


def test_motion_copies_its_mechanism():
    arm = mk.gallery.make("planar_2r")
    motion = Motion(arm, [0.0, 1.0], np.zeros((2, 2)))
    before = motion.poses()
    next(iter(arm.links.values())).children[0].position = (9.0, 0.0, 0.0)
    assert np.array_equal(motion.poses(), before)


@given(st.floats(-1.0, 2.0))
def test_motion_is_linear_between_frames_and_constant_beyond_its_ends(share: float):
    arm = mk.gallery.make("planar_2r")
    q = np.array([[0.0, 0.2], [1.0, -0.4]])
    motion = Motion(arm, [3.0, 5.0], q)
    inside = min(max(share, 0.0), 1.0)
    assert motion.at(3.0 + 2.0 * share) == pytest.approx((1 - inside) * q[0] + inside * q[1], abs=1e-12)


def test_evenly_resampled_frames_lie_on_the_motion():
    motion = random_motion("panda", is_even=False)
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
def test_invalid_times_and_configurations_raise(times, q, error):
    with pytest.raises(error):
        Motion(mk.gallery.make("planar_2r"), times, q)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"q": [[0, 0], [0]]}, r"q\[1\]"),
        ({"q": [[0, 0], [0, "x"]]}, r"q\[1\]\[1\]"),
        ({"times": [0, None]}, r"times\[1\]"),
        ({"times": [1, 0]}, "not after"),
        ({"q_names": ["a", "b"]}, "q_names"),
        ({"mechanism": 3}, "mechanism"),
        ({"mechanism": {}}, "missing"),
        ({"mechanik_motion": 99}, "mechanik_motion"),
        ({"more": 1}, "more"),
    ],
)
def test_invalid_json_raises_with_its_location(change, place):
    good = json.loads(to_json(Motion(mk.gallery.make("planar_2r"), [0.0, 1.0], np.zeros((2, 2)))))
    with pytest.raises(MechanikError, match=place):
        from_json(good | change)


@given(st.binary(max_size=200))
def test_random_bytes_raise_FormatError(data: bytes):
    with pytest.raises(FormatError):
        from_npz(data)
    with pytest.raises(FormatError):
        from_json(data)


def test_npz_with_objects_raises():
    file = io.BytesIO()
    np.savez(file, times=np.array([{}], dtype=object), q=0, names=0, mechanism=0, name=0)
    with pytest.raises(FormatError):
        from_npz(file.getvalue())


def test_truncated_npz_raises():
    data = to_npz(random_motion("panda"))
    for size in (10, len(data) // 2, len(data) - 1):
        with pytest.raises(FormatError):
            from_npz(data[:size])


def test_a_damaged_npz_file_raises_a_format_error():
    """Once damage inside a compressed array raised an error of zlib."""
    data = to_npz(random_motion("ur5"))
    with pytest.raises(FormatError):
        from_npz(data[:65] + bytes([data[65] ^ 0xFF]) + data[66:])
