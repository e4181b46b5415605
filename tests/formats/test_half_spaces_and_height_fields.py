"""Half-spaces, height fields and hulls of points: as values, in files, and as triangles."""

from __future__ import annotations

import json
import math
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechanik as mk
from mechanik.errors import FormatError, NotFinite, ShapeError
from mechanik.formats import check
from mechanik.formats import json as mechanism_json
from mechanik.model import Builder, ConvexMesh, HalfSpace, HeightField, Mechanism, ShapeInstance
from mechanik.model.shapes import Shape
from mechanik.motion.record.tessellation import tessellate
from mechanik.spatial import Pose
from mechanik.studio.session.loaded_model import MeshStore

SCHEMA = json.loads(Path(mechanism_json.__file__).with_name("mechanism.schema.json").read_text())
LAW = settings(max_examples=40, deadline=None)
TETRAHEDRON = ConvexMesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
HILL = HeightField([[0, 0, 0], [0, 1, 0]], (4, 2), -0.5)

lengths = st.floats(0.01, 100)


@st.composite
def fields(draw: st.DrawFn) -> HeightField:
    rows, columns = draw(st.integers(2, 4)), draw(st.integers(2, 4))
    row = st.lists(st.floats(-10, 10), min_size=columns, max_size=columns)
    heights = draw(st.lists(row, min_size=rows, max_size=rows))
    below = draw(st.none() | st.floats(0, 5))
    bottom = None if below is None else min(min(row) for row in heights) - below
    return HeightField(heights, (draw(lengths), draw(lengths)), bottom)


@st.composite
def hulls(draw: st.DrawFn) -> ConvexMesh:
    scale = np.array([draw(lengths), draw(lengths), draw(lengths)])
    more = draw(st.lists(st.lists(st.floats(-1, 1), min_size=3, max_size=3), max_size=5))
    return ConvexMesh(np.array([*TETRAHEDRON.points.tolist(), *more]) * scale)


shapes = fields() | hulls() | st.just(HalfSpace())


def with_shape(shape: Shape) -> Mechanism:
    robot = Builder("one")
    robot.link("floor", collisions=[ShapeInstance(shape, Pose((1, 2, 3), (1, 1, 0, 0)), name="it")])
    robot.revolute("turn", "floor", "arm")
    return robot.build()


# ---- values -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [[1, 2, 3], np.array([1.0, 2.0, 3.0])])
def test_boxes_of_equal_size_are_equal_for_any_sequence_type(size: object) -> None:
    assert mk.Box(size) == mk.Box((1.0, 2.0, 3.0))
    assert hash(mk.Box(size)) == hash(mk.Box((1.0, 2.0, 3.0)))


@pytest.mark.parametrize("size", [1.0, (1, 2), (1, 2, 3, 4), "abc"])
def test_box_without_three_edges_raises_an_error(size: object) -> None:
    with pytest.raises(ShapeError, match="three edge lengths"):
        mk.Box(size)


@LAW
@given(shapes)
def test_json_round_trip_of_shapes_is_exact_and_valid_by_the_schema(shape: Shape) -> None:
    text = mechanism_json.write_json(with_shape(shape))
    (back,) = mk.load(text).links["floor"].collisions
    assert back.shape == shape
    assert hash(back.shape) == hash(shape)
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(text))


@LAW
@given(shapes)
def test_copied_mechanism_has_equal_shapes(shape: Shape) -> None:
    assert with_shape(shape).copy().links["floor"].collisions[0].shape == shape


