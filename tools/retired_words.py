"""Find retired words in file names and identifiers of Python and TypeScript sources.

    python tools/retired_words.py [--files] [path ...]

With `--files` only file names are checked. The words, their replacements and the reasons are in `retired_words.toml`.
Exits with 1 if a retired word is found.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SUFFIXES = {".py", ".ts"}
TS_TEXT = re.compile(r"//[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|`(?:\\.|[^`\\])*`", re.DOTALL)
"""Comments and string literals of TypeScript, which are not checked."""
ARRAY_SOME = re.compile(r"\.some\(")
"""Calls of the array method `some` of TypeScript, which is allowed."""
IDENTIFIER_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
"""A word of an identifier: `shortWay`, `short_way` and `SHORT_WAY` have two words each."""


def words_of(identifier: str) -> set[str]:
    """Return the words of an identifier in lower case, each also without a plural s."""
    words = {word.lower() for word in IDENTIFIER_WORD.findall(identifier)}
    return words | {word[:-1] for word in words if word.endswith("s")}


def python_identifiers(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each identifier, including those inside f-strings."""
    line = 0
    for node in ast.walk(ast.parse(text)):
        line = getattr(node, "lineno", line)
        for field in ("id", "attr", "arg", "name", "asname", "rest"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                yield line, value


def typescript_identifiers(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each identifier outside comments and string literals."""
    code = TS_TEXT.sub(lambda match: "\n" * match[0].count("\n"), text)
    for line_number, line in enumerate(code.splitlines(), 1):
        for match in re.finditer(r"[A-Za-z_$][\w$]*", ARRAY_SOME.sub("(", line)):
            yield line_number, match[0]


def main(arguments: list[str]) -> int:
    lists = tomllib.loads((HERE / "retired_words.toml").read_text(encoding="utf-8"))
    words, identifiers = lists["words"], lists["identifiers"]

    def find_remark(identifier: str) -> str | None:
        if identifier in identifiers:
            return f"use {identifiers[identifier]}"
        for word in words_of(identifier) & words.keys():
            entry = words[word]
            remaining_identifier = identifier
            for allowed in entry.get("allowed", ()):
                remaining_identifier = remaining_identifier.replace(allowed, "")
            if word in words_of(remaining_identifier):
                return f'"{word}" is retired ({entry["why"]}), use {entry["use"]}'
        return None

    only_files = "--files" in arguments
    paths = [argument for argument in arguments if argument != "--files"]
    git_files = subprocess.run(["git", "ls-files", *paths], cwd=ROOT, check=True, capture_output=True, text=True)
    count = 0
    for name in git_files.stdout.splitlines():
        path = ROOT / name
        if path.suffix not in SUFFIXES or not path.exists():
            continue
        checked_names = [(0, path.stem, find_remark(path.stem))]
        if not only_files:
            find_identifiers = python_identifiers if path.suffix == ".py" else typescript_identifiers
            text = path.read_text(encoding="utf-8")
            checked_names += [
                (line, identifier, find_remark(identifier)) for line, identifier in find_identifiers(text)
            ]
        for line, identifier, remark in sorted(set(checked_names), key=lambda result: (result[0], result[1])):
            if remark:
                count += 1
                print(f"{name}:{line}: {identifier}: {remark}")
    if count:
        print(f"{count} retired word{'' if count == 1 else 's'}; see tools/retired_words.toml")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
