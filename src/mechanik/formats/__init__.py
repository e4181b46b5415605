"""Files to mechanisms and back: one reader or writer a file.

In: paths or text. Out: a `Mechanism`, or an error that names the place. `load` chooses the reader by
content, `save` the writer by suffix, `check` says what is odd. May import `mechanism` and what is below it.
"""

from mechanik.formats.arms import arm_2d, arm_3d
from mechanik.formats.check import Finding, check
from mechanik.formats.dh import from_dh
from mechanik.formats.load import load, save
from mechanik.formats.mechanism_json import describe, read_json, write_json
from mechanik.formats.mjcf_reader import read_mjcf
from mechanik.formats.mjcf_state import from_qpos, to_qpos
from mechanik.formats.sdf_reader import read_sdf
from mechanik.formats.urdf_reader import read_urdf
from mechanik.formats.urdf_writer import write_urdf

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
