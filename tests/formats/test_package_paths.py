"""Resolution of the file names and package URIs of a model."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mechanik.errors import FormatError
from mechanik.formats.json.reader import read_json
from mechanik.formats.source import DiskFileResolver
from mechanik.formats.urdf.reader import read_urdf


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders of a robot workspace, without the environment variables of this machine."""
    monkeypatch.delenv("ROS_PACKAGE_PATH", raising=False)
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    for file in (
        "ws/arm/meshes/a.stl",
        "ws/arm/urdf/arm.urdf",
        "ws/arm/urdf/beside.stl",
        "ws/hand/meshes/h.stl",
        "ws/hand/meshes/with space.stl",
        "away/arm/meshes/a.stl",
        "away/tool/meshes/t.stl",
        "opt/share/grip/meshes/g.stl",
    ):
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file)
    return tmp_path


def resolved_path(ground: Path, uri: str, **folders: str | Path) -> str | None:
    path = DiskFileResolver(ground / "ws/arm/urdf", folders).find(uri)
    return None if path is None else path.relative_to(ground).as_posix()


def test_package_is_found_in_a_parent_folder(ground: Path) -> None:
    assert resolved_path(ground, "package://arm/meshes/a.stl") == "ws/arm/meshes/a.stl"


def test_sibling_package_is_found(ground: Path) -> None:
    assert resolved_path(ground, "package://hand/meshes/h.stl") == "ws/hand/meshes/h.stl"
    assert resolved_path(ground, "model://hand/meshes/h.stl") == "ws/hand/meshes/h.stl"
    assert resolved_path(ground, "package:///hand//meshes/./h.stl") == "ws/hand/meshes/h.stl"


def test_renamed_package_is_found_by_the_end_of_the_path(ground: Path) -> None:
    assert resolved_path(ground, "package://arm_description/meshes/a.stl") == "ws/arm/meshes/a.stl"
    assert resolved_path(ground, "package://any/where/arm/meshes/a.stl") == "ws/arm/meshes/a.stl"
    assert resolved_path(ground, "/home/somebody/arm/meshes/a.stl") == "ws/arm/meshes/a.stl"
    assert resolved_path(ground, "package://any/beside.stl") == "ws/arm/urdf/beside.stl"


def test_bare_file_name_is_not_searched_in_parent_folders(ground: Path) -> None:
    (ground / "ws" / "loose.stl").write_text("")
    assert resolved_path(ground, "package://any/loose.stl") is None


def test_given_package_folder_has_priority(ground: Path) -> None:
    assert resolved_path(ground, "package://arm/meshes/a.stl", arm=ground / "away/arm") == "away/arm/meshes/a.stl"
    assert resolved_path(ground, "package://arm/meshes/a.stl", arm=str(ground / "away")) == "away/arm/meshes/a.stl"
    assert resolved_path(ground, "package://arm/meshes/a.stl", arm="/nowhere") == "ws/arm/meshes/a.stl"


def test_installed_packages_have_the_lowest_priority(ground: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolved_path(ground, "package://tool/meshes/t.stl") is None
    monkeypatch.setenv("ROS_PACKAGE_PATH", os.pathsep.join([str(ground / "nowhere"), str(ground / "away")]))
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(ground / "opt"))
    assert resolved_path(ground, "package://tool/meshes/t.stl") == "away/tool/meshes/t.stl"
    assert resolved_path(ground, "package://arm/meshes/a.stl") == "ws/arm/meshes/a.stl"
    assert resolved_path(ground, "package://grip/meshes/g.stl") == "opt/share/grip/meshes/g.stl"
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(ground / "away/tool"))
    assert resolved_path(ground, "package://tool/meshes/t.stl") == "away/tool/meshes/t.stl"


def test_paths_are_relative_to_the_model(ground: Path) -> None:
    assert resolved_path(ground, "beside.stl") == "ws/arm/urdf/beside.stl"
    assert resolved_path(ground, "../meshes/a.stl") == "ws/arm/meshes/a.stl"
    assert resolved_path(ground, "..\\meshes\\a.stl") == "ws/arm/meshes/a.stl"
    assert resolved_path(ground, str(ground / "away/tool/meshes/t.stl")) == "away/tool/meshes/t.stl"


