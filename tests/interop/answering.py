"""What stands around transformers' …ForQuestionAnswering, ported: the windows of run_qa.py, the choice of utils_qa.py, SQuAD's
evaluation of version 2; with tokenizers and questions to compare on, and the files of a run's cache.
"""
import collections
import json
import re
import string
import struct

import numpy
import tokenizers as t
import transformers

WORDS = ("the The a An AN fine ship floats, sank. Élan e\u0301tude na\u0308ıve İstanbul istanbul ΣΊΣΥΦΟΣ Σίσυφος ΑΣ'Β Σ ΟΔΌΣ\u0301 "
         "東京都 船は海, العَرَبِيَّة سفينة 👩\u200d🚀 🚢🚢 ﬁne x\u0300y “quoted” it’s — 1,000 (1914) ½ a½ ẞ Ωmega \u212aelvin the\u0301 a\u0301 "
         "the\u203fa A.M. the-a !!! _a_ ship's Ship SHIP ship! \u00bfship? ship\u2019s an\u02bc a").split()
# Words that SQuAD's evaluation takes for the same, or nearly.
ALIKE = [each.split() for each in (
    "ΑΣ'Β ασβ αςβ;the\u0301 \u0301 the;a½ ½ a;the\u203fa \u203f thea;Σ σ ς;ΟΔΌΣ\u0301 οδός\u0301 οδόσ\u0301;İ i\u0307 i;ΑΣ ας ασ;中Σ 中σ 中ς;"
    "A.M. am M;ẞ ß ss;the-a thea a;_a_ a aa;\u212a k K;“a” a “”;Ο.Σ. ος οσ;ﬁn fin FIN;An\u02bc an \u02bc;Élan élan e\u0301lan").split(";")]
GAPS = [" "] * 12 + ["  ", "\n", "\t", "\u00a0", "\u3000", "\u2009", "\x1f", "", " \n "]
WORDPIECE = ("bert", "distilbert")  # the others have <s>


def write_tokenizer(family, folder, size):
    """WordPiece as BERT's (of DistilBERT with case and accents), byte-level BPE as RoBERTa's (of the others, which put no space before
    a text and so on, BPE with ▁). Returns it."""
    begin, pad, end, unknown, mask = (("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]") if family in WORDPIECE else
                                      ("<s>", "<pad>", "</s>", "<unk>", "<mask>"))
    specials = [pad, unknown, begin, end, mask] if family in WORDPIECE else [begin, pad, end, unknown, mask]
    how = dict(vocab_size=size if family == "roberta" else 200, special_tokens=specials, show_progress=False)
    ends = [(end, specials.index(end)), (begin, specials.index(begin))]
    if family in WORDPIECE:
        made, trainer = t.Tokenizer(t.models.WordPiece(unk_token=unknown)), t.trainers.WordPieceTrainer(**how, limit_alphabet=80)
        made.normalizer = t.normalizers.BertNormalizer(lowercase=family == "bert")
        made.pre_tokenizer = t.pre_tokenizers.BertPreTokenizer()
        made.post_processor = t.processors.TemplateProcessing(
            single=f"{begin} $A {end}", pair=f"{begin} $A {end} $B:1 {end}:1", special_tokens=ends)
    else:
        made = t.Tokenizer(t.models.BPE(unk_token=None if family == "roberta" else unknown))
        made.pre_tokenizer = t.pre_tokenizers.ByteLevel(add_prefix_space=False) if family == "roberta" else t.pre_tokenizers.Metaspace()
        alphabet = dict(initial_alphabet=t.pre_tokenizers.ByteLevel.alphabet()) if family == "roberta" else dict(limit_alphabet=80)
        trainer = t.trainers.BpeTrainer(**how, **alphabet)
        made.post_processor = (t.processors.RobertaProcessing(*ends, trim_offsets=True, add_prefix_space=False) if family == "roberta" else
                               t.processors.TemplateProcessing(single=f"{begin} $A {end}", pair=f"{begin} $A {end} {end} $B {end}",
                                                               special_tokens=ends))
    made.train_from_iterator([text(numpy.random.default_rng(i), 12) for i in range(200)], trainer)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=made, pad_token=pad, unk_token=unknown, cls_token=begin, sep_token=end,
                                                mask_token=mask)
    fast.save_pretrained(folder)
    return fast


def text(rng, words):
    return "".join(str(rng.choice(WORDS)) + str(rng.choice(GAPS)) for _ in range(words))


