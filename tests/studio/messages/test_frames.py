"""Frames: nothing is rounded, nothing wrong gets in."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mechanik.errors import InvalidOperation
from mechanik.studio.messages import message_codec as frames
from mechanik.studio.messages.message_codec import (
    DragUpdate,
    StateHeader,
    read_drag_update,
    read_state,
    write_drag_update,
    write_state,
)

NUMBERS = st.floats(-1e6, 1e6)


@given(st.integers(0, 5), st.integers(0, 9), st.integers(0, 4), st.integers(0, 3), st.data())
def test_a_state_is_read_back_bit_by_bit(links, values, goals, closures, data):
    parts = [
        data.draw(arrays(float, shape, elements=NUMBERS)) for shape in ((links, 7), values, (goals, 9), (closures, 2))
    ]
    header = StateHeader(frames.STATE, 3, 2, 1, 9, 0, 0, 1, 4, 1e-5, 60, 1e-9, links, values, goals, closures)
    frame = read_state(write_state(header, *parts))
    assert frame.header == header
    for part, read in zip(parts, (frame.links, frame.values, frame.goals, frame.closures), strict=True):
        np.testing.assert_array_equal(part, read)


def test_a_state_that_is_cut_is_none():
    header = StateHeader(frames.STATE, *[0.0] * 11, 1, 0, 0, 0)
    data = write_state(header, np.ones((1, 7)), np.empty(0), np.empty((0, 9)), np.empty((0, 2)))
    assert read_state(data).links.shape == (1, 7)
    with pytest.raises(InvalidOperation):
        read_state(data + bytes(8))


@given(st.integers(0, 2**40), st.integers(0, 1000), st.lists(NUMBERS, min_size=3, max_size=3))
def test_a_hand_is_read_back(tag, number, position):
    hand = DragUpdate(frames.DRAG_GOAL, tag, number, (*position, 1.0, 0.0, 0.0, 0.0))
    assert read_drag_update(write_drag_update(hand)) == hand


NAN, INF = float("nan"), float("inf")
GOOD = [2, 1, 1, 0, 0, 0, 1, 0, 0, 0]


def changed(place: int, value: float) -> bytes:
    numbers = list(GOOD)
    numbers[place] = value
    return struct.pack("<10d", *numbers)


BAD = {
    "nothing": b"",
    "too short": struct.pack("<9d", *GOOD[:9]),
    "too long": struct.pack("<11d", *GOOD, 0),
    "an unknown kind": changed(0, 7),
    "a kind that is NaN": changed(0, NAN),
    "a tag that is NaN": changed(1, NAN),
    "a negative tag": changed(1, -1),
    "half a tag": changed(1, 0.5),
    "an infinite number": changed(2, INF),
    "a NaN place": changed(3, NAN),
    "an infinite place": changed(4, -INF),
    "1e308": changed(5, 1e308),
    "no turn": changed(6, 0),
    "a huge turn": changed(6, 1e5),
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_a_hand_that_is_wrong_is_refused(data):
    assert read_drag_update(struct.pack("<10d", *GOOD)).number == 1
    with pytest.raises(InvalidOperation):
        read_drag_update(data)


@given(st.binary(min_size=80, max_size=80))
def test_any_bytes_are_a_hand_with_finite_numbers_or_refused(data):
    try:
        hand = read_drag_update(data)
    except InvalidOperation:
        return
    assert np.isfinite(hand.values).all()
