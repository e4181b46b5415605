"""The JSON format of Mechanik, in which a complete mechanism can be stored and read back to the last bit.

`mechanism.schema.json` in this folder describes the format for editors and other programs.
"""

from mechanik.formats.json.reader import read_json
from mechanik.formats.json.writer import FORMAT_VERSION, describe, write_json

__all__ = ["FORMAT_VERSION", "describe", "read_json", "write_json"]
