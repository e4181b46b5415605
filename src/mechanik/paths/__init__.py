"""Paths: configurations one behind the other without a jump.

In: a mechanism and goals that change along the way. Out: a `Path`, or the place where there is none and why.
"""
