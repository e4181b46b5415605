"""`mechanik info`: what a mechanism is made of."""

from __future__ import annotations

import math
from typing import Annotated, Any

from cyclopts import Parameter

from mechanik.cli.opening import open_mechanism
from mechanik.cli.output import aside, count, number, row, say, say_json, show, table, vector
from mechanik.mechanism import DoF, Joint, Link, Mechanism, mobility
from mechanik.spatial import quaternion


def info(file: str, /, *, json: Annotated[bool, Parameter(negative="")] = False) -> None:
    """Show links, joints, limits, loops and mobility.

    Values and limits are in m and rad. A loop's gap is how far it stands open where the joints are now.

    Examples:

        mechanik info robot.urdf
        mechanik info gallery:stewart_platform
        mechanik info robot.json --json

    Parameters
    ----------
    file
        A URDF or JSON file, `gallery:NAME`, or `-` for standard input.
    json
        Print JSON for programs.
    """
    mechanism = open_mechanism(file)
    if json:
        say_json(as_data(mechanism))
    else:
        print_info(mechanism)


def print_info(mechanism: Mechanism) -> None:
    moves = mobility(mechanism)
    say(mechanism.name or "(no name)", style="bold")
    say(
        f"{count(len(mechanism.links), 'link')}, {count(len(mechanism.joints), 'joint')}, "
        f"{count(len(mechanism.closures), 'loop')}, {count(len(mechanism.goals), 'goal')}; "
        f"nq {mechanism.nq}, nv {mechanism.nv}; {_mass_text(mechanism)}"
    )
    true = "unknown while a loop stands open" if moves.dof is None else str(moves.dof)
    more = f", {moves.redundant} of {moves.constraints} constraints redundant" if moves.redundant else ""
    say(f"mobility {true} (Grübler's count {moves.gruebler}{more})")
    say()
    if mechanism.joints:
        show(_joint_table(mechanism))
    show(_link_table(mechanism))
    if mechanism.closures:
        show(_loop_table(mechanism))
    if mechanism.goals:
        show(_goal_table(mechanism))
    if mechanism.configurations:
        say(f"configurations: {', '.join(mechanism.configurations)}\n")
    for text in mechanism.warnings:
        aside(f"warning: {text}")


def as_data(mechanism: Mechanism) -> dict[str, Any]:
    """The same for programs; null stands for no limit."""
    moves = mobility(mechanism)
    return {
        "name": mechanism.name,
        "nq": mechanism.nq,
        "nv": mechanism.nv,
        "mass": _mass(mechanism),
        "mobility": {"gruebler": moves.gruebler, "true": moves.dof, "redundant": moves.redundant},
        "links": [
            {
                "name": name,
                "joint": mechanism.name_of(link.parent) if isinstance(link.parent, Joint) else None,
                "mass": None if link.inertial is None else link.inertial.mass,
                "visuals": len(link.visuals),
                "collisions": len(link.collisions),
            }
            for name, link in mechanism.links.items()
        ],
        "joints": [
            {
                "name": name,
                "parent": _parent(mechanism, joint),
                "child": joint.child and mechanism.name_of(joint.child),
                "closes_loop": joint.is_closure,
                "dof": [dof.name for dof in joint.dof],
                "axes": [_axis(joint, dof) for dof in joint.dof],
                "lower": [None if math.isinf(x) else x for x in joint.lower.tolist()],
                "upper": [None if math.isinf(x) else x for x in joint.upper.tolist()],
                "values": joint.values.tolist(),
                "follows": [mechanism.name_of(one.leader) for one in joint.couplings],
            }
            for name, joint in mechanism.joints.items()
        ],
        "loops": [
            {
                "name": name,
                "links": [_parent(mechanism, closure.joint), mechanism.name_of(closure.link)],
                "free": [dof.name for dof in closure.free],
                "gap": {"distance": closure.gap().distance, "angle": closure.gap().angle},
            }
            for name, closure in mechanism.closures.items()
        ],
        "goals": [
            {
                "name": name,
                "link": goal.child and mechanism.name_of(goal.child),
                "dof": [dof.name for dof in goal.goal_dof],
            }
            for name, goal in mechanism.goals.items()
        ],
        "configurations": {name: [float(x) for x in q] for name, q in mechanism.configurations.items()},
        "warnings": list(mechanism.warnings),
    }


def _joint_table(mechanism: Mechanism):  # noqa: ANN202
    made = table(["joint"], ["dof", "axis", "lower", "upper", "value", "unit"], ["parent", "child"], title="joints")
    for name, joint in mechanism.joints.items():
        ends = [_parent(mechanism, joint) or "world", mechanism.name_of(joint.child) if joint.child else "nothing"]
        if joint.is_closure:
            ends[1] += " (closes)"
        if not joint.dof:
            row(made, [name, "fixed", "", "", "", "", "", *ends], style="dim")
        for k, dof in enumerate(joint.dof):
            cells = [number(x) for x in (*joint.limits(dof), joint.value(dof))]
            unit = "rad" if dof.is_rotation else "m"
            first = k == 0
            led = joint._couplings.get(dof)
            named = name + (f" (follows {mechanism.name_of(led.leader)})" if led is not None else "")
            label = named if first or led is not None else ""
            row(made, [label, dof.name, vector(_axis(joint, dof)), *cells, unit, *(ends if first else ["", ""])])
    return made
