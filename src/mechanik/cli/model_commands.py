"""`mechanik gallery`, `explain`, `check` and `convert`: list, explain, check and convert mechanisms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from mechanik import formats
from mechanik.cli import EXIT_FAILED, EXIT_OK
from mechanik.cli.file_args import (
    GALLERY_PREFIX,
    UsageError,
    file_name_or_stdin_text,
    open_mechanism,
    output_path,
)
from mechanik.cli.info_command import describe_size
from mechanik.cli.output import (
    add_row,
    fits_terminal,
    format_count,
    make_table,
    print_json,
    print_labelled,
    print_note,
    print_out,
    print_table,
)
from mechanik.formats import Finding, load, save
from mechanik.formats.load import WRITERS
from mechanik.model import Mechanism, mobility


def gallery(*, json: bool = False) -> None:
    """List the gallery: mechanisms that every command accepts as gallery:NAME.

    For example:

        mechanik gallery
        mechanik info gallery:panda

    Parameters
    ----------
    json
        Print the names as JSON.
    """
    from mechanik import gallery as shipped

    if json:
        print_json(list(shipped.names()))
        return
    table = make_table(["name"], ["links", "dofs", "loops"])
    for name in shipped.names():
        mechanism = shipped.make(name)
        loops = str(len(mechanism.closures)) if mechanism.closures else ""
        add_row(table, [name, str(len(mechanism.links)), str(mobility(mechanism).dof), loops])
    print_table(table)


def explain(file: str, /, *, link: str | None = None) -> None:
    """Explain how the solvers treat a mechanism: loops, dofs, and which chains have a closed form, and why.

    For example:

        mechanik explain gallery:ur5
        mechanik explain robot.urdf --link hand

    Parameters
    ----------
    file
        A URDF, MJCF, SDF or JSON file, `gallery:NAME`, or `-` for standard input.
    link
        Tip link of the chain to explain. Default: every tip link.
    """
    print_out(open_mechanism(file).explain(link))


SEVERITY_STYLES = {"error": "red", "warning": "yellow", "note": ""}


def check(
    file: str,
    /,
    *,
    strict: bool = False,
    json: bool = False,
) -> int:
    """Check a mechanism for faults: missing meshes, odd limits and masses, open loops, disconnected links.

    The exit code is 1 if there is an error, and with --strict also if there is a warning.

    For example:

        mechanik check robot.urdf
        mechanik check robot.urdf --strict --json

    Parameters
    ----------
    file
        A URDF, MJCF, SDF or JSON file, `gallery:NAME`, or `-` for standard input.
    strict
        Warnings also fail the check.
    json
        Print JSON.
    """
    findings = formats.check(open_mechanism(file) if file.startswith(GALLERY_PREFIX) else file_name_or_stdin_text(file))
    numbers = {severity: sum(finding.severity == severity for finding in findings) for severity in SEVERITY_STYLES}
    is_fine = not numbers["error"] and not (strict and numbers["warning"])
    if json:
        print_json({"ok": is_fine, "findings": [asdict(finding) for finding in findings]})
        return EXIT_OK if is_fine else EXIT_FAILED
    _show(findings)
    counts = {severity: format_count(count, severity) for severity, count in numbers.items()}
    if is_fine and numbers["warning"]:
        print_out(f"no errors: {counts['warning']}, {counts['note']}", style="yellow")
    else:
        print_out(
            f"{'fine' if is_fine else 'not fine'}: {', '.join(counts.values())}", style="green" if is_fine else "red"
        )
    return EXIT_OK if is_fine else EXIT_FAILED


def _show(findings: list[Finding]) -> None:
    table = make_table(["severity", "code", "where", "what"])
    for finding in findings:
        add_row(
            table,
            [finding.severity, finding.code, finding.where, finding.message],
            style=SEVERITY_STYLES[finding.severity],
        )
    if fits_terminal(table):
        if findings:
            print_table(table)
        return
    for finding in findings:  # the table is wider than the terminal, so each message goes on its own line
        print_labelled(
            f"{finding.severity:9}{finding.code}  {finding.where}",
            finding.message,
            9,
            SEVERITY_STYLES[finding.severity],
        )


def convert(
    file: str,
    out: str,
    /,
    *,
    base: Literal["fixed", "free"] | None = None,
    trim: bool = False,
    force: bool = False,
) -> None:
    """Convert a mechanism to a .json file (complete) or a .urdf file (as far as URDF can express it).

    Notes list everything that the new file does not hold or expresses differently.

    For example:

        mechanik convert robot.urdf robot.json
        mechanik convert robot.urdf floating.json --base free --trim
        mechanik convert gallery:panda panda.urdf --force

    Parameters
    ----------
    file
        A URDF, MJCF, SDF or JSON file, `gallery:NAME`, or `-` for standard input.
    out
        File to write: .json or .urdf.
    base
        For a URDF: whether its root link is fixed to the world or floats freely.
    trim
        Remove branches without a moving joint.
    force
        Replace an existing file.
    """
    target = model_output_path(out, force)
    options: dict[str, Any] = {}
    if base is not None:
        options["base"] = base
    if trim:
        options["trim"] = True
    mechanism = open_mechanism(file, **options)
    losses = save(mechanism, target)
    for text in mechanism.warnings:
        print_note(f"warning: {text}")
    written = load(target)
    print_out(f"wrote {out}: {describe_size(written)}")
    for text in (*losses, *_additions(mechanism, written)):
        print_note(f"note: {text}")


def model_output_path(out: str, force: bool) -> Path:
    """Return the path of a model file to write; raises `UsageError` if it cannot be written or replaced."""
    target = output_path(out, tuple(WRITERS))
    if target.exists() and not force:
        raise UsageError(f"{out} exists; use --force to replace it")
    return target


def _additions(before: Mechanism, after: Mechanism) -> Iterator[str]:
    """Yield messages about links and joints that the writer added, except the parts of joints that it split."""
    parts = {f"{name}.{dof.name}" for name, joint in before.joints.items() for dof in joint.dof}
    links = [name for name in after.links if name not in before.links]
    joints = [name for name in after.joints if name not in before.joints and name not in parts]
    for noun, names in (("link", links), ("joint", joints)):
        if names:
            yield f"{format_count(len(names), noun)} added: {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"