def test_arrays_of_a_shape_are_copied_and_read_only() -> None:
    points = np.array(TETRAHEDRON.points)
    hull = ConvexMesh(points)
    points[0] = 7
    assert hull == TETRAHEDRON
    with pytest.raises(ValueError, match="read-only"):
        hull.points[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        HILL.heights[0, 0] = 1


def test_shapes_that_differ_in_one_number_are_not_equal() -> None:
    assert HeightField(HILL.heights, (4, 2), -0.5) == HILL
    assert HeightField(HILL.heights, (4, 2), -0.6) != HILL
    assert HeightField(HILL.heights, (4, 3), -0.5) != HILL
    assert HeightField(HILL.heights + 0.1, (4, 2), -0.5) != HILL
    assert ConvexMesh(TETRAHEDRON.points * 2) != TETRAHEDRON
    assert TETRAHEDRON != HILL


def test_height_field_without_bottom_ends_1_m_below_its_lowest_point() -> None:
    assert HeightField([[0, -2], [1, 0]], (1, 1)).bottom == -3.0


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: HeightField([[0, math.nan], [0, 0]], (1, 1)), NotFinite, "heights must be finite"),
        (lambda: HeightField([[0, 0]], (1, 1)), ShapeError, "at least 2 of each"),
        (lambda: HeightField([], (1, 1)), ShapeError, "rows, columns"),
        (lambda: HeightField([[0, 0], [0]], (1, 1)), ShapeError, "rows of equal length"),
        (lambda: HeightField([[0, 0], [0, 0]], (1, 0)), ShapeError, "size must be positive"),
        (lambda: HeightField([[0, 0], [0, 0]], (1, -1)), ShapeError, "negative"),
        (lambda: HeightField([[0, 0], [0, 0]], (1, math.inf)), NotFinite, "finite"),
        (lambda: HeightField([[0, 0], [0, 0]], 3), ShapeError, "two lengths"),  # type: ignore[arg-type]
        (lambda: HeightField([[0, 0], [0, 0]], (1, 1), 0.5), ShapeError, "above the lowest"),
        (lambda: HeightField([[0, 0], [0, 0]], (1, 1), math.nan), NotFinite, "bottom"),
        (lambda: ConvexMesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]), ShapeError, "one plane"),
        (lambda: ConvexMesh([[0, 0, 0]] * 5), ShapeError, "one plane"),
        (lambda: ConvexMesh([[0, 0, 0], [1, 0, 0]]), ShapeError, "at least 4"),
        (lambda: ConvexMesh([]), ShapeError, "at least 4"),
        (lambda: ConvexMesh([[0, 0, math.inf], [1, 0, 0], [0, 1, 0], [0, 0, 1]]), NotFinite, "points must be finite"),
        (lambda: ConvexMesh("points"), ShapeError, "numbers"),  # type: ignore[arg-type]
    ],
)
def test_shapes_without_volume_raise_an_error(make: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()  # type: ignore[operator]


# ---- files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ('{"type": "height_field", "size": [1, 1], "bottom": 0, "heights": [[0, 1], [2]]}', r"heights: expected rows"),
        ('{"type": "height_field", "size": [1, 1], "bottom": 5, "heights": [[0, 1], [2, 3]]}', "above the lowest"),
        ('{"type": "height_field", "size": [1, 1], "heights": [[0, 1], [2, 3]]}', "'bottom' is missing"),
        ('{"type": "convex_mesh", "points": [[0, 0, 0], [1, 0]]}', r"points\[1\]"),
        ('{"type": "convex_mesh", "points": []}', "at least 4"),
        ('{"type": "half_space", "size": 1}', "unknown key 'size'"),
    ],
)
def test_invalid_shape_in_json_raises_an_error_that_names_the_json_path(record: str, message: str) -> None:
    text = f'{{"mechanik": 1, "links": [{{"name": "floor", "collisions": [{record}]}}]}}'
    with pytest.raises(FormatError, match=message) as error:
        mk.load(text)
    assert "links[0].collisions[0]" in str(error.value)


@pytest.mark.parametrize("shape", [HILL, TETRAHEDRON, HalfSpace()], ids=lambda shape: type(shape).__name__)
def test_saving_to_urdf_reports_unsupported_shapes_as_lost(shape: Shape, tmp_path: Path) -> None:
    (lost,) = mk.save(with_shape(shape), tmp_path / "one.urdf")
    assert "half-spaces, height fields and convex meshes" in lost
    assert "floor" in lost
    assert mk.load(tmp_path / "one.urdf").links["floor"].collisions == ()


@pytest.mark.parametrize("shape", [HILL, TETRAHEDRON, HalfSpace()], ids=lambda shape: type(shape).__name__)
def test_check_reports_no_flat_shape(shape: Shape) -> None:
    assert not [finding for finding in check(with_shape(shape)) if finding.code == "flat-shape"]


@pytest.mark.mujoco
def test_planes_and_height_fields_match_ray_casts_of_mujoco() -> None:
    mujoco = pytest.importorskip("mujoco")
    text = """<mujoco><asset><hfield name="h" nrow="3" ncol="4" size="1 0.5 0.7 0.2"
        elevation="0 1 3 2  1 0 4 4  2 5 1 0"/></asset><worldbody>
        <geom name="hill" type="hfield" hfield="h" pos="0.3 0.1 1"/>
        <geom name="floor" type="plane" size="9 9 1" pos="0 0 0.4" euler="20 0 0"/>
        <body name="b" pos="40 0 0"><joint/><geom size="0.1"/></body></worldbody></mujoco>"""
    hill, floor = mk.load(text).links["world"].collisions
    assert isinstance(floor.shape, HalfSpace)
    assert isinstance(hill.shape, HeightField)
    assert (hill.shape.size, hill.shape.bottom) == ((2.0, 1.0), -0.2)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    rng = np.random.default_rng(0)
    places = np.column_stack([rng.uniform((-0.69, -0.39), (1.29, 0.59), (200, 2)), np.full(200, 9.0)])
    # the surface as we draw it, at the same points
    body = tessellate(hill.shape)
    assert body is not None
    corners = hill.pose.apply(body.points)[body.corners]
    for place in places:
        hit = np.zeros(1, dtype=np.int32)
        away = mujoco.mj_ray(model, data, place, np.array([0.0, 0.0, -1.0]), None, 1, -1, hit, None)
        assert hit[0] == 0
        assert abs(_highest(corners, place[:2]) - (9.0 - away)) < 1e-6
    outside = np.array([5.0, 0.0, 9.0])
    away = mujoco.mj_ray(model, data, outside, np.array([0.0, 0.0, -1.0]), None, 1, -1, np.zeros(1, np.int32), None)
    below = floor.pose.inverse().apply(outside - (0, 0, away))
    assert abs(below[2]) < 1e-9


