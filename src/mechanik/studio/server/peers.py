"""Whose program is at the other end of a connection inside this machine, where the system tells."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Sequence
from pathlib import Path

TABLES = {socket.AF_INET: Path("/proc/net/tcp"), socket.AF_INET6: Path("/proc/net/tcp6")}
LOCAL, REMOTE, USER = 1, 2, 7
"""Columns of these tables."""
ROOT = 0

Address = Sequence[str | int | None]
"""Host and port."""


def is_foreign(client: Address | None, server: Address | None) -> bool:
    """Whether another user of this machine has opened the connection. Root may do everything, and is none; where the
    system does not tell, nobody is."""
    user = None if client is None or server is None else user_of(client, server)
    return user is not None and user not in (ROOT, os.getuid())


def user_of(client: Address, server: Address) -> int | None:
    """The number of the user who has opened the connection from `client` to `server`; None where it is not known."""
    try:
        family = socket.AF_INET6 if ":" in str(client[0]) else socket.AF_INET
        ends = [_written(family, client), _written(family, server)]
        for line in TABLES[family].read_text(encoding="ascii").splitlines()[1:]:
            row = line.split()
            if row[LOCAL : REMOTE + 1] == ends:
                return int(row[USER])
    except (OSError, ValueError, IndexError, TypeError):
        pass
    return None


def _written(family: socket.AddressFamily, address: Address) -> str:
    """As the system writes an address: words of four bytes as this machine reads them, and the port, in hex."""
    host, port = str(address[0]), address[1]
    packed = socket.inet_pton(family, host)
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return f"{''.join(f'{word:08X}' for word in words)}:{port:04X}"
