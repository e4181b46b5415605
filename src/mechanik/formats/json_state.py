"""What joints in JSON hold: values, targets and rest poses, set to the last bit or refused."""

from __future__ import annotations

from mechanik.errors import JsonError
from mechanik.formats.json_pose import read_turn
from mechanik.formats.json_value import Record, Value
from mechanik.mechanism import DoF, Joint
from mechanik.spatial import euler, quaternion

AGREE = 1e-6
"""How far a follower may be from its leader, or a quaternion from its angles (m or rad), in a file."""


def set_values(joint: Joint, record: Record) -> None:
    """The values of freedoms that lead; refused where the limits or the quaternion say otherwise.

    They are put past the setters: those would bring a quaternion where arithmetic has it today, a last bit
    away from where it was.
    """
    turn = record.maybe("turn_wxyz", read_turn)
    if turn is not None and not joint.is_ball:
        raise JsonError(f"{record['turn_wxyz'].path}: only a joint with three unlimited rotations has one")
    if record.has("values"):
        given = dict(zip(joint.dof, record["values"].items(len(joint.dof), "numbers"), strict=True))
        leading = {dof: value for dof, value in given.items() if dof not in joint._couplings}
        for dof, value in leading.items():
            _check_limits(joint, dof, value, "value")
        joint._assign({dof: value.number() for dof, value in leading.items()})
        for dof, value in leading.items():
            joint._values[dof] = value.number()
        for coupling in joint._followers:
            coupling.pull()
    if turn is not None:
        angles = euler.quaternion_from_euler(joint._values[[5, 4, 3]], order="zyx", axes="moving")
        if not record.has("values"):
            joint.turn_wxyz = turn
        elif quaternion.angle_between(turn, angles) > AGREE:
            raise JsonError(f"{record['turn_wxyz'].path}: the turn and the values are not the same rotation")
        joint._turn = turn
    joint._invalidate()


def set_followers(joint: Joint, record: Record) -> None:
    """The values of freedoms that follow, once all leaders stand; refused where they do not follow."""
    if not record.has("values"):
        return
    for dof, value in zip(joint.dof, record["values"].items(), strict=True):
        if dof not in joint._couplings:
            continue
        number, led = value.number(), joint.value(dof)
        if abs(number - led) > AGREE * (1 + abs(number)):
            leader = joint._couplings[dof].leader.name
            raise JsonError(f"{value.path}: it follows {leader!r}, which puts it at {led:g}, not at {number:g}")
        joint._values[dof] = number
    joint._invalidate()


def set_aims(joint: Joint, record: Record) -> None:
    """Targets, rest pose, and whether they count turns."""
    joint.track_turns = record.get("track_turns", Value.flag, False)
    for key, aims in (("targets", joint._targets), ("rest_pose", joint._rest_pose)):
        if not record.has(key):
            continue
        for dof, value in zip(joint.dof, record[key].items(len(joint.dof), "numbers or nulls"), strict=True):
            if value.data is None:
                continue
            aim = value.number()
            if dof not in joint._couplings:
                _check_limits(joint, dof, value, "target" if key == "targets" else "rest value")
            elif key == "targets":
                leader = joint._couplings[dof].leader.name
                raise JsonError(f"{value.path}: it follows {leader!r}; give that one a target")
            aims[dof] = aim


def _check_limits(joint: Joint, dof: DoF, value: Value, what: str) -> None:
    lower, upper = joint.limits(dof)
    number = value.number()
    if not lower <= number <= upper:
        raise JsonError(f"{value.path}: the {what} {number:g} lies outside the limits {lower:g} to {upper:g}")
