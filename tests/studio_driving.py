"""A real studio in a real browser: its own server process on a free port, headless Chromium, a real mouse.

For browser tests, for the pictures of the documents, and for measurements.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from find_browser import find_browser, keep_to_one_core
from playwright.sync_api import Browser, Page, sync_playwright

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
)
PATIENCE = 120.0
"""s; the machine that tests may be busy with other things."""
FRAME = "JSON.stringify(m.store.frame, (key, value) => value instanceof Float64Array ? Array.from(value) : value)"
RESTS = """(seconds) => new Promise((done) => {
  const begun = performance.now();
  if (window.drawnAt === undefined) {
    window.drawnAt = begun;
    window.mechanik.view.on("drawn", () => (window.drawnAt = performance.now()));
  }
  const look = () => {
    const now = performance.now();
    const isOver = now - window.drawnAt > 300 || now - begun > 1000 * seconds;
    setTimeout(isOver ? done : look, 20);
  };
  look();
})"""
"""Until nothing was drawn for longer than it takes until a picture at rest is drawn once more, finely; that is a timer
of the page's own, which has its turn before ours."""
LINK = re.compile(r"http://[^\s]*token=[\w-]+")


@dataclass
class StudioProcess:
    """A running server."""

    process: subprocess.Popen[str]
    link: str
    output: list[str]

    @property
    def host(self) -> str:
        return urlsplit(self.link).netloc


@contextlib.contextmanager
def studio_process(*arguments: str) -> Iterator[StudioProcess]:
    """`mechanik studio` as a process of its own."""
    keep_to_one_core()
    command = [sys.executable, "-m", "mechanik", "studio", *arguments, "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8")
    output: list[str] = []
    has_link = threading.Event()
    link: list[str] = []

    def listen() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            output.append(line.rstrip())
            if not link and (match := LINK.search(line)):
                link.append(match.group())
                has_link.set()
        has_link.set()

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        has_link.wait(timeout=300)  # the first start on a machine compiles
        if not link:
            raise RuntimeError("the studio has printed no link:\n" + "\n".join(output[-20:]))
        yield StudioProcess(process, link[0], output)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        listener.join(10)
        if process.stdout is not None:
            process.stdout.close()


