"""A regression by a multi-layer perceptron: y = sin(x0) + x1 * x2, within a budget that is stated first."""
import numpy as np
import plimsoll as pl


class Mlp(pl.Module):
    def __init__(self, inputs=3, hidden=64, layers=3):
        self.embed = pl.Linear(inputs, hidden)
        self.layers = [pl.Linear(hidden, hidden) for _ in range(layers)]
        self.norm = pl.LayerNorm(hidden)
        self.head = pl.Linear(hidden, 1)

    def forward(self, x, y):
        h = self.embed(x)
        for layer in self.layers:
            h = h + layer(pl.gelu(h))
        return pl.mse(self.head(self.norm(h)), y)


def batch(rows, seed):
    x = np.random.default_rng(seed).uniform(-2, 2, (rows, 3)).astype(np.float32)
    return {"x": x, "y": (np.sin(x[:, :1]) + x[:, 1:2] * x[:, 2:]).astype(np.float32)}


def make_plan(rows=64):
    return pl.plan(Mlp(), inputs={"x": ((rows, 3), "float32"), "y": ((rows, 1), "float32")},
                   optimizer=pl.AdamW(lr=3e-3, weight_decay=0.01), clip_norm=1.0, memory_budget="64MiB")


def main(steps=300):
    plan = make_plan()
    print(plan)
    with pl.Session(plan, seed=0) as session:
        for i in range(steps):
            step = session.step(batch(64, i), lr=pl.cosine(i, steps, 3e-3, warmup=20))
            if step.index % 50 == 0:
                print(f"step {step.index}  loss {step.loss:.4f}  gradient norm {step.grad_norm:.3f}")
        loss = session.evaluate(batch(64, steps))
    print(f"loss on new rows {loss:.4f}")
    return loss


if __name__ == "__main__":
    main()
