"""A recorded motion, and the files that it can be written to.

In: a mechanism, times and configurations. Out: bytes: JSON and NPZ, which can be read back; CSV; BVH and glTF for
animation programs; a page that plays by itself. May import `formats` and what stands below it.
"""

from mechanik.motion.bvh_file import to_bvh
from mechanik.motion.csv_file import to_csv
from mechanik.motion.gltf_file import to_gltf
from mechanik.motion.html_page import to_html
from mechanik.motion.json_file import from_json, to_json
from mechanik.motion.motion import Motion
from mechanik.motion.npz_file import from_npz, to_npz

__all__ = ["Motion", "from_json", "from_npz", "to_bvh", "to_csv", "to_gltf", "to_html", "to_json", "to_npz"]
