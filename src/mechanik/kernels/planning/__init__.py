"""Kernels of motion planning: tree search, path shortening and rounding, spline checks, loops and certificates."""
