"""Kernels for the steps of the solver methods whose loop is written in Python."""
