"""What a page sends is checked by the classes that describe it."""

import json
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanik.errors import InvalidOperation
from mechanik.studio.messages import requests
from mechanik.studio.messages.message_codec import MAX_REQUEST_LENGTH, read_request
from mechanik.studio.messages.requests import REQUESTS

POSE = [0.1, 0.2, 0.3, 1.0, 0.0, 0.0, 0.0]
GOOD = [
    requests.OpenGallery("panda"),
    requests.EditModel("dh", "[[1, 2, 3, 4]]"),
    requests.ShowLinks(["hand", "wrist"], False),
    requests.SetDofValue(3, -0.5),
    requests.SetLimits(0, None, 1.0),
    requests.AddGoal("pose", "hand"),
    requests.AddGoal("hinge", "hand", (0.0, 0.0, 0.1), tuple(POSE), True),
    requests.ChangeGoal(4, weight=0.5, free=["X", "EZ"]),
    requests.SetSolver("ccd", {"max_iterations": 10.0, "limits": True, "kind": "a", "damping": None}),
    requests.Compare(["lm", "ccd"]),
    requests.Play(True, 2.0, True),
    requests.SetControl("speed", 0.5),
    requests.Undo(),
]


def message(request: requests.PageRequest, number: int = 7) -> str:
    return json.dumps({**msgspec.to_builtins(request), "id": number})


@pytest.mark.parametrize("request_", GOOD, ids=lambda request: type(request).__name__)
def test_what_is_written_is_read_back(request_):
    assert read_request(message(request_)) == msgspec.structs.replace(request_, id=7)


def test_what_has_a_default_may_be_left_out():
    goal = read_request('{"do": "AddGoal", "kind": "point", "link": "hand"}')
    assert goal.id == -1
    assert goal == requests.AddGoal("point", "hand")


@pytest.mark.parametrize("kind", REQUESTS.values(), ids=REQUESTS)
def test_every_field_without_a_default_is_needed(kind):
    needed = [field.name for field in msgspec.structs.fields(kind) if field.required]
    if not needed:
        assert read_request(json.dumps({"do": kind.__name__})) == kind()
        return
    with pytest.raises(InvalidOperation, match=needed[0]):
        read_request(json.dumps({"do": kind.__name__}))


