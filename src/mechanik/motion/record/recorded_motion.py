"""A recorded motion of a mechanism, and its JSON, NPZ and CSV formats.

JSON and NPZ contain the mechanism and read back to an equal motion. CSV has a row per frame, with a column for each
entry of q and then for each mimic joint.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
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
from mechanik.validation import read_only

EVEN_RATIO = 1e-6
"""Ratio to the mean frame time: smaller deviations count as evenly spaced."""


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Motion:
    """Configurations of a mechanism with their times; at least a single frame.

    Attributes:
        mechanism: a copy of the mechanism at the time of recording.
        times: (N,), s, strictly increasing; read-only.
        q: (N, nq) configurations; read-only.
        name: for people and file names; default: the name of the mechanism.

    Raises:
        ShapeError: `times` or `q` has a wrong shape, or `times` does not increase.
        NotFinite: a time is not finite.

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
        return f"<motion {self.name!r}: {len(self.times)} frames in {self.duration:g} s of {self.mechanism!r}>"

    @property
    def duration(self) -> float:
        """Time from the first frame to the last, s."""
        return float(self.times[-1] - self.times[0])

    def poses(self) -> Array:
        """Poses X_world_link (N, L, 4, 4) of all links at all times."""
        return self.mechanism.poses(self.q)

    def at(self, times: ArrayLike) -> Array:
        """Configurations (..., nq) at times (...), s, interpolated linearly between frames; constant beyond the ends.

        Loops are not closed again, so they may open a little between frames.
        """
        sample_times = np.asarray(times, dtype=np.float64)
        k = np.clip(np.searchsorted(self.times, sample_times, side="right") - 1, 0, max(len(self.times) - 2, 0))
        after = np.minimum(k + 1, len(self.times) - 1)
        span = np.where(after > k, self.times[after] - self.times[k], 1.0)
        share = np.clip((sample_times - self.times[k]) / span, 0.0, 1.0)
        space = self.mechanism.space
        return space.integrate(self.q[k], share[..., None] * space.difference(self.q[k], self.q[after]))

    def resample_evenly(self) -> Motion:
        """The same number of frames, evenly spaced in time; the motion itself if it is evenly spaced."""
        count = len(self.times)
        even: Array = np.linspace(float(self.times[0]), float(self.times[-1]), count)
        if count < 3 or np.abs(even - self.times).max() <= EVEN_RATIO * self.duration / (count - 1):
            return self
        return Motion(self.mechanism, even, self.at(even), self.name)


def continuous_quaternions(wxyz: Array) -> Array:
    """Quaternions wxyz (N, ..., 4) of the same rotations, with signs that do not flip from frame to frame."""
    if len(wxyz) < 2:
        return wxyz
    flips = (wxyz[1:] * wxyz[:-1]).sum(axis=-1, keepdims=True) < 0.0
    signs = np.where(flips, -1.0, 1.0).cumprod(axis=0)
    return np.concatenate([wxyz[:1], wxyz[1:] * signs])


VERSION = 1
"""Version of the JSON format."""
KEYS = ("mechanik_motion", "name", "freedoms", "times", "q", "mechanism")
"""Keys of the JSON format."""


def to_json(motion: Motion) -> bytes:
    """Write a motion as JSON, with its mechanism.

    Returns:
        UTF-8 bytes of an object with `freedoms` (names of the entries of q), `times` (s), `q` (a row per frame) and
        `mechanism`.

    Example:
        >>> from mechanik.motion import record
        >>> motion = record.Motion(mk.arm_2d([0.5, 0.4]), [0.0, 1.0], [[0.0, 0.0], [1.0, 0.5]])
        >>> record.from_json(record.to_json(motion)).q.tolist()
        [[0.0, 0.0], [1.0, 0.5]]
    """
    rows = ",\n  ".join(json.dumps(row) for row in motion.q.tolist())
    head = {
        "mechanik_motion": VERSION,
        "name": motion.name,
        "freedoms": motion.mechanism.space.q_names,
        "mechanism": describe(motion.mechanism),
        "times": motion.times.tolist(),
    }
    lines = [
        f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False, allow_nan=False)}" for key, value in head.items()
    ]
    return ("{\n" + ",\n".join(lines) + f',\n"q": [\n  {rows}\n]\n' + "}\n").encode()


