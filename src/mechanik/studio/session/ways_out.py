"""Who hears what comes of a stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mechanik.live import LiveState
from mechanik.studio.session.lookout import Sight
from mechanik.studio.session.setup import Setup


class WaysOut(NamedTuple):
    """
    Attributes:
        show: takes packed frames, from any thread.
        heard: takes each state, in the solver's thread.
        look: takes what is seen at each moment, from any thread; see `Lookout`.
        announce: tells pages of the goals of a setup, before the first frame that has them; returns their order.
    """

    show: Callable[[bytes], None]
    heard: Callable[[LiveState], None]
    look: Callable[[Sight], None]
    announce: Callable[[Setup], int]
