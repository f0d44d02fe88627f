"""What a model of transformers says to windows of questions, and what `plimsoll predict` makes of them."""
import json
import re
import subprocess

import numpy
import peft
import torch

import answering

TOKENS, STRIDE, NOWHERE = 61, 11, -1e30  # of a window, shared; the logit of padding


def head_of(family):
    """The module of transformers' class for answers."""
    return "classifier" if family == "modernbert" else "qa_outputs"


def logits_of(model, windows):
    """Begins and ends [windows, 2, longest], NOWHERE in padding."""
    # PEFT's model for answers leaves the types out.
    model = model.get_base_model() if isinstance(model, peft.PeftModel) else model
    longest, pad = max(len(each["ids"]) for each in windows), model.config.pad_token_id
    ids, types = (torch.tensor([each[key] + [fill] * (longest - len(each["ids"])) for each in windows])
                  for key, fill in (("ids", pad), ("types", 0)))
    mask = torch.arange(longest)[None] < torch.tensor([len(each["ids"]) for each in windows])[:, None]
    typed = dict(token_type_ids=types) if model.config.model_type == "bert" else {}
    out = model(input_ids=ids, attention_mask=mask.long(), **typed)
    return torch.stack([out.start_logits, out.end_logits], 1).masked_fill(~mask[:, None], NOWHERE)


def loss_of(logits, windows):
    labels = torch.tensor([each["label"] for each in windows])
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def run_gradients(model, windows):
    model.zero_grad(set_to_none=True)
    logits = logits_of(model, windows)
    loss = loss_of(logits, windows)
    loss.backward()
    return loss.item(), logits.detach().numpy(), {key: p.grad.numpy().copy() for key, p in model.named_parameters() if p.requires_grad}


def predict(binary, *arguments):
    """Lines, and SQuAD's figures if they are told."""
    done = subprocess.run([binary, "predict", *map(str, arguments)], text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"predict: exit code {done.returncode}: {done.stderr.strip()[-600:]}")
    return [json.loads(line) for line in done.stdout.split("\n") if line], {
        key: float(value) for key, value in re.findall(r"((?:\w+_)?(?:exact|f1)(?:_thresh)?) (-?[\d.]+)", done.stderr)}


def check_answers(name, what, lines, questions, made, logits, checks, **rules):
    """Of what is as likely as another answer the order is not compared. Returns how much better none is."""
    wrong, odds, ties, at = [], [], 0, 0
    for line, question, windows in zip(lines, questions, made):
        found, best, null_odds = answering.choose(question["context"], windows, logits[at:at + len(windows)], **rules)
        at, ours, scores = at + len(windows), line["n_best"], numpy.array([each["score"] for each in found])
        off = len(ours) != len(found) or line["id"] != question["id"] or any(
            abs(each["score"] - there["chance"]) > 1e-5 for each, there in zip(ours, found))
        near = [{there["text"] for there in found if abs(there["score"] - score) < 1e-4} for score in scores]
        off = off or any(each["answer"] not in texts for each, texts in zip(ours, near))
        tie = sum(abs(scores - best["score"]) < 1e-4) > 1 or (null_odds is not None and abs(null_odds - rules["threshold"]) < 1e-4)
        ties += tie
        off = off or question["context"][line["begin"]:line["end"]] != line["answer"] or abs(
            line.get("null_odds", NOWHERE) - (NOWHERE if null_odds is None else null_odds)) > 1e-4
        if off or (not tie and ((line["begin"], line["end"]) != best["offsets"] or line["answer"] != best["text"])):
            wrong.append((question["id"], line["answer"], best["text"]))
        odds += [] if null_odds is None else [null_odds]
    checks.check(name, what, not wrong and len(lines) == len(questions) and 4 * ties <= len(lines),
                 f"{len(wrong)} of {len(lines)} differ {wrong[:3]}, {ties} ties")
    return odds


