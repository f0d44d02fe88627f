"""Random trainings, random ways to carry one out, and their run file: what run_combinations.py compares."""
import json
import shlex

import combinations
from card_combinations import IMAGES, MODELS

RECIPES = ["delayed", "current", "block", "mxfp8", "nvfp4"]
PRECISION = ["fp32", "fp32", "tf32", "bf16", "bf16 training.residual_in_fp32=false", "fp16",
             "bf16 training.state.weights=bf16 training.state.gradients=bf16", "bf16 training.state.weights=bf16",
             "bf16 training.state.weights=bf16 training.state.master_weights=false", "bf16 training.state.accumulators=bf16",
             "fp16 training.state.weights=fp16", "fp32 training.state.moments=bf16", "fp32 training.state.moments=coat",
             "bf16 training.state.moments=fp8_lm", "bf16 training.precision_overrides={linear: fp32}",
             "fp16 training.loss_scale=1024"]
FREEZE = {"llama": ["model.layers.[01].*", "*embed_tokens*", "*norm*"], "qwen3": ["model.layers.0.*", "*q_proj*"],
          "bert": ["*embeddings*", "*LayerNorm*", "*.bias"], "modernbert": ["model.layers.[01].*", "*tok_embeddings*", "*norm*"],
          "gpt2": ["*.ln_*", "transformer.wpe*", "*.bias"], "vit": ["vit.*", "*.bias"], "resnet": ["resnet.embedder.*", "resnet.*"]}
GROUPS = ['[{params: ["*weight"], weight_decay: 0.0}]', '[{params: ["*weight"], learning_rate: 2.0e-3}]',
          '[{params: ["*bias", "*.0.*"], weight_decay: 0.3}, {params: ["*"], learning_rate: 2.0e-3}]']
TOPOLOGY = ["{inter: 1GB/s, per_node: 1}", "{inter: 100MB/s, per_node: 1, latency: 50us}", "{intra: 50GB/s}"]


