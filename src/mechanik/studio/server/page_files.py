"""The files that browsers are given: a table made at the start. What is not in it does not exist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mechanik.errors import FileMissing

PAGE = Path(__file__).parents[1] / "page"
PICTURES = Path(__file__).parents[1] / "pictures"
MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".wasm": "application/wasm",
    ".json": "application/json",
}
START = "index.html"
ICON = "icon.svg"
FOR_EVER = "private, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"


@dataclass(frozen=True, slots=True)
class PageFile:
    data: bytes
    media: str
    caching: str


def page_files(page: Path | None = None) -> Mapping[str, PageFile]:
    """Every file of the built page and every picture, by the path of its address.

    Args:
        page: the folder of the built page, if not the one that comes with Mechanik.
    """
    folder = PAGE if page is None else page
    if not (folder / START).is_file():
        raise FileMissing(f"the studio's page was not built: there is no {START} in {folder}. `make page` builds it")
    table = {f"/{name}": file for name, file in _below(folder)}
    table.update({f"/pictures/{name}": file for name, file in _below(PICTURES)})
    table["/"] = table.pop(f"/{START}")
    if f"/{ICON}" in table:
        table["/favicon.ico"] = table[f"/{ICON}"]  # asked for by some, whatever the page says
    return table


def _below(folder: Path) -> list[tuple[str, PageFile]]:
    found: list[tuple[str, PageFile]] = []
    for path in sorted(folder.rglob("*")):
        media = MEDIA.get(path.suffix)
        if media is None or not path.is_file():
            continue
        name = path.relative_to(folder).as_posix()
        hashed = name.startswith("assets/")  # names that change with the content
        found.append((name, PageFile(path.read_bytes(), media, FOR_EVER if hashed else ASK_AGAIN)))
    return found
