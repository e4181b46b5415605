"""Touch any mechanism in the browser: sessions without web code, the server, the page's sources, and `Studio`.

In: a mechanism, a file, or nothing. Out: a link.
"""
