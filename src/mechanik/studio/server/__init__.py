"""Web server of the studio: serves the page, websockets and files to browsers that have access.

`serve` starts the server in a thread. Each page has its own session, unless all pages share one session. Each session
has its own thread. The messages of a page are rate-limited and validated before a session processes them. A path that a
client sends is never opened as a file.
"""
