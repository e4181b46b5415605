"""Protocol between browser pages and sessions.

The structs of `requests`, `events` and `goal_kinds` are the schema for both sides. `message_codec` reads and writes
them as JSON and packs the binary frames that are sent at display rate. It imports no other part of the studio.
"""

import importlib.util

from mechanik.errors import MissingExtra

if importlib.util.find_spec("msgspec") is None:
    raise MissingExtra("the studio", "studio")
