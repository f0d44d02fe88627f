"""The peer of `plimsoll bench step` for encoders: one optimizer step of a head of transformers over BERT, as its users write it.

    python peer.py --config bert/config.json --task classify|masked|answers --batch 32 --tokens 128 --mode eager|compiled

Random weights, random tokens in rows without padding, dropout as config.json says, AdamW (fused), clipping at norm 1, the loss
read each step. Of masked tokens 15 % have a label. It speaks the protocol of bench/step/peer.py.
"""
import argparse
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "step"))

from peer import build_optimizer, peak_rss_bytes, say, serve  # noqa: E402

HEADS = dict(classify="AutoModelForSequenceClassification", masked="AutoModelForMaskedLM", answers="AutoModelForQuestionAnswering")
MASKED = 0.15


class Stepper:
    """Holds what a step needs; `step` is the whole of what is timed."""

    def __init__(self, torch, transformers, args):
        torch.manual_seed(args.seed)
        self.torch, self.args = torch, args
        config = transformers.AutoConfig.from_pretrained(os.path.dirname(os.path.abspath(args.config)))
        model = getattr(transformers, HEADS[args.task]).from_config(config, attn_implementation="sdpa").float().train()
        self.parameters = list(model.parameters())
        self.optimizer, self.optimizer_kind = build_optimizer(torch, self.parameters)
        self.config = config
        self.model = torch.compile(model) if args.mode == "compiled" else model

    def batch(self):
        shape, draw = (self.args.batch, self.args.tokens), self.torch.randint
        ids, rows = draw(0, self.config.vocab_size, shape), shape[:1]
        if self.args.task == "classify":
            more = dict(labels=draw(0, self.config.num_labels, rows))
        elif self.args.task == "masked":
            more = dict(labels=ids.masked_fill(self.torch.rand(shape) >= MASKED, -100))
        else:
            more = dict(start_positions=draw(0, shape[1], rows), end_positions=draw(0, shape[1], rows))
        return dict(input_ids=ids, attention_mask=self.torch.ones_like(ids), **more)

    def step(self, batch):
        with self.torch.autocast("cpu", dtype=self.torch.bfloat16, enabled=self.args.precision == "bf16"):
            loss = self.model(**batch).loss
        loss.backward()
        self.torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.item()

    def run_round(self, count):
        batches = [self.batch() for _ in range(count)]
        started = time.perf_counter()
        for batch in batches:
            self.step(batch)
        say("round", steps=count, seconds=time.perf_counter() - started, tokens=count * self.args.batch * self.args.tokens)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", required=True, help="a config.json of transformers")
    parser.add_argument("--task", required=True, choices=HEADS)
    parser.add_argument("--batch", type=int, required=True, help="sequences a step")
    parser.add_argument("--tokens", type=int, required=True, help="tokens a sequence")
    parser.add_argument("--mode", choices=["eager", "compiled"], default="eager")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=42)
    args = parser.parse_args()

    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch
    import transformers
    torch.set_num_threads(args.threads)
    stepper = Stepper(torch, transformers, args)
    say("ready", mode=args.mode, torch=torch.__version__, transformers=transformers.__version__, optimizer=stepper.optimizer_kind,
        threads=torch.get_num_threads())
    steps = serve(lambda count, _: stepper.run_round(count))
    say("summary", steps=steps, measured_peak_bytes=peak_rss_bytes())


if __name__ == "__main__":
    main()
