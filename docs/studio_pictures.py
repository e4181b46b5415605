"""Takes the studio's pictures in a headless Chromium: python docs/studio_pictures.py [NAME...] (needs mechanik[dev]).

Small ones for the start page (src/mechanik/studio/pictures), large ones for the documents (docs/studio). With names,
only those scenes and mechanisms; `start` is the start page.
"""

from __future__ import annotations

import argparse
import base64
import io
import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from studio_driving import Studio, chromium  # noqa: E402

from mechanik.studio.messages.events import StartPageEntry  # noqa: E402
from mechanik.studio.scenes import start_page_entries  # noqa: E402
from mechanik.studio.server.server import serve  # noqa: E402

SMALL, LARGE = (320, 200), (1280, 800)
FULL, NEAREST = 0.62, 0.55
"""A small picture needs no air around: the camera goes nearer until links are so far from the middle (1: at the edge),
to at most this share of its default distance."""
PLAIN = {"theme": "light", "markers": False, "labels": False, "collisions": False}
SIDES = {
    # camera direction, where the default direction shows little
    "dh_arm": (0.6, -1.0, 0.5),
}
GO_NEARER = """(() => {
  const { camera, target } = m.view, links = m.store.frame.links;
  let farthest = 0;
  for (let k = 0; k < links.length; k += 7) {
    const p = target.clone().set(links[k], links[k + 1], links[k + 2]).project(camera);
    farthest = Math.max(farthest, Math.abs(p.x), Math.abs(p.y));
  }
  const share = Math.min(1, Math.max(a[1], farthest / a[0]));
  camera.position.sub(target).multiplyScalar(share).add(target);
  m.view.draw();
})()"""
MOTIONS = {
    # what a scene that stands is set to, so that its picture shows what it is about
    "hexapod": ("motion", "gyrate"),
    "humanoid": ("motion", "reach"),
    "walker": ("motion", "walk"),
    "rover": ("motion", "circle"),
    "two_arms": ("motion", "both"),
    "partial_goals": ("motion", "both"),
    "dh_arm": ("motion", "circle"),
    "arm_2d": ("motion", "circle"),
    "list_arm": ("circle", True),
    "boxes": ("pose", "hits the walls"),
}
LONG = 1500
"""ms that a scene plays before its picture."""


def show(studio: Studio, entry: StartPageEntry, is_small: bool = False) -> None:
    """Open a scene, let it play a while, and turn the camera to an informative direction."""
    studio.eval("(m.store.setDisplay(a), 1)", PLAIN if is_small else {"theme": "light", "collisions": False})
    studio.show(entry.kind, entry.name)
    if entry.kind == "scene":
        if entry.name in MOTIONS:
            control, value = MOTIONS[entry.name]
            studio.ask({"do": "SetControl", "name": control, "value": value})
        studio.page.wait_for_timeout(LONG)
    if entry.name in SIDES:
        studio.eval("(m.view.viewFrom(m.view.target.clone().set(...a)), 1)", list(SIDES[entry.name]))
    else:
        studio.eval("(m.view.frameAll(), 1)")
    studio.page.wait_for_timeout(600)  # the camera takes a moment to get there
    if is_small:
        studio.eval(GO_NEARER, [FULL, NEAREST])
    studio.drawn()


def small(studio: Studio, path: Path) -> None:
    """The view alone, drawn larger and made small, in few colours."""
    text = studio.page.evaluate(
        "() => window.mechanik.view.screenshot().then((blob) => new Promise((done) => {"
        " const reader = new FileReader(); reader.onload = () => done(reader.result.split(',')[1]);"
        " reader.readAsDataURL(blob); }))"
    )
    picture = Image.open(io.BytesIO(base64.b64decode(text))).convert("RGB").resize(SMALL, Image.Resampling.LANCZOS)
    # a palette keeps it below 25 kB; octrees keep the few strong colours, which averages would swallow
    picture.quantize(256, Image.Quantize.FASTOCTREE, kmeans=2, dither=Image.Dither.NONE).save(path, optimize=True)


def large(studio: Studio, path: Path) -> None:
    """The whole page, drawn in the finest quality and reduced to its size, so that edges are smooth."""
    picture = Image.open(io.BytesIO(studio.page.screenshot())).convert("RGB")
    picture.resize(LARGE, Image.Resampling.LANCZOS).save(path, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these")
    parser.add_argument("--page", type=Path, help="folder of the built page, if not the one in the package")
    parser.add_argument("--small", type=Path, default=ROOT / "src/mechanik/studio/pictures")
    parser.add_argument("--large", type=Path, default=ROOT / "docs/studio")
    arguments = parser.parse_args()
    for folder in (arguments.small, arguments.large):
        folder.mkdir(parents=True, exist_ok=True)

    def is_wanted(name: str) -> bool:
        return not arguments.names or name in arguments.names

    server = serve(port=0, page=arguments.page)
    try:
        with chromium() as browser:
            width, height = 2 * SMALL[0], 2 * SMALL[1]
            studio = Studio.open(browser, server.link, width=width, height=height)
            studio.eval("(m.panels.sidebar.close(), 1)")
            for entry in start_page_entries():
                if is_wanted(entry.name):
                    show(studio, entry, is_small=True)
                    small(studio, arguments.small / Path(entry.picture).name)
            studio.close()
            # the start page shows the small ones, so it comes after them; a server reads its files when it starts
            server.close()
            server = serve(port=0, page=arguments.page)
            studio = Studio.open(browser, server.link, width=LARGE[0], height=LARGE[1], device_scale_factor=2)
            studio.eval("(m.view.quality.isFixed = true, m.store.setDisplay(a), 1)", {"theme": "light"})
            if is_wanted("start"):
                studio.page.wait_for_timeout(1000)
                studio.page.screenshot(path=arguments.large / "start.png")
            for entry in start_page_entries():
                if entry.kind == "scene" and is_wanted(entry.name):
                    show(studio, entry)
                    large(studio, arguments.large / f"{entry.name}.png")
            studio.close()
    finally:
        server.close()


if __name__ == "__main__":
    main()
