"""Meshes are shown whole: with the colours and pictures beside them, as colliders, and after they were saved."""

import time

import numpy as np
from browser_checks import named, open_tab, pixels
from painted_meshes import FILES, MESHES, packed, robot
from studio_driving import PATIENCE
from test_files import drop

CORNERS = """m.store.model.links.map((link, k) => {
  const found = [];
  m.view.linkObject(k).traverse((part) => {
    const [at, paint] = ['position', 'color'].map((name) => part.geometry?.getAttribute(name));
    for (let k = 0; k < (paint?.count ?? 0); k++) {
      found.push([at.getX(k), at.getY(k), at.getZ(k), paint.getX(k), paint.getY(k), paint.getZ(k)]);
    }
  });
  return found; })"""
COLLIDERS = """m.store.model.links.map((link, k) => {
  let found = null;
  m.view.linkObject(k).traverse((part) => {
    if (part.isMesh && !part.geometry.hasAttribute('color') && part.visible) {
      part.geometry.computeBoundingBox();
      found = part.geometry.boundingBox;
    }
  });
  return found && [found.min.toArray(), found.max.toArray()]; })"""


def opened(studio, files=FILES, name="plates") -> None:
    before = studio.eval("m.store.model.revision")
    drop(studio, (f"{name}.zip", packed(files)))
    studio.wait("m.store.model.revision > a && m.store.model.name === 'plates' && m.store.frame", before)


def corners(studio) -> list[np.ndarray]:
    """Of each link, once all have come: rows of x, y, z, r, g, b."""
    studio.wait(f"{CORNERS}.every((found) => found.length > 0)")
    return [np.array(rows) for rows in studio.eval(CORNERS)]


def check_red_and_green(rows: np.ndarray) -> None:
    flat = rows[np.abs(rows[:, 2]) < 1e-9]
    for side, colour in ((-1, (1, 0, 0)), (1, (0, 1, 0))):
        here = flat[(side * flat[:, 0] > 0.01) & (flat[:, 5] < 0.5)]
        assert len(here) > 10
        assert np.allclose(here[:, 3:], colour)


def test_a_mesh_of_each_format_has_the_colours_of_its_picture(studio):
    opened(studio)
    colours = corners(studio)
    assert len(colours) == len(MESHES)
    for rows in colours:
        check_red_and_green(rows)
    top = colours[0][colours[0][:, 2] > 0.5]
    assert np.allclose(top[:, 3:], (0, 0, 1)), "a material without a picture has its own colour"
    seen = pixels(studio.still()).reshape(-1, 3).astype(int)
    for most, least in ((0, 1), (1, 0)):
        assert (seen[:, most] - seen[:, least] > 60).mean() > 0.01, "both colours are on the screen"


def test_missing_textures_leave_the_mesh_and_missing_buffers_are_reported(studio):
    opened(studio, {name: data for name, data in FILES.items() if not name.endswith((".png", ".bin"))})
    words = studio.wait("document.querySelector(a)?.innerText", named("toast-warning"))  # it goes by itself
    assert "khronos" in words
    assert "plate.bin" in words
    assert all(len(rows) > 0 for rows in corners(studio))


def test_another_zip_shows_its_own_meshes_though_they_are_called_the_same(studio):
    opened(studio)
    first = corners(studio)[0]
    larger = FILES["plates/meshes/plate.obj"].replace(b"v 1 1 0", b"v 5 1 0")
    opened(studio, FILES | {"plates/meshes/plate.obj": larger})
    assert corners(studio)[0][:, 0].max() > 4 > first[:, 0].max()


def test_collision_meshes_are_drawn_at_their_poses(studio):
    opened(studio)
    corners(studio)
    studio.eval("(m.store.setDisplay({ collisions: true }), 1)")
    try:
        studio.wait(f"{COLLIDERS}.every((found) => found !== null)")
        for low, high in studio.eval(COLLIDERS):
            assert np.allclose(low, (-1, -2, 0)), "they are scaled, unlike what is seen"
            assert np.allclose(high[:2], (1, 2))
        before = studio.still()
    finally:
        studio.eval("(m.store.setDisplay({ collisions: false }), 1)")
    assert studio.eval(COLLIDERS) == [None] * len(MESHES)
    assert studio.still() != before


def recorded(studio) -> None:
    """A motion of the first joint."""
    studio.at_rest()
    open_tab(studio, "record")
    studio.page.click(named("record"))
    studio.wait("m.store.recording.state === 'recording'")
    for value in (0.1, 0.2, 0.3):
        studio.ask({"do": "SetDofValue", "dof": 0, "value": value})
        studio.at_rest()
    studio.page.click(named("record"))
    studio.wait("m.store.recording.state === 'ready'")


def saved(studio, kind: str) -> bytes:
    with studio.page.expect_download() as download:
        studio.page.click(named(f"save-{kind}"))
    return download.value.path().read_bytes()


def test_a_saved_glb_holds_the_meshes_and_is_shown_again(studio):
    """By the reader of another project, which the page has for such files."""
    obj_alone = {"wavefront": "plate.obj", "second": "plate.obj"}
    opened(studio, FILES | {"plates/plates.urdf": robot(obj_alone).encode()})
    recorded(studio)
    glb = saved(studio, "glb")
    files = {"p/p.urdf": robot({"one": "all.glb", "tip": "all.glb"}).encode(), "p/meshes/all.glb": glb}
    opened(studio, files, name="p")
    places = corners(studio)[0]
    blue = np.abs(places[:, 3:] - (0, 0, 1)).max(axis=1) < 0.01
    assert blue.sum() == 2 * 3, "one triangle of each of two links"
    # y is up there: the plates lie in x and z, one beside the other
    assert np.isclose(np.ptp(places[:, 0]), 2)
    assert np.ptp(places[:, 2]) > 4


def test_the_saved_page_has_the_pictures_inside(studio, tmp_path):
    opened(studio)
    recorded(studio)
    path = tmp_path / "plates.html"
    path.write_bytes(saved(studio, "html"))
    context = studio.page.context.browser.new_context(viewport={"width": 640, "height": 400}, offline=True)
    context.set_default_timeout(1000 * PATIENCE)
    page = context.new_page()
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    try:
        page.goto(path.as_uri())
        page.wait_for_selector("canvas")
        end = time.monotonic() + PATIENCE
        for most, least in ((0, 1), (1, 0)):
            share = 0.0
            while share <= 0.01 and time.monotonic() < end:
                seen = pixels(page.screenshot()).reshape(-1, 3).astype(int)
                share = (seen[:, most] - seen[:, least] > 60).mean()
            assert share > 0.01, "red and green are on the screen"
        assert [url for url in requested if not url.startswith(("file:", "data:", "blob:"))] == []
    finally:
        context.close()
