"""`mechanik studio`: open a mechanism in the interactive studio in the browser."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from mechanik.cli.file_args import GALLERY_PREFIX, STANDARD_INPUT, open_mechanism
from mechanik.cli.output import print_note, print_out
from mechanik.errors import UnknownName
from mechanik.formats.source import is_text

if TYPE_CHECKING:
    from mechanik.studio.server.server import StartContent

NETWORK_WARNING = "Everybody who has network access to {} and the link can use this studio. Traffic is not encrypted."


def studio(
    file: str | None = None,
    /,
    *,
    port: int | None = None,
    host: str = "127.0.0.1",
    browser: Annotated[bool, Parameter(negative="--no-browser")] = True,
    page: Annotated[Path | None, Parameter(show=False)] = None,
) -> None:
    """Open the studio in the browser: drag the links of a mechanism and watch the solver.

    For example:

        mechanik studio
        mechanik studio robot.urdf
        mechanik studio panda

    Parameters
    ----------
    file
        A URDF, MJCF, SDF or JSON file, `gallery:NAME`, the name of a scene or of a gallery mechanism, or `-` for
        standard input. Default: a page on which to choose a mechanism.
    port
        Port number; 0 for any free port. Default: a free port, if possible the same each time.
    host
        Address to listen on. Default: 127.0.0.1, which only this machine can reach. With 0.0.0.0, other machines
        can open the link, too.
    browser
        Open the browser. The link is always printed.
    page
        Folder of the built studio page. Default: the page that is installed with Mechanik.
    """
    from mechanik.studio.server.server import is_loopback, serve

    server = serve(_start_content(file), host=host, port=port, page=page)
    try:
        if not is_loopback(host):
            print_note(NETWORK_WARNING.format(server.address))
        print_out(f"The studio is open at {server.link}")
        print_note("Press Ctrl-C to end the studio.", style="dim")
        if browser and not server.open_browser():
            print_note("No browser was found: open the link by hand.")
        while server.is_running:
            server.wait(1.0)  # with a timeout, because on some systems Ctrl-C does not interrupt an endless wait
    finally:
        server.close()


def _start_content(file: str | None) -> StartContent:
    """Return the start content that FILE names; an existing file has priority over a scene or gallery name."""
    if file is None:
        return None
    if (
        file == STANDARD_INPUT
        or file.startswith(GALLERY_PREFIX)
        or is_text(file)
        or os.path.exists(os.path.expanduser(file))
    ):
        return open_mechanism(file)
    from mechanik import gallery
    from mechanik.studio.scenes import SCENES

    if file in SCENES:
        return "scene", file
    if file in gallery.names():
        return "gallery", file
    if file.isidentifier():
        raise UnknownName("scene, mechanism of the gallery or file", file, [*SCENES, *gallery.names()])
    return open_mechanism(file)
