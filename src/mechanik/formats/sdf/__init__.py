"""SDF reader."""
