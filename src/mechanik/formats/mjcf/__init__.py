"""MJCF reader, which uses the compiler of MuJoCo."""