class What:
    """A training: what decides its bits."""

    def __init__(self, dice, optimizers, counts):
        self.ranks = dice.choice(counts)
        self.name = dice.choice([*MODELS, *MODELS, *IMAGES])
        self.task = "images" if self.name in IMAGES else dice.choice([combinations.language_task(self.name)] * 4 + ["sequence_classification"])
        self.batch = dice.choice([4, 6, 7, 8]) if self.ranks > 1 else dice.choice([4, 5, 6, 8])
        self.fixed_split = self.name == "resnet"
        if self.fixed_split and self.ranks > 1:
            self.batch = 2 * self.ranks
        self.settings = [f"training.global_batch_size={self.batch}"]
        self.add_numbers(dice, optimizers)
        self.add_data(dice)
        self.add_scope(dice)

    def add_numbers(self, dice, optimizers):
        precision = dice.choice(PRECISION)
        if dice.random() < 0.35:
            recipe = dice.choice(RECIPES)
            precision = f"fp8 training.fp8.recipe={recipe}"
            if dice.random() < 0.3:
                precision += " training.fp8.quantized_activations=true"
            if dice.random() < 0.2:
                precision += " training.fp8.keep_last_layers=0.4"
            if dice.random() < 0.2:
                precision += " training.state.weights=bf16"
            self.fixed_split |= recipe in ("current", "nvfp4")
        self.fixed_split |= "accumulators" in precision
        optimizer = dice.choice(optimizers)
        if "moments" in precision and (not optimizer.startswith("adam") or optimizer == "adamw_8bit"):
            optimizer = dice.choice(["adamw", "adam"])
        first, *others = shlex.split(precision.replace("{", "'{").replace("}", "}'"))
        self.settings += [f"training.precision={first}", *others, f"training.optimizer={optimizer}"]
        if optimizer == "sgd" and dice.random() < 0.5:
            self.settings.append("training.momentum=0.9")
        if dice.random() < 0.4:
            self.settings.append("training.max_grad_norm=" + dice.choice(["0", "0.1", "null"]))
        if dice.random() < 0.2 and "state.weights" not in precision:
            self.settings.append("training.ema_decay=0.9")

    def add_data(self, dice):
        if self.task == "images":
            if dice.random() < 0.5:
                self.settings.append("data.images.augment=[random_resized_crop, flip, {color_jitter: {brightness: 0.4}}]")
            if dice.random() < 0.3:
                self.settings.append(dice.choice(["data.images.mixup=0.4", "data.images.cutmix=1.0"]))
            if dice.random() < 0.3:
                self.settings.append("training.label_smoothing=0.1")
            if self.name == "resnet" and dice.random() < 0.4:
                choices = ["batch", "frozen"] + (["synchronised"] if self.ranks > 1 else [])
                self.settings.append("model.norm_statistics=" + dice.choice(choices))
            return
        self.settings.append(f"data.sequence_length={dice.choice([33, 40, 64, 100, 128])}")
        if self.task == "sequence_classification":
            return
        packing = dice.choice(combinations.PACKING)
        self.settings.append(f"data.packing={packing}")
        if packing == "pad" and dice.random() < 0.5:
            self.settings.append("data.buckets=2")
        if dice.random() < 0.3:
            self.settings.append("data.long_documents=" + dice.choice(["cut", "truncate"]))

    def add_scope(self, dice):
        if self.name in MODELS and dice.random() < 0.3:
            self.settings += [f"model.path=base-{self.name}", "model.init=pretrained", "model.config=null",
                              *combinations.lora_of(dice, self.name, self.task)]
            return
        if dice.random() < 0.25:
            chosen = dice.sample(FREEZE[self.name], 1)
            self.settings.append("training.freeze=" + json.dumps(chosen))
        if dice.random() < 0.2:
            self.settings.append("training.param_groups=" + dice.choice(GROUPS))

    def share(self):
        return -(-self.batch // self.ranks)

    def text(self):
        return f"{self.ranks} ranks, {self.name} {self.task} " + " ".join(map(shlex.quote, self.settings))


def how_of(dice, what):
    """One way to carry it out, as overrides."""
    policies = ["auto", "none", "full", "selective"]
    if what.name in MODELS:
        _, blocks, _ = MODELS[what.name]
        policies += ["attention", "mlp", "segments", "{every: %d}" % dice.randint(1, blocks), "{segments: %d}" % dice.randint(1, blocks)]
    how = ["memory.recompute=" + dice.choice(policies), f"runtime.threads={dice.randint(1, 2)}"]
    mode = "ddp"
    if what.ranks > 1:
        has_accumulators_of_16_bits = "training.state.accumulators=bf16" in what.settings
        mode = dice.choice(["ddp", "zero1"] if has_accumulators_of_16_bits else ["ddp", "zero1", "zero2", "zero3", "zero3"])
        how.append(f"distributed.mode={mode}")
        if dice.random() < 0.6:
            how.append("distributed.topology=" + dice.choice(TOPOLOGY))
    if not what.fixed_split and mode in ("ddp", "zero1") and dice.random() < 0.6:
        divisors = [n for n in range(1, what.share() + 1) if what.share() % n == 0 and what.batch % n == 0]
        how.append(f"training.micro_batch_size={dice.choice(divisors)}")
    if dice.random() < 0.3:
        how += ["runtime.device=discrete", f"runtime.discrete.seed={dice.randrange(1000)}", "runtime.discrete.check=true"]
    if dice.random() < 0.4:
        classes = dice.sample(["activations", "optimizer", "masters", "gradients", "parameters"], dice.randint(1, 4))
        how.append("memory.offload={%s}" % ", ".join(f"{c}: {dice.choice(['host', 'disk'])}" for c in classes))
    if dice.random() < 0.2:
        how.append("debug.poison=true")
    if dice.random() < 0.3:
        how.append(f"data.num_workers={dice.choice([0, 1, 3])}")
    return how


def run_file(what):
    if what.name in IMAGES:
        data = "{train: train, eval: train, max_eval_samples: 6}"
        head = f"model: {{config: {IMAGES[what.name]}, init: random}}\ndata: {data}\n"
    else:
        head = combinations.run_file(MODELS[what.name][0], what.task).split("training:")[0]
        file = "labels.jsonl" if what.task == "sequence_classification" else "text.jsonl"
        head = head.replace(f"train: {file}", f"train: {file}, eval: {file}, max_eval_samples: 9")
    return head + ("training: {global_batch_size: 8, max_steps: 4, learning_rate: 1.0e-3, eval_strategy: steps, eval_steps: 2}\n"
                   "output: {dir: out, save_steps: 2, monitor_seconds: 0}\n")
