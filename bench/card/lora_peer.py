"""LoRA on the shape of Llama-2-7B in PyTorch with PEFT, as bench/card/llama-2-7b/run.yaml asks for it: bf16 weights, rank 16 on q, k, v and o, 8 sequences of 1,024 tokens a step.

    python3 lora_peer.py [--micro 1] [--checkpointing] [--steps 5] [--limit-gib 22.5]

--limit-gib is what the allocator may take; beyond it the run ends with PyTorch's out-of-memory error.
"""
import argparse
import pathlib
import time

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--micro", type=int, default=1)
parser.add_argument("--checkpointing", action="store_true")
parser.add_argument("--steps", type=int, default=5)
parser.add_argument("--limit-gib", type=float, default=22.5)
args = parser.parse_args()

torch.cuda.set_per_process_memory_fraction(args.limit_gib * 2**30 / torch.cuda.get_device_properties(0).total_memory)
config = AutoConfig.from_pretrained(pathlib.Path(__file__).parent / "llama-2-7b")
config.use_cache = False
torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
torch.set_default_dtype(torch.float32)
model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules=["q_proj", "k_proj", "v_proj", "o_proj"], task_type="CAUSAL_LM")).train()
if args.checkpointing:
    model.gradient_checkpointing_enable()
    model.enable_input_require_grads()
learning = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(learning, lr=2e-4, fused=True)
accumulated = 8 // args.micro


def step():
    for _ in range(accumulated):
        ids = torch.randint(0, config.vocab_size, (args.micro, 1024), device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(input_ids=ids, labels=ids).loss / accumulated
        loss.backward()
    torch.nn.utils.clip_grad_norm_(learning, 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return loss.item()


try:
    step()
    started = time.perf_counter()
    for _ in range(args.steps):
        step()
    seconds = (time.perf_counter() - started) / args.steps
    print(f"micro {args.micro}, checkpointing {args.checkpointing}: {seconds:.3f} s a step, {8192 / seconds:,.0f} tokens/s, "
          f"allocated {torch.cuda.max_memory_allocated() / 2**20:,.0f} MiB, reserved {torch.cuda.max_memory_reserved() / 2**20:,.0f} MiB", flush=True)
except torch.OutOfMemoryError as error:
    print(f"micro {args.micro}, checkpointing {args.checkpointing}: out of memory: {str(error).split('.')[0]}", flush=True)
