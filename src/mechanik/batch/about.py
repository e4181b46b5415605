"""What is kept beside the numbers of a batch: what was asked, and how far it has come."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from mechanik.batch.fingerprint import Fingerprint
from mechanik.errors import JsonError, OtherBatch

FORMAT, VERSION = "mechanik batch", 1


@dataclass(frozen=True, slots=True)
class About:
    """
    Attributes:
        rows: how many targets there are.
        joints: a name for each number of q.
        objectives: a name for each objective.
        seed: of all that is random; None: nothing is.
        asked: a fingerprint of each part of what was asked.
        seconds: spent on the rows that are done.
    """

    rows: int
    joints: tuple[str, ...]
    objectives: tuple[str, ...]
    seed: int | None
    asked: Fingerprint
    seconds: float = 0.0

    def after(self, seconds: float) -> About:
        """The same when so much more time has been spent."""
        return replace(self, seconds=self.seconds + seconds)

    def check(self, other: About, where: str) -> None:
        """Refuse to go on with a result that is not of what is asked now, `other`."""
        if self.rows != other.rows:
            raise OtherBatch(f"{where} is a result for {self.rows} targets, and there are {other.rows}; {ELSEWHERE}")
        if (len(self.joints), len(self.objectives)) != (len(other.joints), len(other.objectives)):
            mine, its = (f"{len(a.joints)} numbers in q and {len(a.objectives)} objectives" for a in (other, self))
            raise OtherBatch(f"{where} is a result with {its}, and now there are {mine}; {ELSEWHERE}")
        parts = [part for part in other.asked if self.asked.get(part) != other.asked[part]]
        if parts:
            raise OtherBatch(f"{where} is the result of another batch: other {' and '.join(parts)}; {ELSEWHERE}")

    def text(self) -> str:
        """As JSON."""
        return json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)}, indent=2) + "\n"

    @staticmethod
    def read(text: str, where: str) -> About:
        """What `text` wrote."""
        try:
            data: Any = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise JsonError(f"{where}: this is no JSON: {error}") from None
        table = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
        if table.get("format") != FORMAT:
            raise JsonError(f"{where}: format is {table.get('format')!r}, and that of a batch is {FORMAT!r}")
        if table.get("version") != VERSION:
            raise JsonError(f"{where}: version is {table.get('version')!r}, and this Mechanik reads {VERSION}")
        rows, seed, seconds = table.get("rows"), table.get("seed"), table.get("seconds")
        joints, objectives, asked = table.get("joints"), table.get("objectives"), table.get("asked")
        if (
            not (_is_count(rows) and (seed is None or _is_count(seed)))
            or not (_are_names(joints) and _are_names(objectives))
            or not (isinstance(asked, Mapping) and isinstance(seconds, float | int))
        ):
            raise JsonError(f"{where}: rows, joints, objectives, seed, asked and seconds are not what a batch writes")
        named = [tuple(cast("Sequence[str]", names)) for names in (joints, objectives)]
        return About(cast("int", rows), named[0], named[1], seed, dict(cast("Fingerprint", asked)), float(seconds))


ELSEWHERE = "it is left as it is; give another place with out="


def _is_count(thing: object) -> bool:
    return isinstance(thing, int) and not isinstance(thing, bool) and thing >= 0


def _are_names(thing: object) -> bool:
    return isinstance(thing, list) and all(isinstance(one, str) for one in cast("list[object]", thing))
