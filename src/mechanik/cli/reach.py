"""`mechanik reach`: where a link can be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mechanik.cli.asking import locked_joints
from mechanik.cli.bar import Bar
from mechanik.cli.fk import Words
from mechanik.cli.opening import open_mechanism
from mechanik.cli.output import aside, number, row, say, say_json, show, table
from mechanik.cli.replacing import file_to_write, replacing
from mechanik.cli.usage import UsageError
from mechanik.errors import LimitsError, NotFinite

if TYPE_CHECKING:
    from mechanik.reach import ReachMap

PICTURES = (".png", ".svg", ".pdf")


def reach(
    file: str,
    /,
    *,
    link: str | None = None,
    resolution: float = 0.05,
    orientations: int = 60,
    lock: Words = None,
    out: str | None = None,
    picture: str | None = None,
    threads: int | None = None,
    quiet: bool = False,
    json: bool = False,
) -> None:
    """Map where a link can be, and in how many orientations: voxels of space, each with its share.

    A voxel counts as reached if the link's origin can be in it, inside all limits and with all loops shut. Volume and
    area are of those whose very centre is reached.

    For example:

        mechanik reach gallery:ur5 --resolution 0.1 --picture ur5.png
        mechanik reach robot.urdf --link tool0 --out map.npz
        mechanik reach gallery:scara --orientations 0 --json

    Parameters
    ----------
    file
        A URDF, MJCF, SDF or JSON file, `gallery:NAME`, or `-` for standard input.
    link
        The link; else the one that looks like the end of an arm.
    resolution
        The side of a voxel in m; half of it takes eight times as long. 0.05 if not given.
    orientations
        About how many to ask for in each voxel, evenly spread; 0 for none. 60 if not given.
    lock
        Joints, or freedoms such as base.X, that stay where FILE has them.
    out
        Write the map to this .npz file, for `mk.ReachMap.load`.
    picture
        Draw it into this .png, .svg or .pdf file.
    threads
        To solve in; as many as there are cores if not given.
    quiet
        No progress bar.
    json
        Print JSON for programs, with all voxels.
    """
    map_file = None if out is None else file_to_write(out, (".npz",))
    picture_file = None if picture is None else file_to_write(picture, PICTURES)
    mechanism = open_mechanism(file)
    held = locked_joints(mechanism, lock)
    from mechanik.comparison.robots import find_end
    from mechanik.reach import reachability  # loads kernels, which wrong words need not wait for

    end = link if link is not None else find_end(mechanism)
    try:
        with Bar(quiet) as bar:
            bar.begin(f"reach of {end}")
            found = reachability(
                mechanism, end, resolution, orientations=orientations, lock=held, threads=threads, progress=bar
            )
    except (LimitsError, NotFinite) as error:
        raise UsageError(str(error)) from error
    if json:
        say_json({**found.to_json(), **_figures(found)})
    else:
        _print(found)
    if map_file is not None:
        found.save(map_file)
        aside(f"wrote {out}", style="green")
    if picture_file is not None:
        _draw(found, picture_file)
        aside(f"wrote {picture}", style="green")


def _figures(found: ReachMap) -> dict[str, Any]:
    best = found.best
    return {
        "area": found.area if found.is_flat else None,
        "extent": found.extent.tolist(),
        "best": {"position": found.positions[best].tolist(), "share": float(found.shares[best])},
        "mean_share": float(found.shares.mean()),
    }


def _print(found: ReachMap) -> None:
    best, shares = found.best, found.shares
    title = f"reach of {found.link}" + (f" of {found.mechanism}" if found.mechanism else "")
    say(title, style="bold")
    inside = int(found.centred.sum())
    say(f"{len(found):,} voxels of {found.resolution:g} m are reached, {inside:,} of them at their centre")
    say(f"{'area' if found.is_flat else 'volume'} {found.size_text}")
    say()
    made = table([""], ["x (m)", "y (m)", "z (m)"])
    low, high = found.extent
    row(made, ["lowest", *(number(x) for x in low)])
    row(made, ["highest", *(number(x) for x in high)])
    row(made, ["best place" if len(found.wxyz) else "middle", *(number(x) for x in found.positions[best])])
    show(made)
    say()
    if not len(found.wxyz):
        say("orientations were not asked for, or follow from the place")
        return
    what = "orientations" if found.asked == "pose" else "directions of its z"
    say(f"of {len(found.wxyz)} {what} it takes {_percent(shares[best])} at the best place, {_percent(shares.mean())} "
        "on average")  # fmt: skip
    made = table(["share"], ["voxels", "of all"])
    for label, chosen in (
        ("all", shares == 1.0),
        ("half or more", (shares >= 0.5) & (shares < 1.0)),
        ("less than half", (shares > 0.0) & (shares < 0.5)),
        ("none of these", shares == 0.0),
    ):
        row(made, [label, f"{int(chosen.sum()):,}", _percent(chosen.mean())])
    show(made)


def _draw(found: ReachMap, path: Path) -> None:
    figure: Any = found.plot()
    with replacing(path) as part:
        figure.savefig(part, format=path.suffix[1:].lower(), dpi=130)


def _percent(share: float | np.floating[Any]) -> str:
    return f"{100 * float(share):.1f} %"
