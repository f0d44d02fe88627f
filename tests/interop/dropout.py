"""Plimsoll's dropout masks in torch: src/ops/philox.h in numpy, put in the place of torch's own draws.

While `drawn` is active torch.nn.functional.dropout keeps what Plimsoll keeps at that step, so that a training step
with dropout can be held against transformers like any other. Which call of a forward pass is which follows from the
order in which transformers' modules make them.
"""
import contextlib

import numpy
import torch


def philox(counters, key):
    """Philox-4x32-10 of [n, 4] counters under two key words (Salmon et al. 2011)."""
    c = [counters[:, i].astype(numpy.uint64) for i in range(4)]
    k = [int(word) for word in key]
    low = numpy.uint64(0xFFFFFFFF)
    for _ in range(10):
        p0, p1 = c[0] * numpy.uint64(0xD2511F53), c[2] * numpy.uint64(0xCD9E8D57)
        c = [(p1 >> numpy.uint64(32)) ^ c[1] ^ numpy.uint64(k[0]), p1 & low,
             (p0 >> numpy.uint64(32)) ^ c[3] ^ numpy.uint64(k[1]), p0 & low]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return numpy.stack(c, axis=1)


def key_of(layer, name):
    """FNV-1a, of which the counter takes 32 bits."""
    value = 0xCBF29CE484222325
    for byte in f"{layer}/{name}".encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return (value >> 1) & 0xFFFFFFFF


def uniforms(blocks, sequence, step, key, seed):
    """Four numbers in (0, 1) a block: [len(blocks), 4]."""
    rest = numpy.broadcast_to(numpy.array([sequence, step, key & 0xFFFFFFFF], numpy.uint64), (len(blocks), 3))
    counters = numpy.concatenate([blocks.astype(numpy.uint64)[:, None] & numpy.uint64(0xFFFFFFFF), rest], axis=1)
    return (philox(counters, (seed & 0xFFFFFFFF, seed >> 32)).astype(numpy.float64) + 0.5) / 2 ** 32


def features_mask(shape, p, step, key, seed):
    """[B, ...]: elements count within their sequence."""
    size = int(numpy.prod(shape[1:]))
    draws = [uniforms(numpy.arange((size + 3) // 4), b, step, key, seed).ravel()[:size] for b in range(shape[0])]
    return (numpy.stack(draws) >= p).reshape(shape)


def weights_mask(shape, p, step, key, seed):
    """[B, H, T, T]: block (j // 4) * T + i of head h's key."""
    batch, heads, tokens, _ = shape
    keep = numpy.empty(shape, bool)
    groups = (tokens + 3) // 4
    for b in range(batch):
        for h in range(heads):
            draws = uniforms(numpy.arange(groups * tokens), b, step, key + h, seed).reshape(groups, tokens, 4)
            keep[b, h] = (draws.transpose(1, 0, 2).reshape(tokens, groups * 4) >= p)[:, :tokens]
    return keep


def calls_of(config):
    """The key of each call of a forward pass, in order."""
    layers = config.get("n_layer", config.get("num_hidden_layers"))
    if config["model_type"] != "gpt2":
        return [key_of(f"layers.{i}", "attention") for i in range(layers)]
    keys = [key_of("embeddings", "dropout")]
    for i in range(layers):
        keys += [key_of(f"layers.{i}", "attention"), key_of(f"h.{i}.attn", "dropout"), key_of(f"h.{i}.mlp", "dropout")]
    return keys


@contextlib.contextmanager
def drawn(config, step, seed):
    keys, calls, original = calls_of(config), [0], torch.nn.functional.dropout

    def dropout(x, p=0.5, training=True, inplace=False):
        key = keys[calls[0] % len(keys)]
        calls[0] += 1
        if not training or p == 0:
            return x
        mask = weights_mask if x.dim() == 4 else features_mask
        return x * torch.from_numpy(mask(tuple(x.shape), p, step, key, seed)) / (1 - p)
    torch.nn.functional.dropout = dropout
    try:
        yield
    finally:
        torch.nn.functional.dropout = original
