"""Holds classification of sequences against transformers' …ForSequenceClassification and scikit-learn's metrics.

    python classification_compare.py --binary build/plimsoll [--only TEXT] [--keep DIR]

Every family, encoders too, with one label, several labels and numbers: ten steps, each dumped. Per step, from the parameters that Plimsoll had
before it, loss, logits and gradients are transformers' own, and PyTorch takes the same steps alongside; limits are compare.py's.
Then the evaluation's loss and metrics, `plimsoll predict`, and final/ as transformers opens it. Texts and pairs go through
transformers' tokenizer. One line per check, PASS or FAIL; exit code 1 if any fails.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy  # noqa: E402
import scipy.stats  # noqa: E402
import sklearn.metrics  # noqa: E402
import tokenizers  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

import cases  # noqa: E402
import compare  # noqa: E402
import oracle  # noqa: E402
from checks import Checks  # noqa: E402

warnings.simplefilter("ignore")
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

CLASSIFIER = transformers.AutoModelForSequenceClassification
TRAINING = cases.TRAINING | dict(learning_rate=1.0e-3)
BATCH, TOKENS, STEPS = 4, 29, 10
METRIC_TOLERANCE = 1e-6
PAD = 7  # a token that occurs within rows too

ENCODERS = cases.ENCODERS  # their head reads the first token, and padding is masked
FAMILIES = cases.FAMILIES | ENCODERS | {"llama": cases.LLAMA | dict(num_key_value_heads=1)}
NAMES = ["neg", "neu", "pos"]


def case(name, family, problem, labels, fresh=False, pad=PAD, without_problem=False, named=False, whole=False, config=None,
         **settings):
    """`fresh`: from a causal model's directory, an encoder's with the head of a masked language model; `named`: the data has
    labels by name; `without_problem`: config.json does not say what the labels are; `whole`: no row is shorter than a sequence;
    `config`: over the family's."""
    pad = FAMILIES[family]["pad_token_id"] if family in ENCODERS else pad
    return dict(name=name, family=family, problem=problem, labels=labels, fresh=fresh, pad=pad, whole=whole,
                without_problem=without_problem, named=named, config=config or {}, settings=settings)


CASES = [case(f"{family}, {problem}", family, problem, labels)
         for family in FAMILIES for problem, labels in (("single", 3), ("multi", 4), ("regression", 1))]
CASES += [case(f"{family}, rows without padding", family, "single", 3, whole=True) for family in ENCODERS]
CASES += [case(f"{family}, fresh head", family, "single", 3, fresh=True, named=True) for family in ENCODERS]
CASES += [
    case("bert, relu, accumulation", "bert", "single", 3, micro_batch_size=1, config=dict(hidden_act="relu")),
    case("bert, gelu_new, no recompute", "bert", "multi", 4, recompute="none", config=dict(hidden_act="gelu_new")),
    case("bert, silu, buckets", "bert", "single", 3, micro_batch_size=2, buckets=[9, 17],
         config=dict(hidden_act="silu")),
    case("distilbert, relu, accumulation, buckets", "distilbert", "regression", 1, micro_batch_size=1, buckets=[9, 17],
         config=dict(activation="relu")),
    case("modernbert, the mean", "modernbert", "single", 3, config=dict(classifier_pooling="mean")),
    case("modernbert, the mean, buckets, accumulation, no recompute", "modernbert", "multi", 4, micro_batch_size=1, buckets=[9, 17],
         recompute="none", config=dict(classifier_pooling="mean", norm_bias=True, attention_bias=True, mlp_bias=True)),
    case("modernbert, layers by name, one rotation", "modernbert", "regression", 1, config=dict(
        layer_types=["sliding_attention", "sliding_attention", "full_attention"], local_attention=4,
        rope_parameters={kind: dict(rope_type="default", rope_theta=500.0) for kind in ("full_attention", "sliding_attention")})),
    case("roberta, positions to the last", "roberta", "regression", 3, whole=True, config=dict(max_position_embeddings=TOKENS + 2)),
]
CASES += [
    case("llama, fresh head, names in the data", "llama", "single", 3, fresh=True, named=True),
    case("gpt2, fresh head, several numbers", "gpt2", "regression", 3, fresh=True),
    case("llama, tied causal model, fresh head, found in the data", "llama tied", "multi", 4, fresh=True),
    case("qwen2, no padding token", "qwen2", "single", 2, pad=None),
    case("llama, what the labels are follows", "llama", "regression", 1, without_problem=True),
    case("qwen3, accumulation, buckets", "qwen3", "single", 3, micro_batch_size=1, buckets=[9, 17]),
    case("mistral, no recompute, micro-batches of two", "mistral", "multi", 4, micro_batch_size=2, recompute="none"),
]
FAMILIES["llama tied"] = cases.LLAMA | dict(tie_word_embeddings=True)
TRANSFORMERS_WORDS = dict(single="single_label_classification", multi="multi_label_classification", regression="regression")


