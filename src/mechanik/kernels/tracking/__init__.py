"""Differential inverse kinematics: one step of a mechanism in time, within limits of velocity and acceleration."""
