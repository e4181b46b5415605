"""A PNG as heights: the brightness of each pixel, of 8 or 16 bits. Bytes may come from anybody."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from mechanik.errors import FormatError, Refused
from mechanik.spatial.array import Array

HEAD = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}
"""Numbers of a pixel by the type of colours: grey, colours, grey and colours with opacity."""
MOST_PIXELS = 2049
"""Along each edge; unpacking takes some seconds for that many."""


def read_png(data: bytes) -> Array:
    """
    Returns:
        (rows, columns), 0 for black to 1 for white, the first row on top; of colours the red.
    Raises:
        FormatError: it is no PNG, is broken, or packed in a way that is not read.
        Refused: it is too large.
    """
    parts = list(_parts(data))
    if not parts or parts[0][0] != b"IHDR" or len(parts[0][1]) != 13:
        raise FormatError("is no PNG")
    width, height, bits, colours, _, _, interlaced = struct.unpack(">IIBBBBB", parts[0][1])
    if colours not in CHANNELS or bits not in (8, 16) or interlaced:
        raise FormatError("is a PNG of a kind that is not read; write it in grey of 8 or 16 bits, not interlaced")
    if not (1 <= width <= MOST_PIXELS and 1 <= height <= MOST_PIXELS):
        raise Refused(f"has {width} x {height} pixels; at most {MOST_PIXELS} x {MOST_PIXELS} are read")
    pixel = CHANNELS[colours] * bits // 8
    row = 1 + width * pixel
    try:
        packed = b"".join(content for name, content in parts if name == b"IDAT")
        raw = zlib.decompressobj().decompress(packed, height * row)
    except zlib.error:
        raw = b""
    if len(raw) < height * row:
        raise FormatError("is a PNG that is cut off or broken")
    rows = np.frombuffer(raw, np.uint8).reshape(height, row)
    pixels = _unfiltered(rows, pixel).reshape(height, width, pixel)
    first = pixels[..., 0].astype(np.float64)
    return first / 255 if bits == 8 else (256 * first + pixels[..., 1]) / 65535


def _parts(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Name and content of each, until the end or what is cut off."""
    at = len(HEAD)
    while data.startswith(HEAD) and at + 12 <= len(data):
        size, name = struct.unpack(">I4s", data[at : at + 8])
        yield name, data[at + 8 : at + 8 + size]
        at += 12 + size


def _unfiltered(rows: npt.NDArray[np.uint8], pixel: int) -> npt.NDArray[np.uint8]:
    """What each row says of itself: a filter, and bytes as differences from those to the left and above.

    Args:
        rows: (height, 1 + width * pixel).
        pixel: bytes.
    """
    out = np.zeros((len(rows), rows.shape[1] - 1), np.uint8)
    above = np.zeros(rows.shape[1] - 1, np.uint8)
    for k, (kind, *_) in enumerate(rows[:, :1].tolist()):
        given = rows[k, 1:]
        if kind in (0, 2):
            out[k] = given + above if kind == 2 else given
        elif kind == 1:
            steps = given.reshape(-1, pixel)
            out[k] = np.cumsum(steps, axis=0, dtype=np.uint8).reshape(-1)
        elif kind in (3, 4):
            out[k] = np.frombuffer(_along(given.tobytes(), above.tobytes(), pixel, kind == 4), np.uint8)
        else:
            raise FormatError(f"is a PNG with a row of the unknown filter {kind}")
        above = out[k]
    return out


def _along(given: bytes, above: bytes, pixel: int, predicts: bool) -> bytes:
    """The filters of which each byte needs the one before: the mean of left and above, and Paeth's prediction."""
    done = bytearray(pixel) + bytearray(len(given))
    over = bytes(pixel) + above
    for k, byte in enumerate(given):
        left, top, corner = done[k], over[k + pixel], over[k]
        if predicts:
            guess = left + top - corner
            a, b, c = abs(guess - left), abs(guess - top), abs(guess - corner)
            near = left if a <= b and a <= c else top if b <= c else corner
        else:
            near = (left + top) // 2
        done[k + pixel] = (byte + near) & 255
    return bytes(done[pixel:])
