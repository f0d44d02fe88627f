"""Two towers: queries and documents are trained so that a query lies nearest to its own document of the batch."""
import numpy as np
import plimsoll as pl


class Tower(pl.Module):
    def __init__(self, vocabulary, dim, out):
        self.words, self.up, self.down = pl.Embedding(vocabulary, dim), pl.Linear(dim, 2 * dim), pl.Linear(2 * dim, out)

    def forward(self, ids):                                    # ids [batch, words] → [batch, out], of length 1
        x = self.down(pl.relu(self.up(self.words(ids).mean(dim=1))))
        return x * pl.rsqrt(x.square().sum(dim=-1, keepdim=True) + 1e-6)


class TwoTowers(pl.Module):
    def __init__(self, vocabulary=200, dim=32, out=16):
        self.query, self.document = Tower(vocabulary, dim, out), Tower(vocabulary, dim, out)
        self.scale = pl.Parameter((1,), "ones")

    def forward(self, queries, documents):
        scores = self.query(queries) @ self.document(documents).T * pl.exp(self.scale)
        own = pl.arange(scores.shape[0])
        return (pl.cross_entropy(scores, own) + pl.cross_entropy(scores.T, own)) / 2


class Pairs:
    """Documents of eight words, queries of three of them, renamed: a data set as for torch.utils.data."""

    def __len__(self):
        return 1024

    def __getitem__(self, index):
        document = np.random.default_rng(index).integers(0, 200, 8)
        return {"queries": (document[:3] * 7 + 3) % 200, "documents": document}


def main(epochs=5, rows=32):
    plan = pl.plan(TwoTowers(), inputs={"queries": ((rows, 3), "int32"), "documents": ((rows, 8), "int32")},
                   optimizer=pl.AdamW(lr=1e-2), memory_budget="64MiB")
    loader = pl.DataLoader(Pairs(), batch_size=rows, shuffle=True, seed=0, workers=2)
    with pl.Session(plan, seed=0) as session:
        for _ in range(epochs):
            losses = [session.step(batch).loss for batch in loader]
            print(f"epoch {loader.epoch}  loss {sum(losses) / len(losses):.3f}")
    return losses[-1]


if __name__ == "__main__":
    main()