def questions(count, seed, longest=60):
    """As a line of `datasets` each; every kind of place: at the begin, at the end, the whole, none, of one letter."""
    rng, made = numpy.random.default_rng(seed), []
    for i in range(count):
        context = text(rng, int(rng.integers(1, longest)))
        begin = 0 if i % 7 == 1 else int(rng.integers(0, len(context)))
        end = len(context) if i % 7 in (2, 3) else int(rng.integers(begin, min(begin + 25, len(context)))) + 1
        begin = 0 if i % 7 == 3 else begin
        spans = [] if i % 7 == 5 else [(begin, end), (begin, begin + 2)]
        answers = [(begin, context[begin:end]) for begin, end in spans if context[begin:end].strip()]
        made.append(dict(id=f"q{i}", question=str(rng.choice(["", " ", "\u3000", "\n"])) + text(rng, 3) + "?", context=context,
                         answers=dict(text=[each for _, each in answers], answer_start=[begin for begin, _ in answers])))
    return made


def alike(count, seed):
    """Questions about such words."""
    rng = numpy.random.default_rng(seed)
    return [dict(id=f"a{i}", question="ship?", context="".join(
        str(word) + str(rng.choice(GAPS)) for word in rng.permutation(ALIKE[i % len(ALIKE)])[:2])) for i in range(count)]


def squad(made):
    """The same in SQuAD's nested file."""
    def answers(each):
        return [dict(text=text, answer_start=at) for text, at in zip(*each.get("answers", dict(text=[], answer_start=[])).values())]
    paragraphs = [dict(context=each["context"], qas=[dict(id=each["id"], question=each["question"], answers=answers(each),
                                                          is_impossible=not answers(each))]) for each in made]
    return dict(version="v2.0", data=[dict(title=str(i), paragraphs=paragraphs[i:i + 5]) for i in range(0, len(made), 5)])


def trimmed(context, offsets):
    """Plimsoll's places have no white space around them, which RoBERTa's tokenizer too leaves out."""
    begin, end = offsets
    while begin < end and context[begin] in " \t\n\v\f\r":
        begin += 1
    while end > begin and context[end - 1] in " \t\n\v\f\r":
        end -= 1
    return begin, end


def windows(tokenizer, question, most, stride, trims=True):
    """Features of a question; offsets of the context's tokens alone."""
    made = tokenizer(question["question"].lstrip(), question["context"], truncation="only_second", max_length=most, stride=stride,
                     return_overflowing_tokens=True, return_offsets_mapping=True, return_token_type_ids=True)
    found = []
    for i, ids in enumerate(made["input_ids"]):
        offsets = [each if side == 1 else None for each, side in zip(made["offset_mapping"][i], made.sequence_ids(i))]
        label = label_of(offsets, question.get("answers"))
        places = [each and trimmed(question["context"], each) for each in offsets] if trims else offsets
        found.append(dict(ids=ids, types=made["token_type_ids"][i], offsets=places, label=label))
    return found


def label_of(offsets, answers):
    """run_qa.py's, but for spaces around an answer, and it looks among the context's tokens alone for the one behind the first."""
    places = [i for i, each in enumerate(offsets) if each is not None]
    if not answers or not answers["text"]:
        return 0, 0
    answer, begin, first, last = answers["text"][0], answers["answer_start"][0], places[0], places[-1]
    begin, end = (begin + each for each in trimmed(answer, (0, len(answer))))
    if not (offsets[first][0] <= begin and offsets[last][1] >= end):
        return 0, 0
    while first <= places[-1] and offsets[first][0] <= begin:
        first += 1
    while last >= places[0] and offsets[last][1] >= end:
        last -= 1
    return first - 1, last + 1


def choose(context, made, logits, n_best=20, longest=30, threshold=None):
    """utils_qa.py's postprocess_qa_predictions of a question, by logits of its windows without padding. Returns what is kept, best
    first, the answer, and how much better none is."""
    found, null = [], None
    for window, (begins, ends) in zip(made, logits):
        offsets, score = window["offsets"], begins[0] + ends[0]
        if null is None or null["score"] > score:
            null = dict(offsets=(0, 0), score=score)
        best = [numpy.argsort(-side, kind="stable")[:n_best].tolist() for side in (begins, ends)]
        found += [dict(offsets=(offsets[b][0], offsets[e][1]), score=begins[b] + ends[e]) for b in best[0] for e in best[1]
                  if offsets[b] is not None and offsets[e] is not None and b <= e < b + longest]
    if threshold is not None:
        found.append(null)
    found = sorted(found, key=lambda each: each["score"], reverse=True)[:n_best]
    if threshold is not None and not any(each["offsets"] == (0, 0) for each in found):
        found.append(null)
    found = found or [dict(offsets=(0, 0), score=0.0)]
    odds = numpy.exp(numpy.array([each["score"] for each in found]) - found[0]["score"])
    for each, chance in zip(found, odds / odds.sum()):
        each |= dict(text=context[slice(*each["offsets"])], chance=float(chance))
    best = next((each for each in found if each["text"]), None)  # theirs may be empty, or "empty"
    if threshold is None or best is None:
        return found, best or found[0], None
    return found, null if null["score"] - best["score"] > threshold else best, float(null["score"] - best["score"])


