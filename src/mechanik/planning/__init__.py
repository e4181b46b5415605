"""Paths around obstacles, from one configuration to another.

In: a mechanism, a start, goals and what to keep off. Out: a `Path`, checked densely.
"""
