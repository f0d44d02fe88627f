"""Small values of PyTorch's own run, for tests that have no PyTorch: tests/e2e/recorded/*.json.

The start is Plimsoll's random initialisation, so a recording holds the norms of the initial tensors too: where
those have changed, the recording is stale, and `make interop INTEROP_ARGS="--gpt2 --record tests/e2e/recorded/torch.json"` writes it anew.
"""
import json
import pathlib

import numpy

NUM_LOGITS = 12


def norms(tensors):
    return {name: float(numpy.linalg.norm(value.astype(numpy.float64).ravel())) for name, value in sorted(tensors.items())}


class Case:
    def __init__(self, case, training, rows, initial):
        self.data = {
            "name": case["name"], "config": case["config"], "training": {"global_batch_size": case["batch"], **training},
            "sequence_length": case["tokens"], "rows": rows.tolist(), "initial_norms": norms(initial),
            "losses": [], "grad_norms": [], "gradient_norms": [], "logits": [],
        }

    def add_step(self, loss, grad_norm, logits, gradients):
        """Losses and total norms of the run alongside; per-tensor norms and some logits of the first step."""
        if not self.data["losses"]:
            self.data["gradient_norms"] = norms(gradients)
            flat = logits.ravel()
            places = numpy.linspace(0, flat.size - 1, NUM_LOGITS).astype(int)
            self.data["logits"] = [{"index": [int(i) for i in numpy.unravel_index(place, logits.shape)],
                                    "value": float(flat[place])} for place in places]
        self.data["losses"].append(loss)
        self.data["grad_norms"].append(grad_norm)


def write(path, recorded):
    """One case a line, so that a difference shows which one changed."""
    lines = ",\n".join(json.dumps(case.data) for case in recorded)
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{"cases": [\n{lines}\n]}}\n')
