"""`mechanik gallery`: the mechanisms that ship with Mechanik."""

from __future__ import annotations

from mechanik.cli.output import row, say_json, show, table
from mechanik.mechanism import mobility


def gallery(*, json: bool = False) -> None:
    """List the mechanisms that every command takes as gallery:NAME.

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
        say_json(list(shipped.names()))
        return
    made = table(["name"], ["links", "freedoms", "loops"])
    for name in shipped.names():
        mechanism = shipped.make(name)
        loops = str(len(mechanism.closures)) if mechanism.closures else ""
        row(made, [name, str(len(mechanism.links)), str(mobility(mechanism).dof), loops])
    show(made)
