"""MJCF reader, based on MuJoCo's own compiler."""
