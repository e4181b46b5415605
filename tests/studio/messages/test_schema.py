"""One schema for both sides."""

import json
import subprocess
import sys

import numpy as np

from mechanik.studio.messages import events
from mechanik.studio.messages.message_codec import write_event
from mechanik.studio.messages.typescript import OUTPUT_PATH, generate_typescript


def test_the_types_of_the_page_are_those_of_the_schema():
    assert OUTPUT_PATH.read_text(encoding="utf-8") == generate_typescript(), (
        "run python -m mechanik.studio.messages.typescript"
    )


def test_every_event_has_its_type():
    text = generate_typescript()
    for event in events.EVENTS:
        assert f'is: "{event.__name__}";' in text


def test_numbers_that_json_has_not_become_null():
    event = events.Recording("ready", np.int64(3), np.float64("inf"), float("nan"))
    assert json.loads(write_event(event)) == {
        "is": "Recording",
        "state": "ready",
        "frames": 3,
        "duration": None,
        "time": None,
    }


def test_studio_without_its_extra_says_what_to_install():
    program = (
        "import importlib.util\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'msgspec' else find(name, *rest)\n"
        "import mechanik as mk\n"
        "try:\n    mk.Studio\nexcept mk.errors.MissingExtra as error:\n    print(error)\n"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "pip install 'mechanik[studio]'" in output
