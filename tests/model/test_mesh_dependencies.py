"""Files that meshes reference are found, and no other files."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from painted_meshes import BIN, FILES, MTL, RED_GREEN, dae, gltf, packed, robot

from mechanik.formats.load_bytes import load_bytes
from mechanik.model import mesh_files as beside_mesh
from mechanik.model.mesh_files import (
    MeshDependencies,
    image_size,
    is_safe_to_show,
    referenced_files,
    resolve_relative_uri,
)

JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(10) + b"\xff\xc0\x00\x11\x08" + struct.pack(">HH", 30, 40) + bytes(20)


def test_a_zip_contains_the_files_that_its_meshes_reference():
    _, files = load_bytes("plates.zip", packed())
    at = "package://plates/meshes"
    assert files[f"{at}/plate.mtl"] == MTL.encode()
    assert files[f"{at}/plate.bin"] == BIN
    assert files["package://plates/pictures/red green.png"] == RED_GREEN
    assert len(files) == 6


@pytest.mark.parametrize(
    ("uri", "name", "place"),
    [
        ("meshes/a.obj", "a.mtl", "meshes/a.mtl"),
        ("a.obj", "a.mtl", "a.mtl"),
        ("package://r/meshes/a.dae", "../t/x.png", "package://r/t/x.png"),
        ("package://r/a.dae", "../../x.png", "package://../x.png"),
        ("meshes\\a.obj", ".\\t\\x.png", "meshes/t/x.png"),
        ("m/a.gltf", "x%20y.png", "m/x y.png"),
        ("m/a.dae", "/home/me/x.png", "/home/me/x.png"),
        ("m/a.dae", "C:\\x.png", "C:/x.png"),
    ],
)
def test_a_name_is_resolved_relative_to_the_mesh(uri, name, place):
    assert resolve_relative_uri(uri, name) == place


@pytest.mark.parametrize(
    ("uri", "text", "names"),
    [
        ("a.obj", "mtllib my colours.mtl\nv 0 0 0", ["my colours.mtl"]),
        ("a.OBJ", "o x\r\n  mtllib a.mtl\r\n", ["a.mtl"]),
        ("a.mtl", "map_Kd -s 2 2 1 -clamp on wood.png\nmap_kd 2 on.jpg\nmap_Ks shine.png", ["wood.png", "2 on.jpg"]),
        ("a.dae", dae("x&amp;y.png"), ["x&y.png"]),
        ("a.gltf", gltf("n.bin", "x.JPEG"), ["x.JPEG", "n.bin"]),
        ("a.gltf", gltf("data:application/octet-stream;base64,AAAA", "data:image/png;base64,AAAA"), []),
        ("a.stl", "mtllib a.mtl", []),
        ("a.obj", "mtllib passwd", []),
        ("a.obj", "mtllib a.stl\nmtllib /etc/shadow\nmtllib x.svg", []),
        ("a.mtl", "map_Kd page.html\nmap_Kd x.svg\nmap_Kd a.mtl", []),
        ("a.gltf", '{"uri": "a\\u0000.png"} {"uri": "b%00.png"}', []),
        ("a.dae", f"<init_from>{'x' * 5000}.png</init_from>", []),
    ],
)
def test_referenced_files_are_found_by_type(uri, text, names):
    assert [name for name, _ in referenced_files(uri, text.encode())] == names


def test_names_at_the_end_of_a_long_file_are_found():
    numbers = b"v 0 0 0\n" * (2 * beside_mesh.SEARCHED_BYTES_PER_END // 8 + 1000)
    assert referenced_files("a.obj", b"mtllib a.mtl\n" + numbers + b"mtllib b.mtl\n") == [
        ("a.mtl", "mtl"),
        ("b.mtl", "mtl"),
    ]


@given(st.binary(max_size=300), st.sampled_from(("a.obj", "a.mtl", "a.dae", "a.gltf")))
def test_any_bytes_are_searched_and_only_file_types_of_meshes_are_requested(data, uri):
    requested: list[str] = []
    MeshDependencies(lambda name: requested.append(name) or None).files_of(uri, data)
    assert all(name.lower().endswith((".mtl", ".png", ".jpg", ".jpeg", ".bin")) for name in requested)


def test_the_size_of_an_image_is_read_from_its_header():
    assert image_size(RED_GREEN) == (2, 1)
    assert image_size(JPEG) == (40, 30)
    for end in range(len(JPEG) - 20):
        assert image_size(JPEG[:end]) in (None, (40, 30))
    for content in (b"", b"GIF89a", b"<svg/>", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff" + b"\xff" * 99):
        assert image_size(content) is None


@pytest.mark.parametrize(
    "picture",
    [
        b"",
        b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
        b"<html><script>alert(1)</script></html>",
        RED_GREEN[:16] + struct.pack(">II", 60_000, 60_000) + RED_GREEN[24:],
        RED_GREEN[:16] + struct.pack(">II", 0, 1) + RED_GREEN[24:],
    ],
)
def test_invalid_and_too_large_images_are_omitted(picture):
    mesh = {"plates/plates.urdf": robot({"one": "plate.dae"}).encode()}
    _, files = load_bytes("plates.zip", packed(FILES | mesh | {"plates/pictures/red green.png": picture}))
    assert list(files) == ["package://plates/meshes/plate.dae"]


def test_files_above_the_size_limit_are_not_shown():
    for kind, head in (("png", RED_GREEN), ("jpg", JPEG), ("mtl", b"newmtl a"), ("bin", b"\0")):
        most = beside_mesh.MAX_BYTES[kind]
        assert is_safe_to_show(kind, head.ljust(most, b"\0"))
        assert not is_safe_to_show(kind, head.ljust(most + 1, b"\0"))


def test_the_number_of_referenced_files_is_limited():
    text = "".join(f"mtllib {k}.mtl\n" for k in range(1000)).encode()
    dependencies = MeshDependencies(lambda name: b"newmtl a").files_of("a.obj", text)
    assert len(dependencies) == beside_mesh.MAX_REFERENCED_FILES


def test_the_number_of_searched_bytes_is_limited(monkeypatch):
    monkeypatch.setattr(beside_mesh, "MAX_SEARCHED_BYTES", 1000)
    beside = MeshDependencies(lambda name: b"newmtl a")
    text = b"mtllib a.mtl\n" + b" " * 400
    assert [len(beside.files_of(f"{k}/a.obj", text)) for k in range(5)] == [1, 1, 1, 0, 0]
