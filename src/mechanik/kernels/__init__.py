"""Numerical kernels over arrays of floats and integers, written in the subset of Python that Numba compiles.

Modules such as `problem_layout.py` and `nodes.py` declare the layout of flat arrays (see `tables.py`). The rest of the
library calls kernels only through `mechanik.tiers`, which runs them as machine code or as plain Python.
"""
