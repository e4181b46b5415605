"""Build of the extension `mechanik._kernels`: all kernels as machine code, for installations without a compiler.

- `levels`: the instruction set levels for which machine code is compiled.
- `object_code`: compiles kernels to an object file by Numba and LLVM, in one process for each level.
- `extension`: links the object files of all levels, a table of the kernels, and `kernels.c` to one extension.
- `lock`: a lock between processes.

`python -m kernel_build --out FOLDER` runs the whole build. This package is not installed.
"""
