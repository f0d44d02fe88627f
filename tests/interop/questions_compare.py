"""Holds answers from a text against transformers' …ForQuestionAnswering, with the ports of its scripts in answering.py.

    python questions_compare.py --binary build/plimsoll [--only TEXT] [--keep DIR]

Every encoder, from its own head and from files that lack it: the windows of a run's cache, then ten steps, each dumped. Per step, from
the parameters that Plimsoll had before it, loss, logits and gradients are transformers' own, without the padded columns; PyTorch takes
the same steps alongside; limits are compare.py's. final/ opens in transformers, and what `plimsoll predict` makes of it is the choice
among transformers' logits. Then LoRA against PEFT, windows of many sizes, SQuAD's figures. One line per check, PASS or FAIL.
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

import answering  # noqa: E402
from answer_checks import (NOWHERE, STRIDE, TOKENS, compare_answers, compare_opposite, compare_scores, head_of, logits_of,  # noqa: E402
                           loss_of, run_gradients)
import cases  # noqa: E402
import compare  # noqa: E402
import lora_compare  # noqa: E402
import oracle  # noqa: E402
from checks import Checks  # noqa: E402
from classification_compare import plimsoll  # noqa: E402

warnings.simplefilter("ignore")
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
torch.set_num_threads(1)  # models are small

ANSWERER = transformers.AutoModelForQuestionAnswering
STARTS = dict(head=ANSWERER, bare=transformers.AutoModel, masked=transformers.AutoModelForMaskedLM,
              classifier=transformers.AutoModelForSequenceClassification)
TRAINING = cases.TRAINING | dict(learning_rate=1.0e-3)
BATCH, VOCAB, STEPS = 4, 419, 10
FAMILIES = {name: {key: value for key, value in sample.items() if key not in ("architectures", "num_labels", "classifier_dropout")}
            | dict(vocab_size=VOCAB) for name, sample in cases.ENCODERS.items()}
FAMILIES["distilbert"] |= dict(qa_dropout=0.0)


def case(name, family, start="head", config=None, lora=None, stride=STRIDE, nested=False, **settings):
    """`start`: the class of the file. `config`: over the family's. `lora`: LoraConfig's arguments. `nested`: in SQuAD's file."""
    return dict(name=name, family=family, start=start, config=config or {}, lora=lora, stride=stride, nested=nested, settings=settings)


CASES = [case(family, family) for family in FAMILIES]
CASES += [case(f"{family}, a bare model", family, "bare", micro_batch_size=1) for family in ("bert", "distilbert")]
CASES += [
    case("bert, a classifier's file, SQuAD's format", "bert", "classifier", nested=True),
    case("distilbert, a classifier's file", "distilbert", "classifier", dict(activation="relu"), stride=0),
    case("roberta, a masked language model's file", "roberta", "masked", micro_batch_size=2),
    case("modernbert, a masked language model's file", "modernbert", "masked", dict(classifier_bias=True), stride=0),
    case("camembert, a classifier's file, no recompute", "camembert", "classifier", recompute="none", stride=0),
    case("bert, LoRA", "bert", lora=dict(target_modules=["query", "value"])),
    case("roberta, LoRA on a masked language model, PEFT's", "roberta", "masked", lora=dict(target_modules=["query", "dense"])),
    case("distilbert, LoRA, our own", "distilbert", "bare", lora={}),
    case("modernbert, LoRA", "modernbert", "masked", lora=dict(target_modules=["Wqkv", "Wo", "head.dense"],
                                                              modules_to_save=["classifier"])),
]


def write_model(case, folder):
    """The directory that a run starts from. Returns what its file says."""
    labels = dict(num_labels=5) if case["start"] == "classifier" else {}
    config = transformers.AutoConfig.for_model(**FAMILIES[case["family"]] | case["config"] | labels)
    torch.manual_seed(sum(map(ord, case["name"])))
    model = STARTS[case["start"]].from_config(config).float()
    with torch.no_grad():  # what begins as 0 or 1 would hide what reads it
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.2 * torch.randn(parameter.shape))
    model.save_pretrained(folder)
    prefix = f"{model.base_model_prefix}." if case["start"] == "bare" else ""
    return {prefix + key: value.detach().numpy().copy() for key, value in model.state_dict().items()}


