"""`mechanik reach`: compute the reachability map of a link, and print, save or draw it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mechanik.cli.file_args import UsageError, atomic_write, open_mechanism, output_path
from mechanik.cli.fk_command import OptionValues
from mechanik.cli.output import (
    ProgressBar,
    add_row,
    format_number,
    make_table,
    print_json,
    print_note,
    print_out,
    print_table,
)
from mechanik.cli.solve_args import parse_locked_joints
from mechanik.errors import LimitsError, NotFinite

if TYPE_CHECKING:
    from mechanik.reach import ReachMap

IMAGE_SUFFIXES = (".png", ".svg", ".pdf")


def reach(
    file: str,
    /,
    *,
    link: str | None = None,
    resolution: float = 0.05,
    orientations: int = 60,
    lock: OptionValues = None,
    out: str | None = None,
    picture: str | None = None,
    threads: int | None = None,
    quiet: bool = False,
    json: bool = False,
) -> None:
    """Compute the reachability map of a link: voxels, each with the share of orientations that are reachable.

    A voxel is reached if the origin of the link can be inside it, within all limits and with all loops closed. Volume
    and area include only voxels whose centre is reached.

    For example:

        mechanik reach gallery:ur5 --resolution 0.1 --picture ur5.png
        mechanik reach robot.urdf --link tool0 --out map.npz
        mechanik reach gallery:scara --orientations 0 --json

    Parameters
    ----------
    file
        A URDF, MJCF, SDF or JSON file, `gallery:NAME`, or `-` for standard input.
    link
        Link to map. Default: the tip link, chosen by name and by the number of dofs that move it.
    resolution
        Side of a voxel in m. With half the side, the map takes up to eight times as long. Default: 0.05.
    orientations
        Approximate number of evenly spread orientations to test in each voxel; 0 for none. Default: 60. If the link
        cannot turn freely at a fixed position, rotations about one axis, directions of its z axis, or none are tested.
    lock
        Joints, or dofs such as base.X, that keep their value in FILE.
    out
        Write the map to this .npz file, for `mk.ReachMap.load`.
    picture
        Draw the map to this .png, .svg or .pdf file.
    threads
        Number of threads. Default: all processors.
    quiet
        Show no progress bar.
    json
        Print JSON with all voxels.
    """
    map_file = None if out is None else output_path(out, (".npz",))
    picture_file = None if picture is None else output_path(picture, IMAGE_SUFFIXES)
    mechanism = open_mechanism(file)
    locked_names = parse_locked_joints(mechanism, lock)
    from mechanik.comparison.benchmark_robots import find_tip_link
    from mechanik.reach import reachability

    tip_link = link if link is not None else find_tip_link(mechanism)
    try:
        with ProgressBar(quiet) as bar:
            bar.start_phase(f"reach of {tip_link}")
            reach_map = reachability(
                mechanism,
                tip_link,
                resolution,
                orientations=orientations,
                lock=locked_names,
                threads=threads,
                progress=bar,
            )
    except (LimitsError, NotFinite) as error:
        raise UsageError(str(error)) from error
    if json:
        print_json({**reach_map.to_json(), **_summary_data(reach_map)})
    else:
        _print_map(reach_map)
    if map_file is not None:
        reach_map.save(map_file)
        print_note(f"wrote {out}", style="green")
    if picture_file is not None:
        _draw(reach_map, picture_file)
        print_note(f"wrote {picture}", style="green")


def _summary_data(reach_map: ReachMap) -> dict[str, Any]:
    """Return area, extent and shares of a map as JSON data."""
    best_index = reach_map.best
    return {
        "area": reach_map.area if reach_map.is_flat else None,
        "extent": reach_map.extent.tolist(),
        "best": {"position": reach_map.positions[best_index].tolist(), "share": float(reach_map.shares[best_index])},
        "mean_share": float(reach_map.shares.mean()),
    }


def _print_map(reach_map: ReachMap) -> None:
    """Print the size, the extent and the shares of a map."""
    best_index, shares = reach_map.best, reach_map.shares
    title = f"reach of {reach_map.link}" + (f" of {reach_map.mechanism}" if reach_map.mechanism else "")
    print_out(title, style="bold")
    centred_count = int(reach_map.centred.sum())
    print_out(
        f"{len(reach_map):,} voxels of {reach_map.resolution:g} m are reached, {centred_count:,} of these voxels at "
        "their centre"
    )
    print_out(f"{'area' if reach_map.is_flat else 'volume'} {reach_map.size_text}")
    print_out()
    table = make_table([""], ["x (m)", "y (m)", "z (m)"])
    low, high = reach_map.extent
    add_row(table, ["lowest", *(format_number(coordinate) for coordinate in low)])
    add_row(table, ["highest", *(format_number(coordinate) for coordinate in high)])
    add_row(
        table,
        [
            "best position" if len(reach_map.wxyz) else "middle",
            *(format_number(coordinate) for coordinate in reach_map.positions[best_index]),
        ],
    )
    print_table(table)
    print_out()
    if not len(reach_map.wxyz):
        print_out("no orientations were tested: --orientations is 0, or the link turns too little at a fixed position")
        return
    noun = "orientations" if reach_map.orientation_kind == "pose" else "directions of the z axis of the link"
    print_out(
        f"of {len(reach_map.wxyz)} {noun}, {_percent(shares[best_index])} are reachable at the best position, "
        f"{_percent(shares.mean())} on average"
    )
    table = make_table(["reachable share"], ["voxels", "share of voxels"])
    for label, is_in_class in (
        ("all", shares == 1.0),
        ("half or more", (shares >= 0.5) & (shares < 1.0)),
        ("less than half", (shares > 0.0) & (shares < 0.5)),
        ("none", shares == 0.0),
    ):
        add_row(table, [label, f"{int(is_in_class.sum()):,}", _percent(is_in_class.mean())])
    print_table(table)


def _draw(reach_map: ReachMap, path: Path) -> None:
    """Draw a map to an image file."""
    figure: Any = reach_map.plot()
    with atomic_write(path) as temporary_path:
        figure.savefig(temporary_path, format=path.suffix[1:].lower(), dpi=130)


def _percent(share: float | np.floating[Any]) -> str:
    return f"{100 * float(share):.1f} %"
