"""`mechanik info`: what a mechanism is made of."""

from __future__ import annotations

from rich.table import Table

from mechanik.cli.info_data import as_data, axis_of, mass_of, parent_of
from mechanik.cli.opening import open_mechanism
from mechanik.cli.output import aside, count, number, row, say, say_json, show, table, vector
from mechanik.mechanism import Mechanism, mobility


def info(file: str, /, *, json: bool = False) -> None:
    """Show links, joints, limits, loops and mobility.

    Values and limits are in m and rad. A loop's gap is how far it stands open where the joints are now.

    For example:

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
    joints = len(mechanism.joints) - len(mechanism.closures)
    parts = [count(len(mechanism.links), "link"), count(joints, "joint")]
    parts += [count(len(mechanism.closures), "loop")] if mechanism.closures else []
    parts += [count(len(mechanism.goals), "goal")] if mechanism.goals else []
    say(f"{', '.join(parts)}; nq {mechanism.nq}, nv {mechanism.nv}; {_mass_text(mechanism)}")
    true = "unknown while a loop stands open" if moves.dof is None else str(moves.dof)
    more = f", {moves.redundant} of {moves.constraints} constraints redundant" if moves.redundant else ""
    say(f"mobility {true} (Grübler's count {moves.gruebler}{more})")
    say()
    for made in (_joint_table, _link_table, _loop_table, _goal_table):
        filled = made(mechanism)
        if filled.row_count:
            show(filled)
            say()
    if mechanism.configurations:
        say(f"configurations: {', '.join(mechanism.configurations)}")
    for text in mechanism.warnings:
        aside(f"warning: {text}")


def _joint_table(mechanism: Mechanism) -> Table:
    joints = {name: joint for name, joint in mechanism.joints.items() if not joint.is_closure}
    follows = ["follows"] if any(joint.couplings for joint in joints.values()) else []
    made = table(["joint"], ["dof", "axis", "lower", "upper", "value", "unit"], follows)
    for name, joint in joints.items():
        if not joint.dof:
            row(made, [name, "fixed"], style="dim")
        for dof in joint.dof:
            cells = [number(x) for x in (*joint.limits(dof), joint.value(dof))]
            unit = "rad" if dof.is_rotation else "m"
            led = joint._couplings.get(dof)
            leader = [mechanism.name_of(led.leader)] if led is not None else []
            label = name if dof is joint.dof[0] else ""
            row(made, [label, dof.name, vector(axis_of(joint, dof)), *cells, unit, *leader])
    return made


def _link_table(mechanism: Mechanism) -> Table:
    made = table(["link"], [], ["held by", "on"])
    for column in ("mass (kg)", "shapes"):
        made.add_column(column, justify="right", no_wrap=True)
    for name, link in mechanism.links.items():
        joint = link.parent
        held = (
            [mechanism.name_of(joint), parent_of(mechanism, joint) or "world"] if joint is not None else ["", "world"]
        )
        mass = "" if link.inertial is None else number(link.inertial.mass)
        row(made, [name, *held, mass, str(len(link.visuals)) if link.visuals else ""])
    return made


def _loop_table(mechanism: Mechanism) -> Table:
    made = table(["loop"], ["gap (m)", "gap (rad)"], ["free", "joins", "and"])
    for name, closure in mechanism.closures.items():
        gap = closure.gap()
        free = " ".join(dof.name for dof in closure.free) or "none"
        ends = [parent_of(mechanism, closure.joint) or "world", mechanism.name_of(closure.link)]
        style = "" if gap.is_shut(1e-6) else "red"
        row(made, [name, f"{gap.distance:.2g}", f"{gap.angle:.2g}", free, *ends], style=style)
    return made


def _goal_table(mechanism: Mechanism) -> Table:
    made = table(["goal"], ["dof"], ["link"])
    for name, goal in mechanism.goals.items():
        dof = " ".join(one.name for one in goal.goal_dof)
        row(made, [name, dof, mechanism.name_of(goal.child) if goal.child else "none"])
    return made


def _mass_text(mechanism: Mechanism) -> str:
    mass = mass_of(mechanism)
    return "no masses" if mass is None else f"{number(mass, 3)} kg"
