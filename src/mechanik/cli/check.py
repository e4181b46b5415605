"""`mechanik check`: what is odd about a mechanism."""

from __future__ import annotations

from dataclasses import asdict

from mechanik import formats
from mechanik.cli import FINE, NO
from mechanik.cli.opening import GALLERY, open_mechanism, text_of
from mechanik.cli.output import count, fits, row, say, say_json, say_with, show, table
from mechanik.formats import Finding

STYLES = {"error": "red", "warning": "yellow", "note": ""}


def check(
    file: str,
    /,
    *,
    strict: bool = False,
    json: bool = False,
) -> int:
    """Look for faults: missing meshes, odd limits and masses, open loops, links that nothing reaches.

    The exit code is 1 if there is an error, and with --strict also if there is a warning.

    For example:

        mechanik check robot.urdf
        mechanik check robot.urdf --strict --json

    Parameters
    ----------
    file
        A URDF, MJCF, SDF or JSON file, `gallery:NAME`, or `-` for standard input.
    strict
        Let warnings fail the check, too.
    json
        Print JSON for programs.
    """
    findings = formats.check(open_mechanism(file) if file.startswith(GALLERY) else text_of(file))
    numbers = {severity: sum(one.severity == severity for one in findings) for severity in STYLES}
    is_fine = not numbers["error"] and not (strict and numbers["warning"])
    if json:
        say_json({"ok": is_fine, "findings": [asdict(finding) for finding in findings]})
        return FINE if is_fine else NO
    _show(findings)
    counts = {severity: count(many, severity) for severity, many in numbers.items()}
    if is_fine and numbers["warning"]:
        say(f"no errors: {counts['warning']}, {counts['note']}", style="yellow")
    else:
        say(f"{'fine' if is_fine else 'not fine'}: {', '.join(counts.values())}", style="green" if is_fine else "red")
    return FINE if is_fine else NO


def _show(findings: list[Finding]) -> None:
    made = table(["severity", "code", "where", "what"])
    for one in findings:
        row(made, [one.severity, one.code, one.where, one.message], style=STYLES[one.severity])
    if fits(made):
        if findings:
            show(made)
        return
    for one in findings:  # side by side is wider than the window: what is the matter goes below
        say_with(f"{one.severity:9}{one.code}  {one.where}", one.message, 9, STYLES[one.severity])
