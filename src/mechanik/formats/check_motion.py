"""Checks of what moves: joints, limits, couplings, loops and goals."""

from __future__ import annotations

from collections.abc import Iterator

from mechanik.formats.finding import Finding
from mechanik.mechanism import DoF, Joint, Mechanism
from mechanik.mechanism.dof import TRANSLATIONS

SHUT = 1e-6
"""m and rad; a loop that is open by more does not hold together."""
IN_DEGREES = 45.0
"""rad; no joint but a wheel turns seven times around, and most limits in degrees are larger."""
BOUNDLESS = 1e4
"""m or rad; limits from here on are how files say that there are none."""


def loose_joints(mechanism: Mechanism) -> Iterator[Finding]:
    for name, joint in mechanism.joints.items():
        if joint.child is None:
            yield Finding("warning", "no-child", f"joint {name!r}", "holds no link and closes no loop")
        if joint.parent is None and joint.dof and not _floats(joint):
            yield Finding("note", "no-parent", f"joint {name!r}", "hangs on no link and moves against the world")
    if not any(joint.dof for joint in mechanism.joints.values()):
        yield Finding("note", "still", "mechanism", "has no joint that moves")


def limits(mechanism: Mechanism) -> Iterator[Finding]:
    for name, joint in mechanism.joints.items():
        if joint.is_closure:
            continue
        where = f"joint {name!r}"
        unlimited: list[DoF] = []
        for dof in joint.dof:
            lower, upper = joint.limits(dof)
            value, label = joint.value(dof), dof.name if len(joint.dof) > 1 else "it"
            if not lower - SHUT <= value <= upper + SHUT:
                text = f"stands at {value:g}, outside its limits {lower:g} to {upper:g}"
                yield Finding("warning", "value-outside", where, _about(label, text))
            if lower == upper:
                yield Finding("note", "locked", where, _about(label, f"cannot move: both limits are {lower:g}"))
            elif not lower <= 0 <= upper and dof not in joint._couplings:
                text = f"cannot be at zero, as its limits are {lower:g} to {upper:g}"
                yield Finding("note", "zero-excluded", where, _about(label, text))
            if dof.is_rotation and any(IN_DEGREES <= abs(side) < BOUNDLESS for side in (lower, upper)):
                text = f"has limits of {lower:g} to {upper:g} rad, which look like degrees"
                yield Finding("warning", "degrees", where, _about(label, text))
            if lower <= -BOUNDLESS and upper >= BOUNDLESS and dof not in joint._couplings:
                unlimited.append(dof)
        if unlimited and not _floats(joint) and not joint.is_ball:
            slides = any(dof in TRANSLATIONS for dof in unlimited)
            named = " ".join(dof.name for dof in unlimited)
            text = f"has no limits in {named}" if len(joint.dof) > 1 else "has no limits"
            yield Finding("warning" if slides else "note", "no-limits", where, text)


def couplings(mechanism: Mechanism) -> Iterator[Finding]:
    for name, joint in mechanism.joints.items():
        for coupling in joint.couplings:
            where = f"joint {name!r}"
            leader = coupling.leader.name
            if coupling.ratio == 0:
                yield Finding("warning", "ratio-zero", where, f"follows {leader!r} with ratio 0, so it never moves")
                continue
            lower, upper = coupling.leader.limits(coupling.leader_dof)
            low, high = (side + 0.0 for side in coupling.limits_for_leader())  # no minus zero
            if max(lower, low) > min(upper, high):
                text = (
                    f"follows {leader!r}, but its limits would need that at {low:g} to {high:g}, "
                    f"and it moves within {lower:g} to {upper:g}"
                )
                yield Finding("error", "coupling-limits", where, text)
            elif low > lower + SHUT or high < upper - SHUT:
                text = (
                    f"follows {leader!r} and holds it back to {max(lower, low):g} to {min(upper, high):g}, "
                    f"although that may move within {lower:g} to {upper:g}"
                )
                yield Finding("note", "coupling-narrows", where, text)


def loops(mechanism: Mechanism) -> Iterator[Finding]:
    for name, closure in mechanism.closures.items():
        gap = closure.gap()
        if not gap.is_shut(SHUT):
            text = f"is open by {amount(gap.distance)} m and {amount(gap.angle)} rad where the joints are now"
            yield Finding("error", "open-loop", f"closure {name!r}", text)


def laws(mechanism: Mechanism) -> Iterator[Finding]:
    for name, law in mechanism.laws.items():
        off, where = law.error(), f"law {name!r}"
        if abs(off) > SHUT * law.scale:
            yield Finding("error", "broken-law", where, f"is off by {amount(off)} where the joints are now")
        elif not law.resolved()[0]:
            yield Finding("note", "idle-law", where, "says no more than the couplings of its joints do")


def cones(mechanism: Mechanism) -> Iterator[Finding]:
    from mechanik.objectives.closures import tilts

    for name, tilt in tilts(mechanism, mechanism.q).items():
        cone = mechanism.joint(name).cone
        if cone is not None and tilt > cone.angle + SHUT:
            text = f"tilts by {amount(tilt)} rad where it is now, and its cone leaves it {amount(cone.angle)} rad"
            yield Finding("error", "outside-cone", f"joint {name!r}", text)


def goals(mechanism: Mechanism) -> Iterator[Finding]:
    for name, goal in mechanism.goals.items():
        if goal.closure is None:
            yield Finding("note", "idle-goal", f"goal {name!r}", "wants no link")
        elif not goal.goal_dof:
            yield Finding("note", "idle-goal", f"goal {name!r}", "counts no direction, so anything is right")


def amount(x: float) -> str:
    """A measured m or rad for people: what is only rounding is 0."""
    return f"{x:.3g}" if abs(x) > 1e-12 else "0"


def _floats(joint: Joint) -> bool:
    return len(joint.dof) == 6


def _about(label: str, text: str) -> str:
    return text if label == "it" else f"{label} {text}"
