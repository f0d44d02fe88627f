"""Holds masked language modelling against transformers' …ForMaskedLM, with the masks of a port of the masker (masking.py).

    python masked_compare.py --binary build/plimsoll [--only TEXT] [--keep DIR]

Every encoder, on streams, padded rows, packed documents and texts, and from files that lack the head or hold more than it: ten steps,
each dumped. Per step, from the parameters that Plimsoll had before it, loss, logits and gradients are transformers' own, each document
alone; PyTorch takes the same steps alongside; limits are compare.py's. final/ then opens in transformers and in a second run. Then
LoRA against PEFT, and the masks of a long run, step by step and in their shares. One line per check, PASS or FAIL.
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy  # noqa: E402
import peft  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

import cases  # noqa: E402
import compare  # noqa: E402
import lora_compare  # noqa: E402
import masking  # noqa: E402
import oracle  # noqa: E402
from checks import Checks  # noqa: E402
from classification_compare import plimsoll  # noqa: E402
from masking import FAMILIES, LANGUAGE, MASK, TOKENS, VOCAB, Masker, batch_at, batch_of  # noqa: E402

warnings.simplefilter("ignore")
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
torch.set_num_threads(1)  # models are small

TRAINING = cases.TRAINING | dict(learning_rate=1.0e-3)
BATCH, STEPS = 4, 10
def case(name, family, data="stream", start="head", config=None, mlm=None, seed=42, buckets=None, lora=None, **settings):
    """`data`: masking.write_sequences'. `start`: the class of the file, or what else it holds. `config`: over the family's. `mlm`: over
    masking.RULES. `lora`: LoraConfig's arguments."""
    return dict(name=name, family=family, data=data, start=start, config=config or {}, mlm=mlm or {}, seed=seed, buckets=buckets,
                lora=lora, settings=settings)


CASES = [case(f"{family}, stream", family) for family in FAMILIES]
CASES += [case(f"{family}, padded rows, whole words", family, "rows", mlm=dict(whole_word=True, probability=0.2)) for family in FAMILIES]
CASES += [case(f"{family}, a bare model", family, start="bare") for family in FAMILIES]
CASES += [case(f"{family}, the table saved twice", family, start="twice") for family in FAMILIES]
CASES += [
    case("bert, packed documents", "bert", "pairs", seed=(1 << 33) + 5),
    case("roberta, packed documents, accumulation", "roberta", "pairs", mlm=dict(probability=0.5, random=0.2), micro_batch_size=1),
    case("roberta, joined documents, whole words", "roberta", "joined", mlm=dict(whole_word=True, probability=0.4)),
    case("bert, batches without a masked token", "bert", "rows", mlm=dict(probability=0.02)),
    case("bert, texts, whole words", "bert", "texts", mlm=dict(whole_word=True, probability=0.3)),
    case("camembert, texts, all masked", "camembert", "texts", mlm=dict(mask=1, random=0)),
    case("bert, silu, eps, all random", "bert", config=dict(hidden_act="silu", layer_norm_eps=0.01), mlm=dict(mask=0, random=1),
         recompute="none"),
    case("roberta, relu, all kept, buckets", "roberta", "rows", config=dict(hidden_act="relu"), mlm=dict(mask=0, random=0),
         buckets=[9, 17], micro_batch_size=2),
    case("distilbert, relu, most tokens", "distilbert", config=dict(activation="relu"), mlm=dict(probability=0.9)),
    case("distilbert, packed documents, long words", "distilbert", "pairs", mlm=dict(whole_word=True)),
    case("roberta, a classifier's file", "roberta", start="classifier"),
    case("bert, both heads of its pretraining", "bert", start="pretraining"),
    case("bert, names as Google's", "bert", start="google"),
    case("modernbert, packed documents, biases", "modernbert", "pairs",
         config=dict(norm_bias=True, attention_bias=True, mlp_bias=True, classifier_bias=True, hidden_activation="silu"), micro_batch_size=1),
    case("modernbert, no bias of words, no recompute", "modernbert", config=dict(decoder_bias=False, local_attention=6), recompute="none"),
    case("modernbert, LoRA", "modernbert", "rows", lora=dict(target_modules=["Wqkv", "Wi", "head.dense"], lora_alpha=6)),
    case("bert, LoRA", "bert", lora=dict(target_modules=["query", "value"])),
    case("roberta, LoRA with the head's layer, rows", "roberta", "rows",
         lora=dict(target_modules=["query", "lm_head.dense"], lora_alpha=6)),
    case("distilbert, LoRA, our own defaults", "distilbert", lora={}),
]


