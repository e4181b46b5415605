"""Kernels of signed distances between shapes, and of collision queries of a mechanism."""
