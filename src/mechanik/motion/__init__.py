"""Motion in time: path following, planning, retiming, tracking, the live solver and recordings.

Each sub-package has its own public names. This package itself exports none, so importing one
sub-package does not import the others.
"""
