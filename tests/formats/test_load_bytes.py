"""Models from untrusted bytes: read as from the disk, or an error, and no local file is opened."""

from __future__ import annotations

import builtins
import io
import json
import os
import stat
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mechanik.errors import FormatError, MechanikError
from mechanik.formats import load, write_json
from mechanik.formats import load_bytes as limits
from mechanik.formats.load_bytes import load_bytes
from mechanik.model import Mechanism
from mechanik.model.shapes import Mesh

DATA = Path(__file__).parent.parent / "data"
WEDGE = (DATA / "mjcf" / "meshes" / "wedge.stl").read_bytes()
ARM = """<robot name="arm"><link name="base"><visual><geometry><mesh filename="{mesh}"/></geometry></visual></link>
<joint name="j" type="continuous"><parent link="base"/><child link="tip"/><axis xyz="0 0 1"/></joint>
<link name="tip"/></robot>"""
MJCF = """<mujoco>{head}<worldbody><body name="b"><joint name="j"/><geom {geom}/>
<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody></mujoco>"""


def packed(files: Mapping[str, bytes | str], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()


def meshes(mechanism: Mechanism) -> list[Mesh]:
    shapes = [placed.shape for link in mechanism.links.values() for placed in (*link.visuals, *link.collisions)]
    return [shape for shape in shapes if isinstance(shape, Mesh)]


def sealed(name: str, data: bytes) -> tuple[Mechanism, dict[str, bytes]]:
    """Call `load_bytes` while Python can neither open nor stat any local path."""

    def refuse(*arguments: object, **options: object) -> object:
        raise AssertionError(f"a file was touched: {arguments}")

    with pytest.MonkeyPatch.context() as patch:
        for owner, function in ((builtins, "open"), (io, "open"), (os, "stat"), (os.path, "isfile"), (os, "listdir")):
            patch.setattr(owner, function, refuse)
        return load_bytes(name, data)


# ---- valid files ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "uri", ["package://arm_description/meshes/wedge.stl", "meshes/wedge.stl", "../meshes/wedge.stl"]
)
def test_zip_of_a_urdf_contains_its_meshes(uri: str) -> None:
    folder = "arm_description/urdf" if uri.startswith("..") else "arm_description"
    data = packed({f"{folder}/arm.urdf": ARM.format(mesh=uri), "arm_description/meshes/wedge.stl": WEDGE})
    mechanism, files = sealed("arm.zip", data)
    assert list(mechanism.joints) == ["j"]
    assert files == {uri: WEDGE}
    assert [mesh.path for mesh in meshes(mechanism)] == [None]
    assert mechanism.warnings == []


def zipped_model(name: str) -> tuple[Mechanism, Mechanism, dict[str, bytes]]:
    """A model of tests/data from the disk and from a zip of all that is around it, and the files of the zip."""
    folder = DATA / name.split("/")[0]
    around = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    others = {file_name for file_name in around if file_name.endswith((".xml", ".sdf")) and "/" not in file_name}
    included = {"leg_defaults.xml", "hand_finger.xml"}
    model = name.split("/")[1]
    files = {
        file_name: data
        for file_name, data in around.items()
        if file_name == model or file_name not in others - included
    }
    return load(DATA / name), *load_bytes("robot.zip", packed(dict(files)))


@pytest.mark.parametrize(
    "name",
    [
        *("mjcf/zoo.xml", "mjcf/gripper.xml", "mjcf/biped_leg.xml", "mjcf/tendon_hand.xml", "mjcf/weld_four_bar.xml"),
        *("mjcf/cam.xml", "mjcf/hexapod.xml", "sdf/hand.sdf", "sdf/four_bar.sdf"),
    ],
)
def test_zip_gives_the_same_mechanism_as_the_disk(name: str) -> None:
    if name.startswith("mjcf"):
        pytest.importorskip("mujoco")
    disk, memory, _ = zipped_model(name)
    assert list(memory.links) == list(disk.links)
    assert list(memory.joints) == list(disk.joints)
    assert list(memory.closures) == list(disk.closures)
    assert list(memory.joint_constraints) == list(disk.joint_constraints)
    assert memory.name == disk.name
    assert np.array_equal(memory.q, disk.q)
    assert np.allclose(memory.poses(memory.q), disk.poses(disk.q), rtol=0.0, atol=1e-12)
    for memory_item, disk_item in zip(meshes(memory), meshes(disk), strict=True):
        assert (memory_item.uri, memory_item.scale, memory_item.path) == (disk_item.uri, disk_item.scale, None)
    for memory_item, disk_item in zip(memory.links.values(), disk.links.values(), strict=True):
        for placed, there in zip(memory_item.visuals, disk_item.visuals, strict=True):
            assert np.allclose(placed.pose.matrix, there.pose.matrix, rtol=0.0, atol=1e-9)


