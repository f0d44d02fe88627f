"""Holds tokenizers of whole folders against transformers' AutoTokenizer: tokens that stand outside of tokenizer.json, parts that a
class makes anew, folders of vocab.json and merges.txt, of vocab.txt, of sentencepiece models (where that package is installed). Made at random, by seed.

    python tokenizer_folders_compare.py --build build [--random N]

One line per kind, PASS or FAIL; exit code 1 if any fails.
"""
import argparse
import json
import pathlib
import random
import shutil
import sys
import tempfile

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, logging

from checks import Checks
from driver import build_driver
from tokenizers_compare import Driver
import tokenizer_kinds

logging.set_verbosity_error()
BERT_TOKENS = tokenizer_kinds.BERT_TOKENS
WORDS = "the ship floats \u00e4ll day\u0301 He'll DON'T 12345 x_y ... \n\n  \t caf\u00e9 \u4f60\u597d \U0001F600 HTTPServer".split(" ")
NAMES = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token", "tool_token"]
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def corpus(rng, count=400):
    return [" ".join(rng.choices(WORDS, k=12)) for _ in range(count)]


def byte_level(rng, qwen2=False):
    tokenizer = Tokenizer(models.BPE())
    if qwen2:
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN2), "isolated"),
                                                           pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(corpus(rng), trainers.BpeTrainer(vocab_size=320, special_tokens=[], show_progress=False,
                                                                   initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


def rules(rng):
    return {name: rng.random() < 0.3 for name in ("lstrip", "rstrip", "single_word")}


def random_config(rng, listed, size):
    """(files, the tokens that they name); `listed`: those of tokenizer.json."""
    pool = ["<a>", "<b>", "<|end|>", "[M]", "ship", "<a> ", "x_y", "</s>", "<s>", *listed]
    config, named = {"tokenizer_class": "PreTrainedTokenizerFast"}, set()
    files = {"tokenizer_config.json": config}

    def take(plain=0.6):
        content = rng.choice(pool)
        named.add(content)
        return content if rng.random() < plain else {"__type": "AddedToken", "content": content, "normalized": rng.random() < 0.3,
                                                     "special": rng.random() < 0.7, **rules(rng)}
    for name in rng.sample(NAMES, rng.choice([0, 1, 2, 4])):
        config[name] = take()
    if rng.random() < 0.4:
        config["extra_special_tokens"] = {"image_token": take(1)} if rng.random() < 0.3 else [take() for _ in range(rng.randint(0, 3))]
    if rng.random() < 0.3:
        config["additional_special_tokens"] = [take() for _ in range(rng.randint(0, 3))]
    if rng.random() < 0.4:
        decoder = {}
        for content in rng.sample(pool, rng.randint(0, 4)):
            named.add(content)
            decoder[str(rng.randint(0, size + 9))] = {"content": content, "normalized": rng.random() < 0.3, "special": rng.random() < 0.5, **rules(rng)}
        config["added_tokens_decoder"] = decoder
    if rng.random() < 0.3:
        chosen = rng.sample(pool, rng.randint(0, 3))
        named.update(chosen)
        files["added_tokens.json"] = dict(zip(chosen, rng.sample(range(size, size + 12), len(chosen))))
    if rng.random() < 0.4:
        files["special_tokens_map.json"] = {name: content for name, content in ((name, take(1)) for name in rng.sample(NAMES, 2))}
        if rng.random() < 0.5:
            files["special_tokens_map.json"]["additional_special_tokens"] = [take(1)]
    if rng.random() < 0.15:
        config["split_special_tokens"] = True
    return files, named | set(pool)


def write(folder, files):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False), newline="")


def texts_of(rng, named, count=25):
    parts = [*WORDS, *sorted(named), " ", "  ", "\n", ""]
    return ["".join(rng.choices(parts, k=rng.choice([1, 3, 8, 20]))) for _ in range(count)]


