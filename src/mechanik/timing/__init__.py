"""When to be where on a path: as fast as limits of velocity, acceleration and jerk allow.

In: a `Path`. Out: a `Trajectory`.
"""
