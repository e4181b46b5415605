"""Inner loops over flat arrays, written in the part of Python that Numba compiles.

In: flat arrays of floats and integers, laid out as the `*_layout.py` modules say. Out: arrays. What runs a kernel
(machine code or plain Python) is decided in `mechanik.tiers`; nobody else imports a module of kernels.
"""
