"""The <heightmap> of an SDF, and the pictures that hold its heights."""

from __future__ import annotations

import io
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechanik as mk
from mechanik.errors import FormatError, InvalidOperation, MechanikError
from mechanik.formats.sdf.sdf_geometry import PNG_SIGNATURE, read_png
from mechanik.model import HeightField

HILL = np.array([[0, 10, 20], [30, 40, 50]], np.uint8)


def png(pixels: np.ndarray, filters: list[int] | None = None, colours: int = 0) -> bytes:
    """Pixels (rows, columns) or (rows, columns, channels) of 8 or 16 bits; each row with the filter that is said."""
    height, width = pixels.shape[:2]
    raw = np.ascontiguousarray(pixels, pixels.dtype.newbyteorder(">")).view(np.uint8).reshape(height, -1)
    step, rows, above = raw.shape[1] // width, b"", np.zeros(raw.shape[1], np.int64)
    for kind, line in zip(filters or [0] * height, raw.astype(np.int64), strict=True):
        left, corner = (np.concatenate([np.zeros(step, np.int64), one[:-step]]) for one in (line, above))
        guess = left + above - corner
        off = np.abs([guess - left, guess - above, guess - corner])
        paeth = np.choose(off.argmin(axis=0), [left, above, corner])
        filtered = line - (0, left, above, (left + above) // 2, paeth)[kind]
        rows += bytes([kind]) + (filtered % 256).astype(np.uint8).tobytes()
        above = line
    head = struct.pack(">IIBBBBB", width, height, 8 * pixels.itemsize, colours, 0, 0, 0)
    return PNG_SIGNATURE + part(b"IHDR", head) + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b"")


def part(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from([np.uint8, np.uint16]), st.sampled_from([(0, 1), (2, 3), (4, 2), (6, 4)]))
def test_every_filter_and_kind_of_colours_gives_back_the_first_channel(data: Any, kind: Any, colours: Any) -> None:
    number, channels = colours
    height, width = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    pixels = rng.integers(0, np.iinfo(kind).max, (height, width, channels), endpoint=True).astype(kind)
    filters = data.draw(st.lists(st.integers(0, 4), min_size=height, max_size=height))
    found = read_png(png(pixels, filters, number))
    assert np.array_equal(found, pixels[..., 0] / float(np.iinfo(kind).max))


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "I;16"])
def test_pictures_of_another_program_are_read(mode: str) -> None:
    image = pytest.importorskip("PIL.Image")
    y, x = np.mgrid[:40, :50]
    smooth = (100 + 60 * np.sin(x / 9) + 50 * np.cos(y / 7)).astype(np.uint8)  # so that it chooses among filters
    wide = smooth.astype(np.uint16) * 201
    picture = image.fromarray(wide) if mode == "I;16" else image.fromarray(smooth).convert(mode)
    file = io.BytesIO()
    picture.save(file, "png")
    np.testing.assert_array_equal(read_png(file.getvalue()), wide / 65535 if mode == "I;16" else smooth / 255)


@pytest.mark.parametrize(
    ("data", "error", "said"),
    [
        (b"", FormatError, "is no PNG"),
        (b"\xff\xd8\xff\xe0 a photograph", FormatError, "is no PNG"),
        (PNG_SIGNATURE + part(b"IHDR", bytes(3)), FormatError, "is no PNG"),
        (png(HILL)[:50], FormatError, "cut off or broken"),
        (png(HILL).replace(b"IDAT", b"IDOT"), FormatError, "cut off or broken"),
        (PNG_SIGNATURE + part(b"IHDR", struct.pack(">IIBBBBB", 4, 4, 8, 3, 0, 0, 0)), FormatError, "write it in grey"),
        (PNG_SIGNATURE + part(b"IHDR", struct.pack(">IIBBBBB", 4, 4, 8, 0, 0, 0, 1)), FormatError, "not interlaced"),
        (
            PNG_SIGNATURE + part(b"IHDR", struct.pack(">IIBBBBB", 90_000, 90_000, 8, 0, 0, 0, 0)),
            InvalidOperation,
            "90000 x 90000",
        ),
    ],
)
def test_what_is_no_such_picture_says_why(data: bytes, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        read_png(data)


@given(st.binary(max_size=60), st.integers(0, 80))
def test_any_bytes_are_read_or_refused(data: bytes, keep: int) -> None:
    try:
        found = read_png(png(HILL)[:keep] + data)
    except MechanikError:
        return
    assert np.isfinite(found).all()


# ---- in an SDF --------------------------------------------------------------------------------


def ground(inside: str) -> str:
    return (
        '<sdf version="1.9"><model name="m"><static>true</static><link name="ground"><collision name="c">'
        f"<pose>1 0 0 0 0 0</pose><geometry><heightmap>{inside}</heightmap></geometry></collision></link></model></sdf>"
    )


def test_black_is_at_zero_the_brightest_on_top_and_the_first_row_at_the_largest_y(tmp_path: Path) -> None:
    (tmp_path / "hill.png").write_bytes(png(HILL))
    path = tmp_path / "hill.sdf"
    path.write_text(ground("<uri>hill.png</uri><size>4 2 0.5</size><pos>0 3 1</pos>"))
    robot = mk.load(path)
    (placed,) = robot.links["ground"].collisions
    assert not robot.warnings
    assert isinstance(placed.shape, HeightField)
    assert placed.shape.size == (4.0, 2.0)
    np.testing.assert_allclose(placed.shape.heights, [[0.3, 0.4, 0.5], [0.0, 0.1, 0.2]], atol=1e-15)
    assert placed.pose.position.tolist() == [1, 3, 1]


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        ("<size>1 1 1</size>", "names no file; the ground is left out"),
        ("<uri>gone.png</uri>", "names 'gone.png', and there is no such file; the ground is left out"),
        ("<uri>hill.jpg</uri>", r"'hill.jpg', which is no PNG; the ground is left out \(heights are read from PNG\)"),
        ("<uri>thin.png</uri>", "one row or column"),
    ],
)
def test_ground_that_cannot_be_read_is_left_out_and_named(tmp_path: Path, inside: str, said: str) -> None:
    (tmp_path / "hill.jpg").write_bytes(b"\xff\xd8\xff\xe0")
    (tmp_path / "thin.png").write_bytes(png(HILL[:1]))
    (tmp_path / "hill.sdf").write_text(ground(inside))
    robot = mk.load(tmp_path / "hill.sdf")
    assert robot.links["ground"].collisions == ()
    (warning,) = robot.warnings
    assert re.search(said, warning)


@pytest.mark.parametrize("size", ["0 1 1", "1 -1 1", "1 1 1e30", "1 1", "1 1 x"])
def test_a_size_that_is_none_is_refused(size: str) -> None:
    with pytest.raises(FormatError, match=r"size|number"):
        mk.load(ground(f"<uri>hill.png</uri><size>{size}</size>"))


def test_a_flat_picture_is_flat_ground(tmp_path: Path) -> None:
    (tmp_path / "flat.png").write_bytes(png(np.zeros((3, 3), np.uint8)))
    (tmp_path / "flat.sdf").write_text(ground("<uri>flat.png</uri><size>1 1 0</size>"))
    (placed,) = mk.load(tmp_path / "flat.sdf").links["ground"].collisions
    assert not placed.shape.heights.any()
