"""Protocol between browser pages and sessions.

The dataclasses of `requests` and `events` are the schema for both sides. `message_codec` reads and writes them as JSON
and packs the binary frames that are sent at display rate. This package imports no other part of the studio.
"""
