"""Kernels of motion planning: tree search, path shortening, corner rounding, loop retraction and certificates."""
