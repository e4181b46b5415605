"""Ways of a mechanism around what it must not bump into: trees, shortcuts, round corners, and how certain they are."""
