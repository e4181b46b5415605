"""`mechanik studio`: what it prints, what it refuses, and how it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import httpx
import pytest

from mechanik.cli import main

PATIENCE = 120.0
"""s; machines are busy."""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    (folder / "index.html").write_text("<!doctype html><title>studio</title>")
    return folder


@contextmanager
def running(page, *arguments):
    """The command in a process of its own, and the link that it prints."""
    # whoever started the tests may have turned signals off
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    call = f"{heed}; import sys; from mechanik.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", call, "studio", *arguments, "--no-browser", "--page", str(page)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            said = process.stdout.readline()
            yield process, re.search(r"http://\S+", said)[0]
        finally:
            process.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for other processes there")
def test_it_prints_a_link_that_opens_and_ctrl_c_ends_it(page):
    with running(page, "planar_3r") as (process, link):
        assert link.startswith("http://127.0.0.1:")
        with httpx.Client(follow_redirects=True, timeout=PATIENCE) as browser:
            assert browser.get(link).status_code == 200
        assert httpx.get(link.split("?")[0], timeout=PATIENCE).status_code == 403
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        assert "Traceback" not in process.stderr.read()


def refused(capsys, *arguments) -> tuple[int, str]:
    code = main(["studio", "--no-browser", *arguments])
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return code, err


def test_a_name_that_nothing_has_is_wrong_use_with_a_hint(capsys, page):
    code, err = refused(capsys, "pandda", "--page", str(page))
    assert code == 2
    assert "Did you mean 'panda'" in err


def test_a_file_that_is_not_there_is_wrong_use(capsys, page):
    code, err = refused(capsys, "no/such/robot.urdf", "--page", str(page))
    assert code == 2
    assert "robot.urdf" in err


def test_a_file_that_is_no_mechanism_is_said_so(capsys, page, tmp_path):
    (tmp_path / "robot.urdf").write_text("<robot")
    code, err = refused(capsys, str(tmp_path / "robot.urdf"), "--page", str(page))
    assert code == 1
    assert "robot.urdf" in err


def test_a_page_that_was_not_built_is_said_so_with_what_to_do(capsys, tmp_path):
    code, err = refused(capsys, "--page", str(tmp_path))
    assert code == 2
    assert "make page" in err


def test_a_port_that_is_in_use_is_said_so(capsys, page):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, err = refused(capsys, "--port", str(taken.getsockname()[1]), "--page", str(page))
    assert code == 1
    assert "in use" in err


def test_a_missing_part_is_said_with_what_to_install(capsys, page, monkeypatch):
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *_: None if name == "uvicorn" else find(name))
    code, err = refused(capsys, "--page", str(page))
    assert code == 1
    assert "pip install 'mechanik[studio]'" in err


@pytest.fixture
def opened(monkeypatch):
    """Addresses that the browser was asked to open, each with the answers to two tries; Ctrl-C is pressed at once."""
    links = []

    def open_it(link):
        links.append((link, [httpx.get(link, timeout=PATIENCE).status_code for _ in range(2)]))
        os.kill(os.getpid(), signal.SIGINT)
        return True

    monkeypatch.setattr("webbrowser.open", open_it)
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # whoever started the tests may have turned it off
    yield links
    signal.signal(signal.SIGINT, before)


def test_the_browser_is_opened_with_an_address_that_works_once_and_is_not_the_one_that_is_printed(capsys, page, opened):
    assert main(["studio", "--port", "0", "--page", str(page)]) == 130
    out, err = capsys.readouterr()
    ((address, answers),) = opened
    printed, _, token = out.split()[-1].partition("?token=")
    assert address.startswith(f"{printed}?once=")
    assert token not in address
    assert answers == [303, 403]
    assert "Everybody" not in err


def test_another_host_is_a_matter_of_asking_for_it_and_of_a_warning(capsys, page, opened):
    assert main(["studio", "--host", "0.0.0.0", "--port", "0", "--page", str(page)]) == 130
    out, err = capsys.readouterr()
    ((address, answers),) = opened
    assert address.split("?")[0] == out.split()[-1].split("?")[0]
    assert answers[0] == 303
    assert "Everybody who can reach" in err
