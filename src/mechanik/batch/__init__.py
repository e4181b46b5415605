"""Many targets at once: in lanes where there is one chain, on the general kernel in threads for all else.

In: arrays of targets and starts, and a way to solve some of them. Out: arrays (`BatchResult`), in memory or in files.
May import `search` and what stands below it; it is `ik` that hands it a solver.
"""
