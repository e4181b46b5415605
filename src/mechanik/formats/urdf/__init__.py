"""URDF reader and writer, and the reader of the sidecar file with loop closures beside a URDF."""
