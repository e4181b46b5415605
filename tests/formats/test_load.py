"""`load` and `save`: format detection, missing files, atomic replacement."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

import pytest

import mechanik.model as mk
from mechanik.errors import CannotSave, FileMissing, FormatError, InvalidArgument, MechanikError
from mechanik.formats import describe, load, save, source, write_json, write_urdf
from mechanik.formats.load import WRITERS

URDF = """<robot name="one"><link name="a"/><link name="b"/>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""


def arm():
    builder = mk.Builder("arm")
    builder.revolute("j", "a", "b", limits=(-1, 1), value=0.5)
    return builder.build()


BEFORE_ROOT = [
    "",
    "\n\n",
    "\ufeff",
    '<?xml version="1.0"?>',
    '<?xml version="1.0"?>\n<!-- <mujoco> was here -->\n<!-- and - <sdf> -->',
    "<!DOCTYPE robot>",
]


@pytest.mark.parametrize("before", BEFORE_ROOT)
def test_urdf_is_detected_by_its_root_element(before, tmp_path):
    assert list(load(before + URDF).joints) == ["j"]
    path = tmp_path / "robot.json"
    path.write_text(before + URDF, encoding="utf-8")
    assert list(load(path).joints) == ["j"]


def test_json_is_detected_by_its_content(tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text(write_json(arm()))
    assert describe(load(path)) == describe(load(str(path))) == describe(load(write_json(arm()))) == describe(arm())


def test_utf_16_is_read(tmp_path):
    for text, name in ((URDF, "a"), (write_json(arm()), "b")):
        path = tmp_path / name
        path.write_text(text, encoding="utf-16")
        assert list(load(path).joints) == ["j"]


def test_options_are_passed_to_the_reader():
    assert load(URDF, base="free").nv == 7
    assert load(URDF).nv == 1


def test_unknown_option_of_the_reader_raises_an_error():
    with pytest.raises(InvalidArgument, match=r"the reader of JSON has no option base=; its options are packages"):
        load(write_json(arm()), base="free")
    with pytest.raises(InvalidArgument, match=r"trimm=.*options are base, mimic, trim, packages, closures"):
        load(URDF, trimm=True)
    assert issubclass(InvalidArgument, TypeError)


REFUSED = [
    ("<COLLADA/>", FormatError, r"COLLADA is read as a mesh only"),
    ("<?xml version='1.0'?>\n<sdf version='1.6'><model/></sdf>", FormatError, r"line 2: <model> has no <link>"),
    ("<svg/>", FormatError, r"the root element is <svg>; a URDF has <robot>"),
    ("<", FormatError, r"."),
    ("<!-- never closed <robot>", FormatError, r"."),
    ("<robot>", FormatError, r"."),
    ("{", FormatError, r"line 1, column"),
    ('{"joints": []}', FormatError, r'the key "mechanik" is missing'),
    ("links:\n  - name: a\n", FormatError, r"the content begins with 'links:'; URDF, MJCF and SDF begin with '<'"),
    (
        URDF.replace("<robot", '<robot xmlns:xacro="http://ros.org/xacro"').replace('name="a"', 'name="${a}"'),
        FormatError,
        "xacro",
    ),
    ("{" + "x" * 5000, FormatError, r"line 1, column 2"),
    ("\ud800<robot/>" + "\n", FormatError, r"half of a surrogate pair"),
]


@pytest.mark.parametrize(
    ("text", "error", "message"), REFUSED, ids=[text[:30].encode("ascii", "replace") for text, _, _ in REFUSED]
)
def test_text_of_an_unknown_format_raises_an_error(text, error, message):
    with pytest.raises(error, match=message):
        load(text)


def test_xml_entities_raise_an_error_and_are_not_expanded():
    bomb = '<!DOCTYPE robot [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><robot name="&b;"><link name="x"/></robot>'
    with pytest.raises(FormatError):
        load(bomb)


def test_error_on_a_missing_file_names_the_folder_and_similar_names(tmp_path):
    (tmp_path / "panda.urdf").write_text(URDF)
    with pytest.raises(
        FileMissing, match=rf"no file 'pandda\.urdf' in .*{tmp_path.name}\. Did you mean 'panda\.urdf'\?"
    ):
        load(tmp_path / "pandda.urdf")
    with pytest.raises(FileMissing, match=r"no file 'x' in .*, such as panda\.urdf"):
        load(str(tmp_path / "x"))
    with pytest.raises(FileMissing, match=r"the folder .*no does not exist"):
        load(tmp_path / "no" / "panda.urdf")
    assert issubclass(FileMissing, FileNotFoundError)
    assert issubclass(FileMissing, FormatError)


def test_unreadable_source_raises_an_error_that_names_it(tmp_path):
    (tmp_path / "arm.urdf").write_text(URDF)
    with pytest.raises(FormatError, match=r"is a folder; pass a file in it, such as arm\.urdf"):
        load(tmp_path)
    empty = tmp_path / "empty.urdf"
    empty.write_text(" \n")
    with pytest.raises(FormatError, match=r"empty\.urdf is empty"):
        load(empty)
    binary = tmp_path / "hand.stl"
    binary.write_bytes(b"solid\0\0\0\x80")
    with pytest.raises(FormatError, match=r"hand\.stl is a binary file"):
        load(binary)
    with pytest.raises(FileMissing, match="name of the file is empty"):
        load("")
    with pytest.raises(FileMissing, match="file"):
        load("arm\0.urdf")
    with pytest.raises(MechanikError):
        load("x" * 4000)
    with pytest.raises(FormatError, match="a model must be a path or text, not int"):
        load(3)  # type: ignore[arg-type]


def test_too_large_file_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "MAX_MODEL_BYTES", 2**20)
    path = tmp_path / "large.urdf"
    path.write_bytes(b" " * (2**20 + 1))
    with pytest.raises(FormatError, match=r"has 1 MB; the limit is 1 MB"):
        load(path)
    with pytest.raises(FormatError, match=r"has 2 MB; the limit is 1 MB"):
        load("<robot>" + " " * 2**21)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_pipe_raises_an_error_without_blocking(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FormatError, match="neither a file nor a folder"):
        load(tmp_path / "pipe")