def write_run(case, folder, **more):
    settings, suffix = dict(case["settings"]), "json" if case["nested"] else "jsonl"
    data = {side: str(folder / f"{side}.{suffix}") for side in ("train", "eval")} | dict(
        sequence_length=TOKENS, shuffle=False, cache_dir=str(folder / "cache"))
    run = {
        "model": {"path": str(folder / "model")}, "data": data, "memory": {"recompute": settings.pop("recompute", "auto")},
        "qa": {"doc_stride": case["stride"]}, "training": {"global_batch_size": BATCH, **TRAINING, **settings},
        "runtime": {"device": "cpu", "threads": 2}, "output": {"dir": str(folder / "out"), "dtype": "fp32"},
        "debug": {"dump_dir": str(folder / "dump"), "dump": ["loss", "gradients", "logits", "parameters"]}, **more,
    }
    if case["start"] != "head":
        run["task"] = "question_answering"
    (folder / "run.yaml").write_text(json.dumps(run))


def windows_at(windows, step):
    return [windows[at % len(windows)] for at in range((step - 1) * BATCH, step * BATCH)]


def check_windows(name, folder, sides, stride, checks):
    """`sides`: of each the windows, which the cache must have."""
    found = {tuple(map(tuple, answering.read_shard(path))): path for path in sorted(folder.glob("examples-*.shard"))}
    for side, windows in sides.items():
        path, what = found.get(tuple(tuple(each["ids"]) for each in windows)), f"{side}, {len(windows)} windows, stride {stride}"
        if path is None:
            off = [len({tuple(each["ids"]) for each in windows} - set(each)) for each in found]
            checks.check(name, what, False, f"windows that no document is: {off}, {[len(each) for each in found]} there")
            continue
        labels = answering.read_labels(path.with_suffix(".labels"))
        off = [i for i, each in enumerate(windows) if tuple(each["label"]) != labels[i]]
        if path.with_suffix(".types").exists():
            off += [i for i, each in enumerate(answering.read_shard(path.with_suffix(".types"))) if each != windows[i]["types"]]
        checks.check(name, what, not off, f"{sum(map(any, labels))} hold their answer; labels or types differ of {off[:3]}")


def check_same(name, what, theirs, ours, checks):
    differing = [key for key in theirs.keys() | ours.keys()
                 if key not in theirs or key not in ours or not numpy.array_equal(theirs[key], ours[key])]
    checks.check(name, what, not differing, f"{len(theirs)} tensors, differing {differing[:3]}")


def check_start(case, written, found, checks):
    """What the file has is read; the head is drawn where it lacks it."""
    same = found.keys() & written.keys()
    check_same(case["name"], "the file is read", *({key: part[key] for key in same} for part in (written, found)), checks)
    drawn = sorted(found.keys() - written.keys())
    head = head_of(case["family"])
    fine = drawn == ([] if case["start"] == "head" else [f"{head}.bias", f"{head}.weight"]) and (
        not drawn or (not found[drawn[0]].any() and found[drawn[1]].shape[0] == 2 and 0.07 < found[drawn[1]].std() < 0.13))
    checks.check(case["name"], "the head is drawn where it is missing", fine, drawn)


def compare_steps(case, folder, events, windows, checks):
    """Returns the last parameters."""
    name, final, before = case["name"], folder / "out" / "final", compare.dump_of(folder, 0)["parameters"]
    stepwise = oracle.build(final, before, ANSWERER)
    along = oracle.Alongside(final, None, TRAINING, model=oracle.build(final, before, ANSWERER), gradients=run_gradients)
    measures = {what: [] for what in ("loss", "logits", "gradients", "losses alongside", "norms alongside")}
    kinks = oracle.Kinks(stepwise)
    for event in events:
        step, batch, dump = event["step"], windows_at(windows, event["step"]), compare.dump_of(folder, event["step"])
        oracle.load(stepwise, before)
        loss, logits, gradients = run_gradients(stepwise, batch)
        ours, real = dump["logits"][:, :, :logits.shape[2]], logits > NOWHERE
        measures["loss"].append(compare.relative(dump["loss"][0], loss, compare.LOSS_TOLERANCE, f"step {step}"))
        measures["logits"] += compare.tensor_measures({"logits": ours[real]}, {"logits": logits[real]}, step)
        measures["gradients"] += [] if kinks.met() else compare.tensor_measures(dump["gradients"], gradients, step)
        their_loss, their_norm = along.step(batch, dump["gradients"])
        measures["losses alongside"].append(compare.relative(event["loss"], their_loss, compare.LOSS_TOLERANCE, f"step {step}"))
        measures["norms alongside"].append(compare.relative(event["grad_norm"], their_norm, compare.TENSOR_TOLERANCE, f"step {step}"))
        before = dump["parameters"]
    for what, measured in measures.items():
        checks.worst(name, what, measured)
    along.meaningful[f"{head_of(case['family'])}.bias"][:] = False  # a softmax leaves it no gradient but rounding
    compare.check_parameters(name, before, along, checks)
    return before


