"""Plimsoll's masks of tokens in numpy: src/datasets/token_masking.h from its words; with models, tokenizers and data to mask.

Beside dropout.py, whose random numbers these are, and to the same end: a step is held against transformers with the very tokens
masked that Plimsoll masked. So each loss and each gradient checks the masks too.
"""
import json
import math
import pathlib

import numpy
import safetensors.torch
import tokenizers as t
import torch
import transformers

import cases
import dropout

TOKENS, VOCAB, MASK = 29, 331, 4  # of a sequence, of the models; the token that masks where there is no tokenizer
RULES = dict(probability=0.15, mask=0.8, random=0.1, whole_word=False)
FAMILIES = {name: {key: value for key, value in sample.items() if key not in ("architectures", "num_labels", "classifier_dropout")}
            | dict(vocab_size=VOCAB) for name, sample in cases.ENCODERS.items()}
WORDPIECE = ("bert", "distilbert")  # the others have <s>, and mark where words begin
WORD = 0xFFFFFFFF
LANGUAGE = transformers.AutoModelForMaskedLM
STARTS = {"bare": transformers.AutoModel, "classifier": transformers.AutoModelForSequenceClassification,
          "pretraining": transformers.AutoModelForPreTraining, "google": transformers.AutoModelForPreTraining}


class Masker:
    """`kinds`: by token w (begins a word), c (goes on with it) or s (special). `limit`: the most tokens that are chosen."""

    def __init__(self, kinds, mask_token, rules, seed):
        self.kinds, self.mask_token, self.rules, self.seed = kinds, mask_token, RULES | rules, seed
        self.drawn = [token for token, kind in enumerate(kinds) if kind != "s"]
        p = self.rules["probability"]
        most = math.ceil(TOKENS * p + (6 if self.rules["whole_word"] else 4) * math.sqrt(TOKENS * p * (1 - p)))
        self.limit = min((most + 7) // 8 * 8, TOKENS)

    def words_of(self, documents):
        """Places that are chosen together."""
        begins = set(numpy.cumsum([0] + [len(document) for document in documents]).tolist())
        words, before = [], "s"
        for place, kind in enumerate(self.kinds[token] for token in sum(documents, [])):
            if kind == "c" and before != "s" and self.rules["whole_word"] and place not in begins:
                words[-1].append(place)
            elif kind != "s":
                words.append([place])
            before = kind
        return words

    def __call__(self, documents, index, epoch):
        """The tokens of a sequence as they are trained on, and the places of the chosen ones."""
        tokens = sum(documents, [])
        counters = numpy.array([[place, index & WORD, epoch, index >> 32] for place in range(len(tokens))])
        draws = dropout.philox(counters, ((self.seed & WORD) ^ 0x6D61736B, self.seed >> 32)).tolist()
        chosen = sorted((draws[word[0]][0], word) for word in self.words_of(documents))
        chosen = [word for draw, word in chosen if draw < round(self.rules["probability"] * 2 ** 32)]
        while sum(map(len, chosen)) > self.limit:
            chosen.pop()
        places = sorted(sum(chosen, []))
        for place in places:
            if draws[place][1] < round(self.rules["mask"] * 2 ** 32):
                tokens[place] = self.mask_token
            elif draws[place][1] < round((self.rules["mask"] + self.rules["random"]) * 2 ** 32):
                tokens[place] = self.drawn[draws[place][2] * len(self.drawn) >> 32]
        return tokens, places


def kinds_of_config(folder):
    """Without a tokenizer: of what config.json calls special nothing is chosen."""
    config = json.loads((folder / "config.json").read_text())
    special = {config.get(f"{what}_token_id") for what in ("pad", "bos", "eos", "cls", "sep")} | {MASK}
    return ["s" if token in special else "w" for token in range(VOCAB)]


def kinds_of(tokenizer):
    special = {token for token, added in tokenizer.get_added_tokens_decoder().items() if added.special}
    names = [tokenizer.id_to_token(token) for token in range(tokenizer.get_vocab_size())]
    marks = any(name[0] in "Ġ▁" for name in names)
    continues = [name[0] not in "Ġ▁" if marks else name.startswith("##") for name in names]
    return ["s" if token in special else "c" if continues[token] else "w" for token in range(len(names))] + ["s"] * (VOCAB - len(names))


def texts(count, seed):
    """Lines of words of this folder."""
    words = sorted({word for file in ("oracle.py", "cases.py") for word in
                    (pathlib.Path(__file__).parent / file).read_text().lower().split() if word.isalpha()})
    rng = numpy.random.default_rng(seed)
    return [" ".join(rng.choice(words, rng.integers(1, 10))) for _ in range(count)]


def write_model(case, folder):
    """The file that a run starts from. Returns what it says of the parameters of a masked language model."""
    family, start = case["family"], case["start"]
    config = transformers.AutoConfig.for_model(**FAMILIES[family] | case["config"])
    torch.manual_seed(sum(map(ord, case["name"])))
    model = STARTS.get(start, LANGUAGE).from_config(config).float()
    with torch.no_grad():  # what begins as 0 or 1 would hide what reads it
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.2 * torch.randn(parameter.shape))
    model.save_pretrained(folder)
    tensors = {key: value.detach().numpy().copy() for key, value in model.state_dict().items()}
    if start in ("google", "twice"):
        saved = model.state_dict()
        if start == "google":
            saved = {key.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
                     for key, value in saved.items() if ".decoder." not in key}
            written = json.loads((folder / "config.json").read_text()) | dict(architectures=["BertForMaskedLM"])
            (folder / "config.json").write_text(json.dumps(written))
        if family != "modernbert":  # which rotates
            saved[f"{model.base_model_prefix}.embeddings.position_ids"] = torch.arange(config.max_position_embeddings)[None]
        safetensors.torch.save_file({key: value.clone() for key, value in saved.items()}, folder / "model.safetensors", {"format": "pt"})
    return {f"{model.base_model_prefix}.{key}": value for key, value in tensors.items()} if start == "bare" else tensors


