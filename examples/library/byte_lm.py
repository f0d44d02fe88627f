"""A language model over bytes, with checkpointed blocks: give it a text file, or it learns this one."""
import sys

import numpy as np
import plimsoll as pl


class Block(pl.Module):
    def __init__(self, dim, heads):
        self.heads, self.norm1, self.norm2 = heads, pl.RMSNorm(dim), pl.RMSNorm(dim)
        self.qkv, self.out = pl.Linear(dim, 3 * dim, bias=False), pl.Linear(dim, dim, bias=False)
        self.up, self.down = pl.Linear(dim, 4 * dim), pl.Linear(4 * dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = [p.reshape(b, t, self.heads, -1) for p in self.qkv(self.norm1(x)).chunk(3, dim=-1)]
        x = x + self.out(pl.attention(q, k, v, causal=True, layout="bthd").reshape(b, t, d))
        return x + self.down(pl.silu(self.up(self.norm2(x))))


class ByteLM(pl.Module):
    def __init__(self, dim=64, layers=3, heads=4, tokens=64):
        self.tokens, self.positions = pl.Embedding(256, dim), pl.Parameter((tokens, dim), "normal", 0.02)
        self.layers = [Block(dim, heads) for _ in range(layers)]
        self.norm, self.head = pl.RMSNorm(dim), pl.Linear(dim, 256, bias=False)

    def forward(self, ids, labels):
        x = pl.checkpoint_sequential(self.layers, len(self.layers), self.tokens(ids) + self.positions)
        return pl.cross_entropy(self.head(self.norm(x)), labels)


def batch(text, rows, tokens, seed):
    starts = np.random.default_rng(seed).integers(0, len(text) - tokens, rows)
    windows = np.stack([text[s:s + tokens + 1] for s in starts])
    return {"ids": windows[:, :-1], "labels": windows[:, 1:]}


def main(path=__file__, steps=200, rows=8, tokens=64):
    text = np.fromfile(path, np.uint8).astype(np.int32)
    plan = pl.plan(ByteLM(tokens=tokens), inputs={name: ((rows, tokens), "int32") for name in ("ids", "labels")},
                   optimizer=pl.AdamW(lr=2e-3).group("norm|positions", weight_decay=0.0), memory_budget="256MiB")
    with pl.Session(plan, seed=0) as session:
        for i in range(steps):
            step = session.step(batch(text, rows, tokens, i), lr=pl.cosine(i, steps, 2e-3, warmup=10))
    print(f"{plan.peak_bytes} bytes, loss {step.loss:.3f} after {step.index} steps")
    return step.loss


if __name__ == "__main__":
    main(*sys.argv[1:2])
