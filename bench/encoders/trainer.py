"""The peer of fine_tune.py: transformers' Trainer on lines of text and label, as its users write it.

    python trainer.py --model DIR --train train.jsonl --eval eval.jsonl --output DIR --seed 1 …

Rows are padded to the longest of their batch. Prints {"seconds": of training, "accuracy": …, "peak": bytes}.
"""
import argparse
import json
import os
import pathlib
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "step"))

from peer import peak_rss_bytes  # noqa: E402


class Rows:
    def __init__(self, path, tokenizer, names, tokens):
        lines = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]
        encoded = tokenizer([line["text"] for line in lines], truncation=True, max_length=tokens)
        self.rows = [{key: encoded[key][i] for key in encoded} | {"labels": names.index(line["label"])} for i, line in enumerate(lines)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "train", "eval", "output"):
        parser.add_argument(f"--{name}", required=True)
    for name, kind in (("seed", int), ("epochs", int), ("batch", int), ("tokens", int), ("warmup", int), ("threads", int), ("rate", float)):
        parser.add_argument(f"--{name}", type=kind, required=True)
    args = parser.parse_args()

    import torch
    import transformers
    torch.set_num_threads(args.threads)
    transformers.set_seed(args.seed)
    names = sorted({json.loads(line)["label"] for line in pathlib.Path(args.train).read_text().splitlines()})
    tokenizer = transformers.AutoTokenizer.from_pretrained(args.model)
    train, held_out = (Rows(path, tokenizer, names, args.tokens) for path in (args.train, args.eval))
    model = transformers.AutoModelForSequenceClassification.from_pretrained(args.model, num_labels=len(names))
    settings = transformers.TrainingArguments(
        output_dir=args.output, use_cpu=True, seed=args.seed, num_train_epochs=args.epochs, per_device_train_batch_size=args.batch,
        per_device_eval_batch_size=args.batch, learning_rate=args.rate, warmup_steps=args.warmup, lr_scheduler_type="linear",
        weight_decay=0.01, max_grad_norm=1.0, save_strategy="no", report_to=[], disable_tqdm=True, logging_strategy="no")
    trainer = transformers.Trainer(model, settings, train_dataset=train, eval_dataset=held_out,
                                   data_collator=transformers.DataCollatorWithPadding(tokenizer))
    started = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - started
    found = trainer.predict(held_out)
    accuracy = float((found.predictions.argmax(1) == found.label_ids).mean())
    print(json.dumps({"seconds": seconds, "accuracy": accuracy, "peak": peak_rss_bytes()}), flush=True)


if __name__ == "__main__":
    main()
