"""Attacks with hands and requests that no page sends, and with bytes that are no websocket."""

from __future__ import annotations

import contextlib
import json
import struct

import pytest
from attacks import Attacker, attack, attacks
from websockets.exceptions import ConnectionClosed
from xml_bombs import BOMB, OUTSIDE

from mechanik.studio.messages.message_codec import DRAG_STRUCT

LARGEST_MESSAGE = 1_000_000


def wrong_drag(them: Attacker, data: bytes) -> None:
    page = them.page()
    before = page.frame.values
    page.events.clear()
    page.socket.send(data)
    assert page.wait_for("RequestRefused", id=-1)["message"]
    assert page.ask("EndDrag")["is"] == "RequestDone"
    assert (page.frame.values == before).all()


def hand(kind=2.0, tag=1.0, number=1.0, *numbers) -> bytes:
    return DRAG_STRUCT.pack(kind, tag, number, *(numbers or (0.1, 0.2, 0.3, 1.0, 0.0, 0.0, 0.0)))


attacks(
    "hand",
    wrong_drag,
    b"",
    b"\x00" * 79,
    b"\x00" * 81,
    b"\x00" * 80,
    b"\xff" * 80,
    hand(2, 1, 1, float("nan"), 0, 0, 1, 0, 0, 0),
    hand(2, 1, 1, float("inf"), 0, 0, 1, 0, 0, 0),
    hand(2, 1, 1, 1e308, 0, 0, 1, 0, 0, 0),
    hand(2, 1, 1, -1e7, 0, 0, 1, 0, 0, 0),
    hand(2, 1, 1, 0, 0, 0, 0, 0, 0, 0),
    hand(2, 1, 1, 0, 0, 0, 5, 5, 5, 5),
    hand(2, 1, 1, 0, 0, 0, float("nan"), 0, 0, 0),
    hand(7),
    hand(2, -1),
    hand(2, float("nan")),
    hand(2, 1, 1.5),
    hand(2, 1, 999_999),
    hand(2, 1, float("inf")),
    hand(3, 1, 99_999),
)

# ---- requests -------------------------------------------------------------------------------------------


def wrong_request(them: Attacker, text: str) -> None:
    page = them.page()
    page.events.clear()
    page.socket.send(text)
    refusal = page.wait_for("RequestRefused")
    assert refusal["message"]
    assert "Traceback" not in refusal["message"]
    assert "internal error" not in refusal["message"]
    assert page.ask("EndDrag")["is"] == "RequestDone"


def request(do: str, **fields) -> str:
    return json.dumps({"do": do, "id": 1, **fields})