@contextlib.contextmanager
def chromium(*flags: str) -> Iterator[Browser]:
    """A headless Chromium with an empty profile, drawing in software."""
    executable = find_browser()
    if executable is None:
        raise RuntimeError("no Chromium, Chrome or Edge was found; on Debian: apt-get install chromium")
    keep_to_one_core()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, headless=True, args=[*FLAGS, *flags])
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Studio:
    """A page of the studio, what it has asked for and complained about."""

    page: Page
    host: str
    complaints: list[str] = field(default_factory=list)
    requested: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, browser: Browser, link: str, *, width: int = 960, height: int = 600, **options: Any) -> Studio:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=options.pop("theme", "light"), **options
        )
        context.set_default_timeout(1000 * PATIENCE)
        page = context.new_page()
        studio = cls(page, urlsplit(link).netloc)
        page.on("pageerror", lambda error: studio.complaints.append(f"page error: {error}"))
        page.on("console", lambda line: studio.complaints.append(line.text) if line.type == "error" else None)
        page.on("request", lambda request: studio.requested.append(request.url))
        page.on("websocket", lambda socket: studio.requested.append(socket.url))
        page.goto(link)
        studio.wait("window.mechanik?.store.welcome")
        return studio

    def reload(self) -> None:
        self.page.reload()
        self.wait("window.mechanik?.store.welcome")

    def close(self) -> None:
        self.page.context.close()

    # ---- looking ----------------------------------------------------------------------------

    def eval(self, expression: str, argument: Any = None) -> Any:
        """A JavaScript expression in the page; `m` is `window.mechanik`, `a` the argument."""
        return self.page.evaluate(f"(a) => {{ const m = window.mechanik; return ({expression}); }}", argument)

    def wait(self, expression: str, argument: Any = None, seconds: float = PATIENCE) -> Any:
        """Poll by timer, in the page, until the expression is true; returns its value."""
        value = self.page.evaluate(
            f"""([a, seconds]) => new Promise((done, failed) => {{
              const end = performance.now() + 1000 * seconds;
              const look = () => {{
                try {{
                  const m = window.mechanik;
                  const value = ({expression});
                  if (value || performance.now() > end) done(value || null);
                  else setTimeout(look, 10);
                }} catch (why) {{ failed(why); }}
              }};
              look();
            }})""",
            [argument, seconds],
        )
        if value is None:
            raise AssertionError(f"waited {seconds:g} s in vain for {expression}; complaints: {self.complaints}")
        return value

    def show(self, kind: str, name: str) -> None:
        """Open a mechanism of the gallery or a scene, and wait until it is drawn."""
        self.ask({"do": "OpenScene" if kind == "scene" else "OpenGallery", "name": name})
        self.wait("m.store.frame && m.store.frame.order === m.store.order")
        self.drawn()

    def ask(self, request: dict[str, Any]) -> None:
        """A request as the page itself sends it; fails if it is refused."""
        refusal = self.page.evaluate(
            "(request) => window.mechanik.store.connection.request(request).then(() => '', (why) => why.message)",
            request,
        )
        assert refusal == "", refusal

    def frame(self) -> dict[str, Any]:
        """The last state that came: links (7 each), values, goals (9 each), closures (2 each), header."""
        return json.loads(self.eval(FRAME))

    def at_rest(self) -> dict[str, Any]:
        """The frame once everything that was sent is answered and nothing moves any more."""
        is_at_rest = (
            "m.store.frame?.isAtRest && m.store.frame.order === m.store.order"
            " && m.store.frame.tag >= m.store.connection.lastTag && m.store.connection.pending.size === 0"
        )
        return json.loads(self.wait(f"{is_at_rest} && {FRAME}"))  # of the moment when it was so

    def drawn(self) -> None:
        """Wait until the page has drawn twice: what was asked for before is on the screen."""
        self.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def screenshot(self, path: str | None = None) -> bytes:
        return self.page.screenshot(path=path)

    def picture(self) -> bytes:
        """The view alone, without what stands around it."""
        x, y, width, height = self.eval("((b) => [b.x, b.y, b.width, b.height])(m.view.canvas.getBoundingClientRect())")
        return self.page.screenshot(clip={"x": x, "y": y, "width": width, "height": height})

    def still(self, seconds: float = 10.0) -> bytes:
        """The view, once it is drawn finely and two pictures in a row agree (or time is up, where something moves by
        itself). From here on it is drawn as finely as now, so that this picture can be compared with later ones."""
        self.eval("(m.view.quality.isFixed = true)")
        self.drawn()
        self.page.evaluate(RESTS, seconds)
        end, last = time.monotonic() + seconds, self.picture()
        while time.monotonic() < end:
            self.page.wait_for_timeout(60)
            now = self.picture()
            if now == last:
                break
            last = now
        return last

    def off_machine(self) -> list[str]:
        """Addresses that were asked for and are not the studio's own."""
        own = {self.host, self.host.replace("127.0.0.1", "localhost")}
        return [
            url for url in self.requested if not url.startswith(("data:", "blob:")) and urlsplit(url).netloc not in own
        ]

    # ---- touching ---------------------------------------------------------------------------

    def on_screen(self, point: Sequence[float]) -> tuple[float, float]:
        """Pixels of a point in the world."""
        x, y = self.eval(
            "(() => { m.view.camera.updateMatrixWorld();"  # it may have been moved and not drawn yet
            " const v = m.view.target.clone().set(...a).project(m.view.camera);"
            " const box = m.view.canvas.getBoundingClientRect();"
            " return [box.left + (v.x + 1) / 2 * box.width, box.top + (1 - v.y) / 2 * box.height]; })()",
            list(point),
        )
        return x, y

    def goal_on_screen(self, number: int) -> tuple[float, float]:
        place = self.eval("m.store.goals.findIndex((goal) => goal.number === a)", number)
        return self.on_screen(self.frame()["goals"][9 * place : 9 * place + 3])

    def drag(
        self,
        start: tuple[float, float],
        *ends: tuple[float, float],
        button: Any = "left",
        keys: Sequence[str] = (),
        steps: int = 8,
        pause: int = 0,
        follows: bool = False,
    ) -> None:
        """A real drag with the mouse, by way of each of the ends; keys are held down all the while.

        Args:
            pause: ms after each step.
            follows: let go only when what is held has come to where it is held. What has not come there after a
                quarter of a second stays where it is: a link that is pulled, on a machine that is busy.
        """
        mouse = self.page.mouse
        mouse.move(*start)
        self.drawn()  # what is under the pointer is looked up when a frame is drawn
        mouse.move(start[0] + 1, start[1])
        mouse.move(*start)
        for key in keys:
            self.page.keyboard.down(key)
        mouse.down(button=button)
        here = start
        for end in ends:
            for k in range(1, steps + 1):
                mouse.move(here[0] + (end[0] - here[0]) * k / steps, here[1] + (end[1] - here[1]) * k / steps)
                if pause:
                    self.page.wait_for_timeout(pause)
            here = end
        if follows:
            self.drawn()
            self.wait(
                "m.store.connection.unsent === null && m.store.frame.isAtRest"
                " && m.store.frame.tag >= m.store.connection.lastTag"
            )
        mouse.up(button=button)
        for key in keys:
            self.page.keyboard.up(key)
