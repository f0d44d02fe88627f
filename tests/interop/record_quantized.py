"""Writes tests/numerics/recorded/bitsandbytes.txt: what bitsandbytes' CPU backend makes of small tensors.

Needs torch (bench/requirements.txt) and bitsandbytes==0.50.2:
    python tests/interop/record_quantized.py tests/numerics/recorded/bitsandbytes.txt
Value i of a tensor is f32: with h = i * 2654435761 + 12345 mod 2^32 and g = (h ^ h >> 15) * 2246822519 mod 2^32, it is
int32(g) * 2^-31 * 2^(-(h mod 7)); the rows of int8 likewise. Values 200 to 263 are 0 where there are as many. A line:

    kind n | first 16 bytes of codes | mark of codes | marks of absmax's bits, nested codes, nested absmax's bits | offset

A mark is the sum of (i + 1) * v[i] modulo 2^32, of bytes or of the bits of f32. bf16 sources are the same values rounded. The
offset of nested scales is the mean taken in double and rounded once: PyTorch's depends on its vectors and threads.
"""
import sys

import bitsandbytes
import numpy
import torch
from bitsandbytes import functional

SIZES = (64, 100, 101, 4096, 40000)


def values(n):
    i = numpy.arange(n, dtype=numpy.uint64)
    h = (i * 2654435761 + 12345) % 2 ** 32
    g = ((h ^ h >> numpy.uint64(15)) * 2246822519 % 2 ** 32).astype(numpy.uint32).view(numpy.int32)
    x = (g.astype(numpy.float64) * 2.0 ** -31).astype(numpy.float32) * (2.0 ** -(h % 7).astype(numpy.float64)).astype(numpy.float32)
    x[200:264] = 0
    return torch.from_numpy(x)


def mark(tensor):
    flat = tensor.contiguous().flatten()
    flat = flat.view(torch.int32 if flat.dtype == torch.float32 else torch.uint8).numpy().astype(numpy.int64)
    return int(((numpy.arange(flat.size) + 1) * (flat % 2 ** 32) % 2 ** 32).sum() % 2 ** 32)


def head(tensor):
    return bytes(tensor.contiguous().flatten().view(torch.uint8)[:16].tolist()).hex()


lines = []
for kind in ("nf4", "fp4"):
    for n in SIZES:
        for source in (torch.float32, torch.bfloat16):
            codes, state = functional.quantize_4bit(values(n).to(source), quant_type=kind)
            name = kind + ("" if source == torch.float32 else "-bf16")
            offset = state.absmax.double().mean().float()
            nested, second = functional.quantize_blockwise(state.absmax - offset, blocksize=256)
            lines.append(f"{name} {n} | {head(codes)} | {mark(codes)} | {mark(state.absmax)} {mark(nested)} {mark(second.absmax)} "
                         f"| {float(offset).hex()}")
for n in SIZES:
    rows = 1 if n < 4096 else 40
    matrix = values(n)[:n // rows * rows].reshape(rows, -1)
    codes, scb, _ = functional.int8_vectorwise_quant(matrix.to(torch.float16))
    lines.append(f"int8 {n} {rows} | {head(codes)} | {mark(codes)} | {mark(scb)}")
with open(sys.argv[1], "w") as file:
    file.write(f"# bitsandbytes {bitsandbytes.__version__}, torch {torch.__version__.split('+')[0]}; "
               "tests/interop/record_quantized.py\n" + "\n".join(lines) + "\n")