def test_meshes_of_an_mjcf_are_read_from_the_zip() -> None:
    pytest.importorskip("mujoco")
    _, _, files = zipped_model("mjcf/zoo.xml")
    assert list(files.values()) == [WEDGE]


def test_json_mechanisms_and_tables_are_read_from_bytes() -> None:
    mechanism, files = sealed("a.json", b'{"mechanik": 1, "arm": {"lengths": [1, 1]}}')
    assert mechanism.q.size == 2
    table = {"rows": [[0, 1, 0, 0]], "convention": "classic", "columns": "d a alpha theta", "degrees": False}
    assert len(sealed("a", json.dumps({"mechanik": 1, "dh": table}).encode())[0].q) == 1
    assert list(sealed("b", write_json(mechanism).encode())[0].joints) == list(mechanism.joints)
    assert files == {}


def test_closure_file_is_read_from_the_zip() -> None:
    text = (
        '<robot name="r"><link name="a"/><link name="b"/>'
        '<joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint></robot>'
    )
    closure = {"closures": [{"name": "loop", "kind": "ball", "link": "b", "onto_link": "a"}]}
    mechanism, _ = load_bytes("r.zip", packed({"x/r.urdf": text, "x/r.closures.json": json.dumps(closure)}))
    assert list(mechanism.closures) == ["loop"]


def test_outermost_model_of_a_zip_is_read_and_ambiguity_is_an_error() -> None:
    arm = ARM.format(mesh="a.stl")
    mechanism, _ = load_bytes(
        "x.zip", packed({"arm.urdf": arm, "old/arm.urdf": "<robot/>", "package.xml": "<package/>"})
    )
    assert list(mechanism.joints) == ["j"]
    with pytest.raises(FormatError, match=r"contains 2 models, a\.urdf, b\.urdf"):
        load_bytes("x.zip", packed({"a.urdf": arm, "b.urdf": arm}))
    assert load_bytes("b.zip", packed({"a.urdf": "<robot/>", "b.urdf": arm}))[0].joints


# ---- local paths ------------------------------------------------------------------


def test_meshes_on_the_local_disk_are_not_opened() -> None:
    here = DATA / "mjcf" / "meshes" / "wedge.stl"
    for uri in (str(here), f"file://{here}", "/etc/passwd", "package://mjcf/meshes/wedge.stl"):
        mechanism, files = sealed("arm.urdf", ARM.format(mesh=uri).encode())
        assert files == {}
        assert meshes(mechanism)[0].path is None
        assert "add it to the zip" in mechanism.warnings[0]


def test_mesh_paths_in_json_are_dropped() -> None:
    shape = {"type": "mesh", "uri": "a.stl", "path": str(DATA / "mjcf" / "meshes" / "wedge.stl")}
    text = json.dumps({"mechanik": 1, "links": [{"name": "a", "visuals": [shape]}]})
    mechanism, files = load_bytes("a.json", text.encode())
    assert (files, meshes(mechanism)[0].path) == ({}, None)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name")
