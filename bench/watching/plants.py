"""Bottlenecks that are really there: for each the run without it, and what makes it slow.

    CONTROLS AND PLANTS   one name: what the verdict is to name first, settings of both runs, what the plant adds

A plant adds settings, another model, reads that are slowed down beneath the program (slow_reads.c), neighbours that
compute. Budgets are shares of what the run takes without recompute, which the plan knows.
"""
import array
import dataclasses
import json
import os
import random
import struct

LLAMA = {"model_type": "llama", "vocab_size": 512, "hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
         "tie_word_embeddings": True}
SETTINGS = {"data.sequence_length": 256, "training.global_batch_size": 8, "training.micro_batch_size": 8,
            "training.learning_rate": 1e-3, "runtime.threads": 2, "output.save_strategy": "no", "memory.recompute": "none"}
ONE_ROW = {"training.global_batch_size": 1, "training.micro_batch_size": 1}


@dataclasses.dataclass
class Side:
    """One of the two runs, as it differs from the other."""
    settings: dict = dataclasses.field(default_factory=dict)
    model: dict = dataclasses.field(default_factory=dict)
    environment: dict = dataclasses.field(default_factory=dict)
    neighbours: int = 0
    data: str = "planted.npy"
    budget: float = 0  # of the plan's peak without recompute; 0: as much as there is


@dataclasses.dataclass
class Plant:
    name: str
    expected: str
    what: str  # how it is planted
    planted: Side
    control: Side = dataclasses.field(default_factory=Side)
    model: dict = dataclasses.field(default_factory=dict)  # of both
    settings: dict = dataclasses.field(default_factory=dict)

    def run(self, side, budget=None):
        """(model, settings) of a side."""
        settings = {**SETTINGS, **self.settings, **side.settings}
        if budget is not None:
            settings |= {"memory.recompute": "auto", "memory.budget": budget}
        return {**LLAMA, **self.model, **side.model}, settings


SMALL = {"hidden_size": 64, "intermediate_size": 192, "num_hidden_layers": 1}
ONE_WORKER = {"data.num_workers": 1}
PLANTS = [
    Plant("slow disk", "waiting for data: storage", "each read goes past the cache and takes 10 ms more",
          Side(environment={"PLANT_SECONDS": "0.01", "PLANT_DROP": "1"}), model=SMALL, settings=ONE_WORKER),
    Plant("slow worker", "waiting for data: preparing it", "one worker, each sequence takes it 10 ms more",
          Side(environment={"PLANT_SECONDS": "0.01"}), model=SMALL, settings=ONE_WORKER),
    Plant("cold cache", "waiting for data: cold cache", "as the slow disk, the first 48 reads alone",
          Side(environment={"PLANT_SECONDS": "0.02", "PLANT_DROP": "1", "PLANT_READS": "48"}), model=SMALL, settings=ONE_WORKER),
    Plant("busy neighbour", "CPUs taken by others", "four other processes that compute", Side(neighbours=4)),
    Plant("tiny batch", "products with too few rows", "one sequence of 4 tokens, against 8 of 64",
          Side({**ONE_ROW, "data.sequence_length": 4}), Side({"data.sequence_length": 64}),
          model={"hidden_size": 1024, "intermediate_size": 4096},
          settings={"training.optimizer": "sgd", "training.freeze": '["*"]', "training.unfreeze": '["*norm*"]'}),
    Plant("odd shapes", "products below their rate", "an intermediate size of 17 in a model of 1,024, against 768",
          Side(model={"intermediate_size": 17}), model={"hidden_size": 1024, "num_hidden_layers": 6, "num_attention_heads": 1,
                                                         "num_key_value_heads": 1, "head_dim": 64}),
    Plant("slow link", "copies that kernels cannot hide", "a link of 50 MB/s under offloaded activations, against 12 GB/s",
          Side({"runtime.discrete": "{copy_bandwidth: 50MB/s}"}), Side({"runtime.discrete": "{copy_bandwidth: 12GB/s}"}),
          settings={"runtime.device": "discrete", "memory.offload": "{activations: host}"}),
    Plant("padding", "padding", "texts of seven words each in a sequence of 512, against packed ones",
          Side({"data.packing": "pad"}), Side({"data.packing": "best_fit"}),
          settings={"data.tokenizer": "tokenizer.json", "data.sequence_length": 512}),
    Plant("checkpoints", "waiting for checkpoints", "a checkpoint each step, against none",
          Side({"output.save_strategy": "steps", "output.save_steps": 1, "output.save_total_limit": 1}),
          model={"hidden_size": 512, "intermediate_size": 1536, "vocab_size": 16384}, settings={"data.sequence_length": 32}),
    Plant("small budget", "recompute", "a budget of 0.6 of what the run takes, against all of it",
          Side(budget=0.6), model={"num_hidden_layers": 6, "hidden_size": 512, "intermediate_size": 1536}),
    Plant("big embedding", "optimizer", "AdamW over an embedding of 65,536 rows, one sequence of 16 tokens, against 8 of 256 and 512 rows",
          Side({**ONE_ROW, "data.sequence_length": 16}, model={"vocab_size": 65536})),
    Plant("few threads", "CPUs without a thread", "one thread on two CPUs, against two", Side({"runtime.threads": 1})),
    Plant("small ops", "host work between ops", "layers of width 8 and 8 tokens a micro-batch, against layers of width 256",
          Side({"training.global_batch_size": 16, "training.micro_batch_size": 1, "data.sequence_length": 8},
               model={"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 8, "num_attention_heads": 1, "num_key_value_heads": 1}),
          settings={"runtime.threads": 1}),
]
PLANTS[7].planted.data = PLANTS[7].control.data = "short.jsonl"


def write_data(folder):
    rng = random.Random(1)
    tokens = array.array("i", (rng.randrange(250) for _ in range(1 << 20)))
    header = "{'descr': '<i4', 'fortran_order': False, 'shape': (%d,), }" % len(tokens)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(folder / "planted.npy", "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + tokens.tobytes())
        f.flush()
        os.fsync(f.fileno())  # what is not written cannot be dropped from the cache
    with open(folder / "short.jsonl", "w") as f:
        for _ in range(40000):
            f.write(json.dumps({"text": " ".join(rng.choice(["one", "two", "three"]) for _ in range(rng.randrange(1, 8)))}) + "\n")
    # A tokenizer of bytes.
    vocab = {chr(c): c - 32 for c in range(33, 127)} | {"\u0120": 0}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "added_tokens": [], "normalizer": None, "post_processor": None, "pre_tokenizer": level, "decoder": level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "vocab": vocab, "merges": []}}))
