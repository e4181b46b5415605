"""Attacks with meshes that name files: of this machine, of another, and such as are not what they are called."""

from __future__ import annotations

import struct

from attacks import Attacker, attack, attacks
from painted_meshes import FILES, RED_GREEN, dae, gltf, packed, robot

from mechanik.model.mesh_files import MAX_REFERENCED_FILES

SCRIPT = b"<html><script>alert(1)</script></html>"
HUGE = RED_GREEN[:16] + struct.pack(">II", 2**31 - 1, 2**31 - 1) + RED_GREEN[24:]


class Robot:
    """One with a mesh, which is opened on a page of its own.

    Attributes:
        key: of the session.
        shapes: as the page is told.
    """

    def __init__(self, them: Attacker, files: dict[str, bytes], mesh: str) -> None:
        self.page = them.new_page()
        self.key = self.page.welcome["session"]
        whole = {"plates/plates.urdf": robot({"only": mesh, "tip": mesh}).encode(), **files}
        answer = them.http("POST", f"/upload/{self.key}?name=plates.zip", content=packed(whole))
        assert answer.status_code == 200, answer.text
        model = self.page.wait_for("Model", name="plates")
        self.shapes = [shape for link in model["links"] for shape in (*link["visuals"], *link["collisions"])]
        assert self.shapes


def nothing_comes_along(them: Attacker, case: tuple[str, bytes, dict[str, bytes]]) -> None:
    """The mesh is there, and nothing else is: not under its numbers, nor under the next ones."""
    mesh, data, others = case
    opened = Robot(them, {f"plates/meshes/{mesh}": data, **others}, mesh)
    assert all(shape["dependencies"] == {} for shape in opened.shapes)
    assert them.http("GET", opened.shapes[0]["mesh"]).content == data
    for number in range(1, 5):
        answer = them.http("GET", f"/mesh/{opened.key}/{number}")
        assert answer.status_code == 404
        assert "root:" not in answer.text


AWAY = "http://192.0.2.1/x.png"
attacks(
    "mesh",
    nothing_comes_along,
    ("a.obj", b"mtllib /etc/passwd\nmtllib ../../../../../../etc/passwd\n", {}),
    ("a.obj", b"mtllib /etc/hostname.mtl\nmtllib file:///etc/passwd.mtl\n", {}),
    ("a.obj", b"mtllib a.mtl\n", {"plates/meshes/a.mtl": b""}),
    ("a.obj", b"mtllib plates.urdf\nmtllib a.obj\n", {}),
    ("a.dae", dae("/etc/passwd").encode(), {}),
    ("a.dae", dae("file:///etc/x.png").encode(), {}),
    ("a.dae", dae(AWAY).encode(), {}),
    ("a.dae", dae("x.svg").encode(), {"plates/meshes/x.svg": b"<svg/>"}),
    ("a.dae", dae("x.png").encode(), {"plates/meshes/x.png": SCRIPT}),
    ("a.dae", dae("x.png").encode(), {"plates/meshes/x.png": HUGE}),
    ("a.gltf", gltf("/etc/passwd", "%2e%2e/%2e%2e/etc/passwd").encode(), {}),
    ("a.gltf", gltf("/dev/zero.bin", AWAY).encode(), {}),
    ("a.gltf", b"[" * 200_000, {}),
    ("a.gltf", b'{"uri":' * 100_000, {}),
)


@attack("materials that name files of the machine")
def _(them):
    lines = b"newmtl a\nmap_Kd /etc/passwd\nmap_Kd ../../../../etc/passwd.png\nmap_Kd file:///etc/x.jpg\n"
    files = {"plates/meshes/a.obj": b"mtllib a.mtl\n", "plates/meshes/a.mtl": lines}
    opened = Robot(them, files, "a.obj")
    assert list(opened.shapes[0]["dependencies"]) == ["a.mtl"]
    assert them.http("GET", f"/mesh/{opened.key}/2").status_code == 404


@attack("a mesh that names thousands of files")
def _(them):
    many = {f"plates/meshes/{k}.mtl": b"newmtl a" for k in range(1500)}
    names = "".join(f"mtllib {k}.mtl\n" for k in range(1500)).encode()
    opened = Robot(them, {"plates/meshes/a.obj": names, **many}, "a.obj")
    assert 0 < len(opened.shapes[0]["dependencies"]) <= MAX_REFERENCED_FILES


@attack("a picture asked for by a number in another session, or by a path")
def _(them):
    opened = Robot(them, {name: data for name, data in FILES.items() if not name.endswith(".urdf")}, "plate.dae")
    (address,) = opened.shapes[0]["dependencies"].values()
    good = them.http("GET", address)
    assert good.content == RED_GREEN
    assert good.headers["content-type"] == "image/png"
    assert good.headers["x-content-type-options"] == "nosniff"
    number = address.rsplit("/", 1)[1]
    for key in ("AAAAAAAAAAAAAAAAAAAAAA", them.new_page().welcome["session"]):
        assert them.http("GET", f"/mesh/{key}/{number}").status_code == 404
    for path in ("%2e%2e/pictures/red%20green.png", "plate.dae", "%2fetc%2fpasswd", "1%2f..%2f1", "-1", "1e0"):
        answer = them.http("GET", f"/mesh/{opened.key}/{path}")
        assert answer.status_code == 404
        assert answer.content != RED_GREEN


@attack("a mesh that cannot be drawn, saved as glTF")
def _(them):
    broken = {
        "plates/meshes/a.obj": b"mtllib a.mtl\nv 1 2 3\nf 1 1 9\n",
        "plates/meshes/a.mtl": b"newmtl a\nKd nan 1 1",
    }
    page = Robot(them, broken, "a.obj").page
    assert page.ask("RecordMotion", on=True)["is"] == "RequestDone"
    for value in (0.1, 0.2):
        assert page.ask("SetDofValue", dof=0, value=value)["is"] == "RequestDone"
    page.ask("RecordMotion", on=False)
    assert page.ask("Export", kind="glb")["is"] == "RequestDone"
    assert them.http("GET", page.wait_for("Download")["address"]).content.startswith(b"glTF")
