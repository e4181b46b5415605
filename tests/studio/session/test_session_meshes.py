"""A session serves meshes and the files that they refer to by number, from an upload or from disk."""

from __future__ import annotations

import os

import pytest
from painted_meshes import BIN, FILES, RED_GREEN, packed
from session_harness import SessionHarness

from mechanik.errors import MechanikError
from mechanik.formats import load
from mechanik.formats.load_bytes import load_bytes


def beside(harness: SessionHarness) -> list[dict[str, bytes]]:
    """Of each link's mesh: the files by the names that it has for them."""
    return [
        {
            name: harness.session.read_mesh(int(at.partition("?")[0].rpartition("/")[2]))[0]
            for name, at in shape.dependencies.items()
        }
        for link in harness.model.links
        for shape in link.visuals
    ]


EXPECTED = [
    {"plate.mtl": FILES["plates/meshes/plate.mtl"], "../pictures/red green.png": RED_GREEN},
    {"../pictures/red green.png": RED_GREEN},
    {"../pictures/red%20green.png": RED_GREEN, "plate.bin": BIN},
]


def test_what_came_in_a_zip_is_given_by_number():
    mechanism, files = load_bytes("plates.zip", packed())
    with SessionHarness(key="k") as harness:
        harness.session.open(mechanism, files=files)
        assert beside(harness) == EXPECTED
        with pytest.raises(MechanikError):
            harness.session.read_mesh(6)


def test_what_lies_on_the_disk_is_found_for_a_model_that_was_opened_here_and_for_no_other(tmp_path):
    for name, data in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    mechanism = load(tmp_path / "plates" / "plates.urdf", packages={"plates": tmp_path / "plates"})
    with SessionHarness() as harness:
        harness.session.open(mechanism)
        assert beside(harness) == EXPECTED
        harness.session.open(mechanism, files={})
        assert beside(harness) == [{}, {}, {}]


def test_an_address_changes_with_the_content():
    """Pages keep what they have fetched: a second zip was once shown with the meshes of the first."""
    addresses = []
    for more in (b"", b"\n"):
        mechanism, files = load_bytes("plates.zip", packed(FILES | {"plates/meshes/plate.obj": b"v 0 0 0" + more}))
        with SessionHarness(key="k") as harness:
            harness.session.open(mechanism, files=files)
            addresses.append([link.visuals[0].mesh for link in harness.model.links])
    assert addresses[0][0] != addresses[1][0]
    assert addresses[0][1:] == addresses[1][1:]


def test_the_address_of_a_file_on_the_disk_changes_with_its_content_within_one_tick_of_the_clock(tmp_path):
    """Files that are written twice within one tick have the same time: pages showed the first."""
    for name, data in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    mechanism = load(tmp_path / "plates" / "plates.urdf", packages={"plates": tmp_path / "plates"})
    addresses, plate = [], tmp_path / "plates" / "meshes" / "plate.obj"
    for content in (plate.read_bytes(), plate.read_bytes() + b"\n"):
        plate.write_bytes(content)
        os.utime(plate, ns=(1, 1))
        with SessionHarness(key="k") as harness:
            harness.session.open(mechanism)
            addresses.append([link.visuals[0].mesh for link in harness.model.links])
    assert addresses[0][0] != addresses[1][0]
    assert addresses[0][1:] == addresses[1][1:]
