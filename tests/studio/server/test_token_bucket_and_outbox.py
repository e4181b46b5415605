"""What counts, and what waits to be sent."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from own_loop import run
from wire_client import PATIENCE

from mechanik.studio.messages.message_codec import STATE_HEADER_SIZE, StateHeader, write_state
from mechanik.studio.server.server_limits import TokenBucket
from mechanik.studio.server.session_host import Outbox


@given(st.lists(st.floats(0, 3), max_size=200), st.floats(0.5, 50), st.integers(1, 20))
def test_token_bucket_gives_its_capacity_and_then_its_rate(pauses, rate, capacity):
    now = 0.0
    bucket = TokenBucket(rate, capacity, lambda: now)
    given = 0
    for pause in pauses:
        now += pause
        given += bucket.take()
    assert given <= capacity + rate * now + 1e-9


def test_who_waits_as_long_as_the_bucket_says_gets_a_token():
    now = 0.0
    bucket = TokenBucket(4.0, 1, lambda: now)
    assert bucket.take()
    assert not bucket.take()
    now += bucket.seconds_until_token + 1e-9
    assert bucket.take()


def test_a_clock_that_runs_backwards_takes_no_tokens_away_and_brings_none():
    """Between cores that disagree by 6 ms a page was refused that had opened nothing."""
    now = 10.0
    bucket = TokenBucket(1000.0, 2, lambda: now)
    now -= 0.006
    assert bucket.take()
    assert bucket.take()
    assert not bucket.take()
    for _ in range(5):
        now = 19.994 - now  # back and forth
        assert not bucket.take()
        assert bucket.seconds_until_token > 0.0


def frame(layer: int, sequence: int) -> bytes:
    header = StateHeader(**{**dict.fromkeys(StateHeader._fields, 0.0), "kind": 1, "layer": layer, "sequence": sequence})
    return write_state(header, np.zeros((0, 7)), np.zeros(0), np.zeros((0, 9)), np.zeros((0, 2)))


def test_of_frames_the_newest_of_each_layer_is_sent_and_of_events_all_in_the_order_in_which_they_came():
    async def main():
        outbox = Outbox(max_events=10)
        for k in range(5):
            outbox.put_frame(frame(0, k))
            outbox.put_frame(frame(2, 10 * k))
            outbox.put_event(str(k))
        outbox.put_frame(frame(2, 50))
        outbox.allow_frames()
        assert await outbox.take_all() == ["0", "1", "2", "3", "4", frame(0, 4), frame(2, 50)], "it is greeted first"
        for k in range(5):
            outbox.put_frame(frame(0, k))
            outbox.put_frame(frame(2, 10 * k))
            outbox.put_event(str(k))
        outbox.put_frame(frame(2, 50))
        assert await outbox.take_all() == ["0", "1", "2", "3", frame(0, 4), "4", frame(2, 50)]

    run(main)


def test_reply_comes_after_the_state_that_includes_the_request():
    """Events went first once: a page that heard of an undo saw for a moment what stood there before it."""

    async def main():
        outbox = Outbox(max_events=10)
        outbox.allow_frames()
        await outbox.take_all()
        outbox.put_frame(frame(0, 1))
        outbox.put_event("done")
        assert await outbox.take_all() == [frame(0, 1), "done"]

    run(main)


def test_what_is_put_by_threads_wakes_who_waits_and_nothing_is_lost():
    async def main():
        outbox = Outbox(max_events=10_000)
        threads = [
            threading.Thread(target=lambda k=k: [outbox.put_event(f"{k} {n}") for n in range(500)]) for k in range(4)
        ]
        for thread in threads:
            thread.start()
        got: list[str] = []
        async with asyncio.timeout(PATIENCE):
            while len(got) < 2000:
                got += [item for item in await outbox.take_all() if isinstance(item, str)]
        for k in range(4):
            assert [item for item in got if item.startswith(f"{k} ")] == [f"{k} {n}" for n in range(500)]

    run(main)


def test_a_page_that_takes_nothing_costs_a_bounded_amount_of_memory():
    async def main():
        outbox = Outbox(max_events=3)
        for k in range(100):
            outbox.put_event(str(k))
            outbox.put_frame(frame(k, k))
        assert outbox.is_full
        outbox.allow_frames()
        items = await outbox.take_all()
        assert len(items) < 30
        assert len(items[-1]) == STATE_HEADER_SIZE * 8

    run(main)


def test_no_frame_goes_out_before_the_page_knows_what_it_is_about():
    async def main():
        outbox = Outbox(max_events=10)
        outbox.put_frame(frame(0, 1))
        outbox.put_event("model")
        assert await outbox.take_all() == ["model"]
        outbox.put_frame(frame(0, 2))
        outbox.allow_frames()
        assert await outbox.take_all() == [frame(0, 2)]

    run(main)
