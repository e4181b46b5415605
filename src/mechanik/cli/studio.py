"""`mechanik studio`: touch a mechanism in the browser."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from mechanik.cli.opening import GALLERY, STANDARD_INPUT, open_mechanism
from mechanik.cli.output import aside, say
from mechanik.errors import UnknownName
from mechanik.formats.source import is_text

if TYPE_CHECKING:
    from mechanik.studio.server.serve import Start

OPEN_TO_OTHERS = "Everybody who can reach {} and has the link can use this studio, and what is sent is not encrypted."


def studio(
    file: str | None = None,
    /,
    *,
    port: int | None = None,
    host: str = "127.0.0.1",
    browser: Annotated[bool, Parameter(negative="--no-browser")] = True,
    page: Annotated[Path | None, Parameter(show=False)] = None,
) -> None:
    """Open the studio in the browser: drag a mechanism by its hand and watch it follow.

    For example:

        mechanik studio
        mechanik studio robot.urdf
        mechanik studio panda

    Parameters
    ----------
    file
        A URDF, MJCF, SDF or JSON file, `gallery:NAME`, the name of a scene or of a mechanism of the gallery, or `-` for
        standard input. Without it: a page to choose from.
    port
        A number; else the first that is free.
    host
        The address to listen on. With any other than 127.0.0.1 people on other machines can open the link.
    browser
        Whether the browser is opened; the link is printed in any case.
    page
        The folder of a page that was built elsewhere.
    """
    from mechanik.studio.server.serve import is_loopback, serve

    server = serve(_start(file), host=host, port=port, page=page)
    try:
        if not is_loopback(host):
            aside(OPEN_TO_OTHERS.format(server.address))
        say(f"The studio is open at {server.link}")
        aside("Ctrl-C ends it.", style="dim")
        if browser and not server.open_browser():
            aside("No browser was found: open the link by hand.")
        while server.is_running:
            server.wait(1.0)  # in pieces, since a wait without an end does not hear Ctrl-C everywhere
    finally:
        server.close()


def _start(file: str | None) -> Start:
    """What FILE means; a file that is there comes before a name."""
    if file is None:
        return None
    if file == STANDARD_INPUT or file.startswith(GALLERY) or is_text(file) or os.path.exists(os.path.expanduser(file)):
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
