"""Queries, files, plots and viewer data of reachability maps."""

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


# ---- queries --------------------------------------------------------------------------------


def test_queries_agree_with_the_voxels_everywhere(reach):
    assert reach.reachable(reach.positions).all()
    assert (reach.share(reach.positions) == reach.shares).all()
    everywhere = reach.origin + (np.argwhere(np.ones(reach.shape)) + 0.5) * reach.resolution
    assert (reach.reachable(everywhere).reshape(reach.shape) == reach.occupied).all()
    assert reach.share(everywhere.reshape(*reach.shape, 3)).shape == reach.shape
    assert not reach.reachable((100.0, 0.0, 0.0))
    assert reach.share((100.0, 0.0, 0.0)) == 0.0
    assert len(reach) == reach.occupied.sum()


@pytest.mark.parametrize("bad", [(0, 0), "here", (0, 0, np.nan), 3.0])
def test_wrong_positions_are_refused(flat, bad):
    with pytest.raises(mk.MechanikError, match="position"):
        flat.share(bad)


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_slices_and_sections_are_layers_of_the_voxel_block(solid, axis):
    block = np.moveaxis(solid.share_of_voxels, "xyz".index(axis), 0)
    for layer, (at, share) in zip(block, solid.slices(axis), strict=True):
        assert np.array_equal(layer, share, equal_nan=True)
        assert np.array_equal(layer, solid.section(axis, at), equal_nan=True)
    assert np.isnan(solid.section(axis, 50.0)).all()


def test_the_best_voxel_has_the_largest_share(reach):
    assert reach.shares[reach.best] == reach.shares.max()


def test_reach_maps_are_immutable(flat):
    for name in ARRAYS:
        with pytest.raises(ValueError, match="read-only"):
            getattr(flat, name)[0] = 0
    with pytest.raises(AttributeError):
        flat.link = "other"


# ---- files ----------------------------------------------------------------------------------


def test_a_saved_map_is_loaded_exactly(reach, tmp_path):
    path = tmp_path / "map.npz"
    path.write_text("something older")
    reach.save(path)
    loaded = ReachMap.load(path)
    for name in ARRAYS:
        assert np.array_equal(getattr(loaded, name), getattr(reach, name)), name
        assert getattr(loaded, name).dtype == getattr(reach, name).dtype
    for name in ("mechanism", "link", "resolution", "first", "shape", "orientation_kind"):
        assert getattr(loaded, name) == getattr(reach, name)
    assert [p.name for p in tmp_path.iterdir()] == ["map.npz"], "nothing is left beside it"


def test_an_empty_map_can_be_saved(tmp_path):
    reach = reachability(mk.gallery.planar_2r(), "tool", 0.1, region=[[3, 3, 0], [3.3, 3.2, 0]])
    reach.save(tmp_path / "empty.npz")
    assert len(ReachMap.load(tmp_path / "empty.npz")) == 0


def test_truncated_and_altered_files_are_refused(flat, tmp_path):
    path, broken = tmp_path / "map.npz", tmp_path / "broken.npz"
    flat.save(path)
    whole = path.read_bytes()
    for end in np.linspace(0, len(whole) - 1, 25).astype(int):
        broken.write_bytes(whole[:end])
        with pytest.raises(mk.errors.FormatError, match=r"broken\.npz"):
            ReachMap.load(broken)
    rng = np.random.default_rng(0)
    for _ in range(50):
        altered = bytearray(whole)
        altered[rng.integers(len(altered))] ^= 1 << rng.integers(8)
        broken.write_bytes(bytes(altered))
        try:  # some bits have no meaning
            loaded = ReachMap.load(broken)
        except mk.errors.FormatError:
            continue
        assert np.array_equal(loaded.cells, flat.cells)


def replace_arrays(path, **arrays):
    with np.load(path) as file:
        np.savez(path, **{**file, **arrays})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"about": np.array('{"mechanik_reach": 99}')}, "version 99.*update"),
        ({"about": np.array("{}")}, "header is missing"),
        ({"about": np.array("[1]")}, "header is missing"),
        ({"about": np.array("no json")}, "not a reachability map"),
        ({"q": np.zeros((3, 2))}, r"q has shape \(3, 2\)"),
        ({"shape": np.array([1, 1, 1])}, "outside the map"),
        ({"shape": np.array([10**6] * 3)}, "too large"),
        ({"base": np.array([0.0, np.nan, 0.0])}, "base has an entry"),
    ],
)
def test_inconsistent_map_files_are_refused_with_the_reason(flat, tmp_path, change, message):
    flat.save(tmp_path / "map.npz")
    replace_arrays(tmp_path / "map.npz", **change)
    with pytest.raises(mk.errors.FormatError, match=message):
        ReachMap.load(tmp_path / "map.npz")


def test_the_former_key_of_the_orientation_kind_is_read(flat, tmp_path):
    path = tmp_path / "map.npz"
    flat.save(path)
    with np.load(path) as file:
        about = json.loads(str(file["about"]))
    about["asked"] = about.pop("orientation_kind")
    replace_arrays(path, about=np.array(json.dumps(about)))
    assert ReachMap.load(path).orientation_kind == flat.orientation_kind


def test_missing_and_foreign_files_are_refused(flat, tmp_path):
    with pytest.raises(mk.errors.FileMissing, match="nowhere"):
        ReachMap.load(tmp_path / "nowhere.npz")
    with pytest.raises(mk.errors.FormatError):
        ReachMap.load(tmp_path)
    np.savez(tmp_path / "other.npz", numbers=np.arange(3))
    with pytest.raises(mk.errors.FormatError, match="not a reachability map"):
        ReachMap.load(tmp_path / "other.npz")
    with pytest.raises(mk.errors.CannotSave, match="no_folder"):
        flat.save(tmp_path / "no_folder" / "map.npz")
    with pytest.raises(mk.errors.CannotSave):
        flat.save(tmp_path)


# ---- viewer data and plots ------------------------------------------------------------------


def test_json_data_have_the_same_voxels(reach):
    data = json.loads(json.dumps(reach.to_json()))
    cells = np.frombuffer(base64.b64decode(data["cells"]), dtype="<u2").reshape(-1, 3)
    shares = np.frombuffer(base64.b64decode(data["shares"]), dtype=np.uint8) / 255
    centres, exact, colours = reach.voxels()
    assert np.allclose(data["origin"] + (cells + 0.5) * data["resolution"], centres, atol=1e-6)
    assert np.abs(shares - exact).max() <= 0.5 / 255 + 1e-6
    assert data["count"] == len(centres) == len(colours)
    assert (colours.dtype, colours.shape) == (np.uint8, (len(reach), 3))


def test_a_plot_has_three_sections_and_a_cutaway_or_one_section_of_a_flat_map(flat, solid, tmp_path):
    pytest.importorskip("matplotlib")
    figure = solid.plot()
    assert [axes.get_title()[:3] for axes in figure.axes[:3]] == ["z =", "y =", "x ="]
    assert len(figure.axes) == 5
    assert len(flat.plot().axes) == 2
    at = solid.plot(at=(0.1, 0.2, 0.3))
    assert at.axes[0].get_title() == "z = 0.3 m"
    figure.savefig(tmp_path / "map.png", dpi=40)
    assert (tmp_path / "map.png").stat().st_size > 5000