def values_of(parameters):
    return {key: parameter.detach().numpy() for key, parameter in parameters.items()}


def write_tokenizer(family, folder):
    """WordPiece as BERT's, byte-level BPE as RoBERTa's, BPE with ▁ for the others. Returns it, its kinds and its mask token."""
    begin, pad, end, unknown, mask = (("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]") if family in WORDPIECE else
                                      ("<s>", "<pad>", "</s>", "<unk>", "<mask>"))
    specials = [pad, unknown, begin, end, mask] if family in WORDPIECE else [begin, pad, end, unknown, mask]
    size = dict(vocab_size=VOCAB - 12, special_tokens=specials, show_progress=False)  # the model has rows beyond it
    if family in WORDPIECE:
        made, trainer = t.Tokenizer(t.models.WordPiece(unk_token=unknown)), t.trainers.WordPieceTrainer(**size)
        made.pre_tokenizer = t.pre_tokenizers.BertPreTokenizer()
    else:
        made, trainer = t.Tokenizer(t.models.BPE(unk_token=unknown)), t.trainers.BpeTrainer(**size)
        made.pre_tokenizer = t.pre_tokenizers.Metaspace()
    if family == "roberta":
        made.pre_tokenizer = t.pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer.initial_alphabet = t.pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(texts(400, 0), trainer)
    made.post_processor = t.processors.TemplateProcessing(
        single=f"{begin} $A {end}", special_tokens=[(begin, specials.index(begin)), (end, specials.index(end))])
    transformers.PreTrainedTokenizerFast(tokenizer_object=made, pad_token=pad, unk_token=unknown, cls_token=begin, sep_token=end,
                                         mask_token=mask).save_pretrained(folder)
    return made, kinds_of(made), specials.index(mask)


def draw_sequences(family, data, tokenizer, kinds, count, rng, long_words=False):
    """Sequences as lists of documents. Of `pairs` the lengths leave no choice to the packing, and some are not full."""
    ids = VOCAB if tokenizer is None else tokenizer.get_vocab_size()
    # transformers counts RoBERTa's positions without the padding token, wherever it stands.
    usual = [token for token in range(ids) if token != FAMILIES[family]["pad_token_id"]]
    begins, goes_on, special = ([token for token in usual if kinds[token] == kind] for kind in "wcs")

    def document(size):
        if long_words and size > TOKENS // 2 and rng.random() < 0.4:
            return [int(rng.choice(begins)), *rng.choice(goes_on, size - 1).tolist()]
        return numpy.where(rng.random(size) < 0.1, rng.choice(special, size), rng.choice(usual, size)).tolist()
    if data == "stream":
        return [[document(TOKENS)] for _ in range(count)]
    if data in ("rows", "joined"):
        return [[document(rng.integers(2, TOKENS + 1))] for _ in range(count)]
    return [[document(TOKENS - short), document(short)][:1 + (short % 5 > 0)] for short in range(2, TOKENS // 2)]


def write_sequences(path, family, data, tokenizer, kinds, count, seed, long_words=False, tail=0):
    """`data`: stream (ids, no tokenizer; with a last sequence of `tail` tokens), rows (ids, padded), joined (ids, cut; the rest is
    left out without a tail), pairs (ids, packed), texts (padded)."""
    if data == "texts":
        lines = texts(count, seed)
        path.write_text("".join(json.dumps(dict(text=line)) + "\n" for line in lines))
        documents = [tokenizer.encode(line).ids for line in lines]
        return [[document[at:at + TOKENS]] for document in documents for at in range(0, len(document), TOKENS)]
    sequences = draw_sequences(family, data, tokenizer, kinds, count, numpy.random.default_rng(seed), long_words)
    if data == "stream":
        sequences += [[sequences[0][0][:tail]]] if tail else []
        numpy.save(path, numpy.array(sum(sum(sequences, []), []), dtype=numpy.int32))
        return sequences
    path.write_text("".join(json.dumps(dict(input_ids=d)) + "\n" for sequence in sequences for d in sequence))
    if data != "joined":
        return sequences
    joined = sum(sum(sequences, []), [])
    cut = [[joined[at:at + TOKENS]] for at in range(0, len(joined), TOKENS)]
    return cut if tail else cut[:-1]


def batch_of(sequences, masked, pad):
    """Each document as a padded row, with what is to be predicted as its labels; as transformers' models take them."""
    rows, labels = [], []
    for documents, (tokens, places) in zip(sequences, masked):
        plain, at = sum(documents, []), 0
        for document in documents:
            end = at + len(document)
            rows.append(tokens[at:end])
            labels.append([plain[i] if i in places else -100 for i in range(at, end)])
            at = end
    longest = max(map(len, rows))
    ids, labels = (torch.tensor([row + [fill] * (longest - len(row)) for row in part]) for part, fill in ((rows, pad), (labels, -100)))
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    return dict(input_ids=ids, labels=labels, attention_mask=mask)


def batch_at(case, masker, sequences, step, size):
    """Of a step: what transformers is given, and what the masker said. Buckets take the short ones of an epoch first."""
    order = sorted(range(len(sequences)), key=lambda i: sum(len(sum(sequences[i], [])) > length for length in case["buckets"] or []))
    places = [(order[at % len(order)], at // len(order)) for at in range((step - 1) * size, step * size)]
    masked = [masker(sequences[index], index, epoch) for index, epoch in places]
    return batch_of([sequences[index] for index, _ in places], masked, FAMILIES[case["family"]]["pad_token_id"]), masked
