"""A loop of one's own: accumulation, mixed precision, a schedule, evaluation, a checkpoint that is resumed."""
import os
import sys

import numpy as np
import plimsoll as pl


class Net(pl.Module):
    def __init__(self, dim=64, layers=4, classes=10):
        self.embed, self.head = pl.Linear(20, dim), pl.Linear(dim, classes)
        self.layers = [pl.Linear(dim, dim) for _ in range(layers)]
        self.norms = [pl.RMSNorm(dim) for _ in range(layers)]

    def forward(self, x, labels):
        with pl.autocast("bf16"):
            h = self.embed(x)
            for layer, norm in zip(self.layers, self.norms):
                h = h + pl.relu(layer(norm(h)))
            return pl.cross_entropy(self.head(h), labels)


def batch(rows, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, rows)
    return {"x": rng.normal(0, 1, (rows, 20)).astype(np.float32) + np.eye(10, 20, dtype=np.float32)[labels] * 3, "labels": labels}


def main(folder="own-loop", steps=60, rows=16, parts=4):
    plan = pl.plan(Net(), inputs={"x": ((rows, 20), "float32"), "labels": ((rows,), "int32")},
                   optimizer=pl.SGD(lr=0.1, momentum=0.9, nesterov=True), clip_norm=1.0, memory_budget="64MiB")
    if not plan.fits:
        sys.exit(f"give at least {plan.least_bytes} bytes")
    with pl.Session(plan, seed=0) as session:
        if os.path.isdir(folder):
            print("resumed after step", session.load(folder)["step"])
        while session.steps < steps:
            i = session.steps
            step = session.step(batch(rows * parts, i), lr=pl.linear(i, steps, 0.1, warmup=5), accumulate=parts)
            if step.index % 20 == 0:
                print(f"step {step.index}  loss {step.loss:.3f}  evaluation {session.evaluate(batch(rows, 10**6)):.3f}")
                session.save(folder, host_state={"step": step.index})
        return session.evaluate(batch(rows, 10**6))


if __name__ == "__main__":
    main(*sys.argv[1:2])
