"""Why a method cannot do what is asked of it, said to somebody who has no code before them."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager

from mechanik.errors import Refused
from mechanik.solvers.methods import METHODS, find_method

INSTEAD = re.compile(r"; solver='(?P<name>\w+)'(?P<more>.*)$", re.DOTALL)
OPTION = re.compile(r" with (?P<option>\w+)='(?P<value>\w+)'")
OBJECTIVE = re.compile(r"<(?P<kind>\w+)(?: '(?P<name>[^']*)')?[^<>]*>", re.DOTALL)


@contextmanager
def said_to_people() -> Generator[None]:
    """What methods refuse inside is refused in words that name no argument of a function."""
    try:
        yield
    except Refused as error:
        raise Refused(spoken(str(error))) from error


def spoken(text: str) -> str:
    """The words of a refusal, with the advice as somebody would give it who stands beside."""
    text = OBJECTIVE.sub(lambda found: f"the goal '{found['name']}'" if found["name"] else "one of the goals", text)
    found = INSTEAD.search(text)
    if found is None or found["name"] not in METHODS:
        return text
    option = OPTION.match(found["more"])
    advice = f"choose {find_method(found['name']).title}, which can"
    if option is not None:
        advice = f"set its option {option['option']} to {option['value']}"
    return f"{text[: found.start()]}; {advice}"
