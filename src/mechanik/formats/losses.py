"""What a mechanism has and a file of some format cannot hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mechanik.formats.urdf_elements import is_written
from mechanik.formats.urdf_extras import extras_left_out
from mechanik.formats.urdf_tree import listed
from mechanik.formats.urdf_writer import split_joints
from mechanik.mechanism.joint import Joint
from mechanik.mechanism.mechanism import Mechanism


def urdf_losses(mechanism: Mechanism) -> list[str]:
    """A sentence for each kind of thing that `write_urdf` leaves out or has to say otherwise; none if nothing is lost.

    Values, closures, laws and a free base are not lost: they stand in the block <mechanik>.
    """
    joints, split = mechanism.joints, split_joints(mechanism)
    left_out = {
        "goals": list(mechanism.goals),
        "named configurations": list(mechanism.configurations),
        "pairs of links that need no look": [f"{a} - {b}" for a, b in mechanism.unchecked or ()],
        "targets of joints": _with(joints, "targets"),
        "rest poses of joints": _with(joints, "rest_pose"),
        "the counting of turns of joints": [name for name, joint in joints.items() if joint.track_turns],
        "cones of joints": [name for name, one in joints.items() if one.cone is not None and not one.is_closure],
        "half-spaces, height fields and convex hulls of points": _with_other_shapes(mechanism),
        "extras": list(extras_left_out(mechanism.extras, _with_extras(joints, split))),
    }
    texts = [f"a URDF has no place for {what}: {listed(names)}" for what, names in left_out.items() if names]
    if split:
        parts = [f"{name} ({', '.join(names)})" for name, names in split.items()]
        texts.append(f"a URDF has single joints in place of joints of several freedoms: {listed(parts)}")
    return texts


def _with(joints: Mapping[str, Joint], aims: str) -> list[str]:
    return [name for name, joint in joints.items() if any(aim is not None for aim in getattr(joint, aims))]


def _with_other_shapes(mechanism: Mechanism) -> list[str]:
    links = mechanism.links.items()
    return [name for name, one in links if not all(is_written(s.shape) for s in (*one.visuals, *one.collisions))]


def _with_extras(joints: Mapping[str, Joint], split: Mapping[str, Sequence[str]]) -> set[str]:
    """The joints that are written as one <joint>, which can hold extras."""
    return {name for name, joint in joints.items() if name not in split and not joint.is_closure}
