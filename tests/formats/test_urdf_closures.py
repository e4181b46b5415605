"""Closures in a sidecar file, in the URDF, or by the names of links."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mechanik.errors import FileMissing, FormatError, MissingExtra
from mechanik.formats.urdf.reader import read_urdf
from mechanik.model import DoF, Mechanism, mobility


def hinge(name: str, parent: str, child: str, x: float) -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/><origin xyz="{x} 0 0"/><axis xyz="0 0 1"/>'
    return f'<joint name="{name}" type="continuous">{ends}</joint>'


def fixed(name: str, parent: str, child: str, x: float = 0) -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/><origin xyz="{x} 0 0"/>'
    return f'<link name="{child}"/><joint name="{name}" type="fixed">{ends}</joint>'


LINKS = '<link name="ground"/><link name="crank"/><link name="coupler"/><link name="rocker"/>'
HINGES = hinge("a", "ground", "crank", 0), hinge("b", "crank", "coupler", 1), hinge("c", "ground", "rocker", 3)
BARS = LINKS + "".join(HINGES)
LOOP = {
    "name": "loop",
    "kind": "pin",
    "link": "coupler",
    "at": {"xyz": [2, 0, 0]},
    "onto_link": "rocker",
    "onto": {"position": [0, 0, 0], "wxyz": [1, 0, 0, 0]},
}


def four_bar(block: str = "", **options: Any) -> Mechanism:
    return read_urdf(f'<robot name="bars">{BARS}{block}</robot>', **options)


def check(mechanism: Mechanism) -> None:
    closure = mechanism.closures["loop"]
    assert closure.free_dof == (DoF.EZ,)
    assert (closure.joint.parent.name, closure.link.name) == ("coupler", "rocker")  # type: ignore[union-attr]
    assert closure.gap().is_closed(1e-12)
    assert mechanism.space.q_names == ("a", "b", "c")


def test_closures_are_read_from_python_data() -> None:
    check(four_bar(closures=[LOOP]))
    check(four_bar(closures={"closures": [LOOP]}))
    assert mobility(four_bar(closures=[LOOP])).gruebler == 3 - 5


@pytest.mark.parametrize("ending", [".closures.json", ".closures.yaml", ".closures.yml"])
def test_sidecar_file_is_found_by_its_name(ending: str, tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    path = tmp_path / "bars.urdf"
    path.write_text(f'<robot name="bars">{BARS}</robot>')
    assert not read_urdf(path).closures
    (tmp_path / f"bars{ending}").write_text(json.dumps([LOOP]))  # JSON is YAML, too
    check(read_urdf(path))


def test_yaml_sidecar_is_read(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    path = tmp_path / "loops.yaml"
    path.write_text(
        "closures:\n"
        "  - name: loop\n"
        "    kind: pin\n"
        "    link: coupler\n"
        "    at: {xyz: [2, 0, 0]}\n"
        "    onto_link: rocker   # shut as it stands\n"
    )
    check(four_bar(closures=path))
    check(four_bar(closures=str(path)))


def test_second_sidecar_file_is_ignored_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "bars.urdf"
    path.write_text(f'<robot name="bars">{BARS}</robot>')
    (tmp_path / "bars.closures.json").write_text(json.dumps([LOOP]))
    (tmp_path / "bars.closures.yml").write_text("[]")
    mechanism = read_urdf(path)
    check(mechanism)
    assert mechanism.warnings == ["bars.closures.yml is ignored, because bars.closures.json exists."]


def test_given_closure_file_replaces_the_sidecar_file(tmp_path: Path) -> None:
    path = tmp_path / "bars.urdf"
    path.write_text(f'<robot name="bars">{BARS}</robot>')
    (tmp_path / "bars.closures.json").write_text(json.dumps([LOOP]))
    assert not read_urdf(path, closures=[]).closures


def test_block_in_the_urdf_closes_loops() -> None:
    check(
        four_bar(
            '<mechanik><closure name="loop" kind="pin" link="coupler" onto_link="rocker" axis="0 0 1">'
            '<at xyz="2 0 0"/><onto rpy="0 0 0"/></closure></mechanik>'
        )
    )
    check(four_bar('<mechanik><closure name="loop" free="EZ" link="coupler" onto_link="rocker" axis="z"/></mechanik>'))


def test_frames_with_paired_names_are_closed_by_a_spherical_joint() -> None:
    frames = fixed("f1", "coupler", "closing_loop_1", 2) + fixed("f2", "rocker", "closing_loop_2")
    closure = four_bar(frames, trim=True).closures["loop"]
    assert closure.free_dof == (DoF.EX, DoF.EY, DoF.EZ)
    assert closure.gap().is_closed(1e-12)
    mechanism = four_bar(frames, closures=[LOOP])
    check(mechanism)
    assert list(mechanism.closures) == ["loop"]


def test_frame_without_its_pair_is_a_warning() -> None:
    lone = fixed("f", "rocker", "closing_x_2")
    assert any("'closing_x_2' has no partner 'closing_x_1'" in warning for warning in four_bar(lone).warnings)


@pytest.mark.parametrize(
    ("kind", "free"),
    [
        ("weld", ""),
        ("pin", "EZ"),
        ("ball", "EX EY EZ"),
        ("slider", "Z"),
        ("universal", "EX EY"),
        ("cylindrical", "Z EZ"),
    ],
)
def test_each_kind_of_closure_has_its_free_dofs(kind: str, free: str) -> None:
    closure = four_bar(closures=[LOOP | {"kind": kind}]).closures["loop"]
    assert [dof.name for dof in closure.free_dof] == free.split()


def test_closure_without_onto_is_closed_at_the_present_configuration() -> None:
    closure_data = {key: value for key, value in LOOP.items() if key != "onto"} | {"at": [0.3, 0.4, 0.5]}
    closure = four_bar(closures=[closure_data]).closures["loop"]
    assert closure.gap().is_closed(1e-12)
    assert np.abs(closure.at.position - [-1.7, 0.4, 0.5]).max() < 1e-12


def test_axis_rotates_the_free_dofs() -> None:
    for axis in ("x", [1, 0, 0]):
        joint = four_bar(closures=[LOOP | {"kind": "slider", "axis": axis}]).closures["loop"].joint
        assert np.abs(joint.axis - [1, 0, 0]).max() < 1e-15  # type: ignore[union-attr]


def test_closures_can_have_limits() -> None:
    joint = four_bar(closures=[LOOP | {"lower": [-1], "upper": [None]}]).closures["loop"].joint
    assert joint.limits("EZ") == (-1, np.inf)  # type: ignore[union-attr]


BAD: dict[str, tuple[Any, str]] = {
    "not a list": (7, "closures must be a list, not int"),
    "a mapping of something else": ({"loops": []}, "must be a list of closures"),
    "an entry that is a word": (["loop"], "closure 1 is 'loop'"),
    "an unknown key": (
        [LOOP | {"lnik": "a"}],
        "closure 'loop': no key of a closure is called 'lnik'.*Did you mean 'link'",
    ),
    "an unknown kind": ([LOOP | {"kind": "pim"}], "'pim'.*Did you mean 'pin'"),
    "a kind that is a number": ([LOOP | {"kind": 3}], "no kind of closure is called 3"),
    "an unknown link": ([LOOP | {"link": "cuopler"}], "Did you mean 'coupler'"),
    "an unknown link to end on": ([LOOP | {"onto_link": ["rocker"]}], "no link is called"),
    "no link": ([{"name": "loop", "kind": "pin", "onto_link": "rocker"}], "link is missing"),
    "no name": ([LOOP | {"name": ""}], "closure 1: the name is missing"),
    "kind and free": ([LOOP | {"free": ["EZ"]}], "and not both"),
    "neither kind nor free": ([{"name": "loop", "link": "coupler", "onto_link": "rocker"}], "either kind or free"),
    "a name that a joint has": ([LOOP | {"name": "a"}], "another joint is called 'a'"),
    "a name twice": ([LOOP, LOOP], "another joint is called 'loop'"),
    "onto its own link": ([LOOP | {"onto_link": "coupler"}], "cannot close a loop onto it"),
    "two numbers of three": ([LOOP | {"at": [1, 2]}], "at must have 3 numbers"),
    "a NaN": ([LOOP | {"at": {"xyz": [1, 2, float("nan")]}}], "every number must be finite"),
    "a word for a number": ([LOOP | {"at": {"rpy": "up"}}], "rpy of at must have 3 numbers"),
    "a zero quaternion": ([LOOP | {"onto": {"wxyz": [0, 0, 0, 0]}}], "closure 'loop'"),
    "an unknown key of a place": ([LOOP | {"at": {"pos": [1, 2, 3]}}], "no key of at is called 'pos'"),
    "a place said twice": ([LOOP | {"at": {"xyz": [1, 2, 3], "position": [1, 2, 3]}}], "keys that exclude each other"),
    "a zero axis": ([LOOP | {"axis": [0, 0, 0]}], "axis of 'loop' is zero"),
    "an unknown axis": ([LOOP | {"axis": "w"}], "axis of 'loop' must be .*not 'w'"),
    "axis and axes": ([LOOP | {"axis": "x", "axes_wxyz": [1, 0, 0, 0]}], "axis and axes_wxyz exclude each other"),
    "limits that are words": ([LOOP | {"lower": ["low"]}], "limits must be numbers"),
    "too many limits": ([LOOP | {"lower": [1, 2]}], "limits of .*2 values given, 1 needed"),
    "limits upside down": ([LOOP | {"lower": [2], "upper": [1]}], "above the upper"),
}


@pytest.mark.parametrize("case", BAD)
def test_invalid_closure_raises_an_error_that_names_it(case: str) -> None:
    given, message = BAD[case]
    with pytest.raises(FormatError, match=f"(?s){message}"):
        four_bar(closures=given)


def test_free_must_be_a_list_of_dofs() -> None:
    closure_data = {key: value for key, value in LOOP.items() if key != "kind"}
    cases = ((["EW"], "'EW' is not a degree"), (3, "free must be a list"), (["EZ", "X"], "the order must be"))
    for free, message in cases:
        with pytest.raises(FormatError, match=message):
            four_bar(closures=[closure_data | {"free": free}])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("c.json", '[{"name": }]', r"c\.json, line 1, column 11"),
        ("c.json", "[" * 100_000, r"c\.json: lists are nested too deeply"),
        ("c.json", "", "is empty"),
        ("c.json", "\0\0", "binary"),
        ("c.yaml", "[1, 2", r"c\.yaml: "),
        ("c.yaml", "!!python/object:os.system x", r"c\.yaml: could not determine a constructor"),
    ],
)
def test_invalid_closure_file_raises_an_error_that_names_the_file(
    name: str, text: str, message: str, tmp_path: Path
) -> None:
    pytest.importorskip("yaml")
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(FormatError, match=message):
        four_bar(closures=path)


def test_missing_closure_file_raises_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileMissing, match=r"loops\.json"):
        four_bar(closures=tmp_path / "loops.json")


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ('<closure kind="pin" link="coupler" onto_link="rocker"/>', "line 1: closure '': the name is missing"),
        ('<closure name="loop" kind="pin" link="x" onto_link="rocker"/>', "closure 'loop': no link is called 'x'"),
        ('<closure name="loop" kind="pin" link="coupler" onto_link="rocker"><on/></closure>', "<on> of closure 'loop'"),
        ('<closure name="loop" kind="pin" link="coupler" onto_link="rocker" axis="0 0"/>', "2 numbers instead of 3"),
        ('<closure name="loop" kind="pin" link="coupler" onto_link="rocker" lower="low"/>', "limits must be numbers"),
        (
            '<closure name="loop" kind="pin" link="coupler" onto_link="rocker"><at xyz="nan 0 0"/></closure>',
            "not a finite",
        ),
    ],
)
def test_invalid_block_raises_an_error_that_names_the_line(block: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        four_bar(f"<mechanik>{block}</mechanik>")


def test_without_yaml_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without_yaml(name: str, *rest: Any, **options: Any) -> Any:
        if name == "yaml":
            raise ImportError(name)
        return imported(name, *rest, **options)

    path = tmp_path / "c.yaml"
    path.write_text("[]")
    monkeypatch.setattr(builtins, "__import__", without_yaml)
    with pytest.raises(MissingExtra, match="yaml"):
        four_bar(closures=path)
