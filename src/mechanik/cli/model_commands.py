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
from mechanik.validation import format_count


def gallery(*, json: bool = False) -> None:
    """List the gallery: mechanisms that every command with a FILE accepts as gallery:NAME.

    For example:

        mechanik gallery
        mechanik info gallery:panda

    Parameters
    ----------
    json
        Print the names as JSON.
    """
    from mechanik import gallery as model_gallery

    if json:
        print_json(list(model_gallery.names()))
        return
    table = make_table(["name"], ["links", "dofs", "loops"])
    for name in model_gallery.names():
        mechanism = model_gallery.make(name)
        loop_text = str(len(mechanism.closures)) if mechanism.closures else ""
        add_row(table, [name, str(len(mechanism.links)), str(mobility(mechanism).dof), loop_text])
    print_table(table)


def explain(file: str, /, *, link: str | None = None) -> None:
    """Explain how the solvers handle a mechanism: its loops, its dofs, and which chains have a closed form and why.

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
    """Check a mechanism for faults: missing meshes, suspicious limits and masses, loops that are not closed,
    disconnected links.

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
    severity_counts = {
        severity: sum(finding.severity == severity for finding in findings) for severity in SEVERITY_STYLES
    }
    has_passed = not severity_counts["error"] and not (strict and severity_counts["warning"])
    if json:
        print_json({"ok": has_passed, "findings": [asdict(finding) for finding in findings]})
        return EXIT_OK if has_passed else EXIT_FAILED
    _print_findings(findings)
    count_texts = {severity: format_count(count, severity) for severity, count in severity_counts.items()}
    if has_passed and severity_counts["warning"]:
        print_out(f"no errors: {count_texts['warning']}, {count_texts['note']}", style="yellow")
    else:
        print_out(
            f"{'passed' if has_passed else 'failed'}: {', '.join(count_texts.values())}",
            style="green" if has_passed else "red",
        )
    return EXIT_OK if has_passed else EXIT_FAILED


def _print_findings(findings: list[Finding]) -> None:
    """Print findings as a table, or as labelled lines if the terminal is too narrow."""
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
    for finding in findings:  # the table is wider than the terminal, so each message has a separate line
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

    Notes list everything that the new file does not contain or expresses differently.

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
        For a URDF or SDF: whether its root link is fixed to the world or floats freely.
    trim
        For a URDF or the gallery: remove branches without a moving joint.
    force
        Replace an existing file.
    """
    out_path = model_output_path(out, force)
    options: dict[str, Any] = {}
    if base is not None:
        options["base"] = base
    if trim:
        options["trim"] = True
    mechanism = open_mechanism(file, **options)
    losses = save(mechanism, out_path)
    for text in mechanism.warnings:
        print_note(f"warning: {text}")
    saved_mechanism = load(out_path)
    print_out(f"wrote {out}: {describe_size(saved_mechanism)}")
    for text in (*losses, *_additions(mechanism, saved_mechanism)):
        print_note(f"note: {text}")


def model_output_path(out: str, force: bool) -> Path:
    """Return the path of a model file to write; raises `UsageError` if it cannot be written or replaced."""
    path = output_path(out, tuple(WRITERS))
    if path.exists() and not force:
        raise UsageError(f"{out} exists; use --force to replace it")
    return path


def _additions(mechanism: Mechanism, saved_mechanism: Mechanism) -> Iterator[str]:
    """Yield messages about the links and joints that only the saved file has, except the parts of split joints."""
    split_joint_names = {f"{name}.{dof.name}" for name, joint in mechanism.joints.items() for dof in joint.dof}
    links = [name for name in saved_mechanism.links if name not in mechanism.links]
    joints = [name for name in saved_mechanism.joints if name not in mechanism.joints and name not in split_joint_names]
    for noun, names in (("link", links), ("joint", joints)):
        if names:
            yield f"{format_count(len(names), noun)} added: {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"
