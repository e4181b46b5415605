"""Signed distances between shapes, and which shapes of a mechanism come near each other."""
