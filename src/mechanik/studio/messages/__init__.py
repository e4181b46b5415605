"""What pages and sessions say to each other. The classes of `requests` and `events` are the schema for both sides;
`frames` is what moves at the rate of the screen. Imports nothing of the studio but itself."""
