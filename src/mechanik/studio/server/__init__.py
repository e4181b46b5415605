"""The studio's server: pages, websockets and files, for browsers of this machine that came by the printed link.

`serve` starts it in a thread. Each connection has a session of its own, which works in a thread of its own; what a
client sends is counted and checked before a session sees it, and no path of a client is ever opened.
"""
