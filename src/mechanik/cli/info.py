"""`mechanik info`: what a mechanism is made of."""

from __future__ import annotations

from rich.table import Table

from mechanik.cli.bumping import Bumping, bumping_of
from mechanik.cli.info_data import as_data, axis_of, mass_of, parent_of, size_of
from mechanik.cli.joint_types import law_of, places_in_q, type_of
from mechanik.cli.kernel_table import kernel_data, print_kernels
from mechanik.cli.opening import open_mechanism
from mechanik.cli.output import aside, number, row, say, say_json, show, table, vector
from mechanik.cli.usage import UsageError
from mechanik.formats.check_motion import amount
from mechanik.mechanism import Joint, Mechanism, mobility, structure
from mechanik.mechanism.explain import structure_sentences


def info(
    file: str | None = None,
    /,
    *,
    all: bool = False,
    pairs: bool = False,
    kernels: bool = False,
    json: bool = False,
) -> None:
    """Show links, joints, limits, loops, mobility, and how many shapes and pairs of links can bump.

    A joint's freedoms are X Y Z, slides along its axes in m, and EX EY EZ, turns about them in rad, which move
    its child by T(X, Y, Z) Rz(EZ) Ry(EY) Rx(EX). The column q says which number of q a freedom is; the three
    angles of a ball are one quaternion wxyz there, such as 3:7. A loop's gap is how far it stands open now, and what a
    law is off by how far its terms are from its constant. A ball's cone is how far its axes may tilt, in rad.

    For example:

        mechanik info robot.urdf
        mechanik info gallery:stewart_platform
        mechanik info robot.urdf --pairs
        mechanik info robot.json --json
        mechanik info --kernels

    Parameters
    ----------
    file
        A URDF, MJCF, SDF or JSON file, `gallery:NAME`, or `-` for standard input. Not needed with `--kernels`.
    all
        List fixed joints, too.
    pairs
        List the pairs of links that are left out when a mechanism is kept off itself, and why; where the file does not
        say, those that always touch are found by looking at some configurations.
    kernels
        Instead of a mechanism: what runs each module of kernels (prebuilt or compiled machine code, or plain Python),
        whether it is ready, and when it was compiled.
    json
        Print JSON for programs.
    """
    if kernels:
        _kernels(file, json)
        return
    if file is None:
        raise UsageError("`mechanik info` needs FILE, or --kernels. See `mechanik info --help`.")
    mechanism = open_mechanism(file)
    if json:
        say_json(as_data(mechanism, pairs))
    else:
        print_info(mechanism, all, pairs)


def _kernels(file: str | None, json: bool) -> None:
    if file is not None:
        raise UsageError("`mechanik info` takes FILE or --kernels, not both.")
    if json:
        say_json(kernel_data())
    else:
        print_kernels()


def print_info(mechanism: Mechanism, lists_fixed: bool, lists_pairs: bool = False) -> None:
    moves = mobility(mechanism)
    say(mechanism.name or "(no name)", style="bold")
    say(f"{size_of(mechanism)}; nq {mechanism.nq}, nv {mechanism.nv}; {_mass_text(mechanism)}")
    bumps = bumping_of(mechanism, lists_pairs)
    say(str(bumps))
    true = "unknown while a loop stands open" if moves.dof is None else str(moves.dof)
    more = f", {moves.redundant} of {moves.constraints} constraints redundant" if moves.redundant else ""
    say(f"mobility {true} (Grübler's count {moves.gruebler}{more})")
    if moves.dof is not None and moves.constraints:
        for sentence in structure_sentences(structure(mechanism)):
            say(sentence)
    say()
    joints, links = _joint_table(mechanism, lists_fixed), _link_table(mechanism)
    pairs = _pair_table(bumps if lists_pairs else None)
    for filled in (joints, links, _loop_table(mechanism), _law_table(mechanism), _goal_table(mechanism), pairs):
        if filled.row_count:
            show(filled)
            say()
    if mechanism.configurations:
        say(f"configurations: {', '.join(mechanism.configurations)}")
    for text in mechanism.warnings:
        aside(f"warning: {text}")