def compare(name, folder, texts, driver):
    """What differs, or nothing."""
    try:
        reference = AutoTokenizer.from_pretrained(str(folder))
        expected = []
        for text in texts:
            expected.append(reference(text)["input_ids"])
    except Exception as error:  # noqa: BLE001: what transformers does not open is nobody's measure
        return ("not opened", str(error)[:200])
    except BaseException as error:  # a panic of the package
        if "Panic" not in type(error).__name__:
            raise
        return ("not opened", str(error)[:200])
    try:
        ours = driver.answers(folder, [text.encode() for text in texts])
    except RuntimeError as error:
        return ("refused", f"{name}: {error}")
    for text, ids, answer in zip(texts, expected, ours):
        if answer[0] != ids:
            return ("ids", f"{name}: {text!r}: {answer[0]} against {ids}")
        if not answer[2]:
            return ("pieces", f"{name}: {text!r}")
        if answer[3].decode() != reference.decode(ids, skip_special_tokens=False):
            return ("decoded", f"{name}: {text!r}: {answer[3]!r}")
        if answer[4].decode() != reference.decode(ids, skip_special_tokens=True):
            return ("decoded without special tokens", f"{name}: {text!r}: {answer[4]!r}")
    return None


def named_tokens(rng, folder):
    tokenizer = byte_level(rng)
    listed = [AddedToken(content, special=rng.random() < 0.7, normalized=rng.random() < 0.2, **rules(rng))
              for content in rng.sample(["<a>", "<l>", "<|end|>", "[L]", "day"], rng.randint(0, 4))]
    tokenizer.add_tokens(listed)
    files, named = random_config(rng, [token.content for token in listed], tokenizer.get_vocab_size())
    files["tokenizer.json"] = tokenizer.to_str()
    write(folder, files)
    return named


