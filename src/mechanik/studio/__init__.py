"""Interactive studio: show a mechanism in the browser, drag it, edit it and compare solvers.

The layers are `messages` (the protocol), `session` (state and solving, no web code), `scenes` (demonstrations),
`server` (HTTP and websockets) and `studio_api` (the public class `Studio`). `web` holds the source of the page.
"""
