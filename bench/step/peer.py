"""The peer of `plimsoll bench step`: one optimizer step of a Llama or GPT-2 in PyTorch, as its users write it.

    python peer.py --config w1/config.json --batch 8 --tokens 256 --mode eager|compiled

Random weights, random tokens, fp32 or autocast to bf16, AdamW (fused), clipping at norm 1, the loss read each step. It speaks
the protocol of `plimsoll bench step --interactive`: `go N` on stdin runs N steps, `N` or more lines of JSON
come back, the last of them `{"event":"round",…}`; at end of input a summary follows. While it waits for a line
it computes nothing, so that several of these can take turns on one machine.
"""
import argparse
import json
import os
import sys
import time


def say(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


def peak_rss_bytes():
    """The kernel's own figure for the highest resident set of this process."""
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def build_model(config_path):
    from transformers import AutoConfig, AutoModelForCausalLM
    config = AutoConfig.from_pretrained(os.path.dirname(os.path.abspath(config_path)))
    config.use_cache = False
    model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
    return model.float().train()


def with_adapters(model, settings):
    """PEFT's LoRA by the settings of a run file, which are PEFT's own."""
    import peft
    lora = peft.LoraConfig(task_type="CAUSAL_LM", **json.loads(settings))
    return peft.get_peft_model(model, lora, autocast_adapter_dtype=False)


def import_all(transformers, args):
    """Loads the modules of the model's class, which transformers imports when they are first asked for."""
    config = transformers.AutoConfig.from_pretrained(os.path.dirname(os.path.abspath(args.config)))
    getattr(transformers, config.architectures[0] if config.architectures else "AutoModelForCausalLM")
    if args.lora:
        import peft  # noqa: F401


def build_optimizer(torch, parameters):
    options = dict(lr=3e-4, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    try:
        return torch.optim.AdamW(parameters, fused=True, **options), "fused"
    except (RuntimeError, ValueError):
        return torch.optim.AdamW(parameters, foreach=True, **options), "foreach"


class Stepper:
    """Holds what a step needs; `step` is the whole of what is timed."""

    def __init__(self, torch, args):
        torch.manual_seed(args.seed)
        self.torch = torch
        self.device = args.device
        model = build_model(args.config).to(args.device)
        if args.lora:
            model = with_adapters(model, args.lora)
        if args.checkpointing:
            model.gradient_checkpointing_enable()
        self.num_parameters = sum(p.numel() for p in model.parameters())
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.optimizer, self.optimizer_kind = build_optimizer(torch, self.parameters)
        self.vocab_size = model.config.vocab_size
        self.shape = (args.batch, args.tokens)
        self.accumulate = args.accumulate
        self.autocast = args.precision == "bf16"
        of_device = {"mode": "reduce-overhead"} if args.device == "cuda" else {}  # CUDA graphs
        self.model = torch.compile(model, **of_device) if args.mode == "compiled" else model

    def batch(self):
        return self.torch.randint(0, self.vocab_size, self.shape, device=self.device)

    def step(self, ids):
        total = 0
        for part in ids.chunk(self.accumulate):
            with self.torch.autocast(self.device, dtype=self.torch.bfloat16, enabled=self.autocast):
                loss = self.model(input_ids=part, labels=part).loss / self.accumulate
            loss.backward()
            total = total + loss.detach()
        self.torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return total.item()


def run_round(stepper, num_steps, first_step):
    batches = [stepper.batch() for _ in range(num_steps)]
    started = time.perf_counter()
    for offset, ids in enumerate(batches):
        step_started = time.perf_counter()
        loss = stepper.step(ids)
        say("step", step=first_step + offset, loss=loss, step_seconds=time.perf_counter() - step_started)
    batch, tokens = stepper.shape
    say("round", steps=num_steps, seconds=time.perf_counter() - started, tokens=num_steps * batch * tokens)


def serve(run):
    """Calls `run` with the number of steps and the first step's number for each line `go N` on stdin; returns how many steps ran."""
    steps = 0
    for line in sys.stdin:
        words = line.split()
        if len(words) != 2 or words[0] != "go" or not words[1].isdigit():
            sys.exit(f"peer.py: expected `go N`, got {line!r}")
        run(int(words[1]), steps + 1)
        steps += int(words[1])
    return steps


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", required=True, help="a config.json of transformers")
    parser.add_argument("--batch", type=int, required=True, help="sequences a step")
    parser.add_argument("--tokens", type=int, required=True, help="tokens a sequence")
    parser.add_argument("--accumulate", type=int, default=1, help="parts that the batch is run in, one after the other")
    parser.add_argument("--mode", choices=["eager", "compiled"], default="eager")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--checkpointing", action="store_true", help="gradient checkpointing of every block")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--lora", help="a LoraConfig's arguments as JSON: PEFT's adapters alone learn")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--imports-only", action="store_true", help="import what a step needs and end: the floor of its memory")
    args = parser.parse_args()

    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    started = time.perf_counter()
    import torch
    import transformers
    if args.imports_only:
        import_all(transformers, args)
        return
    torch.set_num_threads(args.threads)
    stepper = Stepper(torch, args)
    say("ready", mode=args.mode, torch=torch.__version__, transformers=transformers.__version__,
        parameters=stepper.num_parameters, optimizer=stepper.optimizer_kind, threads=torch.get_num_threads(),
        seconds=time.perf_counter() - started)

    steps = serve(lambda num_steps, first_step: run_round(stepper, num_steps, first_step))
    card = {}
    if args.device == "cuda":
        card = dict(device_allocated_bytes=torch.cuda.max_memory_allocated(), device_reserved_bytes=torch.cuda.max_memory_reserved())
    say("summary", steps=steps, measured_peak_bytes=peak_rss_bytes(), **card)


if __name__ == "__main__":
    main()