def run_gradients(model, batch):
    """Loss (a mean over what is predicted), its logits in the order of the places, gradients. Of no place the loss is 0, as Plimsoll
    has it; transformers says nan."""
    model.zero_grad(set_to_none=True)
    out = model(**batch)
    if (batch["labels"] == -100).all():
        out.loss = 0 * out.logits.sum()
    out.loss.backward()
    gradients = {name: p.grad.numpy().copy() for name, p in model.named_parameters() if p.requires_grad}
    return out.loss.item(), out.logits[batch["labels"] != -100].detach().numpy(), gradients


def theirs_of(tensors, model):
    """In some classes of transformers the tied table goes by the head's name."""
    other, table = "lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight"
    twice = other in dict(model.named_parameters())
    return {other if name == table and twice else name: value for name, value in tensors.items()}


def logits_of(dump, masked, limit):
    """Of the places that are predicted."""
    if dump["logits"].shape != (len(masked), limit, VOCAB):
        raise ValueError(f"logits of shape {dump['logits'].shape}")
    return numpy.concatenate([logits[:len(places)] for logits, (_, places) in zip(dump["logits"], masked)])


def write_run(case, folder, **more):
    settings, suffix = dict(case["settings"]), "npy" if case["data"] == "stream" else "jsonl"
    data = {"train": str(folder / f"train.{suffix}"), "eval": str(folder / f"eval.{suffix}"), "sequence_length": TOKENS, "shuffle": False}
    packing = {"rows": "pad", "texts": "pad", "joined": "stream"}.get(case["data"], "auto")
    data |= dict(packing=packing) | (dict(buckets=case["buckets"]) if case["buckets"] else {})
    run = {
        "model": {"path": str(folder / "model")}, "data": data, "memory": {"recompute": settings.pop("recompute", "auto")},
        "mlm": case["mlm"] | (dict(mask_token=MASK) if case["data"] == "stream" else {}),
        "training": {"global_batch_size": BATCH, **TRAINING, "seed": case["seed"], **settings},
        "runtime": {"device": "cpu", "threads": 2}, "output": {"dir": str(folder / "out"), "dtype": "fp32"},
        "debug": {"dump_dir": str(folder / "dump"), "dump": ["loss", "gradients", "logits", "parameters"]}, **more,
    }
    if case["start"] in ("bare", "classifier"):
        run["task"] = "masked_lm"
    (folder / "run.yaml").write_text(json.dumps(run))


def compare_steps(case, folder, events, masker, sequences, checks):
    """Returns the last parameters."""
    name, final = case["name"], folder / "out" / "final"
    stepwise = LANGUAGE.from_config(transformers.AutoConfig.from_pretrained(final), attn_implementation="eager").float().train()
    before = theirs_of(compare.dump_of(folder, 0)["parameters"], stepwise)
    along = oracle.Alongside(final, None, TRAINING, model=oracle.build(final, before, LANGUAGE), gradients=run_gradients)
    measures = {what: [] for what in ("loss", "logits", "gradients", "losses alongside", "norms alongside")}
    kinks = oracle.Kinks(stepwise)
    for event in events:
        step = event["step"]
        (batch, masked), dump = batch_at(case, masker, sequences, step, BATCH), compare.dump_of(folder, step)
        oracle.load(stepwise, before)
        loss, logits, gradients = run_gradients(stepwise, batch)
        ours = theirs_of(dump["gradients"], stepwise)
        measures["loss"].append(compare.relative(dump["loss"][0], loss, compare.LOSS_TOLERANCE, f"step {step}"))
        measures["logits"].extend(compare.tensor_measures({"logits": logits_of(dump, masked, masker.limit)}, {"logits": logits}, step))
        measures["gradients"].extend([] if kinks.met() else compare.tensor_measures(ours, gradients, step))
        their_loss, their_norm = along.step(batch, ours)
        measures["losses alongside"].append(compare.relative(event["loss"], their_loss, compare.LOSS_TOLERANCE, f"step {step}"))
        measures["norms alongside"].append(compare.relative(event["grad_norm"], their_norm, compare.TENSOR_TOLERANCE, f"step {step}"))
        before = theirs_of(dump["parameters"], stepwise)
    for what, measured in measures.items():
        checks.worst(name, what, measured)
    compare.check_parameters(name, before, along, checks)
    return before


