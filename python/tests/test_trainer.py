"""Trainer: transformers' arguments as a run file, the program's bits, callbacks, resuming."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import common
import plimsoll as pl
from plimsoll.callbacks import Callback

CONFIG = {"model_type": "llama", "vocab_size": 256, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": False}


def byte_tokenizer():
    """A tokenizer of bytes, with the printable names that byte-level BPE gives them."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    names = {byte: chr(byte) for byte in plain} | {byte: chr(256 + n) for n, byte in enumerate(others)}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {"version": "1.0", "added_tokens": [], "normalizer": None, "post_processor": None, "pre_tokenizer": level,
            "decoder": level, "model": {"type": "BPE", "vocab": {names[byte]: byte for byte in range(256)}, "merges": []}}


class Arguments(unittest.TestCase):
    def test_become_settings(self):
        run = pl.TrainingArguments("out", per_device_train_batch_size=2, gradient_accumulation_steps=3, max_steps=7,
                                   lr_scheduler_type="cosine", bf16=True, optim="adamw_bnb_8bit", max_length=32,
                                   gradient_checkpointing=True).run()
        self.assertEqual((run["training.global_batch_size"], run["training.micro_batch_size"]), (6, 2))
        self.assertEqual((run["training.precision"], run["training.optimizer"]), ("bf16", "adamw_8bit"))
        self.assertEqual((run["memory.recompute"], run["data.sequence_length"]), ("full", 32))
        self.assertEqual((run["training.learning_rate"], run["training.weight_decay"]), (5e-5, 0.0))
        budget = pl.TrainingArguments("out", memory_budget="1GiB", gradient_checkpointing=True).run()
        self.assertEqual((budget["memory.budget"], budget["training.micro_batch_size"]), ("1GiB", "auto"))
        self.assertNotIn("memory.recompute", budget)

    def test_unknown_ones_are_refused_with_a_hint(self):
        for argument, word in (({"max_step": 1}, "max_steps"), ({"optim": "adamw_torh"}, "adamw_torch"),
                               ({"neftune_noise_alpha": 5}, "noise"), ({"per_device_train_batch_size": 0}, "positive")):
            with self.assertRaisesRegex(pl.SettingError, word):
                pl.TrainingArguments("out", **argument)
        pl.TrainingArguments("out", dataloader_num_workers=4, push_to_hub=False)


class Seen(Callback):
    def __init__(self, stop_at=None):
        self.steps, self.stop_at, self.calls = [], stop_at, []

    def on_train_begin(self, run, plan):
        self.calls.append("begin")

    def on_step_end(self, run, step):
        self.steps.append(step.step)
        if step.step == self.stop_at:
            run.stop("enough")

    def on_train_end(self, run, summary):
        self.calls.append("end")


class Training(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "model").mkdir()
        (self.folder / "model/config.json").write_text(json.dumps(CONFIG))
        self.rows = [f"row {i} says {i * i} and then {i % 7} more words" for i in range(64)]
        (self.folder / "rows.txt").write_text("\n".join(self.rows) + "\n")

    def trainer(self, name="out", callbacks=(), **arguments):
        wanted = dict(output_dir=str(self.folder / name), per_device_train_batch_size=2, gradient_accumulation_steps=2,
                      learning_rate=1e-3, max_steps=6, lr_scheduler_type="cosine", warmup_steps=2, weight_decay=0.1,
                      max_grad_norm=1.0, seed=7, max_length=32, save_strategy="no", memory_budget="2GiB")
        return pl.Trainer(str(self.folder / "model"), pl.TrainingArguments(**{**wanted, **arguments}),
                          train_dataset=str(self.folder / "rows.txt"), callbacks=callbacks)

    def test_plans_and_trains(self):
        seen = Seen()
        trainer = self.trainer(callbacks=[seen])
        plan = trainer.plan()
        self.assertTrue(plan.fits and plan.peak_bytes > 0)
        self.assertIn("parameters", plan.classes)
        output = trainer.train()
        losses = [event["loss"] for event in trainer.log_history if "loss" in event]
        self.assertEqual((output.global_step, seen.steps, seen.calls), (6, [1, 2, 3, 4, 5, 6], ["begin", "end"]))
        self.assertAlmostEqual(output.training_loss, sum(losses) / 6)
        self.assertTrue((self.folder / "out/final/model.safetensors").is_file())

    @unittest.skipUnless(os.environ.get("PLIMSOLL_PROGRAM"), "PLIMSOLL_PROGRAM names no program")
    def test_bits_are_the_programs(self):
        self.trainer(bf16=True).train()
        run = {"model": {"path": str(self.folder / "model"), "init": "random"},
               "data": {"train": str(self.folder / "rows.txt"), "sequence_length": 32},
               "training": {"global_batch_size": 4, "learning_rate": 1e-3, "max_steps": 6, "lr_scheduler": "cosine",
                            "warmup_steps": 2, "weight_decay": 0.1, "max_grad_norm": 1.0, "seed": 7, "precision": "bf16"},
               "output": {"dir": str(self.folder / "program")}}
        (self.folder / "run.yaml").write_text(json.dumps(run))
        subprocess.run([os.environ["PLIMSOLL_PROGRAM"], "train", str(self.folder / "run.yaml")], check=True, capture_output=True)
        ours, theirs = (self.folder / name / "final/model.safetensors" for name in ("out", "program"))
        self.assertEqual(ours.read_bytes(), theirs.read_bytes())

    def test_weights_in_a_pickle_are_no_random_start(self):
        (self.folder / "model/pytorch_model.bin").write_bytes(b"a pickle")
        with self.assertRaisesRegex(pl.DataError, "pickle"):
            self.trainer().train()

    def test_a_callback_stops_and_the_run_is_resumed(self):
        output = self.trainer(callbacks=[Seen(stop_at=3)], save_strategy="steps", save_steps=2).train()
        self.assertEqual(output.global_step, 3)
        seen = Seen()
        output = self.trainer(callbacks=[seen], save_strategy="steps", save_steps=2).train(resume_from_checkpoint=True)
        self.assertEqual((output.global_step, seen.steps), (6, [4, 5, 6]))

    def test_errors_of_callbacks_and_settings_come_out(self):
        class Broken(Callback):
            def on_step_end(self, run, step):
                raise LookupError("in a callback")

        with self.assertRaisesRegex(LookupError, "in a callback"):
            self.trainer(callbacks=[Broken()]).train()
        with self.assertRaises(pl.DoesNotFit) as caught:
            self.trainer(memory_budget="1MiB").train()
        self.assertGreater(caught.exception.least_bytes, 1 << 20)
        with self.assertRaises((OSError, pl.PlimsollError)):
            pl.Trainer(str(self.folder / "nothing"), pl.TrainingArguments(), train_dataset="x.jsonl").plan()
        with self.assertRaisesRegex(pl.SettingError, "train_dataset"):
            pl.Trainer(str(self.folder / "model")).train()

    def test_rows_as_dicts_and_generation(self):
        (self.folder / "model/tokenizer.json").write_text(json.dumps(byte_tokenizer()))
        trainer = self.trainer()
        trainer.train_dataset = [{"text": row} for row in self.rows]
        trainer.train()
        texts = pl.generate(str(self.folder / "out"), ["row 1", "row 2"], max_new_tokens=4)
        self.assertEqual(len(texts), 2)
        self.assertIsInstance(pl.generate(str(self.folder / "out/final"), "row 1", max_new_tokens=4), str)


if __name__ == "__main__":
    unittest.main()
