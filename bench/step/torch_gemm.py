"""The best of ten timings of `torch.mm` at the two yardstick shapes, one JSON object a line.

    python torch_gemm.py [THREADS [fp32|bf16]]
"""
import json
import sys
import time

import torch

SHAPES = [(2048, 2048, 2048), (4096, 4096, 1024)]


def best_seconds(m, n, k, dtype, repeats=10):
    a, b = torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype)
    out = torch.empty(m, n, dtype=dtype)
    torch.mm(a, b, out=out)
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        torch.mm(a, b, out=out)
        best = min(best, time.perf_counter() - started)
    return best


def main():
    torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
    dtype = torch.bfloat16 if sys.argv[2:] == ["bf16"] else torch.float32
    for m, n, k in SHAPES:
        seconds = best_seconds(m, n, k, dtype)
        print(json.dumps({"name": "torch.mm", "m": m, "n": n, "k": k, "gflops": 2 * m * n * k / seconds / 1e9}), flush=True)


if __name__ == "__main__":
    main()
