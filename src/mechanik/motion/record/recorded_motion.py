"""A recorded motion of a mechanism, and its JSON, NPZ and CSV formats.

JSON and NPZ contain the mechanism, so that the motion can be read back. CSV has a row for each frame, with a column for
the time, for each entry of q and for each dof of a mimic joint.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanik.errors import FormatError, InvalidArgument, NotFinite, ShapeError
from mechanik.formats import describe, read_json, write_json
from mechanik.formats.json.values import JsonValue, parse_json
from mechanik.model import Mechanism
from mechanik.spatial import quaternion
from mechanik.spatial.array import Array, ArrayLike
from mechanik.validation import format_count, read_only

EVEN_SPACING_RATIO = 1e-6
"""Frames are evenly spaced if their times deviate by at most this ratio of the mean frame time."""


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Motion:
    """Configurations of a mechanism with their times; each configuration is a frame. A motion has at least one frame.

    Attributes:
        mechanism: a copy of the given mechanism, so that later edits do not change the motion.
        times: (N,), s, strictly increasing; read-only.
        q: (N, nq) configurations; read-only.
        name: name for display and for files; default: the name of the mechanism.

    Raises:
        InvalidArgument: `mechanism` is not a mechanism.
        ShapeError: `times` or `q` has a wrong shape, or `times` does not increase strictly.
        NotFinite: a time or an entry of q is not finite.
        NotARotation: a quaternion in `q` is zero.

    Example:
        >>> from mechanik.motion.record import Motion
        >>> motion = Motion(mk.arm_2d([0.5, 0.4]), [0.0, 1.0], [[0.0, 0.0], [1.0, 0.5]])
        >>> motion.at(0.5).tolist()
        [0.5, 0.25]
    """

    mechanism: Mechanism
    times: Array
    q: Array
    name: str

    def __init__(self, mechanism: Mechanism, times: ArrayLike, q: ArrayLike, name: str = "") -> None:
        if not isinstance(mechanism, Mechanism):
            raise InvalidArgument(f"a motion needs a mechanism, not {mechanism!r}")
        try:
            frame_times = np.array(times, dtype=np.float64)
        except (TypeError, ValueError):
            raise ShapeError(f"times of a motion must be numbers, not {times!r}") from None
        if frame_times.ndim != 1 or not len(frame_times):
            raise ShapeError(f"times of a motion must be (N,) with N of 1 or more, not of shape {frame_times.shape}")
        if not np.isfinite(frame_times).all():
            raise NotFinite("times of a motion must be finite")
        if not (np.diff(frame_times) > 0.0).all():
            k = int(np.flatnonzero(np.diff(frame_times) <= 0.0)[0])
            raise ShapeError(
                f"times must increase, but times[{k + 1}] = {frame_times[k + 1]:g} s is not after times[{k}]"
            )
        values = np.array(mechanism.space.check_q(q))
        if values.shape != (len(frame_times), mechanism.nq):
            raise ShapeError(f"q of a motion must be {(len(frame_times), mechanism.nq)}, not of shape {values.shape}")
        for k in mechanism.space.quaternions_q:
            values[:, k : k + 4] = quaternion.normalize(values[:, k : k + 4])
        object.__setattr__(self, "mechanism", mechanism.copy())
        object.__setattr__(self, "times", read_only(frame_times))
        object.__setattr__(self, "q", read_only(values))
        object.__setattr__(self, "name", str(name) or mechanism.name or "motion")

    def __repr__(self) -> str:
        frames = format_count(len(self.times), "frame")
        return f"<motion {self.name!r}: {frames} in {self.duration:g} s of {self.mechanism!r}>"

    @property
    def duration(self) -> float:
        """Time from the first frame to the last, s."""
        return float(self.times[-1] - self.times[0])

    def poses(self) -> Array:
        """Return the poses X_world_link (N, L, 4, 4) of all L links in all N frames."""
        return self.mechanism.poses(self.q)

    def at(self, times: ArrayLike) -> Array:
        """Interpolate configurations (..., nq) at times (...), s: linear between frames, constant beyond the ends.

        The loops are not closed after the interpolation, so they may have small gaps between frames.
        """
        sample_times = np.asarray(times, dtype=np.float64)
        k = np.clip(np.searchsorted(self.times, sample_times, side="right") - 1, 0, max(len(self.times) - 2, 0))
        next_k = np.minimum(k + 1, len(self.times) - 1)
        interval = np.where(next_k > k, self.times[next_k] - self.times[k], 1.0)
        ratio = np.clip((sample_times - self.times[k]) / interval, 0.0, 1.0)
        space = self.mechanism.space
        return space.integrate(self.q[k], ratio[..., None] * space.difference(self.q[k], self.q[next_k]))

    def resample_evenly(self) -> Motion:
        """Return a motion with the same number of frames, evenly spaced in time; self if it is evenly spaced."""
        frame_count = len(self.times)
        even_times: Array = np.linspace(float(self.times[0]), float(self.times[-1]), frame_count)
        max_deviation = EVEN_SPACING_RATIO * self.duration / max(frame_count - 1, 1)
        if frame_count < 3 or np.abs(even_times - self.times).max() <= max_deviation:
            return self
        return Motion(self.mechanism, even_times, self.at(even_times), self.name)


def continuous_quaternions(wxyz: Array) -> Array:
    """Return quaternions wxyz (N, ..., 4) of the same rotations, with signs that are continuous over the frames."""
    if len(wxyz) < 2:
        return wxyz
    changes_sign = (wxyz[1:] * wxyz[:-1]).sum(axis=-1, keepdims=True) < 0.0
    signs = np.where(changes_sign, -1.0, 1.0).cumprod(axis=0)
    return np.concatenate([wxyz[:1], wxyz[1:] * signs])


FORMAT_VERSION = 1
"""Version of the JSON format."""
KEYS = ("mechanik_motion", "name", "q_names", "times", "q", "mechanism")
"""Keys of the JSON format."""


def to_json(motion: Motion) -> bytes:
    """Write a motion as JSON, with its mechanism.

    Returns:
        UTF-8 bytes of an object with `mechanik_motion` (version of the format), `name`, `q_names` (names of the entries
        of q), `mechanism`, `times` (s) and `q` (a row for each frame).

    Example:
        >>> from mechanik.motion import record
        >>> motion = record.Motion(mk.arm_2d([0.5, 0.4]), [0.0, 1.0], [[0.0, 0.0], [1.0, 0.5]])
        >>> record.from_json(record.to_json(motion)).q.tolist()
        [[0.0, 0.0], [1.0, 0.5]]
    """
    rows = ",\n  ".join(json.dumps(row) for row in motion.q.tolist())
    header = {
        "mechanik_motion": FORMAT_VERSION,
        "name": motion.name,
        "q_names": motion.mechanism.space.q_names,
        "mechanism": describe(motion.mechanism),
        "times": motion.times.tolist(),
    }
    lines = [
        f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False, allow_nan=False)}" for key, value in header.items()
    ]
    return ("{\n" + ",\n".join(lines) + f',\n"q": [\n  {rows}\n]\n' + "}\n").encode()


def from_json(source: bytes | str | Mapping[str, Any]) -> Motion:
    """Read a motion from the output of `to_json`, or from the data that `json.load` returns for it.

    Raises:
        FormatError: the content is invalid.

    Example:
        >>> from mechanik.motion import record
        >>> motion = record.Motion(mk.arm_2d([0.5, 0.4]), [0.0, 1.0], [[0.0, 0.0], [1.0, 0.5]])
        >>> record.from_json(record.to_json(motion)).times.tolist()
        [0.0, 1.0]
    """
    if isinstance(source, bytes):
        try:
            source = source.decode()
        except UnicodeDecodeError:
            raise FormatError("a motion in JSON must be text in UTF-8") from None
    document = JsonValue(source if isinstance(source, Mapping) else parse_json(source)).object(KEYS)
    if document["mechanik_motion"].number() != FORMAT_VERSION:
        document["mechanik_motion"].fail(f"{FORMAT_VERSION}, the only known version of the format")
    mechanism_data: Any = document["mechanism"].data
    if not isinstance(mechanism_data, Mapping):
        document["mechanism"].fail("an object")
    mechanism = read_json(mechanism_data)  # pyright: ignore[reportUnknownArgumentType]
    names = mechanism.space.q_names
    q_names = tuple(item.text() for item in document["q_names"].items(len(names), "names"))
    if q_names != names:
        document["q_names"].fail(f"the names of the entries of q, {', '.join(names)}")
    times = document["times"].numbers()
    with document["q"].error_context():
        return Motion(
            mechanism,
            times,
            [row.numbers(len(names)) for row in document["q"].items(len(times), "rows")],
            document["name"].text(),
        )


NPZ_ARRAYS = ("times", "q", "names", "mechanism", "name")
"""Arrays that an NPZ file must have."""


def to_npz(motion: Motion) -> bytes:
    """Write a motion as a compressed NPZ file.

    Returns:
        Bytes of the file with `times` (N,), `q` (N, nq), `names` of the entries of q (nq,), names of the `links` (L,),
        `poses` X_world_link (N, L, 4, 4), `mechanism` (JSON text) and `name` of the motion.

    Example:
        >>> from mechanik.motion import record
        >>> motion = record.Motion(mk.arm_2d([0.5, 0.4]), [0.0, 1.0], [[0.0, 0.0], [1.0, 0.5]])
        >>> record.from_npz(record.to_npz(motion)).duration
        1.0
    """
    file = io.BytesIO()
    np.savez_compressed(
        file,
        times=motion.times,
        q=motion.q,
        names=np.array(motion.mechanism.space.q_names, dtype=np.str_),
        links=np.array(list(motion.mechanism.links), dtype=np.str_),
        poses=motion.poses(),
        mechanism=np.array(write_json(motion.mechanism)),
        name=np.array(motion.name),
    )
    return file.getvalue()


def from_npz(data: bytes) -> Motion:
    """Read a motion from the output of `to_npz`. No code in the file is run. The caller must limit the file size.

    Raises:
        FormatError: the bytes are not an NPZ file of a motion.
        ShapeError, NotFinite, NotARotation: `times` or `q` in the file is invalid, as for `Motion`.

    Example:
        >>> from mechanik.motion import record
        >>> motion = record.Motion(mk.arm_2d([0.5, 0.4]), [0.0, 1.0], [[0.0, 0.0], [1.0, 0.5]])
        >>> record.from_npz(record.to_npz(motion)).duration
        1.0
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays: Mapping[str, Any] = {name: file[name] for name in NPZ_ARRAYS if name in file}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise FormatError(f"this is not an NPZ file of a motion: {error}") from None
    for name in NPZ_ARRAYS:
        if name not in arrays:
            raise FormatError(f"an NPZ file of a motion must contain {', '.join(NPZ_ARRAYS)}; {name!r} is missing")
    for name in ("mechanism", "name"):
        if arrays[name].dtype.kind != "U" or arrays[name].ndim:
            raise FormatError(f"{name!r} in an NPZ file of a motion must be a single text, not {arrays[name].dtype}")
    mechanism = read_json(str(arrays["mechanism"]))
    if arrays["names"].tolist() != list(mechanism.space.q_names):
        raise FormatError("'names' in an NPZ file of a motion must be the names of the entries of q of its mechanism")
    return Motion(mechanism, arrays["times"], arrays["q"], str(arrays["name"]))