attacks(
    "request",
    wrong_request,
    "",
    "{",
    "null",
    "[]",
    '"Undo"',
    "1" * 100_000,
    "[" * 100_000,
    '{"do":' * 50_000,
    '{"do": "Undo", "id": ' + "9" * 5000 + "}",
    '{"do": ["Undo"]}',
    '{"do": "__init__"}',
    request("Request"),
    request("Undo", more=1),
    request("OpenGallery"),
    request("OpenGallery", name="nothing of that name"),
    request("OpenGallery", name="../../etc/passwd"),
    request("OpenGallery", name="__class__"),
    request("OpenGallery", name="panda\x00"),
    request("OpenGallery", name=["panda"]),
    request("OpenGallery", name="a" * 201),
    request("OpenGallery", name="\ud800"),
    request("OpenScene", name="nothing"),
    request("SetDofValue", dof=99_999, value=0),
    request("SetDofValue", dof=-1, value=0),
    request("SetDofValue", dof=True, value=0),
    request("SetDofValue", dof=0.5, value=0),
    request("SetDofValue", dof=0, value="1"),
    request("SetDofValue", dof=0, value=None),
    request("SetDofValue", dof=0, value=1e308),
    '{"do": "SetDofValue", "id": 1, "dof": 0, "value": NaN}',
    '{"do": "SetDofValue", "id": 1, "dof": 0, "value": -Infinity}',
    '{"do": "SetDofValue", "id": 1, "dof": 0, "value": 1e999}',
    '{"do": "SetDofValue", "id": 1, "dof": 0, "value": ' + "9" * 400 + "}",
    request("SetLimits", dof=0, lower=2.0, upper=1.0),
    request("GoTo", configuration="nowhere"),
    request("AddGoal", kind="exec", link="tool"),
    request("AddGoal", kind="pose", link="nothing"),
    request("AddGoal", kind="pose", link="tool", pose=[0, 0, 0, 0, 0, 0, 0]),
    request("AddGoal", kind="pose", link="tool", pose=[0, 0, 0]),
    request("AddGoal", kind="point", link="tool", at=[0, 0, {"a": 1}]),
    request("MoveGoal", goal=999, pose=[0, 0, 0, 1, 0, 0, 0]),
    request("ChangeGoal", goal=999, weight=1.0),
    request("RemoveGoal", goal=10**9),
    request("StartGoalDrag", goal=12345),
    request("StartLinkDrag", link="nothing", at=[0, 0, 0]),
    request("SetSolver", solver="nothing", options={}),
    request("SetSolver", solver="lm", options={"nothing": 1}),
    request("SetSolver", solver="lm", options={"tolerance": "small"}),
    request("SetSolver", solver="lm", options={"tolerance": {"a": 1}}),
    request("SetSolver", solver="lm", options={str(k): 1 for k in range(500)}),
    request("Compare", solvers=["lm"] * 50),
    request("Compare", solvers=["nothing"]),
    request("ShowAlternatives", max_count=1_000_000),
    request("Play", on=True, speed=0.0),
    request("Export", kind="exe"),
    request("SetControl", name="nothing", value=1),
    request("EditModel", kind="urdf", text=BOMB),
    request("EditModel", kind="urdf", text=OUTSIDE),
    request("EditModel", kind="json", text="[" * 100_000),
    request("EditModel", kind="dh", text="NaN"),
    request("EditModel", kind="arm_2d", text='{"__class__": 1}'),
    request("EditModel", kind="urdf", text="a" * 200_001),
)


@attack("a text frame that is no UTF-8")
def _(them):
    page = them.new_page()
    page.socket.send(b"\xff\xfe{}", text=True)
    page.wait_closed()


@attack("messages that are too large")
def _(them):
    for data in ("a" * (LARGEST_MESSAGE + 1), b"a" * (LARGEST_MESSAGE + 1)):
        page = them.new_page()
        with contextlib.suppress(ConnectionClosed):
            page.socket.send(data)
        page.wait_closed()


def forged_frame(them: Attacker, data: bytes) -> None:
    """Bytes that are no websocket: the connection is closed, not more."""
    connection = them.raw_page()
    with contextlib.suppress(ConnectionError):
        connection.sendall(data)
        while connection.recv(65536):
            pass


attacks(
    "websocket bytes",
    forged_frame,
    b"\x81\x05hello",  # not masked
    b"\xf1\x80\x00\x00\x00\x00",  # reserved bits
    b"\x8b\x80\x00\x00\x00\x00",  # a kind that there is not
    b"\x89\xfe\x01\x00" + b"\x00" * 300,  # a ping that is too long
    b"\x82\xff" + struct.pack(">Q", 2**62) + b"\x00" * 100,  # announces more than there is memory
    b"\x88\x82\x00\x00\x00\x00\x00\x01",  # closes with a code that there is not
)


@attack("a message in pieces without an end")
def _(them):
    connection = them.raw_page()
    piece = b"\x00" * 60_000
    with contextlib.suppress(ConnectionError):
        connection.sendall(b"\x01\xfe" + struct.pack(">H", len(piece)) + b"\x00" * 4 + piece)
        for _ in range(1000):
            connection.sendall(b"\x00\xfe" + struct.pack(">H", len(piece)) + b"\x00" * 4 + piece)
        pytest.fail("60 MB of pieces were taken")
