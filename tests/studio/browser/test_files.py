"""Files are dropped on the page; what cannot be read says why and leaves the old mechanism; DH rows are edited live."""

import base64
import io
import json
import math
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from browser_checks import check_drag, is_blank, named, open_tab, value_of

DATA = Path(__file__).parents[2] / "data"
LINK = """<link name="{}"><visual><origin xyz="0.2 0 0"/>
  <geometry><mesh filename="package://crane/meshes/wedge.stl" scale="0.3 0.1 0.1"/></geometry></visual></link>"""
JOINT = """<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/><origin xyz="0.4 0 0"/>
  <axis xyz="0 {3} {4}"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>"""
CRANE = f"""<robot name="crane"><link name="ground"/>{LINK.format("mast")}{LINK.format("boom")}<link name="hook"/>
{JOINT.format("slew", "ground", "mast", 0, 1)}{JOINT.format("luff", "mast", "boom", 1, 0)}
{JOINT.format("sway", "boom", "hook", 1, 0)}</robot>"""
DROP = """(([files, place]) => {
  const carried = new DataTransfer();
  for (const [name, text] of files) {
    carried.items.add(new File([Uint8Array.from(atob(text), (one) => one.charCodeAt(0))], name));
  }
  const target = document.elementFromPoint(...place);
  for (const kind of ['dragenter', 'dragover', 'drop']) {
    target.dispatchEvent(new DragEvent(kind, { dataTransfer: carried, bubbles: true, cancelable: true }));
  }
  return document.querySelector('[data-test=drop-overlay]').hidden;
})(a)"""


def drop(studio, *files: tuple[str, bytes]) -> None:
    """Let go of files over the view."""
    carried = [[name, base64.b64encode(data).decode()] for name, data in files]
    assert studio.eval(DROP, [carried, [300, 300]]) is True, "the overlay is gone again"


def zipped(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return packed.getvalue()


def test_a_dropped_urdf_is_opened_and_can_be_dragged(studio):
    drop(studio, ("tree9.urdf", (DATA / "klampt/tree9.urdf").read_bytes()))
    studio.wait("m.store.model.name !== 'panda' && m.store.frame")
    check_drag(studio, by=(20, -12))


def test_a_zip_brings_its_meshes(studio):
    mesh = (DATA / "mjcf/meshes/wedge.stl").read_bytes()
    drop(studio, ("crane.zip", zipped({"crane/urdf/crane.urdf": CRANE.encode(), "crane/meshes/wedge.stl": mesh})))
    studio.wait("m.store.model.name === 'crane' && m.store.frame")
    meshes = studio.eval("m.store.model.links.flatMap((link) => link.visuals).map((shape) => shape.mesh)")
    assert len(meshes) == 2
    for address in set(meshes):
        answer = studio.page.context.request.get(f"http://{studio.host}{address}")
        assert answer.ok
        assert answer.body() == mesh
    assert not is_blank(studio.still())
    check_drag(studio, by=(20, -12))


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("broken.urdf", b"<robot name='x'><link name='a'></robot>", "broken.urdf|line|tag"),
        ("nothing.zip", b"this is no zip", "zip"),
        ("picture.png", b"\x89PNG", "png|kind|urdf|format"),
    ],
)
def test_a_file_that_cannot_be_read_says_why_and_the_old_mechanism_stays(studio, name, data, says):
    before = studio.at_rest()
    drop(studio, (name, data))
    studio.page.wait_for_selector(named("toast-error"))
    words = studio.page.inner_text(named("toast-error"))
    assert re.search(says, words, re.IGNORECASE), words
    assert "Traceback" not in words
    assert studio.eval("m.store.model.name") == "panda"
    assert studio.frame()["values"] == before["values"]
    check_drag(studio)
    refusals = [line for line in studio.complaints if "422" in line]  # Chromium itself writes a line for the refusal
    assert len(refusals) <= 1
    studio.complaints[:] = [line for line in studio.complaints if line not in refusals]


