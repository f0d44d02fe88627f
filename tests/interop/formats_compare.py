#!/usr/bin/env python3
"""`plimsoll inspect --as` against PyTorch's own conversions and against the recipes' formulas, bit for bit.

    tests/interop/formats_compare.py --binary build/plimsoll

Element formats are torch's dtypes (bfloat16, float16, float8_e4m3fn, float8_e5m2). Scales follow Transformer
Engine's formulas, written here in float32 operation by operation; NF4 is held against the 16 published values
by nearest distance in float64, int8 against round(127 x / absmax) in float64. Inputs: random tensors, shapes
that blocks do not fill, values at every tie, subnormals, infinities and NaN.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from checks import Checks

F32_MAX = np.float32(np.finfo(np.float32).max)
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float64)
NF4 = np.array([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
                -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
                0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
                0.7229568362236023, 1.0])
FP8 = {"e4m3": (torch.float8_e4m3fn, 448.0), "e5m2": (torch.float8_e5m2, 57344.0)}
BLOCKS = {"fp8-block-1x128": (1, 128), "fp8-block-128x128": (128, 128), "mxfp8": (1, 32), "nvfp4": (1, 16),
          "nf4": (1, 64), "int8-block256": (1, 256)}
SCHEMES = ["bf16", "fp16", "tf32", "e4m3", "e5m2", *BLOCKS]


def inputs():
    """Name to tensor; finite ones under plain names, others under special.*"""
    g = torch.Generator().manual_seed(5)
    normal = lambda *shape: torch.randn(*shape, generator=g)
    bits = torch.randint(-2**31, 2**31 - 1, (64, 300), generator=g).to(torch.int32).view(torch.float32)
    codes16 = torch.arange(2**16, dtype=torch.int32).to(torch.int16)
    tensors = {
        "matrix": normal(200, 300),
        "odd": normal(7, 33) * 1e-3,
        "vector": normal(1000),
        "scalar": torch.tensor(3.25),
        "empty": torch.zeros(0, 5),
        "zeros": torch.zeros(3, 70),
        "batch": normal(3, 130, 140) * torch.tensor([1e-30, 1.0, 1e30]).view(3, 1, 1),
        "tiny": normal(9, 64) * 1e-41,
        "huge": normal(9, 64) * 1e37,
        "long": normal(2, 300000),
        "tall": normal(140, 5000),
        "mixed": normal(40, 512) * torch.exp(4 * normal(40, 512)),
        "stored_bf16": normal(20, 100).to(torch.bfloat16),
        "stored_f16": normal(20, 100).to(torch.float16),
        "stored_f64": normal(20, 100).to(torch.float64),
        "stored_e4m3": normal(20, 100).to(torch.float8_e4m3fn),
        "special.bits": bits,
        "special.codes_bf16": codes16.view(torch.bfloat16).reshape(256, 256),
        "special.codes_f16": codes16.view(torch.float16).reshape(256, 256),
        "special.nan": torch.where(torch.rand(20, 300, generator=g) < 0.1, float("nan"), normal(20, 300)),
        "ids": torch.arange(10),
    }
    infinite = normal(20, 300)
    infinite[3, 7], infinite[4, 280] = float("inf"), float("-inf")
    tensors["special.inf"] = infinite
    return tensors


def to_f32(x):
    return x.to(torch.float32).numpy()


def amax_of(x, axis=None, keepdims=False):
    a = np.where(np.isnan(x), np.float32(0), np.abs(x))
    return np.max(a, axis=axis, keepdims=keepdims, initial=np.float32(0))


def blocked(x, rows, cols):
    """[..., R, C] to [..., r, rows, c, cols], padded with zeros."""
    x = x.reshape((1,) * max(0, 2 - x.ndim) + x.shape)
    r, c = -x.shape[-2] % rows, -x.shape[-1] % cols
    x = np.pad(x, [(0, 0)] * (x.ndim - 2) + [(0, r), (0, c)])
    return x.reshape(*x.shape[:-2], x.shape[-2] // rows, rows, x.shape[-1] // cols, cols)


def unblocked(b, shape):
    """The inverse."""
    x = b.reshape(*b.shape[:-4], b.shape[-4] * b.shape[-3], b.shape[-2] * b.shape[-1])
    last = (1, 1, *shape)[-2:] if len(shape) < 2 else shape[-2:]
    return x[..., : last[0], : last[1]].reshape(shape)


def saturating(values, name):
    """float32 to fp8 codes, as a cast that saturates."""
    dtype, largest = FP8[name]
    limited = torch.from_numpy(np.array(np.clip(values, -largest, largest), order="C"))  # NaN stays NaN
    return limited.to(dtype).view(torch.uint8).numpy()


def fp8_value(codes, name="e4m3"):
    return torch.from_numpy(np.array(codes, order="C")).view(FP8[name][0]).to(torch.float32).numpy()


def fp8_scale(amax, largest):
    with np.errstate(all="ignore"):
        scale = np.minimum(np.float32(largest) / amax, F32_MAX)
    return np.where((amax == 0) | np.isinf(amax), np.float32(1), scale).astype(np.float32)


def e2m1_codes(x):
    """Nearest even in float64; ties between codes go to the even one. NaN is +6."""
    a = np.abs(x.astype(np.float64))
    middles = (E2M1[1:] + E2M1[:-1]) / 2
    low, high = np.searchsorted(middles, a, "left"), np.searchsorted(middles, a, "right")
    code = np.where(low % 2 == 0, low, high)
    return np.where(np.isnan(x), 7, code | np.where(np.signbit(x), 8, 0)).astype(np.uint8)


def packed(codes):
    if codes.shape[-1] % 2:
        codes = np.concatenate([codes, np.zeros((*codes.shape[:-1], 1), np.uint8)], -1)
    return codes[..., ::2] | codes[..., 1::2] << 4


def expect(scheme, x, amax=None):
    """values, scales, global_scale, dequantized of a float32 array."""
    t = torch.from_numpy(x.copy())
    if scheme in ("bf16", "fp16"):
        v = t.to(torch.bfloat16 if scheme == "bf16" else torch.float16)
        return v, None, None, v.to(torch.float32).numpy()
    if scheme == "tf32":
        b = x.view(np.uint32).astype(np.uint64)
        b = ((b + 0xFFF + (b >> 13 & 1)) & 0xFFFFE000).astype(np.uint32).view(np.float32)
        v = np.where(np.isnan(x), np.float32(np.nan), b)
        return torch.from_numpy(v), None, None, v
    if scheme in FP8:
        scale = fp8_scale(amax_of(x), FP8[scheme][1])
        codes = saturating(x * scale, scheme)
        inverse = np.float32(1) / scale
        return torch.from_numpy(codes), inverse.reshape(1), None, fp8_value(codes, scheme) * inverse
    rows, cols = BLOCKS[scheme]
    b = blocked(x, rows, cols)
    amax = amax_of(b, (-3, -1), True)
    shape = scales_shape(x.shape, rows, cols)
    if scheme.startswith("fp8"):
        scale = (fp8_scale(amax, 448).view(np.uint32) & 0xFF800000).view(np.float32)
        codes = saturating(b * scale, "e4m3")
        inverse = np.float32(1) / scale
        return (torch.from_numpy(unblocked(codes, x.shape)), inverse.reshape(shape), None,
                unblocked(fp8_value(codes) * inverse, x.shape))
    if scheme == "mxfp8":
        v = (amax * (np.float32(1) / np.float32(448))).view(np.uint32)
        e = (v >> 23) + ((v & 0x7FFFFF) != 0)
        e = np.where(v <= 0x00400000, 0, np.where(v == 0x7F800000, 254, e)).astype(np.uint32)
        inverse = np.where(e == 254, np.uint32(0x00400000), (254 - e) << 23).astype(np.uint32).view(np.float32)
        codes = saturating(b * inverse, "e4m3")
        factor = np.where(e == 0, np.uint32(0x00400000), e << 23).astype(np.uint32).view(np.float32)
        return (torch.from_numpy(unblocked(codes, x.shape)), e.astype(np.uint8).reshape(shape), None,
                unblocked(fp8_value(codes) * factor, x.shape))
    if scheme == "nvfp4":
        total = amax_of(x)
        s = np.float32(1) if total == 0 or np.isinf(total) else min(np.float32(2688) / total, F32_MAX)
        scale = saturating(amax * (s * (np.float32(1) / np.float32(6))), "e4m3")
        encode = np.minimum(np.float32(1) / (fp8_value(scale) * (np.float32(1) / s)), F32_MAX)
        codes = e2m1_codes(b * encode)
        factor = fp8_value(scale) * total * (np.float32(1) / np.float32(2688))
        value = np.where(codes >= 8, -1.0, 1.0).astype(np.float32) * E2M1.astype(np.float32)[codes & 7]
        return (torch.from_numpy(packed_rows(unblocked(codes, x.shape))), scale.reshape(shape),
                np.array([s], np.float32), unblocked(value * factor, x.shape))
    if scheme == "nf4":
        normed = b.astype(np.float64) / amax.astype(np.float64)
        codes = np.abs(normed[..., None] - NF4).argmin(-1).astype(np.uint8)
        codes = np.where(np.isnan(normed), 7, codes).astype(np.uint8)
        codes = np.where(np.isinf(b) & (b > 0), 15, np.where(np.isinf(b), 0, codes)).astype(np.uint8)
        value = NF4.astype(np.float32)[codes] * amax
        return (torch.from_numpy(packed_rows(unblocked(codes, x.shape))), amax.reshape(shape), None,
                unblocked(value, x.shape))
    wide = amax.astype(np.float64)
    codes = np.rint(b.astype(np.float64) * 127 / wide)
    codes = np.where(np.isinf(b), np.copysign(127, b), np.where(np.isnan(codes), 0, codes)).astype(np.int8)
    value = (codes * wide / 127).astype(np.float32)
    return (torch.from_numpy(unblocked(codes, x.shape).view(np.uint8)), amax.reshape(shape), None,
            unblocked(value, x.shape))


def packed_rows(codes):
    return packed(codes.reshape(1)).reshape(()) if codes.ndim == 0 else packed(codes)


def scales_shape(shape, rows, cols):
    if not shape:
        return (1,)
    if len(shape) == 1:
        return (-(-shape[0] // cols),)
    return (*shape[:-2], -(-shape[-2] // rows), -(-shape[-1] // cols))


def same_bits(ours, theirs):
    """Equal bits; one NaN is as good as another."""
    ours, theirs = torch.as_tensor(ours), torch.as_tensor(np.array(theirs, order="C") if isinstance(
        theirs, np.ndarray) else theirs)
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return False, f"{ours.dtype} {tuple(ours.shape)}, expected {theirs.dtype} {tuple(theirs.shape)}"
    if ours.dtype.is_floating_point:
        both = torch.isnan(ours) & torch.isnan(theirs)
        integer = {2: torch.int16, 4: torch.int32}[ours.element_size()]
        wrong = (ours.view(integer) != theirs.view(integer)) & ~both
    else:
        wrong = ours != theirs
    count = int(wrong.sum())
    return count == 0, f"{ours.numel()} numbers" if count == 0 else f"{count} of {ours.numel()} differ"


def same_but_nan_codes(scheme, ours, theirs):
    """A NaN of fp8 has several codes (E5M2) and two signs."""
    if scheme != "e5m2" and not scheme.startswith(("e4m3", "fp8", "mxfp8")):
        return same_bits(ours, theirs)
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return False, f"{ours.dtype} {tuple(ours.shape)}, expected {theirs.dtype} {tuple(theirs.shape)}"
    nan = lambda c: torch.isnan(c.view(FP8["e5m2" if scheme == "e5m2" else "e4m3"][0]).to(torch.float32))
    count = int(((ours != theirs) & ~(nan(ours) & nan(theirs))).sum())
    return count == 0, f"{ours.numel()} codes" if count == 0 else f"{count} of {ours.numel()} differ"


def run(binary, *words, code=0):
    done = subprocess.run([binary, "inspect", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == code, (words, done.returncode, done.stderr)
    return done.stdout


def compare(binary, folder, checks):
    tensors = inputs()
    source = folder / "in.safetensors"
    save_file({k: v.clone().contiguous() for k, v in tensors.items()}, source)
    floats = {k: to_f32(v) for k, v in tensors.items() if v.dtype.is_floating_point}
    for scheme in SCHEMES:
        target = folder / f"{scheme}.safetensors"
        lines = [json.loads(line) for line in
                 run(binary, source, "--as", scheme, "--output", target, "--json").splitlines()]
        out = load_file(target)
        names, passed = {line["name"] for line in lines if line["event"] == "tensor"}, lines[-2]
        checks.check(scheme, "tensors", names == set(floats) and passed["name"] == "ids", f"{len(names)}")
        for name, x in floats.items():
            with np.errstate(all="ignore"):
                values, scales, global_scale, dequantized = expect(scheme, x)
            parts = [("values", same_but_nan_codes(scheme, out.pop(name + ".values"), values)),
                     ("dequantized", same_bits(out.pop(name + ".dequantized"), dequantized))]
            if scales is not None:
                parts.append(("scales", same_bits(out.pop(name + ".scales"), scales)))
            if global_scale is not None:
                parts.append(("global_scale", same_bits(out.pop(name + ".global_scale"), global_scale)))
            for part, (ok, detail) in parts:
                if not ok:
                    checks.check(scheme, f"{name}.{part}", False, detail)
            wrong = [part for part, (ok, _) in parts if not ok]
            checks.check(scheme, name, not wrong, ", ".join(wrong) or f"{x.size} numbers, {len(parts)} parts")
        checks.check(scheme, "nothing else is written", not out, str(sorted(out)))
        check_figures(scheme, lines, floats, target, checks)


def check_figures(scheme, lines, floats, target, checks):
    """The printed figures from the tensors themselves."""
    out, worst = load_file(target), 0.0
    for line in lines:
        if line["event"] != "tensor":
            continue
        x, y = floats[line["name"]].astype(np.float64), out[line["name"] + ".dequantized"].numpy().astype(np.float64)
        both = np.isfinite(x) & np.isfinite(y)
        new_zeros = int(((x != 0) & (y == 0) & both).sum())
        counts = (line["elements"] == x.size and line["nan"] == np.isnan(x).sum()
                  and line["infinite"] == np.isinf(x).sum() and line["new_zeros"] == new_zeros
                  and line["zeros_before"] == (x == 0).sum()
                  and line["lost"] == (np.isfinite(x) & ~np.isfinite(y)).sum())
        norm = np.sum(x[both] ** 2)
        error = np.sqrt(np.sum((x - y)[both] ** 2) / norm) if norm > 0 else 0
        off = abs(line["relative_error"] - error) / (error or 1)
        if not counts or off > 1e-9:
            checks.check(scheme, f"figures of {line['name']}", False, json.dumps(line))
        worst = max(worst, off)
    checks.check(scheme, "figures", True, f"relative error off by {worst:.1e} at most")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    arguments = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        compare(arguments.binary, pathlib.Path(folder), checks)
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
