"""Recorded motions and their file formats.

A motion consists of a mechanism, times and configurations; the writers return the bytes of a file. JSON and NPZ can be
read back; CSV, BVH, glTF and an HTML page with a player are for other programs.
"""

from mechanik.motion.record.animation_export import to_bvh, to_html
from mechanik.motion.record.gltf_export import to_gltf
from mechanik.motion.record.recorded_motion import Motion, from_json, from_npz, to_csv, to_json, to_npz

__all__ = ["Motion", "from_json", "from_npz", "to_bvh", "to_csv", "to_gltf", "to_html", "to_json", "to_npz"]