def examples_of(case, count, seed):
    """Rows of any length, some longer than a sequence, some that end with padding; labels as JSON holds them."""
    rng = numpy.random.default_rng(seed)
    vocab = FAMILIES[case["family"]]["vocab_size"]
    rows, labels = [], []
    is_encoder = case["family"] in ENCODERS
    for i in range(count):
        # transformers counts an encoder's positions without its padding token, wherever it stands.
        least = max(PAD, case["pad"] + 1) if is_encoder else 0
        row = rng.integers(least, vocab, TOKENS if case["whole"] else rng.integers(1, TOKENS + 6)).tolist()
        if not is_encoder and case["pad"] is not None and i % 5 == 0:
            row[len(row) // 2:] = [case["pad"]] * (len(row) - len(row) // 2)
        rows.append(row)
        if case["problem"] == "single":
            labels.append(int(i % case["labels"] if i < case["labels"] else rng.integers(0, case["labels"])))
        elif case["problem"] == "multi":
            labels.append(rng.integers(0, 2, case["labels"]).tolist())
        else:
            values = numpy.round(rng.normal(size=case["labels"]), 3).tolist()
            labels.append(values[0] if case["labels"] == 1 else values)
    return rows, labels


def types_of(case, row):
    """Token types of a row, where the family has several; rows without padding have none, which is all 0."""
    kinds = FAMILIES[case["family"]].get("type_vocab_size", 1) if case["family"] in ENCODERS else 1
    return [t // 5 % kinds for t in range(len(row))] if kinds > 1 and not case["whole"] else None


def names_of(case):
    """What final/ calls the labels: config.json's names, or the data's."""
    named = case["named"] or (case["labels"] == len(NAMES) and not case["fresh"])
    return NAMES if named else [f"LABEL_{i}" for i in range(case["labels"])]


def write_lines(path, case, rows, labels):
    with open(path, "w") as out:
        for row, label in zip(rows, labels):
            types = types_of(case, row)
            out.write(json.dumps({"input_ids": row, "label": NAMES[label] if case["named"] else label}
                                 | ({} if types is None else dict(token_type_ids=types))) + "\n")


def by_bucket(case, examples):
    """The order in which buckets take an epoch of whole batches: short ones first."""
    def bucket(i):
        row = examples[0][i][:TOKENS]
        while len(row) > 1 and row[-1] == case["pad"]:
            row = row[:-1]
        return sum(len(row) > length for length in case["settings"]["buckets"])
    order = sorted(range(len(examples[0])), key=bucket)
    return tuple([part[i] for i in order] for part in examples)


def tensors_of(case, rows, labels):
    """What transformers is given: rows cut, padded, labels of its dtype."""
    cut = [row[:TOKENS] for row in rows]
    longest = max(map(len, cut))
    ids = torch.tensor([row + [case["pad"] or 0] * (longest - len(row)) for row in cut])
    truth = torch.tensor(labels, dtype=torch.long if case["problem"] == "single" else torch.float32)
    types = [types_of(case, row) for row in rows]
    types = torch.tensor([t[:longest] + [0] * (longest - len(t)) for t in types]) if types[0] else None
    return ids, truth, [len(row) for row in cut], types


def forward(model, case, batch):
    """Loss (a mean over the rows) and logits. Without a padding token transformers takes a row at a time."""
    ids, truth, lengths, types = batch
    if case["family"] in ENCODERS:
        mask = torch.arange(ids.shape[1])[None] < torch.tensor(lengths)[:, None]
        out = model(input_ids=ids, attention_mask=mask.long(), token_type_ids=types, labels=truth) if types is not None else \
            model(input_ids=ids, attention_mask=mask.long(), labels=truth)
        return out.loss, out.logits
    if case["pad"] is not None:
        out = model(input_ids=ids, labels=truth)
        return out.loss, out.logits
    outs = [model(input_ids=ids[i:i + 1, :lengths[i]], labels=truth[i:i + 1]) for i in range(len(ids))]
    return sum(out.loss for out in outs) / len(outs), torch.cat([out.logits for out in outs])


def loss_and_gradients(case):
    def run(model, batch):
        model.zero_grad(set_to_none=True)
        loss, logits = forward(model, case, batch)
        loss.backward()
        gradients = {name: p.grad.numpy().copy() for name, p in model.named_parameters()}
        return loss.item(), logits.detach().numpy(), gradients
    return run


def write_model(case, folder):
    """The directory that a run starts from: a classifier's, or a language model's."""
    config = FAMILIES[case["family"]] | case["config"] | dict(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    if not config["model_type"].startswith("gpt2"):
        config = {key: value for key, value in config.items() if not key.endswith("pdrop")}
    folder.mkdir(parents=True)
    config["pad_token_id"] = case["pad"]
    if not case["fresh"]:
        config |= dict(num_labels=case["labels"])
        if not case["without_problem"]:
            config["problem_type"] = TRANSFORMERS_WORDS[case["problem"]]
        if case["labels"] == len(NAMES):
            config |= dict(id2label=dict(enumerate(NAMES)), label2id={name: i for i, name in enumerate(NAMES)})
    config = transformers.CONFIG_MAPPING[config["model_type"]](**{k: v for k, v in config.items() if k != "architectures"})
    torch.manual_seed(sum(map(ord, case["name"])))
    language = transformers.AutoModelForMaskedLM if case["family"] in ENCODERS else transformers.AutoModelForCausalLM
    kind = language if case["fresh"] else CLASSIFIER
    kind.from_config(config, attn_implementation="eager").float().save_pretrained(folder)


def write_run(case, folder):
    settings = dict(case["settings"])
    data = {"train": str(folder / "train.jsonl"), "eval": str(folder / "eval.jsonl"), "sequence_length": TOKENS, "shuffle": False}
    if "buckets" in settings:
        data |= dict(packing="pad", buckets=settings.pop("buckets"))
    run = {
        "model": {"path": str(folder / "model")},
        "data": data,
        "training": {"global_batch_size": BATCH, **TRAINING, **{k: v for k, v in settings.items() if k != "recompute"}},
        "memory": {"recompute": settings.get("recompute", "auto")},
        "runtime": {"device": "cpu", "threads": 2},
        "output": {"dir": str(folder / "out")},
        "debug": {"dump_dir": str(folder / "dump"), "dump": ["loss", "gradients", "logits", "parameters"]},
    }
    if case["fresh"]:
        run["task"] = "sequence_classification"
    (folder / "run.yaml").write_text(json.dumps(run))


def plimsoll(binary, *arguments):
    done = subprocess.run([binary, *map(str, arguments)], text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"{arguments[0]}: exit code {done.returncode}: {done.stderr.strip()[-600:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def reference_metrics(case, logits, truth):
    if case["problem"] == "single":
        predicted = logits.argmax(axis=1)
        f1 = dict(f1=sklearn.metrics.f1_score(truth, predicted)) if case["labels"] == 2 else {}
        return dict(accuracy=sklearn.metrics.accuracy_score(truth, predicted), **f1,
                    f1_macro=sklearn.metrics.f1_score(truth, predicted, average="macro"),
                    matthews=sklearn.metrics.matthews_corrcoef(truth, predicted))
    if case["problem"] == "multi":
        predicted = (logits > 0).astype(int)
        return dict(accuracy=sklearn.metrics.accuracy_score(truth, predicted),
                    f1_macro=sklearn.metrics.f1_score(truth, predicted, average="macro"))
    mse = sklearn.metrics.mean_squared_error(truth, logits.astype(numpy.float64))
    if case["labels"] > 1:
        return dict(mse=mse)
    values = logits[:, 0].astype(numpy.float64)
    return dict(pearson=scipy.stats.pearsonr(values, truth).statistic, spearman=scipy.stats.spearmanr(values, truth).statistic, mse=mse)


def check_metrics(name, what, event, expected, checks):
    found = event.get("metrics", {})
    wrong = [key for key, value in expected.items()
             if key not in found or not math.isclose(found[key], value, rel_tol=METRIC_TOLERANCE, abs_tol=METRIC_TOLERANCE)]
    checks.check(name, what, not wrong and found.keys() == expected.keys(),
                 ", ".join(f"{key} {found.get(key)}" for key in expected) + (f"; expected {expected}" if wrong else ""))


def check_lines(name, case, lines, logits, checks):
    """What predict says, from transformers' logits."""
    logits = torch.from_numpy(logits).double()
    names = names_of(case)
    if case["problem"] == "single":
        scores, best = torch.softmax(logits, 1).max(1)
        expected = [(names[i], score) for i, score in zip(best.tolist(), scores.tolist())]
    elif case["problem"] == "multi":
        scores = torch.sigmoid(logits)
        expected = [([names[i] for i in range(len(names)) if row[i] > 0.5], row) for row in scores.tolist()]
    else:
        expected = [(None, row[0] if len(row) == 1 else row) for row in logits.tolist()]
    labels_right = [line["label"] for line in lines] == [label for label, _ in expected]
    off = max(float(numpy.max(numpy.abs(numpy.array(line["score"]) - numpy.array(score)))) for line, (_, score) in zip(lines, expected))
    checks.check(name, "predict: labels", labels_right and len(lines) == len(expected), f"{len(lines)} lines")
    checks.check(name, "predict: scores", off <= 1e-5, f"{off:.1e} apart")


def compare_steps(case, folder, events, examples, checks):
    name = case["name"]
    run_gradients = loss_and_gradients(case)
    initial = compare.dump_of(folder, 0)["parameters"]
    final = folder / "out" / "final"  # its config.json has the labels
    stepwise = oracle.build(final, initial, CLASSIFIER)
    along = oracle.Alongside(final, None, TRAINING, model=oracle.build(final, initial, CLASSIFIER), gradients=run_gradients)
    losses, logits, gradients, alongside, norms = [], [], [], [], []
    before, kinks = initial, oracle.Kinks(stepwise)
    for event in events:
        step = event["step"]
        rows, labels = ([part[((step - 1) * BATCH + i) % len(part)] for i in range(BATCH)] for part in examples)
        batch = tensors_of(case, rows, labels)
        dump = compare.dump_of(folder, step)
        oracle.load(stepwise, before)
        loss, reference_logits, reference_gradients = run_gradients(stepwise, batch)
        losses.append(compare.relative(dump["loss"][0], loss, compare.LOSS_TOLERANCE, f"step {step}"))
        logits.extend(compare.tensor_measures({"logits": dump["logits"]}, {"logits": reference_logits}, step))
        gradients.extend([] if kinks.met() else compare.tensor_measures(dump["gradients"], reference_gradients, step))
        their_loss, their_norm = along.step(batch, dump["gradients"])
        alongside.append(compare.relative(event["loss"], their_loss, compare.LOSS_TOLERANCE, f"step {step}"))
        norms.append(compare.relative(event["grad_norm"], their_norm, compare.TENSOR_TOLERANCE, f"step {step}"))
        before = dump["parameters"]
    for what, measured in (("loss", losses), ("logits", logits), ("gradients", gradients), ("losses alongside", alongside),
                           ("norms alongside", norms)):
        checks.worst(name, what, measured)
    compare.check_parameters(name, before, along, checks)
    return before


def check_final(case, binary, folder, parameters, held_out, event, checks):
    """final/ as transformers opens it, and what the evaluation made of it."""
    name, final = case["name"], folder / "out" / "final"
    model, loading = CLASSIFIER.from_pretrained(final, attn_implementation="eager", output_loading_info=True)
    model = model.float().eval()
    unmatched = {what: sorted(loading[what]) for what in ("missing_keys", "unexpected_keys", "mismatched_keys") if loading[what]}
    checks.check(name, "final: the keys that transformers has", not unmatched, unmatched or "none missing, none unexpected")
    theirs = {key: p.detach().numpy() for key, p in model.named_parameters()}
    differing = [key for key in theirs.keys() | parameters.keys()
                 if key not in theirs or key not in parameters or not numpy.array_equal(theirs[key], parameters[key])]
    checks.check(name, "final: transformers opens it", not differing, f"{len(theirs)} tensors, differing {differing[:3]}")
    config = model.config
    fine = [config.id2label[i] for i in range(case["labels"])] == names_of(case) and config.pad_token_id == case["pad"]
    checks.check(name, "final: config.json", fine and config.problem_type == TRANSFORMERS_WORDS[case["problem"]],
                 f"{config.problem_type}, {config.id2label}")
    batch = tensors_of(case, *held_out)
    with torch.no_grad():
        loss, logits = forward(model, case, batch)
    checks.worst(name, "eval: loss", [compare.relative(event["loss"], loss.item(), compare.LOSS_TOLERANCE, "all examples")])
    truth = batch[1].numpy().astype(numpy.float64 if case["problem"] == "regression" else int)
    expected = reference_metrics(case, logits.numpy(), truth)
    check_metrics(name, "eval: metrics", event, expected, checks)
    alone = plimsoll(binary, "eval", folder / "run.yaml", "--json", f"model.path={final}", "training.micro_batch_size=1")[-1]
    check_metrics(name, "eval alone: metrics", alone, expected, checks)
    checks.check(name, "eval alone: the same loss", alone["loss"] == event["loss"], f"{alone['loss']}, {event['loss']}")
    plain = [row[:TOKENS] for row in held_out[0]]
    write_lines(folder / "plain.jsonl", case | dict(named=False), plain, held_out[1])
    check_lines(name, case, plimsoll(binary, "predict", "--model", final, "--data", folder / "plain.jsonl", "--batch-size", 3),
                logits.numpy(), checks)


def compare_case(case, binary, folder, checks):
    write_model(case, folder / "model")
    examples, held_out = examples_of(case, 24 if "buckets" in case["settings"] else 23, 1), examples_of(case, 11, 2)
    write_lines(folder / "train.jsonl", case, *examples)
    write_lines(folder / "eval.jsonl", case, *held_out)
    write_run(case, folder)
    events = plimsoll(binary, "train", folder / "run.yaml", "--json")
    steps = [event for event in events if event["event"] == "step"]
    checks.check(case["name"], "steps", len(steps) == STEPS, f"{len(steps)} of {STEPS}")
    if "buckets" in case["settings"]:
        examples = by_bucket(case, examples)
    event = [event for event in events if event["event"] == "eval"][-1]
    parameters = compare_steps(case, folder, steps, examples, checks)
    check_final(case, binary, folder, parameters, held_out, event, checks)


def compare_padded(binary, folder, checks):
    """Of a causal base whose config and tokenizer name no pad token: what leaves runs in batches, with predict's answers."""
    name = "a base without a pad token"
    words = [line for line in pathlib.Path(__file__).read_text().splitlines() if line.strip()]
    for ends in (False, True):
        base, out = folder / f"base-{ends}", folder / f"out-{ends}"
        tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.train_from_iterator(words, tokenizers.trainers.BpeTrainer(
            vocab_size=300, special_tokens=["<unk>", "<s>", "</s>"], initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()))
        if ends:  # the end of a text ends each row: it is no padding
            tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
                single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
        config = transformers.LlamaConfig(**(cases.LLAMA | dict(vocab_size=300, pad_token_id=None)))
        torch.manual_seed(3)
        transformers.AutoModelForCausalLM.from_config(config).float().save_pretrained(base)
        transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>",
                                             unk_token="<unk>").save_pretrained(base)
        rows = [dict(text=words[i], label=["no", "yes"][i % 2]) for i in range(40)]
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (folder / "run.yaml").write_text(json.dumps({
            "task": "sequence_classification", "model": {"path": str(base)},
            "data": {"train": str(folder / "rows.jsonl"), "sequence_length": 64},
            "training": {"global_batch_size": 4, "max_steps": 3, "learning_rate": 1e-3}, "output": {"dir": str(out)}}))
        plimsoll(binary, "train", folder / "run.yaml", "--json")
        theirs, model = transformers.AutoTokenizer.from_pretrained(out / "final"), CLASSIFIER.from_pretrained(out / "final").float().eval()
        batch = theirs([row["text"] for row in rows], padding=True, return_tensors="pt")
        with torch.no_grad():
            expected = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits.numpy()
        lines = plimsoll(binary, "predict", "--model", out / "final", "--data", folder / "rows.jsonl")
        off = numpy.abs(numpy.array([line["logits"] for line in lines]) - expected).max()
        checks.check(name, f"a batch of {len(rows)}, pad token {model.config.pad_token_id}", off <= 1e-5, f"{off:.1e} apart")


def compare_texts(binary, folder, checks):
    """Texts and pairs: rows are those of transformers' tokenizer, special tokens and all."""
    name = "texts and pairs"
    words = [line for line in pathlib.Path(__file__).read_text().splitlines() if line.strip()]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(words, tokenizers.trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<pad>", "<s>", "</s>"], initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    config = transformers.LlamaConfig(**(cases.LLAMA | dict(vocab_size=300, pad_token_id=0, num_labels=2)))
    config.architectures = None
    torch.manual_seed(3)
    CLASSIFIER.from_config(config).float().save_pretrained(folder)
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>").save_pretrained(folder)
    examples = [dict(text=words[i], **(dict(text_pair=words[-i - 1]) if i % 2 else {})) for i in range(40)]
    (folder / "texts.jsonl").write_text("".join(json.dumps(example) + "\n" for example in examples))
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    model = CLASSIFIER.from_pretrained(folder, attn_implementation="eager").float().eval()
    expected = []
    for example in examples:
        ids = theirs(example["text"], example.get("text_pair"))["input_ids"]
        with torch.no_grad():
            expected.append(model(input_ids=torch.tensor([ids])).logits[0].tolist())
    lines = plimsoll(binary, "predict", "--model", folder, "--data", folder / "texts.jsonl")
    off = numpy.abs(numpy.array([line["logits"] for line in lines]) - numpy.array(expected)).max()
    checks.check(name, "logits", off <= 1e-5, f"{off:.1e} apart over {len(lines)} examples")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--keep", help="leave inputs and dumps in this folder")
    args = parser.parse_args()
    torch.set_num_threads(1)  # models are small
    checks, binary = Checks(), os.path.abspath(args.binary)
    chosen = [case for case in CASES if args.only in case["name"]]
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(args.keep or scratch).resolve()
        for number, case in enumerate(chosen):
            try:
                compare_case(case, binary, root / f"{number:02d}", checks)
            except (RuntimeError, ValueError, OSError, KeyError, subprocess.TimeoutExpired) as failure:
                checks.check(case["name"], "ran", False, f"{type(failure).__name__}: {failure}")
        if args.only in "a base without a pad token":
            (root / "padded").mkdir()
            compare_padded(binary, root / "padded", checks)
        if not args.only:
            compare_texts(binary, root / "texts", checks)
    print(f"interop: {checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed or not checks.passed else 0


if __name__ == "__main__":
    sys.exit(main())
