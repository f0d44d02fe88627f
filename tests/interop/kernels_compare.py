"""CUDA's kernels compile on a machine without a card, for every generation of cards, and into the code that is meant: the
runtime compiler needs no card, and comes with torch's wheels.

    kernels_compare.py [--binary build/plimsoll] [--capability 80]... [--table]

Each .cu file of src/backends/cuda/kernels is compiled by itself, with the files that it includes put in their places, and where it
is specialised by macros in the forms of FORMS. No kernel spills registers or keeps arrays in local memory (as ptxas tells), those of
WIDE move 16 bytes at once, and those of MATRIX use matrix units (as the PTX has it, and the machine code, where tools/sass-env has
brought its disassembler: PLIMSOLL_NVDISASM="$(tools/sass-env)"). --table prints registers and shared memory.
"""
import argparse
import concurrent.futures
import ctypes
import os
import pathlib
import re
import sys

import sass

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "src"
KERNELS = SOURCES / "backends/cuda/kernels"
INCLUDE = re.compile(r'#include "([^"]+)"')
CAPABILITIES = ["80", "86", "89", "90a", "100", "120"]
CAPABILITIES_OF_FORMS = ["80", "90a", "120"]  # of modules that take seconds a form
# Macros that a module is compiled with, by the beginning of its name; every other module has one form, without.
FORMS = {"attention/mma_": [f"MMA_WIDTH={width} MMA_TYPE={dtype} MMA_DROPS={drops}"
                            for width, dtype, drops in ((64, 2, 0), (64, 2, 1), (128, 1, 0), (128, 1, 1), (256, 1, 1), (64, 0, 1), (128, 0, 0),
                                                        (256, 0, 0))]}
# Attention, over a cache too, holds as many sums as there are registers for, with several blocks on a multiprocessor:
# bytes that may spill. On matrix units it is none in most forms, 80 for dk and dv of wide heads on sm_120.
MAY_SPILL = re.compile(r"^attention_(mma_)?(dq_|dkv_|cached_)?\d+(_\d+)?$"), 128
# Kernels that the memory's rate decides: wide loads and stores.
WIDE = {"norm_rows", "norm_grad_rows", "rope_rows", "swiglu", "swiglu_grad", "activate", "binary", "scaled", "cast_rows",
        "bias_add_rows", "loss_rows", "update_tensors", "embedding", "copy_strided", "adamw_8bit", "adafactor_step", "muon_scale",
        "muon_combine", "muon_step", "dora_scale", "dora_scale_grad"}
WIDE_LOAD, WIDE_STORE = re.compile(r"ld\.[\w.]*v4"), re.compile(r"st\.[\w.]*v4")
MATRIX = re.compile(r"^attention_mma_")
# Sines and cosines of large numbers are reduced in local memory, by the compiler's own code.
WITH_SINES = {"rope_table", "random_normal"}
ENTRY = re.compile(r"\.entry (\w+)\(")
# "ptxas info : Compiling entry function 'norm_rows' for 'sm_90a'" and what follows it.
COMPILED = re.compile(r"Compiling entry function '(\w+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")
SHARED = re.compile(r"(\d+) bytes smem")


def find_compiler():
    """Of torch's wheels, or of CUDA's toolkit on this machine."""
    for folder in sys.path:
        for name in ("nvidia/*/lib/libnvrtc.so.1[0-9]", "nvidia/cuda_nvrtc/lib/libnvrtc.so.1[0-9]"):
            for found in pathlib.Path(folder).glob(name):
                return found
    return next(pathlib.Path("/usr/local/cuda/lib64").glob("libnvrtc.so.1[0-9]"), None)


def expanded(path, seen):
    """The text with our own headers in their places, each once, as backends/cuda/source.cpp puts them."""
    if path in seen:
        return ""
    seen.add(path)
    lines = []
    for line in path.read_text().splitlines():
        match = INCLUDE.match(line)
        lines.append(expanded(SOURCES / match.group(1), seen) if match else "" if line == "#pragma once" else line)
    return "\n".join(lines) + "\n"