def from_json(source: bytes | str | Mapping[str, Any]) -> Motion:
    """Read a motion from the output of `to_json`, or from the object that `json.load` makes of it.

    Raises:
        FormatError: with the place, such as `q[3]`, and what is expected there.

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
    top = JsonValue(source if isinstance(source, Mapping) else parse_json(source)).object(KEYS)
    if top["mechanik_motion"].number() != VERSION:
        top["mechanik_motion"].fail(f"{VERSION}, the only known version of the format")
    content: Any = top["mechanism"].data
    if not isinstance(content, Mapping):
        top["mechanism"].fail("an object")
    mechanism = read_json(content)  # pyright: ignore[reportUnknownArgumentType]
    names = mechanism.space.q_names
    dof_names = tuple(item.text() for item in top["freedoms"].items(len(names), "names"))
    if dof_names != names:
        top["freedoms"].fail(f"the names of the entries of q, {', '.join(names)}")
    times = top["times"].numbers()
    with top["q"].error_context():
        return Motion(
            mechanism,
            times,
            [row.numbers(len(names)) for row in top["q"].items(len(times), "rows")],
            top["name"].text(),
        )


NPZ_ARRAYS = ("times", "q", "names", "mechanism", "name")
"""Arrays that an NPZ file must have."""


def to_npz(motion: Motion) -> bytes:
    """Write a motion as a compressed NPZ file.

    Returns:
        Bytes of the file with `times` (N,), `q` (N, nq), `names` (nq,), `links` (L,), `poses` (N, L, 4, 4), `mechanism`
        (JSON text) and `name`.

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
    """Read a motion from the output of `to_npz`; no code in the file is run. The caller has to limit the size.

    Raises:
        FormatError: the bytes are not such a file.

    Example:
        >>> from mechanik.motion import record
        >>> motion = record.Motion(mk.arm_2d([0.5, 0.4]), [0.0, 1.0], [[0.0, 0.0], [1.0, 0.5]])
        >>> record.from_npz(record.to_npz(motion)).duration
        1.0
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays: Mapping[str, Any] = {name: file[name] for name in NPZ_ARRAYS if name in file}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, NotImplementedError) as error:
        raise FormatError(f"this is not an NPZ file of a motion: {error}") from None
    for name in NPZ_ARRAYS:
        if name not in arrays:
            raise FormatError(f"an NPZ file of a motion must contain {', '.join(NPZ_ARRAYS)}; {name!r} is missing")
    for name in ("mechanism", "name"):
        if arrays[name].dtype.kind != "U" or arrays[name].ndim:
            raise FormatError(f"{name!r} in an NPZ file of a motion must be a single text, not {arrays[name].dtype}")
    mechanism = read_json(str(arrays["mechanism"]))
    if arrays["names"].tolist() != list(mechanism.space.q_names):
        raise FormatError("the names in an NPZ file of a motion must be those of its mechanism's q")
    return Motion(mechanism, arrays["times"], arrays["q"], str(arrays["name"]))


def to_csv(motion: Motion) -> bytes:
    """Write a motion as CSV: `time` (s), then m and rad by name; a spherical joint has its four quaternion entries.

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
    """Values (N,) of all mimic joints, by joint name, or `joint.EX` where a joint has several dofs; rad or m."""
    mechanism, values = motion.mechanism, dict[str, Array]()
    slots = mechanism.kinematics.joint_indices
    for joint in slots:
        for coupling in joint.couplings:
            leader, dof, ratio, offset = coupling.resolve()
            name = mechanism.name_of(joint)
            label = name if len(joint.dof) == 1 else f"{name}.{coupling.dof.name}"
            values[label] = ratio * motion.q[:, slots[leader].q[dof]] + offset
    return values
