"""JSON of our own: a whole mechanism in a file that reads back to an equal one.

`mechanism.schema.json` beside this file describes it for editors and other programs.
"""

from mechanik.formats.json_reader import read_json
from mechanik.formats.json_writer import VERSION, describe, write_json

__all__ = ["VERSION", "describe", "read_json", "write_json"]
