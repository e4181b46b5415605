"""`mechanik studio`: the printed link, usage errors and shutdown."""

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

TIMEOUT = 120.0
"""s; test machines may be busy."""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    (folder / "index.html").write_text("<!doctype html><title>studio</title>")
    return folder


@contextmanager
def running(page, *arguments):
    """Run the command in its own process; yield the process and the link that it prints."""
    # the parent process may ignore SIGINT
    restore_sigint = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{restore_sigint}; import sys; from mechanik.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "studio", *arguments, "--no-browser", "--page", str(page)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            yield process, re.search(r"http://\S+", line)[0]
        finally:
            process.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for other processes there")
def test_studio_prints_a_working_link_and_ctrl_c_stops_it(page):
    with running(page, "planar_3r") as (process, link):
        assert link.startswith("http://127.0.0.1:")
        with httpx.Client(follow_redirects=True, timeout=TIMEOUT) as browser:
            assert browser.get(link).status_code == 200
        assert httpx.get(link.split("?")[0], timeout=TIMEOUT).status_code == 403
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT) == 130
        assert "Traceback" not in process.stderr.read()


def run_failing(capsys, *arguments) -> tuple[int, str]:
    code = main(["studio", "--no-browser", *arguments])
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return code, err


def test_unknown_gallery_name_is_wrong_use_with_a_suggestion(capsys, page):
    code, err = run_failing(capsys, "pandda", "--page", str(page))
    assert code == 2
    assert "Did you mean 'panda'" in err


def test_missing_file_is_wrong_use(capsys, page):
    code, err = run_failing(capsys, "no/such/robot.urdf", "--page", str(page))
    assert code == 2
    assert "robot.urdf" in err


def test_file_that_is_no_mechanism_exits_1(capsys, page, tmp_path):
    (tmp_path / "robot.urdf").write_text("<robot")
    code, err = run_failing(capsys, str(tmp_path / "robot.urdf"), "--page", str(page))
    assert code == 1
    assert "robot.urdf" in err


def test_missing_page_is_an_error_that_says_how_to_build_it(capsys, tmp_path):
    code, err = run_failing(capsys, "--page", str(tmp_path))
    assert code == 2
    assert "make page" in err


def test_port_in_use_exits_1(capsys, page):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, err = run_failing(capsys, "--port", str(taken.getsockname()[1]), "--page", str(page))
    assert code == 1
    assert "in use" in err


def test_missing_extra_is_an_error_that_says_what_to_install(capsys, page, monkeypatch):
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *_: None if name == "uvicorn" else find(name))
    code, err = run_failing(capsys, "--page", str(page))
    assert code == 1
    assert "pip install 'mechanik[studio]'" in err


@pytest.fixture
def opened(monkeypatch):
    """Links that the browser opens, each with the status codes of two requests; the process then gets SIGINT."""
    links = []

    def open_link(link):
        links.append((link, [httpx.get(link, timeout=TIMEOUT).status_code for _ in range(2)]))
        os.kill(os.getpid(), signal.SIGINT)
        return True

    monkeypatch.setattr("webbrowser.open", open_link)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # the parent process may ignore it
    yield links
    signal.signal(signal.SIGINT, before)


def test_browser_opens_a_single_use_link_that_differs_from_the_printed_link(capsys, page, opened):
    assert main(["studio", "--port", "0", "--page", str(page)]) == 130
    out, err = capsys.readouterr()
    ((address, status_codes),) = opened
    printed, _, token = out.split()[-1].partition("?token=")
    assert address.startswith(f"{printed}?once=")
    assert token not in address
    assert status_codes == [303, 403]
    assert "Everybody" not in err


def test_public_host_is_used_only_on_request_and_with_a_warning(capsys, page, opened):
    assert main(["studio", "--host", "0.0.0.0", "--port", "0", "--page", str(page)]) == 130
    out, err = capsys.readouterr()
    ((address, status_codes),) = opened
    assert address.split("?")[0] == out.split()[-1].split("?")[0]
    assert status_codes[0] == 303
    assert "Everybody who has network access" in err
