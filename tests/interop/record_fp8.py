"""Records what Transformer Engine's published rules make of matrices, with torch's float8 dtypes and numpy alone.

    python tests/interop/record_fp8.py > tests/numerics/recorded/fp8_recipes.txt

A line is a case: scheme, kind of numbers, seed, rows, columns, then FNV-1a of codes, of scales, and the bits of
the tensor's amax. The numbers are made from the seed here and in fp8_recipes_test.cpp alike. Lines `delayed`
hold a history length, a margin, an algorithm and a largest code, then for each step amax and the scale after it.
"""
import numpy as np
import torch

F = np.float32
FLT_MAX = np.finfo(F).max
MASK = (1 << 64) - 1


def splitmix(z):
    z = (z + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def numbers(kind, seed, n):
    with np.errstate(over="ignore"):
        h = splitmix(np.arange(n, dtype=np.uint64) + np.uint64(seed << 32))
    high, low = (h >> np.uint64(32)).astype(np.uint32), (h & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    small = ((low & 0xFF).astype(np.int32) - 128).astype(F) / F(32)
    wide = ((high & 0x807FFFFF) | ((107 + low % 41).astype(np.uint32) << 23)).astype(np.uint32).view(F)
    if kind == "small":
        return small
    if kind == "wide":
        return wide
    if kind == "bits":
        return high.view(F)
    if kind == "subnormal":
        return (high & np.uint32(0x807FFFFF)).view(F)
    if kind == "sparse":
        return np.where(low % 8 == 0, wide, F(0))
    if kind == "zero":
        return np.zeros(n, F)
    special = small.copy()  # "special"
    special[low % 97 == 0] = np.inf
    special[low % 97 == 1] = np.nan
    special[low % 97 == 2] = -0.0
    special[low % 97 == 3] = -np.inf
    return special


def largest(x):
    x = np.abs(x[~np.isnan(x)])
    return F(x.max()) if x.size else F(0)


def fnv(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return h


def fp8(x, dtype):
    top = torch.finfo(dtype).max
    return torch.from_numpy(np.clip(x, F(-top), F(top))).to(dtype).view(torch.uint8).numpy()


def fp8_value(code):
    return F(torch.tensor([code], dtype=torch.uint8).view(torch.float8_e4m3fn).float().item())


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
# Between codes i and i + 1, ties to the even one.
TIES = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])


def e2m1(x):
    a = np.abs(x.astype(np.float64))
    code = np.zeros(x.shape, np.uint8)
    for i, tie in enumerate(TIES):
        code[(a > tie) if i % 2 == 0 else (a >= tie)] = i + 1
    code |= np.where(np.signbit(x), 8, 0).astype(np.uint8)
    code[np.isnan(x)] = 7
    return code


def packed(codes):
    if codes.shape[1] % 2:
        codes = np.concatenate([codes, np.zeros((codes.shape[0], 1), np.uint8)], 1)
    return codes[:, ::2] | codes[:, 1::2] << 4


def tensor_scale(top, amax):
    if amax == 0 or np.isinf(amax):
        return F(1)
    return min(F(top) / amax, FLT_MAX)


def blocks(x, rows, cols):
    for r in range(0, x.shape[0], rows):
        for c in range(0, x.shape[1], cols):
            yield r, c, x[r : r + rows, c : c + cols]


def quantize(scheme, x):
    """Codes, scales as bytes, amax of the tensor."""
    amax = largest(x)
    if scheme in ("e4m3", "e5m2"):
        dtype = torch.float8_e4m3fn if scheme == "e4m3" else torch.float8_e5m2
        scale = tensor_scale(torch.finfo(dtype).max, amax)
        return fp8(x * scale, dtype), np.array([F(1) / scale], F).tobytes(), amax
    if scheme.startswith("nvfp4"):
        s = tensor_scale(2688, amax)
        codes, scales = np.zeros(x.shape, np.uint8), []
        for r, c, block in blocks(x, 16 if scheme == "nvfp4-16x16" else 1, 16):
            code = fp8(np.array([largest(block) * (s * (F(1) / F(6)))], F), torch.float8_e4m3fn)[0]
            encode = min(F(1) / (fp8_value(code) * (F(1) / s)), FLT_MAX)
            codes[r : r + block.shape[0], c : c + block.shape[1]] = e2m1(block * encode)
            scales.append(code)
        return packed(codes), bytes(scales), amax
    if scheme == "mxfp8":
        codes, scales = np.zeros(x.shape, np.uint8), []
        for r, c, block in blocks(x, 1, 32):
            v = largest(block) * (F(1) / F(448))
            bits = int(np.array([v], F).view(np.uint32)[0])
            if np.isinf(v):
                e = 0xFE
            elif bits <= 0x00400000:
                e = 0
            else:
                e = (bits >> 23) + (1 if bits & 0x7FFFFF else 0)
            inverse = np.array([(254 - e) << 23 if e != 0xFE else 0x00400000], np.uint32).view(F)[0]
            codes[r : r + 1, c : c + block.shape[1]] = fp8(block * inverse, torch.float8_e4m3fn)
            scales.append(e)
        return codes, bytes(scales), amax
    codes, scales = np.zeros(x.shape, np.uint8), []
    for r, c, block in blocks(x, 1 if scheme.endswith("1x128") else 128, 128):
        scale = tensor_scale(448, largest(block))
        scale = np.array([np.array([scale], F).view(np.uint32)[0] & np.uint32(0xFF800000)], np.uint32).view(F)[0]
        codes[r : r + block.shape[0], c : c + block.shape[1]] = fp8(block * scale, torch.float8_e4m3fn)
        scales.append(F(1) / scale)
    return codes, np.array(scales, F).tobytes(), amax


def hadamard(x):
    h = np.ones((1, 1))
    for _ in range(4):
        h = np.block([[h, h], [h, -h]])
    signs = np.array([-1.0 if 0xD7E8 >> i & 1 else 1.0 for i in range(16)])
    y = x.astype(np.float64).reshape(-1, 16) @ (np.diag(signs) @ h / 4)
    return torch.from_numpy(y.astype(F)).bfloat16().float().numpy().reshape(x.shape)


def bits(x):
    return f"{int(np.array([x], F).view(np.uint32)[0]):08x}"


def main():
    kinds = ["small", "wide", "bits", "subnormal", "sparse", "zero", "special"]
    shapes = [(1, 1), (1, 15), (1, 16), (2, 17), (3, 32), (2, 33), (1, 127), (5, 128), (2, 129), (1, 300), (17, 40),
              (16, 16), (33, 31), (130, 20), (129, 130)]
    schemes = ["e4m3", "e5m2", "fp8-block-1x128", "fp8-block-128x128", "mxfp8", "nvfp4", "nvfp4-16x16"]
    for scheme in schemes:
        for kind in kinds:
            for rows, cols in shapes:
                for seed in range(1, 4):
                    x = numbers(kind, seed, rows * cols).reshape(rows, cols)
                    codes, scales, amax = quantize(scheme, x)
                    print(scheme, kind, seed, rows, cols, f"{fnv(codes.tobytes()):016x} {fnv(scales):016x}", bits(amax))
    for seed in range(1, 41):  # small numbers: sums of sixteen are exact in f32
        rows, cols = 1 + seed % 5, 16 * (1 + seed % 9)
        x = hadamard(numbers("small", seed, rows * cols).reshape(rows, cols))
        codes, scales, amax = quantize("nvfp4", x)
        print("hadamard", "small", seed, rows, cols, f"{fnv(codes.tobytes()):016x} {fnv(scales):016x}", bits(amax))
    for seed in range(1, 81):
        length, margin = [1, 2, 3, 5, 16][seed % 5], [0, 1, 3][seed % 3]
        recent, top = seed % 2, F(448) if seed % 4 < 2 else F(57344)
        steps = np.abs(numbers(["small", "wide", "special"][seed % 3], seed, 24))
        if seed % 7 == 0:
            steps[::3] = 0
        history, scale, line = [F(0)] * length, F(1), []
        for now in steps:
            if now > history[0]:  # NaN is passed over
                history[0] = now
            amax = history[0] if recent else max(history)
            if amax > 0 and np.isfinite(amax):
                scale = min(F(float(top) * 2.0**-margin) / amax, FLT_MAX)
            if history[0] != 0:
                history = history[1:] + history[:1]
                history[0] = F(0)
            line.append(f"{bits(now)} {bits(scale)}")
        print("delayed", length, margin, recent, int(top), " ".join(line))


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        main()
