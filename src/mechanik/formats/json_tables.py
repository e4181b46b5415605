"""DH tables and arm lists in a JSON wrapper: {"mechanik": 1, "dh": {...}} and {"mechanik": 1, "arm": {...}}."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping

from mechanik.formats.json_pose import read_pose
from mechanik.formats.json_value import Value
from mechanik.mechanism import Mechanism


def read_dh(value: Value) -> Mechanism:
    """The arguments of `from_dh` by name; poses as 4x4 lists or as `position` and `wxyz`."""
    from mechanik.formats.dh import from_dh

    return _called(from_dh, value)


def read_arm(value: Value) -> Mechanism:
    """The arguments of `arm_3d` where there are `axes`, otherwise those of `arm_2d`."""
    from mechanik.formats.arms import arm_2d, arm_3d

    return _called(arm_3d if "axes" in value.fields() else arm_2d, value)


def _called(maker: Callable[..., Mechanism], value: Value) -> Mechanism:
    parameters = inspect.signature(maker).parameters.values()
    needed = [one.name for one in parameters if one.default is one.empty]
    record = value.object(needed, [one.name for one in parameters if one.default is not one.empty])
    arguments = {
        key: read_pose(one) if isinstance(one.data, Mapping) else one.plain() for key, one in record.fields.items()
    }
    with value.blamed():
        return maker(**arguments)
