"""STL and OBJ as triangles: compared with trimesh, and read or rejected for any bytes."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from painted_meshes import MTL, OBJ

from mechanik.errors import FormatError, InvalidOperation, MechanikError
from mechanik.model.mesh_files import MAX_COORDINATE, MeshSurface, read_obj, read_surfaces

WEDGE = (Path(__file__).parent.parent / "data" / "mjcf" / "meshes" / "wedge.stl").read_bytes()


def placed(surfaces: list[MeshSurface]) -> np.ndarray:
    """All triangles, (T, 3, 3), in an order of their own."""
    triangles = np.concatenate([surface.vertices[surface.triangles] for surface in surfaces])
    return triangles[np.lexsort(triangles.reshape(len(triangles), -1).T)]


def binary_stl(triangles: np.ndarray, head: bytes = b"") -> bytes:
    facets = b"".join(struct.pack("<3f9fH", 0, 0, 0, *triangle.ravel(), 0) for triangle in triangles)
    return head.ljust(80, b"\0") + struct.pack("<I", len(triangles)) + facets


def text_stl(triangles: np.ndarray) -> bytes:
    facets = "".join(
        "facet normal 0 0 0\nouter loop\n"
        + "".join(f"vertex {x!r} {y!r} {z!r}\n" for x, y, z in triangle.tolist())
        + "endloop\nendfacet\n"
        for triangle in triangles
    )
    return f"solid a\n{facets}endsolid a\n".encode()


@pytest.fixture
def triangles() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(20, 3, 3)).astype("<f4").astype(float)


def test_binary_stl_text_stl_and_obj_have_the_same_triangles(triangles):
    expected = placed(read_surfaces("a.stl", binary_stl(triangles)))
    lines = "".join(f"v {x!r} {y!r} {z!r}\n" for x, y, z in triangles.reshape(-1, 3).tolist())
    faces = "".join(f"f {3 * k + 1}//1 {3 * k + 2}//1 {3 * k + 3}//1\n" for k in range(len(triangles)))
    assert len(expected) == len(triangles)
    assert np.array_equal(expected, placed(read_surfaces("a.STL", text_stl(triangles))))
    assert np.array_equal(expected, placed(read_surfaces("a.obj", (lines + faces).encode())))
    named_solid = binary_stl(triangles, b"solid, though it is not text")
    assert np.array_equal(expected, placed(read_surfaces("a.stl", named_solid)))
    assert np.array_equal(expected, placed(read_surfaces("a.stl", binary_stl(triangles) + b"and more")))


def test_trimesh_reads_the_same_triangles():
    trimesh = pytest.importorskip("trimesh")
    reference = trimesh.load(io.BytesIO(WEDGE), file_type="stl")
    (ours,) = read_surfaces("wedge.stl", WEDGE)
    points, corners = ours.vertices, ours.triangles
    mine = trimesh.Trimesh(points, corners)
    assert mine.is_watertight
    assert mine.volume == pytest.approx(reference.volume, rel=1e-6)
    assert mine.area == pytest.approx(reference.area, rel=1e-6)
    assert len(points) == len(np.unique(points, axis=0))


def test_faces_become_fans_and_negative_indices_count_from_the_end():
    square = b"v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf -4 -3 -2 -1\n"
    (surface,) = read_surfaces("a.obj", square)
    a, b, c = np.moveaxis(surface.vertices[surface.triangles], 1, 0)
    assert np.cross(b - a, c - a) == pytest.approx(np.array([[0, 0, 1], [0, 0, 1]]))


def test_materials_beside_an_obj_give_their_colours():
    surfaces = read_surfaces("m/plate.obj", OBJ.encode(), {"m/plate.mtl": (MTL + "d 0.5\n").encode()}.get)
    assert [surface.rgba for surface in surfaces] == [(1, 1, 1, 1), (0, 0, 1, 0.5)]
    assert [surface.rgba for surface in read_surfaces("m/plate.obj", OBJ.encode())] == [None, None]


def test_invalid_and_degenerate_triangles_are_dropped(triangles):
    for value in (np.nan, np.inf, -np.inf, 2 * MAX_COORDINATE):
        broken = triangles.copy()
        broken[7, 1, 2] = value
        assert len(placed(read_surfaces("a.stl", binary_stl(broken)))) == len(triangles) - 1
    folded = triangles.copy()
    folded[3, 1] = folded[3, 0]
    assert len(placed(read_surfaces("a.stl", binary_stl(folded)))) == len(triangles) - 1
    assert read_surfaces("a.stl", binary_stl(triangles[:0])) == []


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.stl", b"", "truncated"),
        ("a.stl", bytes(80) + b"\xff\xff\xff\xff" + bytes(500), "truncated"),
        ("a.stl", b"solid a\nvertex 1 2 x\nvertex 1 2 3\nvertex 1 2 3", "three numbers"),
        ("a.stl", b"solid a\nvertex 1 2 3", "three vertices"),
        ("a.obj", b"v 1 2\n", "line 1"),
        ("a.obj", b"v 1 2 3\nf 1 1 2\n", "line 2"),
        ("a.obj", b"v 1 2 3\nf 0 1 1\n", "line 2"),
        ("a.obj", b"v 1 2 3\nf 1 1 -2\n", "line 2"),
        ("a.obj", b"v 1 2 3\nf 99999999999999999999999999 1 1\n", "line 2"),
        ("a.obj", b"v 1 2 3\nf" + b" 1" * 5000, "line 2"),
        ("a.dae", b"<COLLADA/>", "dae"),
    ],
)
def test_unreadable_files_are_rejected_with_the_reason(name, data, says):
    with pytest.raises(FormatError, match=says):
        read_surfaces(name, data)


def test_too_many_triangles_are_rejected_before_allocation(triangles):
    for name, data in (("a.stl", binary_stl(triangles)), ("a.stl", text_stl(triangles))):
        with pytest.raises(InvalidOperation, match="20 triangles"):
            read_surfaces(name, data, max_triangles=19)
    with pytest.raises(InvalidOperation, match="triangles"):
        read_surfaces("a.obj", b"v 0 0 0\n" + b"f" + b" 1" * 22 + b"\n", max_triangles=19)
    with pytest.raises(InvalidOperation, match="triangles"):
        read_surfaces("a.stl", bytes(80) + struct.pack("<I", 3_000_000) + bytes(150_000_000))


@given(st.binary(max_size=400), st.sampled_from(("a.stl", "a.obj")))
@example(b"solid" + b"vertex nan inf 1e999 " * 3, "a.stl")
@example(b"v nan inf 1e999\nf 1 1 1", "a.obj")
@example(b"usemtl \xff\xfe\n", "a.obj")
def test_any_bytes_are_read_or_rejected(data, name):
    try:
        surfaces = read_surfaces(name, data)
    except MechanikError:
        return
    for surface in surfaces:
        assert np.isfinite(surface.vertices).all()
        assert surface.triangles.max() < len(surface.vertices)


@pytest.mark.parametrize("suffix", ["", "/1", "/1/1"])
def test_an_obj_face_with_too_many_vertices_is_rejected(suffix):
    """Once a face of vertices with texture coordinates lost its last vertices."""
    vertices = "".join(f"v {k} {k * k} 0\n" for k in range(1001))
    faces = [" ".join(f"{k + 1}{suffix}" for k in range(count)) for count in (1000, 1001)]
    assert read_obj("a.obj", f"{vertices}f {faces[0]}".encode(), 10_000)[""].shape == (998, 3, 3)
    with pytest.raises(FormatError, match=r"a\.obj, line 1002: the face has more than 1000 vertices"):
        read_obj("a.obj", f"{vertices}f {faces[1]}".encode(), 10_000)
