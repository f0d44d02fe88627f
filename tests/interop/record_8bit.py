"""Prints what tests/optimizers/adamw_8bit_test.cpp holds: bitsandbytes' AdamW8bit on the CPU, twenty steps in fp32.

Needs torch (bench/requirements.txt) and bitsandbytes==0.50.2. A vector of 4,100 elements: seventeen blocks, the last of four.
Codes are the nearest of the map, as bitsandbytes' torch implementation (backends/default) and its CUDA kernel find them: its
CPU kernel searches a table that misses the nearest (0.50.2: 0.2 % of signed, 3 % of unsigned codes of normal numbers).
"""
import math

import bitsandbytes
import torch
from bitsandbytes.backends.cpu import ops as cpu_ops
from bitsandbytes.functional import create_dynamic_map

STEPS, SIZE = 20, 4100


def start(i):
    return math.sin(0.37 * i)


def gradient(i, step):
    return math.cos(1.3 * i + 0.7 * step) * (1 + i % 7) / 8


def mark(values):
    return sum((i + 1) * v for i, v in enumerate(values)) % 2 ** 32


def quantize(values, code, absmax, codes, blocksize):
    blocks = torch.nn.functional.pad(values, (0, -len(values) % blocksize)).reshape(-1, blocksize)
    absmax.copy_(blocks.abs().amax(1))
    scaled = blocks * (1.0 / absmax).nan_to_num(posinf=0.0)[:, None]
    codes.copy_(torch.bucketize(scaled, (code[:-1] + code[1:]) / 2).flatten()[:len(values)])


cpu_ops._quant_blockwise_fp32_direct = quantize
for signed in (True, False):
    print(f"map, signed {signed}: {mark(create_dynamic_map(signed).view(torch.int32).tolist())}")
parameter = torch.nn.Parameter(torch.tensor([start(i) for i in range(SIZE)]))
optimizer = bitsandbytes.optim.AdamW8bit([parameter], lr=0.1, betas=(0.9, 0.99), eps=1e-6, weight_decay=0.1)
for step in range(1, STEPS + 1):
    parameter.grad = torch.tensor([gradient(i, step) for i in range(SIZE)])
    optimizer.param_groups[0]["lr"] = 0.1 / step
    optimizer.step()
    state = optimizer.state[parameter]
    if step in (1, 2, STEPS):
        print(step, "codes", mark(state["state1"].tolist()), mark(state["state2"].tolist()))
print("parameters", ", ".join(f"{v:.9g}" for v in parameter[::512].tolist()))
print("absmax", ", ".join(f"{v:.9g}" for v in [*state["absmax1"][:2].tolist(), *state["absmax2"][:2].tolist()]))