def counted(answer):
    answer = "".join(c for c in answer.lower() if c not in set(string.punctuation))
    return re.sub(r"\b(a|an|the)\b", " ", answer).split()


def f1(answer, right):
    found, truth = counted(answer), counted(right)
    if not found or not truth:
        return float(found == truth)
    same = sum((collections.Counter(found) & collections.Counter(truth)).values())
    return 2 * same / (len(found) + len(truth)) if same else 0.0


def evaluation(answers, made, odds=None, some_answers=None):
    """The figures of SQuAD's script for version 2, in per cent. `odds`: how much better no answer is, `some_answers`: the best of the
    others."""
    rows = []
    for answer, question in zip(answers, made):
        right = [each for each in question["answers"]["text"] if counted(each)] or [""]
        rows.append((bool(question["answers"]["text"]), max(counted(answer) == counted(each) for each in right),
                     max(f1(answer, each) for each in right)))
    kinds = [("", rows)]
    if len({each[0] for each in rows}) == 2:
        kinds += [("HasAns_", [each for each in rows if each[0]]), ("NoAns_", [each for each in rows if not each[0]])]
    found = {f"{kind}{what}": 100 * sum(float(each[column]) for each in some) / len(some)
             for kind, some in kinds for column, what in ((1, "exact"), (2, "f1"))}
    return found if odds is None else found | best_thresholds(odds, some_answers, made)


def best_thresholds(odds, answers, made):
    """find_best_thresh of SQuAD's script for version 2, on the best answers that are not empty."""
    found = {}
    for what, score in (("exact", lambda answer, each: float(counted(answer) == counted(each))), ("f1", f1)):
        scores = [max(score(answer, each) for each in [text for text in question["answers"]["text"] if counted(text)] or [""])
                  for answer, question in zip(answers, made)]
        now = best = sum(not question["answers"]["text"] for question in made)
        threshold = 0.0
        for i in sorted(range(len(odds)), key=lambda i: odds[i]):
            now += scores[i] if made[i]["answers"]["text"] else -1 if answers[i] else 0
            if now > best:
                best, threshold = now, odds[i]
        found |= {f"best_{what}": 100 * best / len(odds), f"best_{what}_thresh": threshold}
    return found


def read_shard(path):
    """Documents of a shard: docs/data-format.md."""
    data = path.read_bytes()
    width, block, count, documents, table = (*struct.unpack_from("<II", data, 16), *struct.unpack_from("<QQ", data, 40),
                                             *struct.unpack_from("<Q", data, 64))
    tokens, at = [], 128
    while len(tokens) < count:
        some = min(block, count - len(tokens))
        tokens += numpy.frombuffer(data, f"<u{width}", some, at + 8).tolist()
        at += 8 + some * width
    ends = [struct.unpack_from("<Q", data, table + 8 * (i // 512 + 1) + 24 * i)[0] for i in range(documents)]
    return [tokens[begin:end] for begin, end in zip([0, *ends], ends)]


def read_labels(path):
    """Values of each label: src/corpora/labelled/label_file.cpp."""
    data = path.read_bytes()
    (width,), (count,) = struct.unpack_from("<I", data, 12), struct.unpack_from("<Q", data, 16)
    size, of_block = 16 + 4 * width, (16 << 10) // (16 + 4 * width)
    return [struct.unpack_from(f"<{width}f", data, 56 + 8 * (i // of_block + 1) + size * i + 16) for i in range(count)]


def write_questions(path, made):
    """As lines and, beside them, in SQuAD's format."""
    path.with_suffix(".jsonl").write_text("".join(json.dumps(each) + "\n" for each in made))
    path.with_suffix(".json").write_text(json.dumps(squad(made)))