@pytest.mark.parametrize("suffix", [".json", ".urdf", ".JSON"])
def test_saved_mechanism_is_loaded_equal(suffix, tmp_path):
    path = tmp_path / f"arm{suffix}"
    save(arm(), path)
    assert list(load(path).joints) == ["j"]
    assert load(path).joint("j").limits("EZ") == (-1, 1)
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", [".json", ".urdf"])
def test_empty_mechanism_is_saved_and_loaded(suffix, tmp_path):
    path = tmp_path / f"nothing{suffix}"
    assert save(mk.Mechanism([]), path) == []
    assert list(load(path).links) == []
    assert any("is empty" in warning for warning in load(path).warnings)


def test_save_returns_what_the_file_does_not_hold(tmp_path):
    mechanism = arm()
    assert save(mechanism, tmp_path / "arm.urdf") == []
    mechanism.configurations["home"] = mechanism.q
    assert save(mechanism, tmp_path / "arm.json") == []
    assert save(mechanism, tmp_path / "arm.urdf") == ["a URDF cannot contain named configurations: home"]


def unreadable():
    """Return a mechanism whose file could be written but not read back, for each format."""
    nameless = arm()
    nameless.name = 3
    flat = arm()
    flat.link("a").visuals = (mk.ShapeInstance(mk.Mesh("a.stl", (1, 0, 1))),)
    far = mk.Mechanism(mk.Link("a", position=(1e10, 0, 0)))
    half = mk.Mechanism(mk.Link("\ud800"))
    return [
        (nameless, ".json", FormatError),
        (nameless, ".urdf", FormatError),
        (flat, ".urdf", FormatError),
        (far, ".urdf", FormatError),
        (half, ".json", FormatError),
        (half, ".urdf", FormatError),
    ]


@pytest.mark.parametrize(("mechanism", "suffix", "error"), unreadable())
def test_file_that_could_not_be_read_back_is_not_written(mechanism, suffix, error, tmp_path):
    path = tmp_path / f"arm{suffix}"
    path.write_text("before")
    with pytest.raises(error):
        save(mechanism, path)
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == [path.name]


def test_urdf_is_not_saved_next_to_a_sidecar_that_closes_the_same_loops(tmp_path):
    builder = mk.Builder("loop")
    builder.revolute("j", "a", "b")
    builder.revolute("k", "a", "c")
    builder.close("loop", "b", "c", "weld")
    save(builder.build(), tmp_path / "arm.urdf")
    (tmp_path / "arm.closures.json").write_text('[{"name": "loop", "kind": "weld", "link": "b", "onto_link": "c"}]')
    with pytest.raises(FormatError, match=r"could not be read back.*another joint is called 'loop'"):
        save(builder.build(), tmp_path / "arm.urdf")


