"""Web server of the studio: the page, websockets and files, for browsers that were opened with the printed link.

`serve` starts it in a thread. Each connection has its own session, and each session its own thread. Everything that a
client sends is rate-limited and validated before a session sees it. No path that a client sends is ever opened.
"""