def metaspace(rng):
    """Over characters with bytes to fall back on, as tokenizer.json of Llama 2 has it."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    if rng.random() < 0.5:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=rng.choice(["first", "always", "never"]), split=False)
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", *"aehilnoprst", "th", "the", "\u2581the", "sh"]
    model = json.loads(tokenizer.to_str())
    model["model"]["vocab"] = {piece: number for number, piece in enumerate(pieces)}
    model["model"]["merges"] = [["t", "h"], ["th", "e"], ["\u2581", "the"], ["s", "h"]]
    return Tokenizer.from_str(json.dumps(model))


def classes(rng, folder):
    """A tokenizer.json beside a class and a family, which may make parts of it anew."""
    tokenizer = metaspace(rng) if rng.random() < 0.4 else byte_level(rng, rng.random() < 0.5)
    tokenizer.add_special_tokens(["<s>", "</s>", "<|end|>"])
    config, files = {"bos_token": "<s>", "eos_token": "</s>"}, {}
    if rng.random() < 0.4:
        tokenizer.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A $B", [("<s>", tokenizer.token_to_id("<s>"))])
    names = ["PreTrainedTokenizerFast", "LlamaTokenizer", "LlamaTokenizerFast", "GPT2Tokenizer", "GPT2TokenizerFast", "Qwen2Tokenizer",
             "Qwen2TokenizerFast", "TokenizersBackend", None]
    if (name := rng.choice(names)) is not None:
        config["tokenizer_class"] = name
    for key in ("add_prefix_space", "legacy", "add_bos_token", "add_eos_token"):
        if rng.random() < 0.3:
            config[key] = rng.random() < 0.5
    if (family := rng.choice(["llama", "mistral", "gpt2", "qwen2", "qwen3", "smollm3", None])) is not None:
        files["config.json"] = {"model_type": family}
    write(folder, files | {"tokenizer_config.json": config, "tokenizer.json": tokenizer.to_str()})
    return {"<s>", "</s>", "<|end|>", "<|endoftext|>", "<unk>", "\u2581"}


def vocab_and_merges(rng, folder):
    qwen2 = rng.random() < 0.5
    model = json.loads(byte_level(rng, qwen2).to_str())["model"]
    files, named = random_config(rng, [], len(model["vocab"]))
    config = files["tokenizer_config.json"]
    config["tokenizer_class"] = "Qwen2Tokenizer" if qwen2 else "GPT2Tokenizer"
    if qwen2:  # it adds its special tokens a second time, without their rules
        for name in [name for name in NAMES if isinstance(config.get(name), dict)]:
            del config[name]
        for name in ("extra_special_tokens", "additional_special_tokens", "added_tokens_decoder"):
            config.pop(name, None)
    for name in ("add_prefix_space", "add_bos_token", "add_eos_token"):
        if rng.random() < 0.3:
            config[name] = rng.random() < 0.7
    files["vocab.json"] = model["vocab"]
    files["merges.txt"] = "#version: 0.2\n" + "".join(" ".join(pair) + "\n" for pair in model["merges"])
    write(folder, files)
    return named | {"<|endoftext|>"}


def sentencepiece(rng, folder):
    import sentencepiece as spm
    files, named = random_config(rng, [], 500)
    config = files["tokenizer_config.json"]
    config["tokenizer_class"] = "LlamaTokenizer"
    for name in ("add_prefix_space", "legacy", "add_bos_token", "add_eos_token"):
        if rng.random() < 0.4:
            config[name] = rng.random() < 0.5
    write(folder, files)
    lines = [line for text in corpus(rng) for line in text.split("\n") if line]
    spm.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_prefix=str(folder / "tokenizer"), vocab_size=rng.choice([330, 400]),
                                   model_type="bpe", byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
                                   split_digits=True, allow_whitespace_only_pieces=True, hard_vocab_limit=False, minloglevel=2,
                                   user_defined_symbols=["<tool>"] if rng.random() < 0.5 else [])
    (folder / "tokenizer.vocab").unlink()
    return named | {"<tool>", "<unk>", "\u2581"}


def unigram(rng, folder):
    """A folder of a class over Unigram: its sentencepiece model, or a tokenizer.json whose parts the class makes anew."""
    import unigram_kinds
    name = rng.choice(["XLMRobertaTokenizer", "CamembertTokenizer", "T5Tokenizer", "AlbertTokenizer"])
    pieces = {"AlbertTokenizer": dict(pad_id=0, unk_id=1, bos_id=-1, eos_id=-1, control_symbols=["[CLS]", "[SEP]", "[MASK]"], pad_piece="<pad>"),
              "T5Tokenizer": dict(pad_id=0, eos_id=1, unk_id=2, bos_id=-1)}.get(name, {})
    if rng.random() < 0.3:
        pieces["user_defined_symbols"] = ["<tool>"]
    rule = rng.choice(["nmt_nfkc", "nfkc", "identity", "nmt_nfkc_cf"])
    has_bytes = rng.random() < 0.2
    model = unigram_kinds.trained(corpus(rng), rng.choice([80, 120]) + 300 * has_bytes, rule, byte_fallback=has_bytes, **pieces)
    files, named = random_config(rng, [], len(model.pieces))
    config = files["tokenizer_config.json"]
    config["tokenizer_class"] = name + rng.choice(["", "Fast"])
    if rng.random() < 0.2:
        del config["tokenizer_class"]
        files["config.json"] = {"model_type": {"X": "xlm-roberta", "C": "camembert", "T": "t5", "A": "albert"}[name[0]]}
    for key in ("add_prefix_space", "do_lower_case", "keep_accents"):
        if rng.random() < 0.3:
            config[key] = rng.random() < 0.5
    if name == "T5Tokenizer" and rng.random() < 0.6:
        config["extra_ids"] = rng.choice([0, 3, 100])
    is_json = rng.random() < 0.35
    if is_json:
        vocab = unigram_kinds.fairseq(model) if name[0] in "XC" else unigram_kinds.pieces(model)
        charsmap = model.normalizer_spec.precompiled_charsmap
        steps = ([normalizers.Precompiled(charsmap)] if charsmap else []) + unigram_kinds.blanks()
        tokenizer = unigram_kinds.assembled(vocab, 3 if name[0] == "X" else 1, normalizers.Sequence(steps), pre_tokenizers.Metaspace(), decoders.Metaspace())
        tokenizer.add_special_tokens([token for token in ("<s>", "</s>", "<mask>", "<tool>") if tokenizer.token_to_id(token) is not None])
        files["tokenizer.json"] = tokenizer.to_str()
        config.pop("added_tokens_decoder", None)
    write(folder, files)
    if not is_json:
        (folder / ("sentencepiece.bpe.model" if name[0] in "XC" else "spiece.model")).write_bytes(model.SerializeToString())
    return named | {"<tool>", "<unk>", "<mask>", "<pad>", "[MASK]", "<extra_id_0>", "<extra_id_2>", "\u2581", "<s>NOTUSED", "``"}


def bert(rng, folder):
    """A folder of a class that is BertTokenizer: vocab.txt, or a tokenizer.json whose parts it makes anew."""
    tokenizer = tokenizer_kinds.word_piece(corpus(rng), 200, lower=rng.random() < 0.5)
    files, named = random_config(rng, [], tokenizer.get_vocab_size())
    config = files["tokenizer_config.json"]
    config["tokenizer_class"] = rng.choice(["BertTokenizer", "BertTokenizerFast", "DistilBertTokenizer", "DistilBertTokenizerFast", "ElectraTokenizer"])
    if rng.random() < 0.2:
        del config["tokenizer_class"]
        files["config.json"] = {"model_type": rng.choice(["bert", "distilbert", "electra"])}
    for name in ("do_lower_case", "tokenize_chinese_chars", "strip_accents"):
        if rng.random() < 0.5:
            config[name] = rng.choice([True, False] if name != "strip_accents" else [True, False, None])
    if rng.random() < 0.3:
        config.pop("added_tokens_decoder", None)  # in its place transformers forgets the added tokens of tokenizer.json
        files["tokenizer.json"] = tokenizer.to_str()
    else:
        lines = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)
        for extra in rng.sample(["", "the", "\u2028", " a", "##x", "##", "[MASK] "], rng.randint(0, 4)):
            lines.insert(rng.randint(0, len(lines)), extra)
        tokens = {line.rstrip() for line in lines}
        if len(tokens) < len(lines):  # ids with holes: the package gives an added token the id of another one, and here it is refused
            files = {"tokenizer_config.json": {name: value for name, value in config.items() if not name.endswith("tokens") and name != "added_tokens_decoder"
                                               and (not name.endswith("_token") or value in BERT_TOKENS)}}
            files["tokenizer_config.json"]["tokenizer_class"] = "BertTokenizer"
        files["vocab.txt"] = rng.choice(["\n", "\r\n"]).join(lines) + rng.choice(["", "\n"])
    write(folder, files)
    return named | {"[MASK]", "[CLS]", "[UNK]"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="the build folder whose libraries are tested")
    parser.add_argument("--only", default="", help="kinds whose name contains this")
    parser.add_argument("--random", type=int, default=60, help="folders of each kind")
    args = parser.parse_args()
    checks = Checks()
    kinds = {"tokens beside tokenizer.json": named_tokens, "tokenizer.json of a class": classes, "vocab.json and merges.txt": vocab_and_merges, "BERT": bert}
    try:
        import google.protobuf  # noqa: F401
        import sentencepiece as _  # noqa: F401
        kinds |= {"tokenizer.model": sentencepiece, "Unigram": unigram}
    except ImportError:
        print("SKIP tokenizer.model, Unigram: the packages sentencepiece and protobuf are not installed")
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        driver = Driver(build_driver(pathlib.Path(args.build), "tokenizer_driver.cpp", scratch, ("tokenizers", "io", "base")), scratch)
        for name, make in kinds.items():
            if args.only not in name:
                continue
            found, opened = [], 0
            for seed in range(args.random):
                rng = random.Random(f"{name} {seed}")
                named = make(rng, scratch / "folder")
                wrong = compare(f"{name} {seed}", scratch / "folder", texts_of(rng, named), driver)
                opened += wrong is None or wrong[0] != "not opened"
                if wrong and wrong[0] != "not opened":
                    found.append(": ".join(wrong))
            checks.check(name, "as AutoTokenizer", not found and opened, found[:3] if found else f"{opened} folders of {args.random} that it opens")
    print(f"interop: {checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
