"""transformers' side of the decode comparison: greedy generation of a model directory, as fast as it goes on the CPU.

Speaks the protocol of bench/step/processes.py: for each line `go N` on stdin, N new tokens after the prompt and one
JSON line {"event": "round", "tokens", "seconds", "ids"}; seconds are those of the decode alone, prefill taken off.
"""
import json
import os
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch  # noqa: E402
import transformers  # noqa: E402


def main():
    directory, prompt, threads = sys.argv[1], [int(word) for word in sys.argv[2].split(",")], int(sys.argv[3])
    dtype = torch.bfloat16 if sys.argv[4:] == ["bf16"] else torch.float32
    torch.set_num_threads(threads)
    model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=dtype).eval()
    ids = torch.tensor([prompt])

    def generate(count):
        start = time.perf_counter()
        out = model.generate(ids, max_new_tokens=count, min_new_tokens=count, do_sample=False, use_cache=True,
                             pad_token_id=0, attention_mask=torch.ones_like(ids))
        return time.perf_counter() - start, out[0, ids.shape[1]:].tolist()

    generate(2)
    for line in sys.stdin:
        count = int(line.split()[1])
        with torch.no_grad():
            first, _ = generate(1)
            seconds, made = generate(count)
        print(json.dumps({"event": "round", "tokens": count - 1, "seconds": seconds - first, "ids": made}), flush=True)


if __name__ == "__main__":
    main()
