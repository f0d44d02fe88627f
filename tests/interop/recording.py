"""Small values of PyTorch's own run, for tests that have no PyTorch: tests/e2e/recorded/*.json.

The start is Plimsoll's random initialisation, which instruction sets agree on to the last bits; a recording holds the
initial tensors' marks too, and where those have changed it is stale:
`make interop INTEROP_ARGS="--family gpt2 --record tests/e2e/recorded/torch.json"` writes it anew.

A tensor's mark is [norm, projection]. The norm alone would pass a transposed, permuted or negated tensor; the
projection is the dot product with a fixed unit vector of signs, so |difference of projections| <= ||difference|| and
the bound of the live comparison holds for it unchanged. tests/e2e/recorded_test.cpp computes the same marks.
"""
import json
import pathlib

import numpy

NUM_LOGITS = 12


def projection(tensor):
    """Element i counts with the sign that the top bit of i * 2654435761 (mod 2^32) says, over sqrt(size)."""
    flat = tensor.astype(numpy.float64).ravel()
    hashes = numpy.arange(flat.size, dtype=numpy.uint32) * numpy.uint32(2654435761)
    return float(numpy.where(hashes >> 31, -flat, flat).sum() / flat.size ** 0.5)


def mark(tensor):
    return [float(numpy.linalg.norm(tensor.astype(numpy.float64).ravel())), projection(tensor)]


def marks(tensors):
    return {name: mark(value) for name, value in sorted(tensors.items())}


class Case:
    def __init__(self, case, training, rows, initial):
        self.data = {
            "name": case["name"], "config": case["config"],
            "training": {"global_batch_size": case["batch"], **training},
            "sequence_length": case["tokens"], "rows": rows.tolist(), "initial": marks(initial),
            "losses": [], "grad_norms": [], "gradients": {}, "logits": [], "logit_samples": [],
        }

    def add_step(self, loss, grad_norm, logits, gradients):
        """Losses and total norms of the run alongside; gradients and logits of the first step."""
        if not self.data["losses"]:
            self.data["gradients"] = marks(gradients)
            self.data["logits"] = mark(logits)
            flat = logits.ravel()
            places = numpy.linspace(0, flat.size - 1, NUM_LOGITS).astype(int)
            self.data["logit_samples"] = [{"index": [int(i) for i in numpy.unravel_index(place, logits.shape)],
                                           "value": float(flat[place])} for place in places]
        self.data["losses"].append(loss)
        self.data["grad_norms"].append(grad_norm)


def write(path, recorded):
    """One case a line, so that a difference shows which one changed."""
    lines = ",\n".join(json.dumps(case.data) for case in recorded)
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{"cases": [\n{lines}\n]}}\n')
