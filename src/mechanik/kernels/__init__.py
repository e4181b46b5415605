"""Numerical kernels over flat arrays, written in the subset of Python that Numba compiles.

Kernels read and write flat arrays of floats and integers; the `*_layout.py` modules define their layout.
`mechanik.tiers` chooses between machine code and plain Python for each kernel. Kernels are called through it only.
"""