def test_save_needs_a_known_suffix():
    with pytest.raises(FormatError, match=r"'arm\.txt' must end in \.urdf or \.json"):
        save(arm(), "arm.txt")
    with pytest.raises(FormatError, match="path must be a string or a path, not int"):
        save(arm(), 3)  # type: ignore[arg-type]


def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "arm.json"
    path.write_text("before")
    monkeypatch.setattr(os, "replace", _fail)
    with pytest.raises(CannotSave, match=r"arm\.json cannot be written: the disk is gone"):
        save(arm(), path)
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["arm.json"]


def _fail(*_):
    raise OSError(5, "the disk is gone")


def test_error_on_an_unwritable_target_names_it(tmp_path):
    with pytest.raises(CannotSave, match=r"the folder .* does not exist"):
        save(arm(), tmp_path / "no" / "arm.json")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(CannotSave, match="is a folder"):
        save(arm(), tmp_path / "folder.json")
    with pytest.raises(CannotSave, match="cannot be written"):
        save(arm(), str(tmp_path / "a\0b.json"))
    with pytest.raises(CannotSave, match="cannot be written"):
        save(arm(), tmp_path / ("x" * 300 + ".json"))
    with pytest.raises(CannotSave, match="cannot be written"):
        save(arm(), "~nobody-of-that-name/arm.json")
    assert issubclass(CannotSave, OSError)


def test_longest_possible_file_name_is_written(tmp_path):
    path = tmp_path / ("x" * 250 + ".json")
    save(arm(), path)
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_special_files_are_never_replaced(tmp_path, monkeypatch):
    pipe, unix = tmp_path / "pipe.json", tmp_path / "unix.json"
    os.mkfifo(pipe)
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listener:
        monkeypatch.chdir(tmp_path)  # the path of a socket may not be long
        listener.bind(unix.name)
    (tmp_path / "device.json").symlink_to(os.devnull)
    (tmp_path / "to_pipe.json").symlink_to(pipe)
    (tmp_path / "to_folder.json").symlink_to(tmp_path)
    (tmp_path / "round.json").symlink_to(tmp_path / "round.json")
    for name in ("pipe", "unix", "device", "to_pipe"):
        with pytest.raises(CannotSave, match=rf"{name}\.json is a pipe, a device or a socket"):
            save(arm(), tmp_path / f"{name}.json")
    with pytest.raises(CannotSave, match=r"to_folder\.json is a folder"):
        save(arm(), tmp_path / "to_folder.json")
    with pytest.raises(CannotSave, match=r"round\.json cannot be written"):
        save(arm(), tmp_path / "round.json")
    assert pipe.is_fifo()
    assert unix.is_socket()
    assert Path(os.devnull).is_char_device()


def test_save_follows_symbolic_links_and_preserves_permissions(tmp_path):
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("before")
    target.chmod(0o640)
    try:
        link.symlink_to(target)
    except OSError:
        pytest.skip("no symbolic links here")
    save(arm(), link)
    assert link.is_symlink()
    assert describe(load(target)) == describe(arm())
    if os.name == "posix":
        assert target.stat().st_mode & 0o777 == 0o640


def test_saved_text_is_that_of_the_writers(tmp_path):
    save(arm(), tmp_path / "a.json")
    save(arm(), tmp_path / "a.urdf")
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == write_json(arm())
    assert (tmp_path / "a.urdf").read_text(encoding="utf-8") == write_urdf(arm())


def test_a_writer_of_a_new_suffix_is_checked_by_the_reader_of_its_format(tmp_path, monkeypatch):
    """Every suffix but .urdf was read back as JSON, so a new format could not be saved."""
    monkeypatch.setitem(WRITERS, ".robot", write_urdf)
    assert save(arm(), tmp_path / "a.robot") == []
    assert list(load(tmp_path / "a.robot").joints) == ["j"]
    monkeypatch.setitem(WRITERS, ".robot", lambda mechanism: "prose")
    with pytest.raises(FormatError, match=r"could not be read back: a\.robot: the content begins with 'prose'"):
        save(arm(), tmp_path / "a.robot")


def test_home_folder_in_a_path_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    save(arm(), "~/arm.json")
    assert Path(tmp_path / "arm.json").exists()
    assert list(load("~/arm.json").joints) == ["j"]


def test_a_json_list_on_one_line_is_text_and_not_a_file_name():
    with pytest.raises(FormatError, match="expected an object") as raised:
        load("[1, 2]")
    assert not isinstance(raised.value, FileMissing)
