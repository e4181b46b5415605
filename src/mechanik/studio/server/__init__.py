"""Web server of the studio: serves the page, websockets and files to browsers that were opened with the printed link.

`serve` starts the server in a thread. Each connection has its own session, unless all pages share one session. Each
session has its own thread. All messages of a client are rate-limited and validated before a session processes them. A
path that a client sends is never opened as a file.
"""