def _joint_table(mechanism: Mechanism, lists_fixed: bool) -> Table:
    joints = {name: joint for name, joint in mechanism.joints.items() if not joint.is_closure}
    follows = ["follows"] if any(joint.couplings for joint in joints.values()) else []
    made = table(["joint"], ["q"])
    made.add_column("type", no_wrap=True)
    for column in ("dof", "axis", "lower", "upper", "value"):
        made.add_column(column, justify="right", no_wrap=True)
    for column in ("unit", *follows):
        made.add_column(column, no_wrap=True)
    for name, joint in joints.items():
        places, label, kind = places_in_q(mechanism, joint), name, type_of(joint) + _cone_text(joint)
        for dof in joint.dof:
            place = places.get(dof, range(0))
            index = f"{place.start}:{place.stop}" if len(place) > 1 else "".join(map(str, place))
            cells = [number(x) for x in (*joint.limits(dof), joint.value(dof))]
            unit, law = "rad" if dof.is_rotation else "m", law_of(mechanism, joint, dof)
            row(
                made, [label, index, kind, dof.name, vector(axis_of(joint, dof)), *cells, unit, *([law] if law else [])]
            )
            label = kind = ""
    if lists_fixed:
        for name, joint in joints.items():
            if not joint.dof:
                row(made, [name, "", type_of(joint)], style="dim")
    return made


def _link_table(mechanism: Mechanism) -> Table:
    made = table(["link"], ["mass (kg)", "shapes"], ["held by", "on"])
    for name, link in mechanism.links.items():
        joint = link.parent
        held = (
            [mechanism.name_of(joint), parent_of(mechanism, joint) or "world"] if joint is not None else ["", "world"]
        )
        mass = "" if link.inertial is None else number(link.inertial.mass)
        row(made, [name, mass, str(len(link.visuals)) if link.visuals else "", *held])
    return made


def _loop_table(mechanism: Mechanism) -> Table:
    made = table(["loop"], ["gap (m)", "gap (rad)"], ["free", "joins", "and"])
    for name, closure in mechanism.closures.items():
        gap = closure.gap()
        free = " ".join(dof.name for dof in closure.free) or "none"
        if isinstance(closure.joint, Joint):
            free += _cone_text(closure.joint)
        ends = [parent_of(mechanism, closure.joint) or "world", mechanism.name_of(closure.link)]
        style = "" if gap.is_shut(1e-6) else "red"
        row(made, [name, amount(gap.distance), amount(gap.angle), free, *ends], style=style)
    return made


def _law_table(mechanism: Mechanism) -> Table:
    made = table(["law"], ["off by"], ["says"])
    for name, law in mechanism.laws.items():
        off = law.error()
        style = "" if abs(off) <= 1e-6 * law.scale else "red"
        row(made, [name, amount(off), f"{law.formula} = {number(law.constant)}"], style=style)
    return made


def _goal_table(mechanism: Mechanism) -> Table:
    made = table(["goal"], ["dof"], ["link"])
    for name, goal in mechanism.goals.items():
        dof = " ".join(one.name for one in goal.goal_dof)
        row(made, [name, dof, mechanism.name_of(goal.child) if goal.child else "none"])
    return made


def _pair_table(bumps: Bumping | None) -> Table:
    made = table(["left out", "with", "because"])
    for (a, b), why in () if bumps is None else bumps.left_out.items():
        row(made, [a, b, why])
    return made


def _cone_text(joint: Joint) -> str:
    return "" if joint.cone is None else f", cone {joint.cone.angle:g}"


def _mass_text(mechanism: Mechanism) -> str:
    mass = mass_of(mechanism)
    return "no masses" if mass is None else f"{number(mass, 3)} kg"
