"""Every code block of the documents and every example runs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [(path, *match.groups()) for path in DOCUMENTS for match in BLOCK.finditer(path.read_text(encoding="utf-8"))]
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))


def run(command: list[str], folder: Path) -> str:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("path", "language", "text"), BLOCKS, ids=[f"{p.name}-{i}" for i, (p, *_) in enumerate(BLOCKS)]
)
def test_every_code_block_runs(path, language, text, tmp_path):
    if language == "python":
        run([sys.executable, "-W", "error", "-c", text], tmp_path)
        return
    assert language == "sh", f"a block of {language} cannot be run, so nobody would notice when it is wrong"
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["mechanik"]:
            run([sys.executable, "-m", "mechanik", *words[1:]], tmp_path)
        elif words[:1] == ["make"]:
            # said aloud but not done: this test is a part of `make test` itself
            if shutil.which("make"):
                run(["make", "--dry-run", *words[1:]], ROOT)
        elif words:
            pytest.fail(f"nobody knows how to try {line!r}")


def test_the_readme_has_blocks_of_both_kinds():
    """The tour has what the README had; both are counted, so that no block is lost."""
    languages = [language for path, language, _ in BLOCKS if path.name in ("README.md", "tour.md")]
    assert languages.count("python") >= 18
    assert languages.count("sh") >= 2


def test_the_readme_fits_on_four_screens():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 160


def test_the_tour_prints_what_it_says():
    text = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    code = next(block for _, language, block in BLOCKS if language == "python" and "panda_joint9" in block)
    match = re.search(r"prints `(no joint is called .*?)`", text, re.DOTALL)
    assert match is not None
    assert run([sys.executable, "-c", code], ROOT).split() == match.group(1).split()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_runs_and_prints(path, tmp_path):
    assert len(path.read_text(encoding="utf-8").splitlines()) < 60
    assert run([sys.executable, "-W", "error", str(path)], tmp_path).strip()


def test_there_are_examples():
    assert len(EXAMPLES) >= 8
    assert [path.name[:2] for path in EXAMPLES] == [f"{k:02}" for k in range(1, len(EXAMPLES) + 1)]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), target