class Compiler:
    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))

    def read(self, program, kind):
        size = ctypes.c_size_t()
        getattr(self.library, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
        text = ctypes.create_string_buffer(max(size.value, 1))
        getattr(self.library, f"nvrtcGet{kind}")(program, text)
        return text.raw[:size.value].rstrip(b"\0").decode(errors="replace") if kind != "CUBIN" else text.raw

    def compile(self, source, name, defines, architecture):
        """(log, PTX, machine code), PTX empty where it does not compile."""
        program = ctypes.c_void_p()
        if self.library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), 0, None, None) != 0:
            return "no program", "", b""
        texts = [f"--gpu-architecture=sm_{architecture}", "--std=c++17", "--ptxas-options=-v", *(f"-D{one}" for one in defines.split())]
        options = (ctypes.c_char_p * len(texts))(*(text.encode() for text in texts))
        failed = self.library.nvrtcCompileProgram(program, len(texts), options)
        log, ptx = self.read(program, "ProgramLog"), "" if failed else self.read(program, "PTX")
        image = b"" if failed else self.read(program, "CUBIN")
        self.library.nvrtcDestroyProgram(ctypes.byref(program))
        return log, ptx, image


def resources(log):
    """Of each kernel: stack, spill stores, spill loads, registers, shared memory."""
    found, name = {}, None
    for line in log.splitlines():
        if match := COMPILED.search(line):
            name = match.group(1)
            found[name] = dict(stack=0, stores=0, loads=0, registers=0, shared=0)
        elif name and (match := SPILLS.search(line)):
            found[name].update(zip(("stack", "stores", "loads"), map(int, match.groups())))
        elif name and (match := USED.search(line)):
            shared = SHARED.search(line)
            found[name].update(registers=int(match.group(1)), shared=int(shared.group(1)) if shared else 0)
    return found


def bodies(ptx):
    """The PTX of each kernel."""
    starts = [(match.group(1), match.start()) for match in ENTRY.finditer(ptx)]
    ends = [start for _, start in starts[1:]] + [len(ptx)]
    return {name: ptx[start:end] for (name, start), end in zip(starts, ends)}


def faults(log, ptx):
    """What is wrong with the code of a module."""
    used, texts = resources(log), bodies(ptx)
    if set(used) != set(texts):
        yield f"the compiler tells nothing of {sorted(set(texts) - set(used))}"
    for name, text in texts.items():
        one = used.get(name, {})
        allowed = MAY_SPILL[1] if MAY_SPILL[0].match(name) else 0
        if one.get("stores", 0) > allowed or one.get("loads", 0) > allowed:
            yield f"{name} spills: {one['stores']} bytes stored, {one['loads']} loaded"
        if one.get("stack", 0) > allowed:
            yield f"{name} keeps {one['stack']} bytes in local memory"
        if name in WIDE and not (WIDE_LOAD.search(text) and WIDE_STORE.search(text)):
            yield f"{name} does not move 16 bytes at once"
        if MATRIX.match(name) and "mma.sync" not in text:
            yield f"{name} uses no matrix units"


def code_faults(disassembler, image, capability):
    """The same of the machine code."""
    for name, code in sass.functions(disassembler, image).items():
        yield from sass.faults(name, code, wide=name in WIDE, matrix=bool(MATRIX.match(name)), may_spill=bool(MAY_SPILL[0].match(name)) or name in WITH_SINES,
                               waits=int(capability.rstrip("a")) >= 90)


