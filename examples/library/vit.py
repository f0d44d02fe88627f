"""A vision transformer that tells in which quarter of a noisy picture a bright square lies."""
import numpy as np
import plimsoll as pl


class Block(pl.Module):
    def __init__(self, dim, heads, p):
        self.heads, self.drop = heads, pl.Dropout(p)
        self.norm1, self.qkv, self.out = pl.LayerNorm(dim), pl.Linear(dim, 3 * dim), pl.Linear(dim, dim)
        self.norm2, self.up, self.down = pl.LayerNorm(dim), pl.Linear(dim, 2 * dim), pl.Linear(2 * dim, dim)

    def forward(self, x):
        q, k, v = [p.reshape(*x.shape[:2], self.heads, -1) for p in self.qkv(self.norm1(x)).chunk(3, dim=-1)]
        x = x + self.drop(self.out(pl.attention(q, k, v, layout="bthd").reshape(x.shape)))
        return x + self.drop(self.down(pl.gelu(self.up(self.norm2(x)))))


class ViT(pl.Module):
    def __init__(self, size=16, patch=4, dim=48, layers=2, heads=3, classes=4, p=0.0):
        self.patch, self.embed, self.cls = patch, pl.Linear(patch * patch, dim), pl.Parameter((1, 1, dim))
        self.positions = pl.Parameter((1 + (size // patch) ** 2, dim))
        self.layers = pl.Sequential(*[Block(dim, heads, p) for _ in range(layers)])
        self.norm, self.head = pl.LayerNorm(dim), pl.Linear(dim, classes)

    def forward(self, images, labels):                         # images [batch, size, size]
        b, s, n = images.shape[0], images.shape[1] // self.patch, self.patch
        x = self.embed(images.reshape(b, s, n, s, n).permute(0, 1, 3, 2, 4).reshape(b, s * s, n * n))
        x = pl.cat([self.cls.expand(b, 1, -1), x], dim=1) + self.positions
        return pl.cross_entropy(self.head(self.norm(self.layers(x))[:, 0]), labels)


def batch(rows, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, rows)
    bright = np.kron(np.eye(4).reshape(4, 2, 2), np.ones((8, 8)))[labels]
    return {"images": (rng.normal(0, 1, (rows, 16, 16)) + bright).astype(np.float32), "labels": labels}


def main(steps=100, rows=32):
    plan = pl.plan(ViT(p=0.1), inputs={"images": ((rows, 16, 16), "float32"), "labels": ((rows,), "int32")},
                   optimizer=pl.AdamW(lr=1e-3), clip_norm=1.0, memory_budget="128MiB")
    with pl.Session(plan, seed=0) as session:
        for i in range(steps):
            step = session.step(batch(rows, i))
        print(f"loss {step.loss:.3f}, on new pictures {session.evaluate(batch(rows, steps)):.3f}")
    return step.loss


if __name__ == "__main__":
    main()