def check_final(case, binary, folder, parameters, tokenizer, held_out, event, checks):
    """final/ in transformers, the evaluation, and predictions."""
    name, final = case["name"], folder / "out" / "final"
    model, loading = ANSWERER.from_pretrained(final, attn_implementation="eager", output_loading_info=True)
    checks.check(name, "final: the keys that transformers has", not any(loading.values()), loading)
    values = {key: p.detach().numpy() for key, p in model.named_parameters()}
    check_same(name, "final: transformers has its values", values, parameters, checks)
    with torch.no_grad():
        logits = logits_of(model.float().eval(), held_out)
    right = numpy.mean([tuple(row.argmax(1).tolist()) == tuple(each["label"]) for row, each in zip(logits, held_out)])
    alone = plimsoll(binary, "eval", folder / "run.yaml", "--json", f"model.path={final}", "task=auto", "training.micro_batch_size=1")[-1]
    loss = loss_of(logits, held_out).item()
    for what, found in (("eval", event), ("eval alone", alone)):
        checks.worst(name, f"{what}: loss", [compare.relative(found["loss"], loss, compare.LOSS_TOLERANCE, "all")])
        checks.worst(name, f"{what}: span_accuracy", [(abs(found["metrics"]["span_accuracy"] - right), 1e-6, f"{right}")])
    compare_answers(name, binary, folder, model, tokenizer, ["--model", final], checks)
    if case["start"] == "head":
        compare_opposite(name, binary, folder, model, tokenizer, checks)


def compare_lora(case, binary, folder, tokenizer, windows, checks):
    """Against PEFT's gradients and PyTorch's steps; PEFT opens what is left, and predict."""
    name, own, final = case["name"], not case["lora"], folder / "out" / "final"
    config = peft.LoraConfig(**dict(task_type="QUESTION_ANS", r=4, init_lora_weights=False, target_modules=["q_lin", "v_lin"])
                             | case["lora"])

    def base():
        return ANSWERER.from_pretrained(folder / "model", attn_implementation="eager", dtype=torch.float32)
    torch.manual_seed(7)
    model, alongside = (peft.get_peft_model(base(), config).eval() for _ in range(2))
    model.save_pretrained(folder / "peft", save_embedding_layers=False)
    write_run(case, folder, lora=dict(r=4, init_lora_weights="false") if own else dict(adapter=str(folder / "peft")))
    events = plimsoll(binary, "train", folder / "run.yaml", "--json", "training.lr_scheduler=constant", "training.weight_decay=0")
    before, parameters, along = compare.dump_of(folder, 0)["parameters"], *map(lora_compare.trainable, (model, alongside))
    if not own:
        check_same(name, "PEFT's adapter is read", {key: p.detach().numpy() for key, p in parameters.items()},
                   {key: before.get(key) for key in parameters}, checks)
    lora_compare.load(along, before)
    optimizer = torch.optim.AdamW(along.values(), lr=TRAINING["learning_rate"], betas=(0.9, 0.99), weight_decay=0.0)
    measures = {what: [] for what in ("loss", "gradients", "losses alongside")}
    for event in (event for event in events if event["event"] == "step"):
        step, batch, dump = event["step"], windows_at(windows, event["step"]), compare.dump_of(folder, event["step"])
        lora_compare.load(parameters, before)
        loss, _, _ = run_gradients(model, batch)
        measures["loss"].append(compare.relative(event["loss"], loss, compare.LOSS_TOLERANCE, f"step {step}"))
        measures["gradients"] += compare.tensor_measures(dump["gradients"], {key: p.grad.numpy() for key, p in parameters.items()}, step)
        loss, _, _ = run_gradients(alongside, batch)
        torch.nn.utils.clip_grad_norm_(along.values(), TRAINING["max_grad_norm"])
        optimizer.step()
        measures["losses alongside"].append(compare.relative(event["loss"], loss, compare.LOSS_TOLERANCE, f"step {step}"))
        before = dump["parameters"]
    for what, measured in measures.items():
        checks.worst(name, what, measured)
    left, written = peft.PeftModel.from_pretrained(base(), final).eval(), json.loads((final / "adapter_config.json").read_text())
    check_same(name, "PEFT opens final/", {key: p.detach().numpy() for key, p in lora_compare.saved(left).items()},
               {key: before[key] for key in parameters}, checks)
    written = written["task_type"], sorted(set(written["modules_to_save"]))
    checks.check(name, "adapter_config.json", written == ("QUESTION_ANS", sorted({head_of(case["family"]), "qa_outputs"})), written)
    compare_answers(name, binary, folder, left, tokenizer, ["--model", folder / "model", "--adapter", final], checks, count=20)