# Numbers of CUDA's headers that the sources repeat, and by what names: where torch's wheels bring the headers along.
NUMBERS = {
    "backends/cuda/products.cpp": {
        "kPointerMode": "CUBLASLT_MATMUL_DESC_POINTER_MODE", "kFactorOnDevice": "CUBLASLT_POINTER_MODE_DEVICE",
        "kScalePointerA": "CUBLASLT_MATMUL_DESC_A_SCALE_POINTER", "kScalePointerB": "CUBLASLT_MATMUL_DESC_B_SCALE_POINTER",
        "kScaleModeA": "CUBLASLT_MATMUL_DESC_A_SCALE_MODE", "kScaleModeB": "CUBLASLT_MATMUL_DESC_B_SCALE_MODE",
        "kScaleOfTensor": "CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F", "kScaleOf16": "CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3",
        "kScaleOf32": "CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0", "kScaleOf128": "CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F",
        "kScaleOfTile": "CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F", "kRealE4m3": "CUDA_R_8F_E4M3", "kRealE5m2": "CUDA_R_8F_E5M2",
        "kRealE2m1": "CUDA_R_4F_E2M1",
        "kTransposeA": "CUBLASLT_MATMUL_DESC_TRANSA", "kTransposeB": "CUBLASLT_MATMUL_DESC_TRANSB",
        "kEpilogue": "CUBLASLT_MATMUL_DESC_EPILOGUE", "kBiasPointer": "CUBLASLT_MATMUL_DESC_BIAS_POINTER",
        "kEpilogueBias": "CUBLASLT_EPILOGUE_BIAS",
        "kEpilogueSumsOfA": "CUBLASLT_EPILOGUE_BGRADA", "kEpilogueSumsOfB": "CUBLASLT_EPILOGUE_BGRADB", "kMaxWorkspace": "CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES",
        "kReductionSchemes": "CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK", "kInOrder": "CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE",
        "kAlignments": "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES", "kSumsF32": "CUBLAS_COMPUTE_32F",
        "kSumsTf32": "CUBLAS_COMPUTE_32F_FAST_TF32", "kRealF32": "CUDA_R_32F", "kRealF16": "CUDA_R_16F", "kRealBf16": "CUDA_R_16BF",
        "kPlain": "CUBLAS_OP_N", "kTransposed": "CUBLAS_OP_T"},
    "backends/cuda/api.h": {
        "kComputeMajor": "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR", "kComputeMinor": "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR",
        "kMaxDynamicShared": "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES", "kNonBlocking": "CU_STREAM_NON_BLOCKING",
        "kNoTiming": "CU_EVENT_DISABLE_TIMING", "kCaptureRelaxed": "CU_STREAM_CAPTURE_MODE_RELAXED",
        "kEarlyBegin": "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION"},
}
HEADERS = ["cublasLt.h", "cublas_api.h", "library_types.h", "cuda.h"]


def number_faults(folder):
    """Numbers that are others in the headers of `folder`."""
    text = "\n".join((folder / name).read_text(errors="replace") for name in HEADERS if (folder / name).exists())
    told = {name: int(value, 0) for name, value in re.findall(r"\b(\w+)\s*=\s*(0x[0-9a-fA-F]+|\d+)\b", text)}
    for source, names in NUMBERS.items():
        own = dict(re.findall(r"\b(k\w+)(?:\[\])? = \{?(\d+)", (SOURCES / source).read_text()))
        for constant, name in names.items():
            if constant not in own:
                yield f"{source} has no {constant}"
            elif name in told and int(own[constant]) != told[name]:
                yield f"{source}: {constant} is {own[constant]}, {name} is {told[name]}"


def modules():
    for path in sorted(KERNELS.rglob("*.cu")):
        name = str(path.relative_to(KERNELS).with_suffix(""))
        for defines in next((forms for begin, forms in FORMS.items() if name.startswith(begin)), [""]):
            yield name, defines, path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", help="not used: all scripts are given it")
    parser.add_argument("--capability", action="append", help=f"of a card (default {' '.join(CAPABILITIES)})")
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    found = find_compiler()
    if found is None:
        print("no runtime compiler among the wheels: passed over")
        return
    compiler, failures, checks = Compiler(found), 0, 0
    headers = found.parents[1] / "include"
    if (headers / "cublasLt.h").exists():
        wrong = list(number_faults(headers))
        checks, failures = checks + 1, failures + bool(wrong)
        print("".join(f"FAIL {line}\n" for line in wrong), end="")
    if args.table:
        print("| module | kernel | sm | registers | shared |\n| --- | --- | --: | --: | --: |")
    jobs = [(name, defines, path, capability) for name, defines, path in modules()
            for capability in args.capability or (CAPABILITIES if not defines else CAPABILITIES_OF_FORMS)]

    disassembler = sass.find_disassembler()
    if disassembler is None:
        print("no disassembler (tools/sass-env): machine code is passed over")

    def compiled(job):
        name, defines, path, capability = job
        log, ptx, image = compiler.compile(expanded(path, set()), f"{name}.cu", defines, capability)
        wrong = list(faults(log, ptx)) if ptx else [log]
        if ptx and disassembler is not None:
            wrong += code_faults(disassembler, image, capability)
        return log, wrong

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:  # the compiler is C, and takes several threads
        for (name, defines, _, capability), (log, wrong) in zip(jobs, pool.map(compiled, jobs)):
            checks += 1
            failures += bool(wrong)
            for line in wrong:
                print(f"FAIL {name} {defines} for sm_{capability}: {line}")
            if args.table:
                for kernel, one in sorted(resources(log).items()):
                    print(f"| {name} {defines} | {kernel} | {capability} | {one['registers']} | {one['shared']} |")
    print(f"{checks} checks, {failures} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
