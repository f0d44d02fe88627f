#!/usr/bin/env python3
"""Bottlenecks that are really there, and whether `plimsoll profile` names each of them first.

    planted.py [--binary build/plimsoll] [--only disk,tiny] [--active 8] [--show 3]

Each run is made slow in one way - a data file whose reads are slowed down beneath the program, neighbours that compute,
a link of few megabytes a second, a batch of four tokens, … - and profiled on two threads; the verdict's first
lines are printed beside what was planted. Exits with 1 where another one comes first. It needs a machine of its own: what
else runs there is a bottleneck too, which --beside-others passes over where it was not planted.
"""
import argparse
import array
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

# Reads of the data file take as long as a slow disk would, past the cache or not.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static void plant(int fd, off_t offset, size_t bytes) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  if (n <= 0) return;
  path[n] = 0;
  if (!strstr(path, "planted.npy") || bytes < 16) return;
  (void)offset;
  if (getenv("PLANT_DROP")) posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);  // all: a part of a large folio stays
  const double seconds = atof(getenv("PLANT_SECONDS"));
  struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - (long)seconds))};
  nanosleep(&t, 0);
}
#define READ(name, type)                                                          \
  ssize_t name(int fd, void* to, size_t bytes, type offset) {                     \
    static ssize_t (*next)(int, void*, size_t, type);                             \
    if (!next) next = (ssize_t(*)(int, void*, size_t, type))dlsym(RTLD_NEXT, #name); \
    plant(fd, offset, bytes);                                                     \
    return next(fd, to, bytes, offset);                                           \
  }
READ(pread, off_t)
READ(pread64, off_t)
"""

LLAMA = {"model_type": "llama", "vocab_size": 512, "hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
         "tie_word_embeddings": True}
RUN = {"data.sequence_length": 256, "training.global_batch_size": 8, "training.micro_batch_size": 8, "training.learning_rate": 1e-3,
       "runtime.threads": 2, "output.save_strategy": "no"}


def plant(expected, model=None, settings=None, environment=None, neighbours=0, data="planted.npy", arguments=()):
    return {"expected": expected, "model": {**LLAMA, **(model or {})}, "settings": {**RUN, **(settings or {})},
            "environment": environment or {}, "neighbours": neighbours, "data": data, "arguments": list(arguments)}


SMALL = {"hidden_size": 64, "intermediate_size": 192, "num_hidden_layers": 1}
PLANTS = {
    # The reads of a step's eight sequences go past the cache and take 80 ms.
    "disk": plant("waiting for data: storage", SMALL, {"data.num_workers": 1},
                  {"PLANT_SECONDS": "0.01", "PLANT_DROP": "1"}),
    "slow worker": plant("waiting for data: preparing it", SMALL, {"data.num_workers": 1}, {"PLANT_SECONDS": "0.01"}),
    "neighbour": plant("CPUs taken by others", neighbours=4),
    "tiny batch": plant("products of too few rows", {"hidden_size": 1024, "intermediate_size": 4096},
                        {"training.global_batch_size": 1, "training.micro_batch_size": 1, "data.sequence_length": 4, "training.optimizer": "sgd",
                         "training.freeze": '["*"]', "training.unfreeze": '["*norm*"]'}),
    "slow link": plant("copies between memories", {}, {"runtime.device": "discrete", "runtime.discrete": "{copy_bandwidth: 50MB/s}",
                       "memory.offload": "{activations: host}"}),
    "padding": plant("padding", {}, {"data.packing": "pad", "data.tokenizer": "tokenizer.json", "data.sequence_length": 512}, data="short.jsonl"),
    "optimizer": plant("optimizer", {"hidden_size": 768, "intermediate_size": 3072}, {"training.global_batch_size": 1,
                       "training.micro_batch_size": 1, "data.sequence_length": 16}),
    "small ops": plant("host work between ops", {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 8, "num_attention_heads": 1,
                       "num_key_value_heads": 1, "vocab_size": 512}, {"training.global_batch_size": 16, "training.micro_batch_size": 1,
                       "data.sequence_length": 8, "runtime.threads": 1}),
    "one tile": plant("threads idle", {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 4, "num_attention_heads": 1,
                      "num_key_value_heads": 1}, {"training.global_batch_size": 1, "training.micro_batch_size": 1, "data.sequence_length": 64}),
    "sweeps": plant("sweeps over memory", {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2, "num_key_value_heads": 1,
                    "num_hidden_layers": 8, "vocab_size": 259}, {"data.sequence_length": 32, "training.global_batch_size": 256,
                    "training.micro_batch_size": 256}),
}


def write_data(folder):
    rng = random.Random(1)
    tokens = array.array("i", (rng.randrange(250) for _ in range(1 << 20)))
    header = "{'descr': '<i4', 'fortran_order': False, 'shape': (%d,), }" % len(tokens)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    (folder / "planted.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + tokens.tobytes())
    with open(folder / "short.jsonl", "w") as f:
        for _ in range(400):
            f.write(json.dumps({"text": " ".join(rng.choice(["one", "two", "three"]) for _ in range(rng.randrange(1, 8)))}) + "\n")


    # A tokenizer of bytes.
    vocab = {chr(c): c - 32 for c in range(33, 127)} | {"\u0120": 0}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "added_tokens": [], "normalizer": None, "post_processor": None, "pre_tokenizer": level, "decoder": level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "vocab": vocab, "merges": []}}))
    with open(folder / "planted.npy", "rb+") as f:
        os.fsync(f.fileno())  # what is not written cannot be dropped from the cache


def verdict(binary, folder, name, planted, active):
    yaml = folder / "run.yaml"
    yaml.write_text(json.dumps({"model": {"config": planted["model"], "init": "random"}, "data": {"train": planted["data"]},
                                "output": {"dir": "out"}}))
    settings = [f"{k}={v}" for k, v in planted["settings"].items()]
    environment = dict(os.environ, **planted["environment"])
    if planted["environment"]:
        environment["LD_PRELOAD"] = str(folder / "shim.so")
    neighbours = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(planted["neighbours"])]
    try:
        done = subprocess.run([binary, "profile", str(yaml), "--json", "--output", str(folder / "profile"), "--active", str(active),
                               *planted["arguments"], *settings], cwd=folder, env=environment, capture_output=True, text=True, timeout=280)
    finally:
        for n in neighbours:
            n.kill()
            n.wait()
    if done.returncode != 0:
        return None, done.stderr.strip()[-300:]
    return json.loads(done.stdout.strip().splitlines()[-1]), ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--only", default="")
    parser.add_argument("--active", type=int, default=8)
    parser.add_argument("--show", type=int, default=3)
    parser.add_argument("--beside-others", action="store_true")
    arguments = parser.parse_args()
    binary = str(pathlib.Path(arguments.binary).resolve())
    only = [n for n in arguments.only.split(",") if n]
    missed = 0
    with tempfile.TemporaryDirectory() as at:
        folder = pathlib.Path(at)
        write_data(folder)
        (folder / "shim.c").write_text(SHIM)
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(folder / "shim.so"), str(folder / "shim.c"), "-ldl"], check=True)
        for name, planted in PLANTS.items():
            if only and name not in only:
                continue
            found, error = verdict(binary, folder, name, planted, arguments.active)
            if found is None:
                print(f"{name:12} failed: {error}", flush=True)
                missed += 1
                continue
            others = "CPUs taken by others"
            passes_over = arguments.beside_others and planted["expected"] != others
            first = next(f["what"] for f in found["findings"] if not (passes_over and f["what"] == others))
            ok = first == planted["expected"]
            missed += not ok
            lines = ", ".join(f"{f['what']} {100 * f['share']:.0f}%" for f in found["findings"][:arguments.show])
            print(f"{name:12} {'named first' if ok else 'NOT FIRST: ' + planted['expected']}: {1e3 * found['step_seconds']:.2f} ms a step: {lines}",
                  flush=True)
    print(f"{missed} not named first" if missed else "all named first")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