def to_csv(motion: Motion) -> bytes:
    """Write a motion as CSV: `time` (s), entries of q (m, rad or quaternion entry), dofs of mimic joints (m or rad).

    Example:
        >>> from mechanik.motion import record
        >>> motion = record.Motion(mk.arm_2d([0.5, 0.4]), [0.0, 1.0], [[0.0, 0.0], [1.0, 0.5]])
        >>> record.to_csv(motion).decode().split()[0]
        'time,joint1,joint2'
    """
    mimics = mimic_values(motion)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["time", *motion.mechanism.space.q_names, *mimics])
    columns = [motion.times, *motion.q.T, *mimics.values()]
    writer.writerows([repr(number) for number in row] for row in np.stack(columns, axis=1).tolist())
    return text.getvalue().encode()


def mimic_values(motion: Motion) -> dict[str, Array]:
    """Return the values (N,) of all mimic joints, rad or m, by name: `joint`, or `joint.EX` if it has several dofs."""
    mechanism, values = motion.mechanism, dict[str, Array]()
    joint_indices = mechanism.kinematics.joint_indices
    for joint in joint_indices:
        for coupling in joint.couplings:
            leader, dof, ratio, offset = coupling.resolve()
            name = mechanism.name_of(joint)
            label = name if len(joint.dof) == 1 else f"{name}.{coupling.dof.name}"
            values[label] = ratio * motion.q[:, joint_indices[leader].q[dof]] + offset
    return values