def test_file_uris_are_paths_with_escapes(ground: Path) -> None:
    assert resolved_path(ground, (ground / "ws/hand/meshes/with space.stl").as_uri()) == "ws/hand/meshes/with space.stl"
    assert resolved_path(ground, f"file://{(ground / 'ws/hand/meshes/h.stl').as_posix()}") == "ws/hand/meshes/h.stl"
    assert resolved_path(ground, "file://beside.stl") == "ws/arm/urdf/beside.stl"


@pytest.mark.parametrize(
    "uri",
    [
        "",
        " ",
        "package://",
        "package://arm",
        "package://arm/urdf",
        "http://x.invalid/a.stl",
        "a\0b",
        "x" * 5000,
        "../..",
    ],
)
def test_uri_without_file_is_not_resolved(ground: Path, uri: str) -> None:
    assert resolved_path(ground, uri) is None


def test_model_text_has_no_folder_but_can_use_packages(ground: Path) -> None:
    assert DiskFileResolver(None).find("beside.stl") is None
    path = DiskFileResolver(None, {"arm": ground / "ws/arm"}).find("package://arm/meshes/a.stl")
    assert path == ground / "ws/arm/meshes/a.stl"


def test_resolved_paths_are_cached(ground: Path) -> None:
    packages = DiskFileResolver(ground / "ws/arm/urdf")
    path = packages.find("package://arm/meshes/a.stl")
    assert path is not None
    path.unlink()
    assert packages.find("package://arm/meshes/a.stl") == path


def test_each_mesh_of_a_folder_is_resolved(ground: Path) -> None:
    packages = DiskFileResolver(ground / "ws/arm/urdf")
    assert packages.find("package://gone/meshes/a.stl") is not None
    assert packages.find("package://gone/meshes/b.stl") is None


def test_packages_must_map_names_to_folders() -> None:
    with pytest.raises(FormatError, match="packages="):
        DiskFileResolver(None, ["/tmp"])  # type: ignore[arg-type]


def test_mesh_has_its_path_and_a_missing_one_is_warned_of_once(ground: Path) -> None:
    def visual(uri: str) -> str:
        return f'<visual><geometry><mesh filename="{uri}"/></geometry></visual>'

    shapes = visual("package://arm/meshes/a.stl") + 2 * visual("package://arm/meshes/gone.stl")
    path = ground / "ws/arm/urdf/arm.urdf"
    path.write_text(f'<robot name="r"><link name="a">{shapes}</link></robot>')
    mechanism = read_urdf(path)
    paths = [placed.shape.path for placed in mechanism.links["a"].visuals]  # type: ignore[union-attr]
    assert paths == [str(ground / "ws/arm/meshes/a.stl"), None, None]
    assert len(mechanism.warnings) == 1
    message = "arm.urdf, line 1: <mesh> of link 'a' names the file 'package://arm/meshes/gone.stl'"
    assert message in mechanism.warnings[0]


@pytest.mark.parametrize(
    ("uri", "hinted"), [("package://arm/a.stl", True), ("MODEL://arm/a.stl", True), ("a.stl", False), ("/a.stl", False)]
)
def test_warning_suggests_the_packages_option_only_for_package_uris(uri: str, hinted: bool) -> None:
    shape = f'<visual><geometry><mesh filename="{uri}"/></geometry></visual>'
    (of_urdf,) = read_urdf(f'<robot name="r"><link name="a">{shape}</link></robot>').warnings
    (of_json,) = read_json(
        {"mechanik": 1, "links": [{"name": "a", "visuals": [{"type": "mesh", "uri": uri}]}]}
    ).warnings
    for warning in (of_urdf, of_json):
        assert uri in warning
        assert ("packages= or by the environment variable ROS_PACKAGE_PATH" in warning) == hinted