BAD = {
    "no JSON": "{",
    "no object": "[1, 2]",
    "no kind": "{}",
    "an unknown kind": '{"do": "Explode"}',
    "a kind that is no text": '{"do": ["Undo"]}',
    "a field that it has not": '{"do": "Undo", "twice": true}',
    "an id that is no number": '{"do": "Undo", "id": "x"}',
    "an id that is true": '{"do": "Undo", "id": true}',
    "NaN": '{"do": "SetDofValue", "dof": 1, "value": NaN}',
    "infinity": '{"do": "SetDofValue", "dof": 1, "value": Infinity}',
    "a number that becomes infinite": '{"do": "SetDofValue", "dof": 1, "value": 1e999}',
    "1e308": '{"do": "SetDofValue", "dof": 1, "value": 1e308}',
    "a whole number of a thousand digits": '{"do": "SetDofValue", "dof": 1, "value": ' + "9" * 1000 + "}",
    "a joint of a thousand digits": '{"do": "SetDofValue", "dof": ' + "9" * 1000 + ', "value": 1}',
    "a number as text": '{"do": "SetDofValue", "dof": 1, "value": "1"}',
    "true for a number": '{"do": "SetDofValue", "dof": 1, "value": true}',
    "half a joint": '{"do": "SetDofValue", "dof": 1.5, "value": 1}',
    "an infinite joint": '{"do": "SetDofValue", "dof": 1e999, "value": 1}',
    "a negative joint": '{"do": "SetDofValue", "dof": -1, "value": 1}',
    "null where none may be": '{"do": "SetDofValue", "dof": 1, "value": null}',
    "an empty name": '{"do": "OpenGallery", "name": ""}',
    "a long name": json.dumps({"do": "OpenGallery", "name": "x" * 201}),
    "a name that is a list": '{"do": "OpenGallery", "name": ["panda"]}',
    "a long text": json.dumps({"do": "EditModel", "kind": "dh", "text": "x" * 200_001}),
    "a kind of goal that there is not": '{"do": "AddGoal", "kind": "wish", "link": "hand"}',
    "a kind of goal that is a list": '{"do": "AddGoal", "kind": ["pose"], "link": "hand"}',
    "a pose of six numbers": '{"do": "MoveGoal", "goal": 1, "pose": [1, 2, 3, 4, 5, 6]}',
    "a pose that is a text": '{"do": "MoveGoal", "goal": 1, "pose": "1234567"}',
    "a pose with a list inside": '{"do": "MoveGoal", "goal": 1, "pose": [[1], 2, 3, 4, 5, 6, 7]}',
    "too many methods": json.dumps({"do": "Compare", "solvers": ["lm"] * 7}),
    "too many directions": json.dumps({"do": "ChangeGoal", "goal": 1, "free": ["X"] * 7}),
    "a level below the first": '{"do": "ChangeGoal", "goal": 1, "level": -1}',
    "a negative weight": '{"do": "ChangeGoal", "goal": 1, "weight": -0.1}',
    "options that are a list": '{"do": "SetSolver", "solver": "lm", "options": []}',
    "an option that is a list": '{"do": "SetSolver", "solver": "lm", "options": {"damping": [1]}}',
    "too many options": json.dumps({"do": "SetSolver", "solver": "lm", "options": {f"o{k}": 1 for k in range(201)}}),
    "deep brackets": "[" * 100_000,
    "deep objects": '{"do":' * 50_000,
    "too long": '{"do": "Undo"' + " " * MAX_REQUEST_LENGTH + "}",
    "bytes that are no text": b"\xff\xfe\x00{",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_what_is_wrong_is_refused_in_words(text):
    with pytest.raises(InvalidOperation) as refusal:
        read_request(text)
    assert 10 < len(str(refusal.value)) < 800


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(
    st.sampled_from(list(REQUESTS)),
    st.data(),
)
def test_whatever_is_in_the_fields_is_read_as_what_it_says_or_refused(name, data):
    kind = REQUESTS[name]
    given_ = {field.name: data.draw(JSON, label=field.name) for field in msgspec.structs.fields(kind)}
    try:
        request = read_request(json.dumps({"do": name, **given_}))
    except InvalidOperation:
        return
    assert type(request) is kind
    for number in numbers_in(msgspec.to_builtins(request)):
        assert math.isfinite(number)


def numbers_in(value):
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from numbers_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from numbers_in(item)


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_any_bytes_are_read_or_refused(data):
    with pytest.raises(InvalidOperation):
        read_request(data)


@pytest.mark.parametrize(
    ("text", "path", "reason"),
    [
        ('{"do": "MoveGoal", "goal": 1, "pose": [1, 2, 3, 4, 5, 6]}', "MoveGoal.pose", "a list of length 7"),
        ('{"do": "AddGoal", "kind": "wish", "link": "hand"}', "AddGoal.kind", "'wish' is not one of point, pose"),
        ('{"do": "ChangeGoal", "goal": 1, "free": ["X", "Q"]}', "ChangeGoal.free[1]", "'Q' is not one of X, Y, Z"),
        ('{"do": "SetLocked", "dof": 1, "locked": 1}', "SetLocked.locked", "expected true or false"),
        ('{"do": "SetLocked", "dof": 1}', "SetLocked", "needs the field 'locked'"),
        ('{"do": "Seek", "time": 1, "twice": true}', "Seek", "has no field 'twice'; its fields are: time"),
        ('{"do": "Play", "on": true, "speed": 100}', "speed", "can be from 0.05 to 20"),
        ('{"do": "MoveGoal", "goal": 1, "pose": [0, 1e9, 0, 1, 0, 0, 0]}', "pose[1]", "from -1,000,000 to 1,000,000"),
    ],
)
def test_refusal_names_the_path_and_the_reason(text, path, reason):
    with pytest.raises(InvalidOperation) as refusal:
        read_request(text)
    assert path in str(refusal.value)
    assert reason in str(refusal.value)