def check_start(case, written, found, checks):
    """What the file has is read, what it lacks is drawn."""
    drawn = sorted(found.keys() - written.keys())
    differing = [key for key in found.keys() & written.keys() if not numpy.array_equal(found[key], written[key])]
    # Of a normal distribution within two deviations, into a stream of three layers.
    deviation = 0.1 * 0.8796 / 6 ** 0.5 if case["family"] == "modernbert" else 0.1
    off = [key for key in drawn if (abs(found[key].std() / deviation - 1) > 0.05 if found[key].ndim == 2 else
                                    (found[key] != (1 if key.lower().endswith("norm.weight") else 0)).any())]
    missing = 3 if case["family"] == "modernbert" else 5
    fine = len(drawn) == (missing if case["start"] in ("bare", "classifier") else 0) and not off
    checks.check(case["name"], "the file is read", not differing, f"{len(found)} tensors, differing {differing[:3]}")
    checks.check(case["name"], "the head is drawn where it is missing", fine, f"{drawn}, wrong {off}")


def check_same(name, what, theirs, parameters, checks):
    differing = [key for key in theirs.keys() | parameters.keys()
                 if key not in theirs or key not in parameters or not numpy.array_equal(theirs[key], parameters[key])]
    checks.check(name, what, not differing, f"{len(theirs)} tensors, differing {differing[:3]}")


def check_final(case, binary, folder, parameters, maskers, train, held_out, event, checks):
    """final/ in transformers, the evaluation's masks, and a second run that starts from final/."""
    name, final, second = case["name"], folder / "out" / "final", folder / "second"
    model, loading = LANGUAGE.from_pretrained(final, attn_implementation="eager", output_loading_info=True)
    unmatched = {what: sorted(keys) for what, keys in loading.items() if keys}
    checks.check(name, "final: the keys that transformers has", not unmatched, unmatched or "none missing, none unexpected")
    model = model.float().eval()
    values = masking.values_of(dict(model.named_parameters()))
    check_same(name, "final: transformers has its values", values, parameters, checks)
    masked = [maskers[1](documents, i, 0) for i, documents in enumerate(held_out)]
    with torch.no_grad():
        theirs = model(**batch_of(held_out, masked, FAMILIES[case["family"]]["pad_token_id"])).loss.item()
        first = model(**batch_at(case, maskers[0], train, 1, BATCH)[0]).loss.item()
    checks.worst(name, "eval: loss", [compare.relative(event["loss"], theirs, compare.LOSS_TOLERANCE, "all sequences")])
    count = sum(len(places) for _, places in masked)
    checks.check(name, "eval: tokens that are predicted", event["targets"] == count, f"{event['targets']} of {count}")
    alone = [plimsoll(binary, "eval", folder / "run.yaml", "--json", f"model.path={final}", f"training.seed={seed}",
                      "training.micro_batch_size=1")[-1]["loss"] for seed in (1, 2)]
    checks.check(name, "eval alone: the same masks for two seeds", alone == [event["loss"]] * 2, f"{alone}, {event['loss']}")
    events = plimsoll(binary, "train", folder / "run.yaml", "--json", f"model.path={final}", "training.max_steps=1", "task=auto",
                      "training.warmup_steps=0", f"output.dir={second / 'out'}", f"debug.dump_dir={second / 'dump'}")
    check_same(name, "a second run starts from final/", values, theirs_of(compare.dump_of(second, 0)["parameters"], model), checks)
    loss = next(event["loss"] for event in events if event["event"] == "step")
    checks.worst(name, "the second run's first loss", [compare.relative(loss, first, compare.LOSS_TOLERANCE, "step 1")])


