"""Kernels of differential inverse kinematics: one time step within velocity and acceleration limits."""
