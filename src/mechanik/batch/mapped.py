"""Arrays in files: letting go of pages that have been read, so that memory stays bounded whatever a file's size."""

from __future__ import annotations

import mmap
from typing import Any, cast

import numpy as np


def release(array: object) -> None:
    """Give the pages of a memory-mapped array back; they are read again from the file where they are needed.

    Does nothing to an array in memory, nor to one whose pages may hold changes that its file does not (mode "c").
    """
    mode = ""
    part: Any = array
    while part is not None:
        if isinstance(part, np.memmap):
            mode = cast("Any", part).mode
        if isinstance(part, mmap.mmap):
            if mode in ("r", "r+", "w+") and hasattr(mmap, "MADV_DONTNEED"):
                part.madvise(mmap.MADV_DONTNEED)
            return
        part = part.obj if isinstance(part, memoryview) else getattr(cast("object", part), "base", None)
