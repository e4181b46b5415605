"""Backends of a solver: each tries to answer a request, or leaves a partial answer for the next one."""
