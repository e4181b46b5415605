"""Protocol between browser pages and sessions.

The structs in `requests`, `events` and `goal_kinds` are the schema of the messages. `message_codec` reads and writes
JSON messages and binary frames, and `typescript` generates the types of the page. This package imports no other package
of the studio.
"""

import importlib.util

from mechanik.errors import MissingExtra

if importlib.util.find_spec("msgspec") is None:
    raise MissingExtra("the studio", "studio")
