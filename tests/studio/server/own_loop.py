"""Coroutines to their end, whatever else this process does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor


def run(main: Callable[[], Coroutine[None, None, None]]) -> None:
    """In a thread of its own: a browser that was driven before has left its loop running in the main one."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(main())).result()
