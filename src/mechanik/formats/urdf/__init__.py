"""URDF reader and writer, with the file for loop closures beside a URDF."""
