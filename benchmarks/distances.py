"""Signed distances beside those of coal and MuJoCo, in one run: python benchmarks/distances.py [pairs of each kind]

For each two kinds of shapes: nanoseconds a pair, the largest difference, how many pairs differ by more than 1e-9 m, and
which side is wrong. The check is independent of all three: a distance d with the normal n is refuted if the shapes are
less than d apart along n (by their support functions), or more than d along the normal of the other result.

Our pairs are timed in one call, theirs one by one from Python, which costs them some 0.5 us a pair. All iterations are
as tight as they go, which neither of them is made for. Fails if a distance of ours is refuted or wrong by more than
1e-9.
"""

from __future__ import annotations

import itertools
import sys
from time import process_time as clock

import numpy as np
from distance_peers import CoalGaps, MujocoGaps
from shape_pairs import NAMES, Pairs, as_prisms, as_shapes, differing, random_pairs, separation

from mechanik.kernels.distance.collision_layout import BOX, CAPSULE, HALF_SPACE, HEIGHT_FIELD, HULL, SPHERE

SAME = 1e-9
FEWER = 50
"""Pairs with a height field are fewer: coal checks each of its 50 prisms."""
PEER = f"{'us':>11}{'differs':>9}{'> 1e-9':>8}{'theirs':>8}"
HEAD = f"{'':24}{'ns':>7}{'proven':>10}{PEER}{PEER}"


def seconds_a_pair(pairs: Pairs, rounds: int = 5) -> float:
    """The best of some rounds, for up to 10,000 pairs: they fit into the cache."""
    n, k = pairs.count, min(pairs.count, 10_000)
    rows = np.r_[0:k, n : n + k]
    few, best = Pairs(as_shapes(pairs.S.rows[rows]), pairs.P, pairs.X[rows]), float("inf")
    for _ in range(rounds):
        start = clock()
        few.gaps()
        best = min(best, (clock() - start) / k)
    return best


def compare(kind: int, other_kind: int, count: int, peers: list[CoalGaps | MujocoGaps]) -> bool:
    """Print a line; whether our gaps are all right."""
    pairs = random_pairs(np.random.default_rng([kind, other_kind]), kind, other_kind, count)
    for peer in peers:
        if isinstance(peer, MujocoGaps):
            pairs = peer.as_stored(pairs)
    ours = pairs.gaps()
    along = separation(pairs, ours[:, 1:4])
    line = f"{NAMES[kind] + ' - ' + NAMES[other_kind]:24}{1e9 * seconds_a_pair(pairs):7.0f}"
    line += f"{np.abs(along - ours[:, 0]).max():10.0e}"
    fine = np.abs(along - ours[:, 0]).max() < SAME
    for peer in peers:
        theirs, seconds = peer.gaps(pairs)
        off, wrong, theirs_wrong = differing(pairs, ours, theirs, SAME)
        fine &= not wrong.any() and not (off & ~theirs_wrong).any()
        agreed = np.abs(theirs[:, 0] - ours[:, 0])[~(off & theirs_wrong)].max(initial=0.0)
        line += f"{1e6 * seconds:11.2f}{agreed:9.0e}{off.sum():8d}{(off & theirs_wrong).sum():8d}"
    print(line, flush=True)
    return fine


def compare_field(kind: int, count: int, coal: CoalGaps) -> bool:
    """Print a line for a height field, beside the smallest gap to its prisms by coal, of pairs that are apart.

    Nothing is proven here; below the surface, ours is the distance upwards, not through the side of a prism.
    """
    pairs = random_pairs(np.random.default_rng([kind, HEIGHT_FIELD]), kind, HEIGHT_FIELD, count)
    ours, (prisms, each) = pairs.gaps()[:, 0], as_prisms(pairs)
    all_theirs, seconds = coal.gaps(prisms)
    theirs = all_theirs[:, 0].reshape(count, each).min(axis=1)
    outside = (ours > 0.0) | (theirs > 0.0)
    off = np.abs(ours - theirs)[outside]
    line = f"{NAMES[kind] + ' - ' + NAMES[HEIGHT_FIELD]:24}{1e9 * seconds_a_pair(pairs):7.0f}{'':10}"
    print(f"{line}{1e6 * seconds * each:11.2f}{off.max():9.0e}{(off > SAME).sum():8d}  of {len(off)} apart", flush=True)
    return bool(off.max() <= SAME)


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    peers: list[CoalGaps | MujocoGaps] = []
    for peer in (CoalGaps, MujocoGaps):
        try:
            peers.append(peer())
        except ImportError:
            print(f"{peer.__name__}: not installed")
    print(f"{count} random pairs of each two kinds; 'differs': by how many metres, where theirs is not refuted")
    print(f"{'':24}{'mechanik':>17}{'coal':>36}{'MuJoCo':>36}")
    print(HEAD)
    fine = True
    for kind, other_kind in itertools.combinations_with_replacement(range(HEIGHT_FIELD), 2):
        if (kind, other_kind) != (HALF_SPACE, HALF_SPACE):
            fine &= compare(kind, other_kind, count, peers)
    for kind in (SPHERE, CAPSULE, BOX, HULL):
        if peers and isinstance(peers[0], CoalGaps):
            fine &= compare_field(kind, max(count // FEWER, 1), peers[0])
    print("all our distances are proven" if fine else "NOT all our distances are proven")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
