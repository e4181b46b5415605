"""A map that is kept, asked, drawn and shown."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

import mechanik as mk
from mechanik.reach import ReachMap, reachability

ARRAYS = ("base", "cells", "q", "positions", "wxyz", "reached")


@pytest.fixture(scope="module")
def flat():
    return reachability(mk.gallery.planar_3r(), "tool", 0.25, orientations=6, samples=500)


@pytest.fixture(scope="module")
def solid():
    return reachability(mk.gallery.scara(), "tool", 0.1, orientations=4, samples=500)


@pytest.fixture(params=["flat", "solid"])
def reach(request):
    return request.getfixturevalue(request.param)


# ---- asking ---------------------------------------------------------------------------------


def test_a_map_answers_for_every_place(reach):
    assert reach.reachable(reach.positions).all()
    assert (reach.share(reach.positions) == reach.shares).all()
    everywhere = reach.origin + (np.argwhere(np.ones(reach.shape)) + 0.5) * reach.resolution
    assert (reach.reachable(everywhere).reshape(reach.shape) == reach.occupied).all()
    assert reach.share(everywhere.reshape(*reach.shape, 3)).shape == reach.shape
    assert not reach.reachable((100.0, 0.0, 0.0))
    assert reach.share((100.0, 0.0, 0.0)) == 0.0
    assert len(reach) == reach.occupied.sum()


@pytest.mark.parametrize("bad", [(0, 0), "here", (0, 0, np.nan), 3.0])
def test_a_place_is_three_finite_numbers(flat, bad):
    with pytest.raises(mk.MechanikError, match="position"):
        flat.share(bad)


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_slices_and_sections_are_the_block_layer_by_layer(solid, axis):
    block = np.moveaxis(solid.share_of_voxels, "xyz".index(axis), 0)
    for layer, (at, share) in zip(block, solid.slices(axis), strict=True):
        assert np.array_equal(layer, share, equal_nan=True)
        assert np.array_equal(layer, solid.section(axis, at), equal_nan=True)
    assert np.isnan(solid.section(axis, 50.0)).all()


def test_the_best_place_has_the_largest_share(reach):
    assert reach.shares[reach.best] == reach.shares.max()


def test_nobody_writes_into_a_map(flat):
    for name in ARRAYS:
        with pytest.raises(ValueError, match="read-only"):
            getattr(flat, name)[0] = 0
    with pytest.raises(AttributeError):
        flat.link = "other"


# ---- keeping --------------------------------------------------------------------------------


def test_a_map_comes_back_as_it_was_saved(reach, tmp_path):
    path = tmp_path / "map.npz"
    path.write_text("something older")
    reach.save(path)
    back = ReachMap.load(path)
    for name in ARRAYS:
        assert np.array_equal(getattr(back, name), getattr(reach, name)), name
        assert getattr(back, name).dtype == getattr(reach, name).dtype
    for name in ("mechanism", "link", "resolution", "first", "shape", "asked"):
        assert getattr(back, name) == getattr(reach, name)
    assert [p.name for p in tmp_path.iterdir()] == ["map.npz"], "nothing is left beside it"


def test_an_empty_map_can_be_kept(tmp_path):
    reach = reachability(mk.gallery.planar_2r(), "tool", 0.1, region=[[3, 3, 0], [3.3, 3.2, 0]])
    reach.save(tmp_path / "empty.npz")
    assert len(ReachMap.load(tmp_path / "empty.npz")) == 0


def test_a_broken_file_is_refused_wherever_it_is_broken(flat, tmp_path):
    path, broken = tmp_path / "map.npz", tmp_path / "broken.npz"
    flat.save(path)
    whole = path.read_bytes()
    for end in np.linspace(0, len(whole) - 1, 25).astype(int):
        broken.write_bytes(whole[:end])
        with pytest.raises(mk.errors.FormatError, match=r"broken\.npz"):
            ReachMap.load(broken)
    rng = np.random.default_rng(0)
    for _ in range(50):
        bent = bytearray(whole)
        bent[rng.integers(len(bent))] ^= 1 << rng.integers(8)
        broken.write_bytes(bytes(bent))
        try:  # some bits mean nothing
            back = ReachMap.load(broken)
        except mk.errors.FormatError:
            continue
        assert np.array_equal(back.cells, flat.cells)


def changed(path, **arrays):
    with np.load(path) as file:
        np.savez(path, **{**file, **arrays})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"about": np.array('{"mechanik_reach": 99}')}, "version 99.*update"),
        ({"about": np.array("{}")}, "does not say"),
        ({"about": np.array("[1]")}, "does not say"),
        ({"about": np.array("no json")}, "no map of reach"),
        ({"q": np.zeros((3, 2))}, r"q is of shape \(3, 2\)"),
        ({"shape": np.array([1, 1, 1])}, "outside the map"),
        ({"shape": np.array([10**6] * 3)}, "wide"),
        ({"base": np.array([0.0, np.nan, 0.0])}, "base holds"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused_in_words(flat, tmp_path, change, words):
    flat.save(tmp_path / "map.npz")
    changed(tmp_path / "map.npz", **change)
    with pytest.raises(mk.errors.FormatError, match=words):
        ReachMap.load(tmp_path / "map.npz")


def test_files_that_are_none_are_refused(flat, tmp_path):
    with pytest.raises(mk.errors.FileMissing, match="nowhere"):
        ReachMap.load(tmp_path / "nowhere.npz")
    with pytest.raises(mk.errors.FormatError):
        ReachMap.load(tmp_path)
    np.savez(tmp_path / "other.npz", numbers=np.arange(3))
    with pytest.raises(mk.errors.FormatError, match="no map of reach"):
        ReachMap.load(tmp_path / "other.npz")
    with pytest.raises(mk.errors.CannotSave, match="no_folder"):
        flat.save(tmp_path / "no_folder" / "map.npz")
    with pytest.raises(mk.errors.CannotSave):
        flat.save(tmp_path)


# ---- showing --------------------------------------------------------------------------------


def test_a_viewer_gets_the_same_voxels_from_json(reach):
    told = json.loads(json.dumps(reach.to_json()))
    cells = np.frombuffer(base64.b64decode(told["cells"]), dtype="<u2").reshape(-1, 3)
    shares = np.frombuffer(base64.b64decode(told["shares"]), dtype=np.uint8) / 255
    centres, exact, colours = reach.voxels()
    assert np.allclose(told["origin"] + (cells + 0.5) * told["resolution"], centres, atol=1e-6)
    assert np.abs(shares - exact).max() <= 0.5 / 255 + 1e-6
    assert told["count"] == len(centres) == len(colours)
    assert (colours.dtype, colours.shape) == (np.uint8, (len(reach), 3))


def test_a_picture_has_three_sections_and_the_whole_or_one_section_of_a_layer(flat, solid, tmp_path):
    pytest.importorskip("matplotlib")
    figure = solid.plot()
    assert [axes.get_title()[:3] for axes in figure.axes[:3]] == ["z =", "y =", "x ="]
    assert len(figure.axes) == 5
    assert len(flat.plot().axes) == 2
    at = solid.plot(at=(0.1, 0.2, 0.3))
    assert at.axes[0].get_title() == "z = 0.3 m"
    figure.savefig(tmp_path / "map.png", dpi=40)
    assert (tmp_path / "map.png").stat().st_size > 5000
