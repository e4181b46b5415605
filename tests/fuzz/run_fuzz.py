"""Random solves that are verified, and histories of calls that are compared with fresh solvers.

    python tests/fuzz/run_fuzz.py solves --count 1000000
    python tests/fuzz/run_fuzz.py histories --count 20000
    python tests/fuzz/run_fuzz.py solves --case 41

The state is in the folder .fuzz, so that a stopped run continues. The exit code is 1 if there is a fault.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "fuzz")]
os.environ.setdefault("MECHANIK_KERNELS", "jit")
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from fuzz_campaign import FUNCTIONS, Campaign
from fuzz_cases import FuzzCase


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("function", choices=list(FUNCTIONS))
    parser.add_argument("--count", type=int, default=1000, help="number of solves or histories")
    parser.add_argument("--workers", default="auto", help="number of processes; auto: the number of cores")
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    parser.add_argument("--folder", type=Path, default=TESTS.parent / ".fuzz")
    parser.add_argument("--restart", action="store_true", help="forget the state of an earlier run")
    parser.add_argument("--case", type=int, help="run a single case, by its seed")
    parser.add_argument("--without", action="append", default=[], help="a part of the case to leave out")
    parser.add_argument("--joints", type=int, help="largest number of joints of the case")
    options = parser.parse_args()
    if options.case is not None:
        return run_case(options)
    campaign = Campaign(options.function, options.seed, options.folder)
    if options.restart:
        campaign.state_file.unlink(missing_ok=True)
        campaign = Campaign(options.function, options.seed, options.folder)
    workers = os.cpu_count() or 1 if options.workers == "auto" else int(options.workers)
    campaign.run(options.count, workers)
    print(f"\n{campaign.table()}")
    campaign.shrink_faults()
    return bool(campaign.tally.faults)


def run_case(options: argparse.Namespace) -> int:
    """Describe a case and check it."""
    warnings.simplefilter("error")
    case = FuzzCase(options.case, frozenset(options.without), options.joints)
    print(case.describe())
    tally = FUNCTIONS[options.function][0](case)
    for _, fault in tally.faults:
        print(f"{fault.category} in call {fault.call}: {fault.detail}")
    print(f"{len(tally.faults)} faults in {dict(tally.counts)}")
    return bool(tally.faults)


if __name__ == "__main__":
    sys.exit(main())