def _highest(corners: np.ndarray, place: np.ndarray) -> float:
    """Return the height of triangles (T, 3, 3) above a point (2,)."""
    a, b, c = (corners[:, k] for k in range(3))
    sides = np.stack([b - a, c - a], axis=-1)[:, :2]
    good = np.abs(np.linalg.det(sides)) > 1e-12
    u, v = np.linalg.solve(sides[good], (place - a[good][:, :2])[..., None])[..., 0].T
    z = a[good][:, 2] + u * (b - a)[good][:, 2] + v * (c - a)[good][:, 2]
    return float(z[(u >= -1e-12) & (v >= -1e-12) & (u + v <= 1 + 1e-12)].max())


def sdf(inside: str) -> str:
    return (
        '<sdf version="1.9"><model name="m"><link name="ground"><collision name="c"><pose>1 0 0 0 0 0</pose>'
        f"<geometry>{inside}</geometry></collision></link></model></sdf>"
    )


def test_plane_of_an_sdf_is_a_half_space_below_its_normal() -> None:
    text = sdf("<plane><normal>0 3 3</normal><size>1 1</size></plane>")
    (placed,) = mk.load(text).links["ground"].collisions
    assert placed.shape == HalfSpace()
    np.testing.assert_allclose(placed.pose.matrix[:3, 2], [0, math.sqrt(0.5), math.sqrt(0.5)], atol=1e-15)
    np.testing.assert_allclose(placed.pose.position, [1, 0, 0])
    (plain,) = mk.load(sdf("<plane/>")).links["ground"].collisions
    np.testing.assert_allclose(plain.pose.matrix[:3, 2], [0, 0, 1])
    with pytest.raises(FormatError, match="normal"):
        mk.load(sdf("<plane><normal>0 0 0</normal></plane>"))


# ---- triangles --------------------------------------------------------------------------------


@LAW
@given(fields() | hulls())
def test_triangles_face_outwards_and_enclose_the_volume_of_the_shape(shape: HeightField | ConvexMesh) -> None:
    body = tessellate(shape)
    assert body is not None
    a, b, c = (body.points[body.corners[:, k]] for k in range(3))
    across = np.cross(b - a, c - a)
    size = np.abs(body.points).max()
    assert (np.einsum("ti,ti->t", across, body.normals[body.corners[:, 0]]) > 0).all()
    volume = np.einsum("ti,ti->", a, np.cross(b, c)) / 6  # of what is closed, but for the floor of a field
    if isinstance(shape, HeightField):
        volume -= shape.bottom * shape.size[0] * shape.size[1] / 3
        assert abs(volume - _field_volume(shape)) < 1e-9 * size**3
    else:
        spatial = pytest.importorskip("scipy.spatial")
        assert abs(volume - spatial.ConvexHull(shape.points).volume) < 1e-9 * size**3


def _field_volume(field: HeightField) -> float:
    """Each triangle has half a cell, and the mean of its corners' heights."""
    rows, columns = field.heights.shape
    cell = field.size[0] * field.size[1] / (rows - 1) / (columns - 1)
    h = field.heights - field.bottom
    a, b, c, d = h[:-1, :-1], h[:-1, 1:], h[1:, 1:], h[1:, :-1]
    return float(cell / 6 * (2 * a + b + 2 * c + d).sum())


@pytest.mark.parametrize("shape", [HILL, TETRAHEDRON, HalfSpace()], ids=lambda shape: type(shape).__name__)
def test_mesh_store_gives_the_page_a_box_or_triangles(shape: Shape) -> None:
    mechanism = with_shape(shape)
    meshes = MeshStore(mechanism, {}, False, "/meshes/")
    info = meshes.shape_info(mechanism.links["floor"].collisions[0])
    if isinstance(shape, HalfSpace):
        assert info.kind == "box"
        X = Pose(info.pose[:3], info.pose[3:])
        top = X.apply([0.0, 0.0, info.sizes[2] / 2])
        np.testing.assert_allclose(mechanism.links["floor"].collisions[0].pose.inverse().apply(top)[2], 0, atol=1e-12)
    else:
        assert (info.kind, info.extension) == ("mesh", "stl")
        data, kind = meshes.read(0)
        body = tessellate(shape)
        assert kind == "model/stl"
        assert body is not None
        assert len(data) == 84 + 50 * len(body.corners)
