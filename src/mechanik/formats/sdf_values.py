"""The values that stand between the tags of an SDF: words, numbers, yes or no, poses."""

from __future__ import annotations

import math

import numpy as np

from mechanik.formats.urdf_shapes import FARTHEST, wxyz_of_rpy
from mechanik.formats.xml_text import Node
from mechanik.spatial import from_position_wxyz
from mechanik.spatial.array import Array


def words_of(node: Node) -> list[str]:
    return node.text.split()


def text_in(owner: Node, tag: str) -> str | None:
    """What the child of that tag says; None if there is none, or if it is empty."""
    node = owner.first(tag)
    text = "" if node is None else node.text.strip()
    return text or None


def needed_text(owner: Node, tag: str) -> str:
    text = text_in(owner, tag)
    if text is None:
        raise owner.fault(f"has no <{tag}>, or an empty one")
    return text


def numbers_of(node: Node, count: int) -> tuple[float, ...]:
    """`count` finite numbers."""
    words = words_of(node)
    if len(words) != count:
        raise node.fault(f"says {node.text.strip()!r}: {len(words)} numbers where {count} are needed")
    return tuple(_finite(node, word) for word in words)


def number_in(owner: Node, tag: str, missing: float) -> float:
    """The number in the child of that tag; `missing` if there is none."""
    node = owner.first(tag)
    return missing if node is None or not node.text.strip() else numbers_of(node, 1)[0]


def limit_in(owner: Node, tag: str, missing: float, unlimited: float) -> float:
    """As `number_in`, but "inf", and all from `unlimited` on, which files write for it, is infinite."""
    node = owner.first(tag)
    if node is None or not node.text.strip():
        return missing
    word = node.text.strip().lower()
    if word.lstrip("+-") in ("inf", "infinity"):
        return -math.inf if word.startswith("-") else math.inf
    number = numbers_of(node, 1)[0]
    return math.copysign(math.inf, number) if abs(number) >= unlimited else number


def is_true(text: str | None) -> bool:
    return (text or "").strip().lower() in ("1", "true")


def pose_in(owner: Node) -> Array:
    """The <pose> of an element, (4, 4), whatever it is relative to; the identity without one."""
    node = owner.first("pose")
    if node is None or not node.text.strip():
        return np.eye(4)
    form = node.attributes.get("rotation_format", "euler_rpy").strip()
    if form == "quat_xyzw":
        x, y, z, qx, qy, qz, qw = numbers_of(node, 7)
        wxyz = np.array([qw, qx, qy, qz])
        if not 1e-9 < np.linalg.norm(wxyz) < 1e9:
            raise node.fault(f"says {node.text.strip()!r}, where a quaternion of length 1 is needed")
        wxyz /= np.linalg.norm(wxyz)
    elif form == "euler_rpy":
        x, y, z, *rpy = numbers_of(node, 6)
        unit = math.pi / 180 if is_true(node.attributes.get("degrees")) else 1.0
        wxyz = wxyz_of_rpy(tuple(unit * angle for angle in rpy))
    else:
        raise node.fault(f"has rotation_format={form!r}; there are 'euler_rpy' and 'quat_xyzw'")
    if max(abs(x), abs(y), abs(z)) > FARTHEST:
        raise node.fault(f"says {node.text.strip()!r}: more than {FARTHEST:g} m away")
    return from_position_wxyz(np.array([x, y, z]), wxyz)


def pose_frame(owner: Node) -> str | None:
    """What the <pose> of an element is relative to, where it says so; `frame` is the word of older files."""
    node = owner.first("pose")
    if node is None:
        return None
    return (node.attributes.get("relative_to") or node.attributes.get("frame") or "").strip() or None


def _finite(node: Node, word: str) -> float:
    try:
        number = math.nan if "_" in word else float(word)
    except ValueError:
        raise node.fault(f"says {node.text.strip()!r}: {word!r} is not a number") from None
    if not math.isfinite(number):
        raise node.fault(f"says {node.text.strip()!r}: {word!r} is not a finite number")
    return number
