"""CUDA's kernels compile, on a machine without a card: the runtime compiler needs none, and comes with torch's wheels.

    kernels_compare.py [--binary build/plimsoll] [--capability 80]...

What plimsoll carries is the text of src/backends/cuda/kernels, in the order of common.cuh, then the .cu files by name.
"""
import argparse
import ctypes
import pathlib
import sys

KERNELS = pathlib.Path(__file__).resolve().parents[2] / "src/backends/cuda/kernels"


def find_compiler():
    for folder in sys.path:
        for name in ("nvidia/*/lib/libnvrtc.so.1[0-9]", "nvidia/cuda_nvrtc/lib/libnvrtc.so.1[0-9]"):
            for found in pathlib.Path(folder).glob(name):
                return found
    return None


def compile_for(compiler, source, capability):
    """The size of the machine code, or the compiler's words."""
    program = ctypes.c_void_p()
    if compiler.nvrtcCreateProgram(ctypes.byref(program), source, b"plimsoll.cu", 0, None, None) != 0:
        return 0, "no program"
    options = (ctypes.c_char_p * 2)(f"--gpu-architecture=sm_{capability}".encode(), b"--std=c++17")
    failed = compiler.nvrtcCompileProgram(program, 2, options)
    size = ctypes.c_size_t()
    compiler.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    compiler.nvrtcGetProgramLog(program, log)
    if not failed:
        compiler.nvrtcGetCUBINSize(program, ctypes.byref(size))
    compiler.nvrtcDestroyProgram(ctypes.byref(program))
    return 0 if failed else size.value, log.value.decode()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", help="not used: all scripts are given it")
    parser.add_argument("--capability", type=int, action="append", help="of a card: 80, 86, 89, 90 (default 80)")
    args = parser.parse_args()
    found = find_compiler()
    if found is None:
        print("no runtime compiler among the wheels: passed over")
        return
    source = "".join(path.read_text() + "\n" for path in [KERNELS / "common.cuh", *sorted(KERNELS.glob("*.cu"))])
    compiler = ctypes.CDLL(str(found))
    failures = 0
    for capability in args.capability or [80]:
        size, log = compile_for(compiler, source.encode(), capability)
        print(f"sm_{capability}: {size} bytes of code")
        if size == 0:
            failures += 1
            print(log)
    count = len(args.capability or [80])
    print(f"{count} checks, {failures} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
