"""PyTorch's convolutions of conv_bench.cpp, channels_last, fp32: microseconds and GFLOP/s of each."""

import os
import time

import torch

SHAPES = {
    "first_7x7": (8, 224, 3, 64, 7, 2, 1),
    "c2_1x1": (8, 56, 64, 256, 1, 1, 1),
    "c2_3x3": (8, 56, 64, 64, 3, 1, 1),
    "c3_3x3": (8, 28, 128, 128, 3, 1, 1),
    "c4_3x3": (8, 14, 256, 256, 3, 1, 1),
    "c5_3x3": (8, 7, 512, 512, 3, 1, 1),
    "c3_3x3_stride": (8, 56, 128, 128, 3, 2, 1),
    "c3_1x1_stride": (8, 56, 256, 512, 1, 2, 1),
    "patches_16": (8, 224, 3, 768, 16, 16, 1),
    "depthwise_56": (8, 56, 96, 96, 7, 1, 96),
    "depthwise_14": (8, 14, 384, 384, 7, 1, 384),
    "depthwise_7": (8, 7, 768, 768, 7, 1, 768),
}


def seconds(run, least=0.3):
    run()
    times, begin = [], time.perf_counter()
    while time.perf_counter() - begin < least or len(times) < 5:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def measure(name, images, extent, channels, results, kernel, stride, groups):
    padding = 0 if kernel == stride else kernel // 2
    x = torch.randn(images, channels, extent, extent).to(memory_format=torch.channels_last)
    w = torch.randn(results, channels // groups, kernel, kernel).to(memory_format=torch.channels_last)
    y = torch.nn.functional.conv2d(x, w, None, stride, padding, 1, groups)
    dy = torch.randn_like(y).to(memory_format=torch.channels_last)
    flops = 2 * y.numel() * (channels // groups) * kernel * kernel

    def backward(wanted):
        pair = [stride] * 2, [padding] * 2, [1] * 2
        torch.ops.aten.convolution_backward(dy, x, w, None, *pair, False, [0, 0], groups, wanted)

    runs = {
        "forward": lambda: torch.nn.functional.conv2d(x, w, None, stride, padding, 1, groups),
        "input": lambda: backward([True, False, False]),
        "weight": lambda: backward([False, True, False]),
    }
    for which, run in runs.items():
        took = seconds(run)
        print(f"conv/{name}/{which}/torch {took * 1e6:10.0f} us {flops / took * 1e-9:8.1f} GFLOP/s", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(int(os.environ.get("PLIMSOLL_BENCH_THREADS", "1")))
    with torch.no_grad():
        for name, shape in SHAPES.items():
            measure(name, *shape)
