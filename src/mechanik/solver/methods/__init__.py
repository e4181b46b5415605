"""Iterative methods of inverse kinematics, with their options and the problem that they act on."""
