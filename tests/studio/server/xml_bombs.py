"""XML that grows when it is read, XML that reads other files, and XML that does neither."""

from __future__ import annotations

BOMB = '<!DOCTYPE robot [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {after} "{f"&{before};" * 10}">' for before, after in zip("abcdefgh", "bcdefghi", strict=True)
) + ']><robot name="&i;"><link name="base"/></robot>'  # fmt: skip
OUTSIDE = '<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="&x;"><link name="base"/></robot>'
GOOD = '<robot name="good"><link name="base"/></robot>'