def compare_lora(case, binary, folder, masker, sequences, checks):
    """Against PEFT's gradients and PyTorch's steps; PEFT opens what is left."""
    name, own = case["name"], not case["lora"]
    config = peft.LoraConfig(**dict(r=4, init_lora_weights=False, target_modules=["q_lin", "v_lin"]) | case["lora"])

    def base():
        return LANGUAGE.from_pretrained(folder / "model", attn_implementation="eager", dtype=torch.float32)
    torch.manual_seed(7)
    model, alongside = (peft.get_peft_model(base(), config).eval() for _ in range(2))
    model.save_pretrained(folder / "peft", save_embedding_layers=False)
    write_run(case, folder, lora=dict(r=4, init_lora_weights="false") if own else dict(adapter=str(folder / "peft")))
    events = plimsoll(binary, "train", folder / "run.yaml", "--json", "training.lr_scheduler=constant", "training.weight_decay=0")
    before, parameters, along = compare.dump_of(folder, 0)["parameters"], *map(lora_compare.trainable, (model, alongside))
    if not own:
        check_same(name, "PEFT's adapter is read", masking.values_of(parameters), {key: before.get(key) for key in parameters}, checks)
    lora_compare.load(along, before)
    optimizer = torch.optim.AdamW(along.values(), lr=TRAINING["learning_rate"], betas=(0.9, 0.99), weight_decay=0.0)
    losses, gradients, along_losses = [], [], []
    for event in (event for event in events if event["event"] == "step"):
        step = event["step"]
        batch, dump = batch_at(case, masker, sequences, step, BATCH)[0], compare.dump_of(folder, step)
        lora_compare.load(parameters, before)
        model.zero_grad()
        loss = model(**batch).loss
        loss.backward()
        losses.append(compare.relative(event["loss"], loss.item(), compare.LOSS_TOLERANCE, f"step {step}"))
        gradients += compare.tensor_measures(dump["gradients"], {key: p.grad.numpy() for key, p in parameters.items()}, step)
        optimizer.zero_grad()
        loss = alongside(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(along.values(), TRAINING["max_grad_norm"])
        optimizer.step()
        along_losses.append(compare.relative(event["loss"], loss.item(), compare.LOSS_TOLERANCE, f"step {step}"))
        before = dump["parameters"]
    for what, measured in (("loss", losses), ("gradients", gradients), ("losses alongside", along_losses)):
        checks.worst(name, what, measured)
    left = peft.PeftModel.from_pretrained(base(), folder / "out" / "final").eval()
    check_same(name, "PEFT opens final/", masking.values_of(lora_compare.saved(left)), {key: before[key] for key in parameters}, checks)


def compare_case(case, binary, folder, checks):
    name, family, data = case["name"], case["family"], case["data"]
    written = masking.write_model(case, folder / "model")
    tokenizer, kinds, mask_token = ((None, masking.kinds_of_config(folder / "model"), MASK) if data == "stream" else
                                    masking.write_tokenizer(family, folder / "model"))
    maskers = [Masker(kinds, mask_token, case["mlm"], seed) for seed in (case["seed"], 0)]
    train, held_out = (masking.write_sequences(folder / f"{side}.{'npy' if data == 'stream' else 'jsonl'}", family, data, tokenizer, kinds,
                                               count, seed, "long words" in name, tail)
                       for side, count, seed, tail in (("train", 20 if case["buckets"] else 17, 1, 0), ("eval", 9, 2, 7)))
    if case["lora"] is not None:
        return compare_lora(case, binary, folder, maskers[0], train, checks)
    write_run(case, folder)
    events = plimsoll(binary, "train", folder / "run.yaml", "--json")
    steps = [event for event in events if event["event"] == "step"]
    checks.check(name, "steps", len(steps) == STEPS, f"{len(steps)} of {STEPS}")
    check_start(case, written, compare.dump_of(folder, 0)["parameters"], checks)
    parameters = compare_steps(case, folder, steps, maskers[0], train, checks)
    check_final(case, binary, folder, parameters, maskers, train, held_out, [e for e in events if e["event"] == "eval"][-1], checks)


def compare_long(binary, folder, checks, steps=300, batch=8):
    """Over many epochs: the loss of each step, so its masks, and then the shares that these have."""
    here = case("a long run", "bert", "rows", seed=7, max_steps=steps, global_batch_size=batch, learning_rate=0)
    masking.write_model(here, folder / "model")
    tokenizer, kinds, mask_token = masking.write_tokenizer("bert", folder / "model")
    train, _ = (masking.write_sequences(folder / f"{side}.jsonl", "bert", "rows", tokenizer, kinds, 40, 1) for side in ("train", "eval"))
    write_run(here, folder, debug={})
    events = [e for e in plimsoll(binary, "train", folder / "run.yaml", "--json") if e["event"] == "step"]
    model, masker = LANGUAGE.from_pretrained(folder / "model", attn_implementation="eager").float().eval(), Masker(kinds, mask_token, {}, 7)
    made, losses = [batch_at(here, masker, train, event["step"], batch) for event in events], []
    with torch.no_grad():
        for event, (each, _) in zip(events, made):
            losses.append(compare.relative(event["loss"], model(**each).loss.item(), compare.LOSS_TOLERANCE, f"step {event['step']}"))
    checks.worst(here["name"], f"losses of {len(events)} steps", losses)
    check_shares(here["name"], train, kinds, masker, sum((masked for _, masked in made), []), checks)


def check_shares(name, train, kinds, masker, masked, checks):
    """Each within four standard deviations. `masked`: of the sequences in order, epoch by epoch."""
    size, mask_token = len(train), masker.mask_token
    pairs = [(train[at % size][0][place], tokens[place]) for at, (tokens, places) in enumerate(masked) for place in places]
    of = sum(kinds[token] != "s" for at in range(len(masked)) for token in train[at % size][0])
    count, hidden, same = len(pairs), sum(after == mask_token for _, after in pairs), sum(before == after for before, after in pairs)
    again = sum(len(set(places) & set(later)) for (_, places), (_, later) in zip(masked, masked[size:]))
    first = sum(len(places) for _, places in masked[:-size])
    repeats = 0.1 / len(masker.drawn)  # what is drawn may be what stood there
    for what, found, share, total in (("chosen", count, 0.15, of), ("chosen again an epoch later", again, 0.15, first),
                                      ("masked", hidden, 0.8, count), ("kept", same, 0.1 + repeats, count),
                                      ("at random", count - hidden - same, 0.1 - repeats, count)):
        limit = 4 * (share * (1 - share) / total) ** 0.5
        checks.worst(name, f"share {what}", [(abs(found / total - share), limit, f"{found} of {total}")])
    special = sum(kinds[before] == "s" or (kinds[after] == "s" and after != mask_token) for before, after in pairs)
    checks.check(name, "no special token is chosen or drawn", special == 0, f"{special} of {count}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--keep", help="leave inputs and dumps in this folder")
    args = parser.parse_args()
    checks, binary = Checks(), os.path.abspath(args.binary)
    runs = [(each["name"], lambda folder, each=each: compare_case(each, binary, folder, checks)) for each in CASES]
    runs.append(("a long run", lambda folder: compare_long(binary, folder, checks)))
    with tempfile.TemporaryDirectory() as scratch:
        for number, (name, run) in enumerate(runs):
            if args.only in name:
                try:
                    run(pathlib.Path(args.keep or scratch).resolve() / f"{number:02d}")
                except (RuntimeError, ValueError, OSError, KeyError, AttributeError) as failure:
                    checks.check(name, "ran", False, f"{type(failure).__name__}: {failure}")
    print(f"interop: {checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed or not checks.passed else 0


if __name__ == "__main__":
    sys.exit(main())
