"""The twin of same_run.cpp: argument 1 is the folder that gets the model."""
import sys

import numpy as np
import plimsoll as pl


class Block(pl.Module):
    def __init__(self):
        self.norm = pl.RMSNorm(32)
        self.up, self.down = pl.Linear(32, 64), pl.Linear(64, 32, bias=False)
        self.drop = pl.Dropout(0.1)

    def forward(self, x):
        return x + self.drop(self.down(pl.gelu(self.up(self.norm(x)))))


class Net(pl.Module):
    def __init__(self):
        self.tokens = pl.Embedding(50, 32)
        self.layers = [Block() for _ in range(3)]
        self.norm, self.head = pl.LayerNorm(32), pl.Linear(32, 50, bias=False)

    def forward(self, ids, labels):
        x = self.tokens(ids)
        for layer in self.layers:
            x = layer(x)
        return pl.cross_entropy(self.head(self.norm(x)), labels)


plan = pl.plan(Net(), inputs={"ids": ((4, 16), "int32"), "labels": ((4, 16), "int32")},
               optimizer=pl.AdamW(lr=1e-2).group("norm|bias", weight_decay=0), clip_norm=1.0)
with pl.Session(plan, seed=7) as session:
    for step in range(100):
        ids = ((step * 31 + np.arange(128) * 7) % 50).astype(np.int32)
        labels = (ids * 3 + 1) % 50
        session.step({"ids": ids.reshape(8, 16), "labels": labels.reshape(8, 16)},
                     lr=pl.cosine(step, 100, 1e-2, warmup=10, floor=1e-3), accumulate=2)
    session.save(sys.argv[1])