def compare_answers(name, binary, folder, model, tokenizer, where, checks, count=40, most=TOKENS, stride=STRIDE):
    """What predict writes, the choice among transformers' logits. `where`: predict's options that name the model."""
    questions = answering.questions(count, 5)
    answering.write_questions(folder / "asked", [{key: each[key] for key in ("id", "question", "context")} for each in questions])
    made = [answering.windows(tokenizer, each, most, stride) for each in questions]
    with torch.no_grad():
        logits = logits_of(model.eval(), sum(made, [])).numpy().astype(numpy.float64)
    logits = [each[:, :len(window["ids"])] for each, window in zip(logits, sum(made, []))]
    usual = [*where, "--data", folder / "asked.jsonl", "--max-length", most, "--doc-stride", stride]

    def run(what, *more, **rules):
        lines, figures = predict(binary, *usual, "--alternatives", 1000, *more)
        checks.check(name, f"{what}: no figures without answers", not figures, figures)
        return check_answers(name, what, lines, questions, made, logits, checks, **rules)
    run("answers")
    odds = run("answers or none", "--null-threshold", 0, threshold=0)
    middle = round(float(numpy.median(odds)), 3)
    run(f"none above {middle}", "--null-threshold", middle, "--n-best", 7, "--max-answer-length", 4, "--batch-size", 3,
        n_best=7, longest=4, threshold=middle)
    run("every token", "--max-answer-length", 1, "--n-best", 1000, n_best=1000, longest=1)


def compare_opposite(name, binary, folder, model, tokenizer, checks):
    """The same with what was least likely: a trained model finds no answer likely."""
    with torch.no_grad():
        getattr(model, head_of(model.config.model_type)).weight.neg_()
    for each in (model, tokenizer):
        each.save_pretrained(folder / "opposite")
    compare_answers(f"{name}, opposite", binary, folder, model, tokenizer, ["--model", folder / "opposite"], checks)


def near(context, answer, rng):
    """Spans of right answers that meet a given one, or nearly: that one, some letters more or less, other words; none."""
    (begin, end), kind = answer, int(rng.integers(0, 8))
    spans = [(begin, end)] if kind in (1, 2) else []
    for _ in range(2):
        first, last = begin + int(rng.integers(-9, 9)), end + int(rng.integers(-9, 9))
        spans.append((max(0, min(first, len(context) - 1)), max(1, min(last, len(context)))))
    words = [each.span() for each in re.finditer(r"\S+", context)]
    spans = [words[int(rng.integers(0, len(words)))]] + spans if kind > 3 else spans
    return [(first, last) for first, last in spans if first < last][:1 + kind % 2] if kind else []


def compare_scores(name, binary, folder, checks, count=900):
    """SQuAD's figures, in both formats, with answers near those that are given."""
    questions, rng = answering.questions(count // 4, 7) + answering.alike(count * 3 // 4, 8), numpy.random.default_rng(11)
    answering.write_questions(folder / "asked", questions)
    usual = ["--model", folder / "model", "--max-length", TOKENS, "--doc-stride", STRIDE, "--max-answer-length", 3]
    odds = [line["null_odds"] for line in predict(binary, *usual, "--null-threshold", 0, "--data", folder / "asked.jsonl")[0]]
    for more in ([], ["--null-threshold", sorted(odds)[count // 3], "--alternatives", 1000]):
        first, _ = predict(binary, *usual, *more, "--data", folder / "asked.jsonl")
        for each, line in zip(questions, first):
            spans = near(each["context"], (line["begin"], line["end"]), rng)
            each["answers"] = dict(text=[each["context"][slice(*span)] for span in spans], answer_start=[span[0] for span in spans])
        answering.write_questions(folder / "judged", questions)
        lines, figures = predict(binary, *usual, *more, "--data", folder / "judged.jsonl")
        nested, again = predict(binary, *usual, *more, "--data", folder / "judged.json")
        same = nested == lines == first and again == figures
        checks.check(name, "SQuAD's file and lines give the same", same, f"{len(lines)} lines")
        some = dict(odds=[line["null_odds"] for line in lines], some_answers=[
            next((each["answer"] for each in line["n_best"] if each["answer"]), "") for line in lines]) if more else {}
        expected = answering.evaluation([line["answer"] for line in lines], questions, **some)
        off = {key: value for key, value in expected.items()
               if abs(figures.get(key, -1) - value) > (0.000051 if key.endswith("thresh") else 0.00501)}
        checks.check(name, f"of {count} questions, {sum(not line['answer'] for line in lines)} without an answer",
                     not off and figures.keys() == expected.keys(), f"{figures}" + (f", expected {expected}" if off else ""))
