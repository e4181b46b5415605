"""Builds the extension `mechanik._kernels`: all kernels as machine code, for installations without a compiler.

- `levels`: the processors that machine code is made for.
- `object_code`: kernels to an object file by Numba and LLVM, one level a process.
- `extension`: the object files of all levels, a table of the kernels, and `kernels.c` to one extension.

`python -m kernel_build --out FOLDER` does all of it. Nothing here is installed.
"""
