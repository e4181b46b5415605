"""JSON mechanisms: round trips are exact, and errors name the JSON path."""

from __future__ import annotations

import contextlib
import copy
import inspect
import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from random_full_mechanisms import mechanisms

import mechanik.model as mk
from mechanik.errors import FileMissing, FormatError, MechanikError
from mechanik.formats import arm_tables as arms
from mechanik.formats import arm_tables as dh
from mechanik.formats import json as mechanism_json
from mechanik.formats.json import describe, read_json, write_json

SCHEMA = json.loads(Path(mechanism_json.__file__).with_name("mechanism.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
LAW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def two_link_arm():
    builder = mk.Builder("arm")
    builder.revolute("shoulder", "base", "upper", limits=(-2, 2), value=0.3)
    builder.revolute("elbow", "upper", "fore", at=(1, 0, 0), limits=(-1, 1))
    builder.fixed("wrist", "fore", "tool", at=(0.5, 0, 0))
    builder.couple("elbow", "shoulder", 0.5)
    builder.goal("there", "tool", dof=["X", "Y"])
    builder.joint_constraint("stop", {"shoulder": [1, 0.5]}, 0.345)
    builder.link("upper", visuals=[mk.ShapeInstance(mk.Box((1, 0.1, 0.1)))], inertial=mk.Inertial(2.0))
    return builder.build()


def four_bar():
    builder = mk.Builder("four-bar")
    builder.revolute("crank", "ground", "a", value=0.6)
    builder.revolute("coupler", "a", "b", at=(0.5, 0, 0))
    builder.revolute("rocker", "ground", "c", at=(2, 0, 0))
    builder.close("pin", "b", "c", "pin", at=(1.8, 0, 0), onto=(1.2, 0, 0))
    return builder.build()


# ---- round trips -----------------------------------------------------------------------------------


@LAW
@given(mechanisms())
def test_json_round_trip_is_exact(mechanism):
    back = read_json(write_json(mechanism))
    assert repr(describe(back)) == repr(describe(mechanism))


@LAW
@given(mechanisms())
def test_dict_round_trip_is_exact(mechanism):
    assert describe(read_json(describe(mechanism))) == describe(mechanism)


@LAW
@given(mechanisms())
def test_writing_is_idempotent_and_valid_by_the_schema(mechanism):
    text = write_json(mechanism)
    assert write_json(read_json(text)) == text
    VALIDATOR.validate(json.loads(text))
    VALIDATOR.validate(describe(mechanism))


@LAW
@given(mechanisms())
def test_json_round_trip_keeps_names_q_and_poses(mechanism):
    back = read_json(write_json(mechanism))
    assert back.space.q_names == mechanism.space.q_names
    assert back.q.tolist() == mechanism.q.tolist()
    assert {name: link.world_matrix.tolist() for name, link in back.links.items()} == {
        name: link.world_matrix.tolist() for name, link in mechanism.links.items()
    }


# ---- examples -------------------------------------------------------------------------------


def test_writing_does_not_change_the_mechanism():
    mechanism = four_bar()
    before = mechanism.revision, mechanism.q.tolist()
    describe(mechanism)
    assert (mechanism.revision, mechanism.q.tolist()) == before


def test_json_text_is_short():
    text = write_json(two_link_arm())
    assert len(text.splitlines()) < 60
    assert max(map(len, text.splitlines())) < 140
    assert '"position": [1.0, 0.0, 0.0]' in text


def test_infinite_limits_are_null():
    joint = json.loads(write_json(_one_joint(lower=[-1.0])))["joints"][0]
    assert joint["lower"] == [-1.0]
    assert "upper" not in joint
    assert describe(_one_joint(lower=[-1.0]))["joints"][0]["upper"] == [None]


def _one_joint(**options):
    link, joint = mk.Link("a"), mk.Joint("j", dof="EZ", **options)
    link.add_child(joint)
    joint.add_child(mk.Link("b"))
    return mk.Mechanism(link)


def test_spherical_joint_keeps_its_quaternion_and_full_turns():
    builder = mk.Builder()
    ball = builder.spherical("ball", "a", "b")
    ball.set_values(0.1, 7.0, -0.2)
    back = read_json(write_json(builder.build())).joint("ball")
    assert back.values.tolist() == ball.values.tolist()
    assert back.rotation_wxyz.tolist() == ball.rotation_wxyz.tolist()


def test_spherical_joint_can_be_given_by_its_quaternion_alone():
    data = describe(_ball())
    data["joints"][0] |= {"rotation_wxyz": [0, 0, 0, 2]}
    del data["joints"][0]["values"]
    assert read_json(data).joint("ball").rotation_wxyz.tolist() == [0, 0, 0, 1]


def _ball():
    builder = mk.Builder()
    builder.spherical("ball", "a", "b")
    return builder.build()


def test_values_of_a_closure_default_to_those_of_its_links():
    mechanism = four_bar()
    data = describe(mechanism)
    pin = next(joint for joint in data["joints"] if joint["name"] == "pin")
    del pin["values"]
    assert read_json(data).joint("pin").value("EZ") == pytest.approx(mechanism.joint("pin").value("EZ"))


def test_missing_value_is_clamped_to_limits_and_follows_its_leader():
    data = describe(two_link_arm())
    for joint in data["joints"]:
        del joint["values"]
    data["joints"][0]["lower"] = [0.5]
    mechanism = read_json(data)
    assert mechanism.joint("shoulder").value("EZ") == 0.5
    assert mechanism.joint("elbow").value("EZ") == 0.25


def test_json_file_is_read_by_path(tmp_path):
    path = tmp_path / "arm.json"
    path.write_text(write_json(two_link_arm()))
    assert describe(read_json(path)) == describe(read_json(str(path))) == describe(two_link_arm())


def test_meshes_are_found_in_the_folder_of_the_file(tmp_path):
    (tmp_path / "hand.stl").write_text("solid")
    data = {
        "mechanik": 1,
        "links": [{"name": "a", "visuals": [{"type": "mesh", "uri": "hand.stl"}, {"type": "mesh", "uri": "gone.stl"}]}],
    }
    path = tmp_path / "arm.json"
    path.write_text(json.dumps(data))
    mechanism = read_json(path)
    existing, missing = mechanism.link("a").visuals
    assert existing.shape.path == str(tmp_path / "hand.stl")
    assert missing.shape.path is None
    assert mechanism.warnings == ["the mesh file 'gone.stl' does not exist"]


def test_byte_order_mark_is_ignored(tmp_path):
    for encoding in ("utf-8-sig", "utf-16"):
        path = tmp_path / f"{encoding}.json"
        path.write_text(write_json(two_link_arm()), encoding=encoding)
        assert describe(read_json(path)) == describe(two_link_arm())


def test_dh_table_in_json_equals_from_dh():
    table = {"rows": [[0.1, 0.2, 90, 0], [0, 0.3, 0, 10]], "convention": "classic", "columns": "d a alpha theta"}
    data = {"mechanik": 1, "dh": {**table, "degrees": True, "tool": {"position": [0, 0, 0.1]}}}
    VALIDATOR.validate(data)
    made = dh.from_dh(**table, degrees=True, tool=(0, 0, 0.1))
    assert describe(read_json(json.dumps(data))) == describe(made)


def test_arm_list_in_json_equals_arm_2d_and_arm_3d():
    for arm, made in (
        ({"lengths": [1, 2, 3], "axes": "zyy"}, arms.arm_3d([1, 2, 3], "zyy")),
        ({"lengths": [1, 2], "limits": [-1, 1]}, arms.arm_2d([1, 2], limits=(-1, 1))),
    ):
        data = {"mechanik": 1, "arm": arm}
        VALIDATOR.validate(data)
        assert describe(read_json(json.dumps(data))) == describe(made)


def test_schema_has_every_argument_of_the_arm_functions():
    defs = SCHEMA["$defs"]
    assert set(defs["dh"]["properties"]) == set(inspect.signature(dh.from_dh).parameters)
    assert set(defs["arm"]["properties"]) == set(inspect.signature(arms.arm_3d).parameters)


def test_extras_without_json_form_raise_an_error():
    mechanism = two_link_arm()
    mechanism.extras["a function"] = {"of": print}
    with pytest.raises(FormatError, match=r"extras\.a function\.of: .*got a builtin_function"):
        write_json(mechanism)
    for extras, message in (
        ({1: "a"}, "the key 1 is not a string"),
        ({"a": [[[[[[[[[1]]]]]]]]]}, "fewer nested levels"),
    ):
        mechanism.extras = extras
        with pytest.raises(FormatError, match=message):
            write_json(mechanism)


def test_nonfinite_numbers_are_not_written():
    mechanism = two_link_arm()
    mechanism.extras["bad"] = np.nan
    with pytest.raises(FormatError, match=r"extras\.bad: expected a finite number"):
        write_json(mechanism)


def test_configuration_names_must_be_strings():
    mechanism = two_link_arm()
    mechanism.configurations[1] = mechanism.q
    with pytest.raises(FormatError, match="the name of a configuration must be a string, not 1"):
        write_json(mechanism)


def test_empty_mechanism_is_read_with_a_warning():
    text = write_json(mk.Mechanism([], name="nothing"))
    back = read_json(text)
    assert (back.name, list(back.links), back.nq) == ("nothing", [], 0)
    assert back.warnings == ["the mechanism has no links; it is empty"]
    assert write_json(back) == text


# ---- invalid input ---------------------------------------------------------------------------------


def changed(place, value):
    """Return the two-link arm with one value replaced; `place` is its path of keys and indices."""
    data = copy.deepcopy(describe(two_link_arm()))
    *parent_keys, last = place
    at = data
    for step in parent_keys:
        at = at[step]
    at[last] = value
    return data


STRUCTURAL = [
    (("joints", 1, "lower"), "low", r"joints\[1\]\.lower: expected a list of 1 numbers or nulls, got \"low\""),
    (("joints", 1, "lower"), ["low"], r"joints\[1\]\.lower\[0\]: expected a number, got \"low\""),
    (("joints", 1, "lower"), [True], r"joints\[1\]\.lower\[0\]: expected a number, got true"),
    (("joints", 1, "dof"), ["EZZ"], r"joints\[1\]\.dof\[0\]: expected one of \"X\".*got \"EZZ\""),
    (("joints", 1, "dof"), "EZ", r"joints\[1\]\.dof: expected a list of dofs"),
    (("joints", 1, "position"), [0, 0], r"joints\[1\]\.position: expected a list of 3 numbers, got a list of 2"),
    (("joints", 1, "position"), None, r"joints\[1\]\.position: expected a list of 3 numbers, got null"),
    (("joints", 1, "wxyz"), [1, 0, 0], r"joints\[1\]\.wxyz: expected a list of 4 numbers"),
    (("joints", 1, "parnt"), "base", r"joints\[1\]\.parnt: unknown key 'parnt'; did you mean 'parent'\?"),
    (("joints", 1, "name"), "", r"joints\[1\]\.name: expected a name, got \"\""),
    (("joints", 1, "name"), 3, r"joints\[1\]\.name: expected a string, got 3"),
    (("joints", 1, "track_turns"), 1, r"joints\[1\]\.track_turns: expected true or false, got 1"),
    (("joints", 1, "values"), [None], r"joints\[1\]\.values\[0\]: expected a number, got null"),
    (("joints",), {}, r"joints: expected a list of values, got an object"),
    (("joints", 1), "elbow", r"joints\[1\]: expected an object, got \"elbow\""),
    (("links", 1, "visuals", 0, "type"), "cone", r"links\[1\]\.visuals\[0\]\.type: expected one of \"box\""),
    (("links", 1, "visuals", 0, "size"), [1, 1, -1], r"links\[1\]\.visuals\[0\]: .*must not be negative"),
    (("links", 1, "visuals", 0, "radius"), 1, r"links\[1\]\.visuals\[0\]\.radius: unknown key 'radius'"),
    (("links", 1, "visuals", 0), {"type": "box"}, r"links\[1\]\.visuals\[0\]: the key 'size' is missing"),
    (("links", 1, "visuals", 0), {"size": [1, 1, 1]}, r"links\[1\]\.visuals\[0\]"),
    (("links", 1, "inertial", "mass"), -1, r"links\[1\]\.inertial: mass must not be negative"),
    (("links", 1, "inertial", "inertia"), [1, 2], r"links\[1\]\.inertial\.inertia: expected a list of 6 numbers"),
    (("goals", 0, "axes"), "tool", r"goals\[0\]\.axes: expected one of \"goal\", \"world\", got \"tool\""),
    (("goals", 0, "at", "xyz"), [0, 0, 0], r"goals\[0\]\.at\.xyz: unknown key 'xyz'"),
    (("couplings", 0, "ratio"), "1", r"couplings\[0\]\.ratio: expected a number"),
    (("couplings", 0, "leader"), None, r"couplings\[0\]\.leader: expected a string, got null"),
    (("joint_constraints", 0, "constant"), "none", r"joint_constraints\[0\]\.constant: expected a number"),
    (
        ("joint_constraints", 0, "terms"),
        {"shoulder": 1},
        r"joint_constraints\[0\]\.terms: expected a list of terms, got an object",
    ),
    (
        ("joint_constraints", 0, "terms", 0, "factors"),
        1,
        r"joint_constraints\[0\]\.terms\[0\]\.factors: expected a list of numbers",
    ),
    (
        ("joint_constraints", 0, "terms", 0, "dof"),
        "Q",
        r"joint_constraints\[0\]\.terms\[0\]: .*not a degree of freedom",
    ),
    (("joints", 1, "cone"), {"angle": 0}, r"joints\[1\]\.cone: "),
    (("joints", 1, "cone"), 0.5, r"joints\[1\]\.cone: expected an object, got 0.5"),
    (("joints", 1, "cone"), {"angle": 1, "axis": "z"}, r"joints\[1\]\.cone\.axis: unknown key 'axis'"),
    (("closures",), [{"joint": "elbow"}], r"closures\[0\]: the key 'link' is missing"),
    (("configurations",), [[0]], r"configurations: expected an object"),
    (("configurations",), {"home": ["x"]}, r"configurations\.home\[0\]: expected a number"),
    (("extras",), [], r"extras: expected an object"),
    (("mechanik",), "one", r"mechanik: expected a number"),
    (("mechanik",), 0, r"mechanik: expected a version, 1 to 1, got 0"),
    (("mechanik",), 2, r"the file has version 2 of the format; this version of Mechanik reads up to 1"),
    (("jonts",), [], r"jonts: unknown key 'jonts'; did you mean 'joints'\?"),
    (("name",), 5, r"name: expected a string, got 5"),
]

MEANING = [
    (("joints", 1, "parent"), "bas", r"joints\[1\]\.parent: no link is called 'bas'\. Did you mean 'base'\?"),
    (("joints", 1, "child"), "tol", r"joints\[1\]\.child: no link is called 'tol'.*'tool'"),
    (("joints", 1, "child"), "upper", r"joints\[1\]\.child: .*already has the parent"),
    (("joints", 0, "parent"), "tool", r"joints\[\d\]\.\w+: .*(above|ancestor|own)"),
    (("joints", 1, "name"), "shoulder", r"joints\[1\]\.name: another joint has the name 'shoulder'"),
    (("goals", 0, "name"), "shoulder", r"goals\[0\]\.name: another joint has the name 'shoulder'"),
    (("links", 1, "name"), "base", r"links\[1\]\.name: another link has the name 'base'"),
    (("joints", 1, "lower"), [], r"joints\[1\]\.lower: expected a list of 1 numbers or nulls, got a list of 0"),
    (("joints", 0, "lower"), [3], r"joints\[0\]\.lower: .*the lower limit, 3\.0 rad, is above the upper, 2\.0 rad"),
    (("joints", 0, "values"), [3], r"joints\[0\]\.values\[0\]: the value 3 rad is outside the limits -2 to 2 rad"),
    (("joints", 0, "targets"), [3], r"joints\[0\]\.targets\[0\]: the target 3 rad is outside"),
    (("joints", 0, "rest_pose"), [-3], r"joints\[0\]\.rest_pose\[0\]: the rest value -3 rad is outside"),
    (
        ("joints", 1, "values"),
        [0.7],
        r"joints\[1\]\.values\[0\]: 0.7 rad contradicts the leader 'shoulder', which gives 0\.15 rad",
    ),
    (
        ("joints", 1, "targets"),
        [0.1],
        r"joints\[1\]\.targets\[0\]: a mimic joint cannot have a target; give its leader 'shoulder' the target",
    ),
    (("joints", 1, "wxyz"), [0, 0, 0, 0], r"joints\[1\]\.wxyz: expected a quaternion w, x, y, z that is not zero"),
    (
        ("joints", 1, "rotation_wxyz"),
        [1, 0, 0, 0],
        r"joints\[1\]\.rotation_wxyz: only a joint with three unlimited rotations",
    ),
    (("joints", 1, "dof"), ["EZ", "X"], r"joints\[1\]\.dof: dof X is after EZ"),
    (("joints", 1, "position"), [float("nan"), 0, 0], r"joints\[1\]\.position\[0\]: expected a finite number"),
    (("joints", 1, "position"), [10**400, 0, 0], r"joints\[1\]\.position\[0\]: expected a finite number"),
    (("couplings", 0, "leader"), "elbow", r"couplings\[0\]: .*would be its own leader"),
    (("couplings", 0, "leader_dof"), "X", r"couplings\[0\]: <joint 'shoulder'> has no dof X"),
    (("couplings", 0, "leader"), "wrist", r"couplings\[0\]: "),
    (("couplings", 0, "mimic"), "nobody", r"couplings\[0\]\.mimic: no joint is called 'nobody'"),
    (
        ("joint_constraints", 0, "terms", 0, "joint"),
        "shuolder",
        r"joint_constraints\[0\]\.terms\[0\]\.joint: no joint .*'shoulder'",
    ),
    (
        ("joint_constraints", 0, "terms", 0, "dof"),
        "X",
        r"joint_constraints\[0\]\.terms\[0\]: <joint 'shoulder'> has no dof X",
    ),
    (
        ("joint_constraints", 0, "terms", 0, "factors"),
        [0.0],
        r"joint_constraints\[0\]: <joint constraint 'stop'> has no effect",
    ),
    (
        ("joint_constraints", 0, "terms"),
        [{"joint": "shoulder", "factors": [1]}] * 2,
        r"joint_constraints\[0\]\.terms\[1\]: another term also has EZ of 'shoulder'",
    ),
    (("joints", 1, "cone"), {"angle": 1}, r"joints\[1\]\.cone: .*use set_limits"),
    (("closures",), [{"joint": "elbow", "link": "base"}], r"closures\[0\]: .*has the child <link 'fore'>"),
    (("closures",), [{"joint": "nothing", "link": "base"}], r"closures\[0\]\.joint: no joint is called 'nothing'"),
    (("goals", 0, "link"), "hand", r"goals\[0\]\.link: no link is called 'hand'"),
    (("goals", 0, "in_frame"), "world", r"goals\[0\]\.in_frame: no frame is called 'world'"),
    (("configurations",), {"home": [1, 2]}, r"configurations\.home: expected a list of 1 numbers, got a list of 2"),
    (("extras",), {"a": float("inf")}, r"extras\.a: expected a finite number"),
    (("extras",), {"a": [[[[[[[[[[1]]]]]]]]]]}, r"extras\.a.*: expected a value with fewer nested levels"),
    (("name",), "\ud800", r"name: .*half of a surrogate pair"),
]


@pytest.mark.parametrize(("place", "value", "message"), STRUCTURAL, ids=lambda x: str(x)[:40])
def test_reader_and_schema_both_reject_invalid_structure(place, value, message):
    data = changed(place, value)
    with pytest.raises(FormatError, match=message):
        read_json(data)
    assert not VALIDATOR.is_valid(data)


@pytest.mark.parametrize(("place", "value", "message"), MEANING, ids=lambda x: str(x)[:40])
def test_invalid_content_raises_an_error_that_names_the_json_path(place, value, message):
    with pytest.raises(FormatError, match=message):
        read_json(changed(place, value))


TEXTS = [
    ('{"mechanik": 1', r"line 1, column \d+: the text ends too early"),
    ('{"mechanik": 1,\n "links": [{"name": "a"}', r"line 2, column \d+: the text ends too early"),
    ('{"mechanik": 1,\n "links" [] }', r"line 2, column 10: Expecting ':' delimiter"),
    (
        '{"mechanik": 1, "links": [{"name": "a", "position": [NaN, 0, 0]}]}',
        r"position\[0\]: expected a number, got NaN",
    ),
    ('{"mechanik": 1, "links": [{"name": "a", "position": [-Infinity, 0, 0]}]}', r"got -Infinity"),
    ('{"mechanik": 1, "links": [{"name": "a", "position": [1e400, 0, 0]}]}', r"position\[0\]: .*got 1e400"),
    (
        '{"mechanik": 1, "links": [{"name": "a", "position": [' + "9" * 5000 + ", 0, 0]}]}",
        r"got 99999999999999999999\.\.\.",
    ),
    ('{"mechanik": 1, "links": [{"name": "a", "name": "b"}]}', r"links\[0\]: the key 'name' occurs twice"),
    ('{"mechanik": 1, "links": ' + "[" * 100_000 + "]" * 100_000 + "}", r"nested too deeply"),
    ('{"mechanik": 1, "links": ' + '{"a":' * 100_000 + "1" + "}" * 100_001, r"nested too deeply"),
    ('{"links": []}', r'the key "mechanik" is missing'),
    ('{"mechanik": 1}', r"the mechanism has no links"),
    ('{"mechanik": 1, "links": []} x', r"line 1, column 30: Extra data"),
    ('{"mechanik": 1, "dh": {}, "links": []}', r"links: unknown key 'links'"),
    ('{"mechanik": 1, "dh": {"rows": []}}', r"dh: the key 'convention' is missing"),
    (
        '{"mechanik": 1, "dh": {"rows": [], "convention": "classic", "columns": "d a alpha theta", "degrees": true}}',
        r"^dh: ",
    ),
    ('{"mechanik": 1, "arm": {"lengths": [1, 2], "axes": "zq"}}', r"^arm: "),
    ('{"mechanik": 1, "arm": {"lengths": [1, NaN]}}', r"arm\.lengths\[1\]: expected a number, got NaN"),
    ('{"mechanik": 1, "arm": {"lengths": [[[[[[1]]]]]]}}', r"arm: "),
    ('{"mechanik": 1, "arm": {"lenghts": [1]}}', r"arm\.lenghts: .*did you mean 'lengths'"),
]


@pytest.mark.parametrize(("text", "message"), TEXTS, ids=[text[:60] for text, _ in TEXTS])
def test_invalid_json_raises_an_error_with_line_and_column(text, message):
    with pytest.raises(FormatError, match=message):
        read_json(text)


def test_every_truncated_file_raises_an_error():
    text = write_json(two_link_arm()).rstrip()
    for end in range(1, len(text)):
        with pytest.raises(FormatError):
            read_json(text[:end])


def test_deeply_nested_dict_raises_an_error():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(FormatError):
        read_json({"mechanik": 1, "links": deep})
    with pytest.raises(FormatError):
        read_json({"mechanik": 1, "arm": {"lengths": deep}})
    while deep:  # taken apart by hand: Python would recurse
        deep = deep[0]


def test_error_in_a_json_file_names_the_file(tmp_path):
    path = tmp_path / "arm.json"
    path.write_text('{"mechanik": 1, "lnks": []}')
    with pytest.raises(FormatError, match=r"^arm\.json: lnks: unknown key 'lnks'; did you mean 'links'\?$"):
        read_json(path)
    with pytest.raises(FileMissing, match=r"Did you mean 'arm\.json'"):
        read_json(tmp_path / "arn.json")
    path.write_bytes(b'{"mechanik": 1, "name": "\xff"}')
    with pytest.raises(FormatError, match="byte 25 is not valid UTF-8"):
        read_json(path)


@LAW
@given(mechanisms())
def test_missing_parts_raise_only_mechanik_errors(mechanism):
    data = describe(mechanism)
    for part in ("frames", "links", "joints"):
        rest = {key: value for key, value in data.items() if key != part}
        with contextlib.suppress(MechanikError):
            read_json(rest)