def compare_case(case, binary, folder, checks):
    name, family = case["name"], case["family"]
    written, tokenizer = write_model(case, folder / "model"), answering.write_tokenizer(family, folder / "model", VOCAB)
    sides = dict(train=answering.questions(23, 1), eval=answering.questions(12, 2))
    for side, questions in sides.items():
        answering.write_questions(folder / side, questions)
    made = {side: sum((answering.windows(tokenizer, each, TOKENS, case["stride"]) for each in questions), [])
            for side, questions in sides.items()}
    if case["lora"] is not None:
        return compare_lora(case, binary, folder, tokenizer, made["train"], checks)
    write_run(case, folder)
    events = plimsoll(binary, "train", folder / "run.yaml", "--json")
    steps = [event for event in events if event["event"] == "step"]
    checks.check(name, "steps", len(steps) == STEPS, f"{len(steps)} of {STEPS}")
    check_windows(name, folder / "cache", made, case["stride"], checks)
    check_start(case, written, compare.dump_of(folder, 0)["parameters"], checks)
    parameters = compare_steps(case, folder, steps, made["train"], checks)
    check_final(case, binary, folder, parameters, tokenizer, made["eval"], [e for e in events if e["event"] == "eval"][-1], checks)
    if name == "distilbert":  # whose tokens keep accents
        compare_scores(name, binary, folder, checks)


def compare_windows(binary, folder, checks):
    """Windows of many sizes: of some question's very length, one more, one less."""
    for family in ("bert", "distilbert", "roberta", "xlm-roberta"):
        here = case(f"windows, {family}", family, max_steps=1, global_batch_size=1)
        root = folder / family
        write_model(here, root / "model")
        tokenizer, questions = answering.write_tokenizer(family, root / "model", VOCAB), answering.questions(90, 3, 40)
        answering.write_questions(root / "train", questions)
        whole = sorted(len(answering.windows(tokenizer, each, 10000, 0)[0]["ids"]) for each in questions)
        middle = next(size for size in whole if size >= TOKENS)
        for most, stride in ((middle, 0), (middle - 1, 13), (middle + 1, 20), (128, 31)):
            write_run(here, root, debug={})
            cache = root / f"cache-{most}-{stride}"
            plimsoll(binary, "train", root / "run.yaml", "--json", "data.eval=null", f"data.sequence_length={most}",
                     f"data.cache_dir={cache}", f"qa.doc_stride={stride}", f"output.dir={cache}-out")
            made = sum((answering.windows(tokenizer, each, most, stride) for each in questions), [])
            check_windows(here["name"], cache, dict(train=made), f"{stride} of {most}", checks)


def compare_formats(binary, folder, checks):
    """SQuAD's file and lines are the same run."""
    here, steps = case("formats", "roberta"), []
    write_model(here, folder / "model")
    answering.write_tokenizer("roberta", folder / "model", VOCAB)
    answering.write_questions(folder / "train", answering.questions(23, 1))
    write_run(here, folder, debug={})
    for suffix in ("jsonl", "json"):
        events = plimsoll(binary, "train", folder / "run.yaml", "--json", "data.eval_fraction=0.2", "data.eval=null",
                          f"data.train={folder / 'train'}.{suffix}", f"output.dir={folder / suffix}", "training.max_steps=6",
                          f"data.cache_dir={folder / suffix}-cache")
        steps.append([(e["loss"], e.get("metrics"), e.get("grad_norm")) for e in events if e["event"] in ("step", "eval")])
    same = steps[0] == steps[1] and len(steps[0]) >= 7
    checks.check(here["name"], "SQuAD's file and lines are the same run", same, steps[0][-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--keep", help="leave inputs and dumps in this folder")
    args = parser.parse_args()
    checks, binary = Checks(), os.path.abspath(args.binary)
    runs = [(each["name"], lambda *with_, each=each: compare_case(each, *with_)) for each in CASES] + [
        ("windows", compare_windows), ("formats", compare_formats)]
    with tempfile.TemporaryDirectory() as scratch:
        for number, (name, run) in enumerate(runs):
            if args.only in name:
                folder = pathlib.Path(args.keep or scratch).resolve() / f"{number:02d}"
                folder.mkdir(parents=True)
                try:
                    run(binary, folder, checks)
                except (RuntimeError, ValueError, OSError, KeyError, AttributeError) as failure:
                    checks.check(name, "ran", False, f"{type(failure).__name__}: {failure}")
    print(f"interop: {checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed or not checks.passed else 0


if __name__ == "__main__":
    sys.exit(main())
