"""Kernels of signed distances between shapes, collision queries of a mechanism, and nearest seeds of targets."""
