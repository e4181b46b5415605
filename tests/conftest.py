"""Hypothesis: no deadlines, since machines are noisy; the same examples each time where nobody looks on."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("mechanik", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("mechanik")
