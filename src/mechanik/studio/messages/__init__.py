"""Protocol between browser pages and sessions.

The structs in `requests`, `events` and `goal_kinds` are the schema of the messages. `message_codec` reads and writes
messages as JSON and packs the binary frames that are sent at display rate. This package imports no other package of the
studio.
"""

import importlib.util

from mechanik.errors import MissingExtra

if importlib.util.find_spec("msgspec") is None:
    raise MissingExtra("the studio", "studio")
