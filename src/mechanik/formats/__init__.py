"""Readers and writers of model files: URDF, MJCF, SDF, the JSON format of Mechanik, DH tables and arm lists.

`load` chooses the reader by the content of the file, `save` the writer by the suffix, and `check` lists the faults of a
model. A reader takes a path or a text and returns a `Mechanism`, or raises an error that names the file and the
location in it. The readers and writers import `model` and the layers below it; `check` also imports `objectives`.
"""

from mechanik.formats.arm_tables import arm_2d, arm_3d, from_dh
from mechanik.formats.json import describe, read_json, write_json
from mechanik.formats.load import load, save
from mechanik.formats.mjcf.reader import from_qpos, read_mjcf, to_qpos
from mechanik.formats.model_check import Finding, check
from mechanik.formats.sdf.reader import read_sdf
from mechanik.formats.urdf.reader import read_urdf
from mechanik.formats.urdf.writer import write_urdf

__all__ = [
    "Finding",
    "arm_2d",
    "arm_3d",
    "check",
    "describe",
    "from_dh",
    "from_qpos",
    "load",
    "read_json",
    "read_mjcf",
    "read_sdf",
    "read_urdf",
    "save",
    "to_qpos",
    "write_json",
    "write_urdf",
]
