"""Motion in time: path following, planning, retiming, tracking, the live solver and recordings.

Each sub-package has its own public names. This package exports none, because recordings import the file formats.
"""