@pytest.mark.parametrize("place", ["absolute", "beside"])
def test_mujoco_opens_no_local_files(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path of the mesh is a pipe: MuJoCo would block forever if it opened it."""
    pytest.importorskip("mujoco")
    os.mkfifo(tmp_path / "trap.stl")
    monkeypatch.chdir(tmp_path)
    file = str(tmp_path / "trap.stl") if place == "absolute" else "trap.stl"
    asset = f'<compiler meshdir="."/><asset><mesh file="{file}"/></asset>'
    mechanism, files = load_bytes("m.xml", MJCF.format(head=asset, geom='type="mesh" mesh="trap"').encode())
    assert (list(mechanism.joints), files) == (["j"], {})
    assert any("could not be opened" in warning for warning in mechanism.warnings)


def test_mjcf_includes_only_files_of_the_zip(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    part = tmp_path / "part.xml"
    part.write_text("<mujocoinclude/>")
    model = MJCF.format(head=f'<include file="{part}"/>', geom='size="1"')
    with pytest.raises(FormatError, match="which does not exist"):
        load_bytes("m.xml", model.encode())
    assert load_bytes("m.zip", packed({"m.xml": model, "x/part.xml": "<mujocoinclude/>"}))[0].joints


def test_sdf_includes_only_files_of_the_zip() -> None:
    folder = DATA / "sdf" / "finger"
    text = f'<sdf version="1.7"><model name="m"><include><uri>{folder}</uri></include></model></sdf>'
    with pytest.raises(FormatError, match="there is no such model"):
        load_bytes("m.sdf", text.encode())


# ---- hostile files ------------------------------------------------------------------------


def edited(data: bytes, change: Callable[[zipfile.ZipInfo], None]) -> bytes:
    """A zip of one file whose entry was changed before it was written."""
    stream = io.BytesIO()
    info = zipfile.ZipInfo("arm.urdf")
    change(info)
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(info, data)
    return stream.getvalue()


def patched(data: bytes, offset: int, value: bytes) -> bytes:
    """Overwrite bytes in the only entry of the table of contents."""
    at = data.index(b"PK\x01\x02") + offset
    return data[:at] + value + data[at + len(value) :]


def named(name: str) -> bytes:
    return packed({"arm.urdf": ARM.format(mesh="a.stl"), name: b"x"})


def linked() -> bytes:
    def change(info: zipfile.ZipInfo) -> None:
        info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16

    return edited(b"/etc/passwd", change)


def twice() -> bytes:
    data = packed({"arm.urdf": "<robot/>", "arm.urdg": "<robot/>"})
    return data.replace(b"arm.urdg", b"arm.urdf")


def with_nul() -> bytes:
    return packed({"arm.urdfXx": "<robot/>"}).replace(b"arm.urdfXx", b"arm.urdf\0x")


ONE = packed({"arm.urdf": ARM.format(mesh="a.stl")})
LAUGHS = (
    '<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>'
    '<robot name="&c;"/>'
)
OUTSIDE = '<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]><robot name="&a;"/>'
SDF = '<sdf version="1.7"><model name="m">{}</model></sdf>'

HOSTILE: dict[str, tuple[bytes, str]] = {
    "a name that climbs": (named("../../x.stl"), "is not allowed in a zip"),
    "a name that climbs in the middle": (named("a/../../x.stl"), "is not allowed in a zip"),
    "an absolute name": (named("/etc/x.stl"), "is not allowed in a zip"),
    "a drive letter": (named("C:/x.stl"), "is not allowed in a zip"),
    "backslashes": (named("a\\..\\x.stl"), "is not allowed in a zip"),
    "a NUL in a name": (with_nul(), "control characters"),
    "a line break in a name": (named("a\nb.stl"), "control characters"),
    "a name without letters": (named("..."), "an invalid name"),
    "a very long name": (named("x" * 2000), "an invalid name"),
    "a link": (linked(), "is a link"),
    "two of the same name": (twice(), "two files in the zip are called 'arm.urdf'"),
    "an encrypted member": (patched(ONE, 8, b"\x01\x00"), "is encrypted"),
    "another method": (packed({"arm.urdf": "<robot/>"}, zipfile.ZIP_LZMA), "not compressed by deflate"),
    "a bomb by ratio": (packed({"a.urdf": b" " * (8 * 2**20)}), "by more than a factor of 200"),
    "more than is read, by its table": (patched(ONE, 24, struct.pack("<I", 2**31)), "2048 MB"),
    "a wrong size": (patched(ONE, 24, struct.pack("<I", 10)), "the zip is damaged"),
    "a wrong packed size": (patched(ONE, 20, struct.pack("<I", 10)), "the zip is damaged"),
    "an entry that points nowhere": (patched(ONE, 42, struct.pack("<I", 2**30)), "the zip is damaged"),
    "a wrong checksum": (patched(ONE, 16, b"abcd"), "the zip is damaged"),
    "cut off": (ONE[:-30], "seems truncated"),
    "too many members": (packed({f"{k}.stl": b"" for k in range(limits.MAX_ZIP_FILES + 1)}), "the limit is 2000"),
    "a wrong count": (
        ONE[:-14] + b"\xff\xff\xff\xff" + ONE[-10:],
        "the zip uses the ZIP64 format, which is for more than 4 GB or 65,535 files; pack only the robot",
    ),
    "split into several files": (ONE[:-18] + b"\x01\x00" + ONE[-16:], "split into several files"),
    "nothing in it": (packed({}), "no URDF, MJCF, SDF or JSON"),
    "a zip in a zip": (packed({"robot.zip": ONE}), "no URDF, MJCF, SDF or JSON"),
    "a xacro in a zip": (packed({"a.urdf.xacro": "<robot/>"}), "expand it first"),
    "a xacro": (b'<robot xmlns:xacro="x"><xacro:macro name="m"/></robot>', "xacro"),
    "laughs": (LAUGHS.encode(), "defines the entity"),
    "laughs in a zip": (packed({"a.urdf": LAUGHS}), "defines the entity"),
    "an entity of this machine": (OUTSIDE.encode(), "defines the entity"),
    "elements without end": (b"<robot>" + b"<a>" * 5000, "nests elements"),
    "lists without end": (b"[" * 100_000, "nested too deeply"),
    "a mesh alone": (WEDGE, "is a binary file"),
    "nothing": (b"", "is empty"),
    "blanks": (b" \n", "is empty"),
    "something else": (b"%PDF-1.7", "begins with"),
    "a page": (b"<html></html>", "root element is <html>"),
    "more text than is read": (b'<robot name="a">' + b" " * 17 * 2**20, "the limit is 16 MB"),
    "an SDF that includes itself": (
        packed({"m/model.sdf": SDF.format("<include><uri>model://m</uri></include>")}),
        "nests models",
    ),
    "an SDF that doubles": (
        packed(
            {"top.sdf": SDF.format("<include><uri>0.sdf</uri></include>")}
            | {
                f"x/{k}.sdf": SDF.format(
                    "".join(f"<include><uri>{k + 1}.sdf</uri><name>{n}</name></include>" for n in "ab")
                )
                for k in range(15)
            }
            | {"x/15.sdf": SDF.format("<link name='l'/>")}
        ),
        "the limit of 500 included models",
    ),
    "a chain without end": (b"<robot>" + b"<link name='a'/>" * 6000 + b"</robot>", "6000 links and joints"),
    "a chain without end in UTF-16": (
        ("<robot>" + "<link name='a'/>" * 6000 + "</robot>").encode("utf-16"),
        "6000 links and joints",
    ),
    "an arm without end": (
        json.dumps({"mechanik": 1, "arm": {"lengths": [1] * 6000}}).encode(),
        "6000 links and joints",
    ),
    "not finite": (ARM.format(mesh="a").replace("0 0 1", "0 0 nan").encode(), "not a finite number"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_data_raises_an_error_that_says_why(case: str) -> None:
    data, message = HOSTILE[case]
    with pytest.raises(MechanikError) as refused:
        sealed("sent.zip", data)
    assert message in str(refused.value)


HOSTILE_MJCF = {
    "a plugin": ('<asset/><extension/><actuator><plugin plugin="x"/></actuator>', "runs code"),
    "a composite": ("<worldbody><composite count='1000 1000 1000'/></worldbody>", "generates bodies"),
    "a flexible body": ("<worldbody><flexcomp name='f' count='999 999 999'/></worldbody>", "flexible body"),
    "replicates": (
        "<worldbody><replicate count='1000000000'><body/></replicate></worldbody>",
        "from 1 to 1000",
    ),
    "replicates of replicates": (
        "<worldbody><replicate count='999'><replicate count='999'><body/></replicate></replicate></worldbody>",
        "more than 10000 elements",
    ),
    "an attached model": ("<worldbody><attach model='m' body='b' prefix='p'/></worldbody>", "from another model"),
    "itself": ("<include file='sent.xml'/>", "a second time"),
    "a fine mesh": ("<asset><mesh name='m' builtin='sphere' params='100000'/></asset>", "the limit is 64"),
    "an unknown attribute": ("<worldbody><body nonsense='1'/></worldbody>", "sent.xml, line 1: MuJoCo rejects"),
}


@pytest.mark.parametrize("case", HOSTILE_MJCF)
def test_hostile_mjcf_raises_an_error_that_says_why(case: str) -> None:
    pytest.importorskip("mujoco")
    head, message = HOSTILE_MJCF[case]
    with pytest.raises(FormatError) as refused:
        load_bytes("sent.xml", MJCF.format(head=head, geom='size="1"').encode())
    assert message in str(refused.value)


def test_excessive_sizes_in_mjcf_are_ignored() -> None:
    pytest.importorskip("mujoco")
    head = (
        '<size nuser_body="2000000000" memory="100G"/><custom><numeric name="n" size="2000000000"/></custom>'
        '<asset><texture name="t" type="2d" builtin="flat" width="2000000" height="2000000"/>'
        '<hfield name="h" nrow="100000" ncol="100000" size="1 1 1 1"/></asset>'
    )
    mechanism, _ = load_bytes("m.xml", MJCF.format(head=head, geom='type="hfield" hfield="h"').encode())
    assert list(mechanism.joints) == ["j"]
    assert any("<hfield>" in warning for warning in mechanism.warnings)


def test_unpacked_bytes_are_counted_whatever_the_table_of_contents_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_UNPACKED_BYTES", 1000)
    with pytest.raises(FormatError, match="unpacked, the zip has"):
        load_bytes("a.zip", packed({"a.urdf": os.urandom(1001)}))


@pytest.mark.parametrize("filler", [b"<!---->", b"<!A", b"<?a?>", b" "])
def test_text_before_the_root_element_is_scanned_in_linear_time(filler: bytes) -> None:
    """Each of these once took a time that grew as the square of its length: here, hours."""
    with pytest.raises(MechanikError):
        load_bytes("a.urdf", filler * (2**20 // len(filler)))


@given(st.binary(max_size=400), st.text(max_size=20))
@example(b"PK\x05\x06" + bytes(18), "a.zip")
@example(b"\xff\xfe<", "a.urdf")
@settings(max_examples=150, deadline=None)
def test_random_bytes_raise_an_error(data: bytes, name: str) -> None:
    with pytest.raises(MechanikError):
        load_bytes(name, data)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_damaged_zip_is_read_or_raises_an_error(data: st.DataObject) -> None:
    whole = bytearray(packed({"arm.urdf": ARM.format(mesh="wedge.stl"), "wedge.stl": WEDGE}))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        mechanism, _ = load_bytes("arm.zip", bytes(whole))
    except MechanikError:
        return
    assert all(mesh.path is None for mesh in meshes(mechanism))


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_damaged_model_is_read_or_raises_an_error(data: st.DataObject) -> None:
    texts = (ARM.format(mesh="a.stl"), MJCF.format(head="", geom='size="1"'), SDF.format("<link name='l'/>"))
    whole = data.draw(st.sampled_from(texts))
    at = data.draw(st.integers(0, len(whole) - 1))
    damaged = whole[:at] + data.draw(st.text(max_size=6)) + whole[at + data.draw(st.integers(0, 6)) :]
    try:
        load_bytes("a.xml", damaged.encode(errors="replace"))
    except MechanikError:
        return