def test_several_files_at_once_are_requested_as_a_zip(studio):
    drop(studio, ("a.urdf", b"<robot/>"), ("b.stl", b"solid"))
    studio.page.wait_for_selector(named("toast-error"))
    assert "zip" in studio.page.inner_text(named("toast-error"))


def test_a_chosen_file_is_opened(studio):
    studio.page.set_input_files(named("file"), str(DATA / "peers/ur5.urdf"))
    studio.wait("m.store.model.dofs.length === 6")
    check_drag(studio)


def test_a_dh_table_is_edited_live(studio):
    open_tab(studio, "model")
    studio.page.click(named("new-dh"))
    studio.wait("m.store.model.source_kind === 'dh'")
    studio.at_rest()
    links = studio.eval("m.store.model.links.length")
    studio.page.fill(named("dh-2-a"), "0.9")
    studio.page.press(named("dh-2-a"), "Enter")
    studio.wait("m.store.model.source.includes('0.9') && m.store.frame")
    places = np.reshape(studio.at_rest()["links"], (-1, 7))[:, :3]
    steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
    assert np.isclose(steps, 0.9, atol=1e-9).any(), "two joints are as far apart as the table says"
    studio.page.click(named("dh-add"))
    studio.wait("m.store.model.links.length === a", links + 1)
    studio.page.fill(named("editor"), "[[1, 2")
    studio.wait("document.querySelector(a).textContent !== ''", named("editor-error"))
    assert studio.eval("m.store.model.links.length") == links + 1, "what cannot be read changes nothing"
    assert studio.page.input_value(named("editor")) == "[[1, 2", "and is not lost"


def test_limits_stay_with_their_rows_when_a_row_of_a_dh_table_is_removed(studio):
    """Once the last limits and kinds were removed, whichever row it was."""
    open_tab(studio, "model")
    studio.page.click(named("new-dh"))
    studio.wait("m.store.model.source_kind === 'dh'")
    rows, limits = [[0.1, 0, 90, 0], [0, 0.2, 0, 0], [0.3, 0, 90, 0]], [[-10, 10], [-20, 20], [-0.3, 0.3]]
    table = {"convention": "classic", "columns": "d a alpha theta", "degrees": True, "kinds": "RRP"}
    table |= {"rows": rows, "limits": limits}
    studio.page.fill(named("editor"), json.dumps({"mechanik": 1, "dh": table}))
    studio.wait("m.store.model.dofs.length === 3")
    studio.page.click("[title='Remove row 1']")
    studio.wait("m.store.model.dofs.length === 2")
    changed_table = json.loads(studio.page.input_value(named("editor")))["dh"]
    assert (changed_table["rows"], changed_table["limits"], changed_table["kinds"]) == (rows[1:], limits[1:], "RP")


def test_an_arm_is_made_from_a_list_of_lengths(studio):
    open_tab(studio, "model")
    studio.page.click(named("new-arm_2d"))
    studio.wait("m.store.model.source_kind === 'arm_2d'")
    studio.page.fill(named("editor"), '{"mechanik": 1, "arm": {"lengths": [0.5, 0.4, 0.3, 0.2]}}')
    studio.wait("m.store.model.dofs.length === 4")
    check_drag(studio, by=(15, 15))


def test_the_mechanism_is_saved_as_it_stands_and_opens_again(studio, tmp_path):
    studio.ask({"do": "SetDofValue", "dof": 1, "value": 0.3})
    open_tab(studio, "model")
    for kind in ("mechanism", "urdf"):
        with studio.page.expect_download() as saved:
            studio.page.click(named(f"export-{kind}"))
        path = tmp_path / saved.value.suggested_filename
        saved.value.save_as(path)
        revision = studio.eval("m.store.model.revision")
        studio.page.set_input_files(named("file"), str(path))
        studio.wait("m.store.model.revision > a && m.store.model.name === 'panda' && m.store.frame", revision)
        if kind == "mechanism":  # a URDF does not know where it stands
            assert math.isclose(value_of(studio, "panda_joint2"), 0.3, abs_tol=1e-9)
