"""Build the extension of prebuilt kernels, and print its path as the last line: python -m kernel_build --out FOLDER"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src")]

from kernel_build.extension import BuildError, build_extension, default_folder  # noqa: E402
from kernel_build.levels import default_levels, level  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m kernel_build", description=__doc__)
    parser.add_argument("--out", type=Path, default=default_folder(), help="build folder (default: %(default)s)")
    parser.add_argument("--level", action="append", help="such as x86-64-v3, x86-64 or host; repeatable, best first")
    parser.add_argument("modules", nargs="*", help="kernel modules (default: all)")
    options = parser.parse_args()
    levels = [level(name) for name in options.level] if options.level else default_levels()
    try:
        print(build_extension(options.out.resolve(), levels, options.modules))
    except BuildError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
