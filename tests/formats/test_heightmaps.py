"""The <heightmap> of an SDF: a height field from a PNG image, which Pillow decodes."""

from __future__ import annotations

import io
import re
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechanik as mk
from mechanik.errors import FormatError
from mechanik.model import HeightField

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
HILL = np.array([[0, 10, 20], [30, 40, 50]], np.uint8)


def png(pixels: np.ndarray, filters: list[int] | None = None, colour_type: int = 0) -> bytes:
    """Encode pixels (rows, columns) or (rows, columns, channels) of 8 or 16 bits, each row with its filter."""
    height, width = pixels.shape[:2]
    raw = np.ascontiguousarray(pixels, pixels.dtype.newbyteorder(">")).view(np.uint8).reshape(height, -1)
    step, rows, above = raw.shape[1] // width, b"", np.zeros(raw.shape[1], np.int64)
    for kind, row in zip(filters or [0] * height, raw.astype(np.int64), strict=True):
        left, corner = (np.concatenate([np.zeros(step, np.int64), line[:-step]]) for line in (row, above))
        estimate = left + above - corner
        deviation = np.abs([estimate - left, estimate - above, estimate - corner])
        paeth = np.choose(deviation.argmin(axis=0), [left, above, corner])
        filtered = row - (0, left, above, (left + above) // 2, paeth)[kind]
        rows += bytes([kind]) + (filtered % 256).astype(np.uint8).tobytes()
        above = row
    ihdr = header(width, height, bits=8 * pixels.itemsize, colour_type=colour_type)
    return ihdr + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def header(width: int, height: int, *, bits: int = 8, colour_type: int = 0, interlaced: int = 0) -> bytes:
    content = struct.pack(">IIBBBBB", width, height, bits, colour_type, 0, 0, interlaced)
    return PNG_SIGNATURE + chunk(b"IHDR", content)


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def saved(image: Any, **options: Any) -> bytes:
    """Encode an image of Pillow."""
    file = io.BytesIO()
    image.save(file, "png", **options)
    return file.getvalue()


def terrain(heightmap: str) -> str:
    return (
        '<sdf version="1.9"><model name="m"><static>true</static><link name="ground"><collision name="c">'
        f"<pose>1 0 0 0 0 0</pose><geometry><heightmap>{heightmap}</heightmap></geometry></collision></link></model>"
        "</sdf>"
    )


def load_image(data: bytes) -> tuple[np.ndarray | None, list[str]]:
    """Load a terrain of height 1 from an image; return its heights, (rows, columns), and the warnings."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "image.png").write_bytes(data)
        path = Path(folder, "terrain.sdf")
        path.write_text(terrain("<uri>image.png</uri><size>1 1 1</size>"))
        robot = mk.load(path)
    collisions = robot.links["ground"].collisions
    return (collisions[0].shape.heights if collisions else None), robot.warnings


def expected_heights(brightness: np.ndarray) -> np.ndarray:
    """Heights of a terrain of height 1: the brightest pixel is on top, the last row of the image comes first."""
    return np.flipud(brightness) / (brightness.max() or 1.0)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from([np.uint8, np.uint16]), st.sampled_from([(0, 1), (2, 3), (4, 2), (6, 4)]))
def test_every_filter_and_colour_type_gives_the_first_channel(data: Any, dtype: Any, colours: Any) -> None:
    colour_type, channels = colours
    height, width = data.draw(st.integers(2, 6)), data.draw(st.integers(2, 6))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    pixels = rng.integers(0, np.iinfo(dtype).max, (height, width, channels), endpoint=True).astype(dtype)
    filters = data.draw(st.lists(st.integers(0, 4), min_size=height, max_size=height))
    heights, warnings = load_image(png(pixels, filters, colour_type))
    first = pixels[..., 0].astype(np.float64)
    if dtype is np.uint16 and colour_type != 0:
        first = np.floor(first / 256)  # Pillow reduces 16 bits of coloured images to 8
    assert not warnings
    np.testing.assert_allclose(heights, expected_heights(first), atol=1e-15)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_images_saved_by_pillow_are_read_in_every_mode(mode: str) -> None:
    image = pytest.importorskip("PIL.Image")
    y, x = np.mgrid[:40, :50]
    smooth = (100 + 60 * np.sin(x / 9) + 50 * np.cos(y / 7)).astype(np.uint8)  # so that the encoder uses all filters
    if mode == "I;16":
        brightness = smooth.astype(np.uint16) * 201
        picture = image.fromarray(brightness)
    else:
        picture = image.fromarray(smooth).convert(mode)
        brightness = np.asarray(picture.convert("RGB"))[..., 0]
    heights, warnings = load_image(saved(picture))
    assert not warnings
    np.testing.assert_allclose(heights, expected_heights(brightness.astype(np.float64)), atol=1e-15)


def test_16_bits_of_a_grey_image_are_all_used() -> None:
    fine = np.array([[65_535, 65_534], [65_533, 65_532]], np.uint16)
    heights, _ = load_image(png(fine))
    np.testing.assert_allclose(heights, expected_heights(fine.astype(np.float64)), atol=1e-15)


def test_transparent_pixels_of_a_palette_count_by_their_colour() -> None:
    image = pytest.importorskip("PIL.Image")
    picture = image.fromarray(HILL).convert("P")
    heights, warnings = load_image(saved(picture, transparency=bytes(range(256))))
    assert not warnings
    red = np.asarray(picture.convert("RGBA"))[..., 0].astype(np.float64)
    np.testing.assert_allclose(heights, expected_heights(red), atol=1e-15)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is not a PNG image"),
        (b"\xff\xd8\xff\xe0 a photograph", "is not a PNG image"),
        (PNG_SIGNATURE + chunk(b"IHDR", bytes(3)), "is not a PNG image|damaged"),
        (png(HILL)[:50], "truncated or damaged"),
        (png(HILL).replace(b"IDAT", b"IDOT"), "truncated or damaged"),
        (header(4, 4, colour_type=3), "truncated or damaged"),
        (header(4, 4, interlaced=1), "truncated or damaged"),
        (header(4, 0), "truncated or damaged"),
        (header(90_000, 90_000), "90000 x 90000 pixels, more than the limit of 2049 x 2049"),
    ],
)
def test_damaged_image_is_ignored_and_the_warning_says_why(data: bytes, reason: str) -> None:
    heights, warnings = load_image(data)
    assert heights is None
    (warning,) = warnings
    assert re.search(reason, warning)


@settings(deadline=None)
@given(st.binary(max_size=60), st.integers(0, 80))
def test_any_bytes_give_finite_heights_or_a_warning(data: bytes, prefix_size: int) -> None:
    heights, warnings = load_image(png(HILL)[:prefix_size] + data)
    assert (heights is None) == bool(warnings)
    assert heights is None or np.isfinite(heights).all()


def test_without_pillow_the_error_names_the_extra(tmp_path: Path) -> None:
    (tmp_path / "hill.png").write_bytes(png(HILL))
    path = tmp_path / "hill.sdf"
    path.write_text(terrain("<uri>hill.png</uri>"))
    program = (
        "import sys; sys.modules['PIL'] = None\n"
        "import mechanik as mk\n"
        "try: mk.load(sys.argv[1])\n"
        "except mk.errors.MissingExtra as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    assert "pip install 'mechanik[heightmap]'" in run.stdout


def test_black_is_at_zero_the_brightest_on_top_and_the_first_row_at_the_largest_y(tmp_path: Path) -> None:
    (tmp_path / "hill.png").write_bytes(png(HILL))
    path = tmp_path / "hill.sdf"
    path.write_text(terrain("<uri>hill.png</uri><size>4 2 0.5</size><pos>0 3 1</pos>"))
    robot = mk.load(path)
    (instance,) = robot.links["ground"].collisions
    assert not robot.warnings
    assert isinstance(instance.shape, HeightField)
    assert instance.shape.size == (4.0, 2.0)
    np.testing.assert_allclose(instance.shape.heights, [[0.3, 0.4, 0.5], [0.0, 0.1, 0.2]], atol=1e-15)
    assert instance.pose.position.tolist() == [1, 3, 1]


@pytest.mark.parametrize(
    ("heightmap", "message"),
    [
        ("<size>1 1 1</size>", "names no file; it is ignored"),
        ("<uri>gone.png</uri>", "names the file 'gone.png', which does not exist or cannot be read; it is ignored"),
        ("<uri>hill.jpg</uri>", r"'hill.jpg', which is not a PNG image; it is ignored \(a height map must be a PNG"),
        ("<uri>thin.png</uri>", "one row or column"),
    ],
)
def test_terrain_that_cannot_be_read_is_ignored_with_a_warning(tmp_path: Path, heightmap: str, message: str) -> None:
    (tmp_path / "hill.jpg").write_bytes(b"\xff\xd8\xff\xe0")
    (tmp_path / "thin.png").write_bytes(png(HILL[:1]))
    (tmp_path / "hill.sdf").write_text(terrain(heightmap))
    robot = mk.load(tmp_path / "hill.sdf")
    assert robot.links["ground"].collisions == ()
    (warning,) = robot.warnings
    assert re.search(message, warning)


@pytest.mark.parametrize("size", ["0 1 1", "1 -1 1", "1 1 1e30", "1 1", "1 1 x"])
def test_invalid_size_raises_an_error(size: str) -> None:
    with pytest.raises(FormatError, match=r"size|number"):
        mk.load(terrain(f"<uri>hill.png</uri><size>{size}</size>"))


def test_black_image_gives_flat_terrain(tmp_path: Path) -> None:
    (tmp_path / "flat.png").write_bytes(png(np.zeros((3, 3), np.uint8)))
    (tmp_path / "flat.sdf").write_text(terrain("<uri>flat.png</uri><size>1 1 0</size>"))
    (instance,) = mk.load(tmp_path / "flat.sdf").links["ground"].collisions
    assert not instance.shape.heights.any()
