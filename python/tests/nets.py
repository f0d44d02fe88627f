"""A small regression that several tests train."""
import common  # noqa: F401
import numpy as np
import plimsoll as pl


class Net(pl.Module):
    def __init__(self, hidden=32, layers=2, p=0.0):
        self.embed, self.head = pl.Linear(7, hidden), pl.Linear(hidden, 1)
        self.layers = [pl.Linear(hidden, hidden) for _ in range(layers)]
        self.drop = pl.Dropout(p)

    def forward(self, x, y):
        h = self.embed(x)
        for layer in self.layers:
            h = h + self.drop(pl.gelu(layer(h)))
        return pl.mse(self.head(h), y)


class Labelled(pl.Module):
    def __init__(self):
        self.tokens, self.head = pl.Embedding(11, 8), pl.Linear(8, 5)

    def forward(self, ids, labels):
        return pl.cross_entropy(self.head(self.tokens(ids)), labels)


def plan(rows=16, net=None, optimizer=None, **options):
    return pl.plan(net or Net(), inputs={"x": ((rows, 7), "float32"), "y": ((rows, 1), "float32")},
                   optimizer=optimizer or pl.AdamW(lr=1e-2), **options)


def labelled_plan(**options):
    return pl.plan(Labelled(), inputs={"ids": ((4, 6), "int32"), "labels": ((4, 6), "int32")},
                   optimizer=pl.SGD(lr=0.1), **options)


def batch(rows=16, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 7)).astype(np.float32)
    return {"x": x, "y": x[:, :1] * x[:, 1:2]}


def labelled_batch(seed=0):
    rng = np.random.default_rng(seed)
    return {"ids": rng.integers(0, 11, (4, 6)).astype(np.int32), "labels": rng.integers(0, 5, (4, 6)).astype(np.int32)}
