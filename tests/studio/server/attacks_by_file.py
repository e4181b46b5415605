"""Attacks with files."""

from __future__ import annotations

import contextlib
import io
import zipfile

import httpx
from attacks import Attacker, attack, attacks
from wire_client import LARGEST_UPLOAD, cookie_of
from xml_bombs import BOMB, GOOD, OUTSIDE


def zipped(**members: bytes) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return data.getvalue()


def wrong_file(them: Attacker, file: tuple[str, bytes]) -> None:
    answer = them.upload(*file)
    assert 400 <= answer.status_code < 500
    assert answer.text
    assert "Traceback" not in answer.text
    assert "internal error" not in answer.text
    assert "root:" not in answer.text


attacks(
    "file",
    wrong_file,
    ("a.urdf", b""),
    ("a.urdf", b"\x00\x01\x02" * 100),
    ("a.urdf", BOMB.encode()),
    ("a.urdf", OUTSIDE.encode()),
    ("a.xml", b"<mujoco><include file='/etc/passwd'/></mujoco>"),
    ("a.sdf", b"<sdf version='1.7'><include><uri>file:///etc/passwd</uri></include></sdf>"),
    ("a.json", b"[" * 200_000),
    ("a.zip", b"PK\x03\x04 this is none"),
    ("a.zip", zipped(**{"robot.urdf": b"<robot>" + b" " * 200_000_000})),
    ("a.zip", zipped(**{"../../robot.urdf": GOOD.encode()})),
    ("a.zip", zipped(**{"/etc/cron.d/robot.urdf": GOOD.encode()})),
    ("a.zip", zipped(**{"..\\robot.urdf": GOOD.encode()})),
    ("a.zip", zipped(**{"a.zip": zipped(**{"robot.urdf": GOOD.encode()})})),
    ("a.zip", zipped(**{f"{k}.stl": b"" for k in range(2100)})),
    ("..%2f..%2fetc%2fpasswd", b""),
    ("%2fetc%2fpasswd", b"root"),
    ("a%00.urdf", b"<"),
    ("", GOOD.encode()),
    ("a" * 1000, GOOD.encode()),
)


@attack("a file that is too large, and says so")
def _(them):
    assert them.upload("a.urdf", b"a" * (LARGEST_UPLOAD + 1)).status_code == 413


@attack("a file that is too large, and does not say how large it is")
def _(them):
    pieces = (b"a" * 10_000 for _ in range(10_000))
    # it may be cut before it has said all, and then before it has heard why
    with contextlib.suppress(httpx.WriteError, httpx.ReadError, httpx.RemoteProtocolError):
        assert them.upload("a.urdf", pieces).status_code == 413


@attack("a file that ends before it is all there")
def _(them):
    key = them.key
    host = them.own.removeprefix("http://")
    head = (
        f"POST /upload/{key}?name=a.urdf HTTP/1.1\r\nHost: {host}\r\nOrigin: {them.own}\r\n"
        f"Cookie: {cookie_of(them.server)}\r\nContent-Length: 100000\r\n\r\n<robot"
    )
    answer = them.raw(head.encode())
    assert b" 200 " not in answer[:20]


@attack("a file for a session that there is not")
def _(them):
    assert them.http("POST", "/upload/AAAAAAAAAAAAAAAAAAAAAA?name=a.urdf", content=GOOD).status_code == 404
