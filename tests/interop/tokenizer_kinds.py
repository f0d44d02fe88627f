"""Tokenizers of every supported kind, trained here by the `tokenizers` package, as tokenizer.json texts."""
import json

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import unigram_kinds

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
LLAMA3 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + TAIL
QWEN2 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + TAIL
LONG_DIGITS = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+" + TAIL
POSSESSIVE = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
QWEN_MARKS = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT4O = (r"[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + "+" + CONTRACTIONS + r"?|[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER + "*" +
         CONTRACTIONS + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + r"+|[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER +
          r"*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TIKTOKEN_GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

META = "\u2581"
ODD_TOKENS = [
    AddedToken("<|end|>", special=True, normalized=False), AddedToken("<|start|>", special=True, normalized=False),
    AddedToken("<|start|>x", special=False, normalized=False), AddedToken("[MASK]", lstrip=True, special=True, normalized=False),
    AddedToken("<r>", rstrip=True, normalized=False), AddedToken("<b>", lstrip=True, rstrip=True, normalized=False),
    AddedToken("word", single_word=True, normalized=True), AddedToken("solo", single_word=True, normalized=False),
    AddedToken("Norm", normalized=True), AddedToken("caf\u00e9", normalized=True), AddedToken("   ", normalized=False),
    AddedToken("\n\n", normalized=True, rstrip=True), AddedToken("<n>", normalized=True, special=True),
]
BERT_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ODD_TEXTS = [
    "<|start|>user<|end|>", "<|start|>x <|start|>y<|start|><|start|>", "a  [MASK]  b[MASK][MASK] \n[MASK]", "a <r>   b <r>\n c<r>",
    "x  <b>  y<b><b> <b>", "word words sword word_ (word) word", "solo solos \u00e9solo solo", "Norm norm aNormb caf\u00e9 cafe\u0301 CAF\u00c9",
    "a   b    c      d <r>      e", "a\n\n\n\n  b\n\nc", "<n>a<n> <n>", "<|end|>" * 40, "  <|end|>  ", "<|en", "<|start|", "<|end|>\u0301a", "<|end|> word",
]


def byte_level_trainer(size):
    return trainers.BpeTrainer(vocab_size=size, special_tokens=["<|endoftext|>"], show_progress=False,
                               initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


def byte_level(texts, size, split=None, normalizer=None, prefix_space=False, digits=None, ignore_merges=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer:
        tokenizer.normalizer = normalizer
    stages = [pre_tokenizers.Digits(individual_digits=digits)] if digits is not None else []
    if split:
        stages.append(pre_tokenizers.Split(Regex(split), "isolated"))
    stages.append(pre_tokenizers.ByteLevel(add_prefix_space=prefix_space, use_regex=split is None))
    tokenizer.pre_tokenizer = stages[0] if len(stages) == 1 else pre_tokenizers.Sequence(stages)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, byte_level_trainer(size))
    return tokenizer


def llama_decoder():
    return decoders.Sequence([decoders.Replace(META, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])


def characters(texts, size, byte_fallback=True, fuse=True, unknown="<unk>"):
    """A vocabulary over characters with the 256 byte tokens, as SentencePiece makes them."""
    tokenizer = Tokenizer(models.BPE(unk_token=unknown, fuse_unk=fuse, byte_fallback=byte_fallback))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<unk>", "<s>", "</s>"] + ([f"<0x{byte:02X}>" for byte in range(256)] if byte_fallback else [])
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False,
                                                             limit_alphabet=400))
    plain = json.loads(tokenizer.to_str())  # the byte tokens are no added tokens in the public files
    plain["added_tokens"] = [token for token in plain["added_tokens"] if not token["content"].startswith("<0x")]
    return Tokenizer.from_str(json.dumps(plain))


def around(tokenizer, before, after=()):
    pieces = [*before, "$A", *after]
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single=" ".join(pieces), pair="$A $B", special_tokens=[(name, tokenizer.token_to_id(name)) for name in (*before, *after)])])
    return tokenizer


def word_piece(texts, size, lower=True, han=True, accents=None, clean=True, prefix="##"):
    """As BERT's: special tokens around the texts, of types 0 and 1."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", continuing_subword_prefix=prefix))
    tokenizer.normalizer = normalizers.BertNormalizer(clean_text=clean, handle_chinese_chars=han, strip_accents=accents, lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=prefix)
    tokenizer.train_from_iterator(texts, trainers.WordPieceTrainer(vocab_size=size, special_tokens=BERT_TOKENS, limit_alphabet=600, show_progress=False,
                                                                   continuing_subword_prefix=prefix))
    ids = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ids)
    return tokenizer


def bert_kinds(texts, size):
    """BERT's tokenizer, and others whose rules are turned on and off."""
    bert = word_piece(texts, size)
    cased = word_piece(texts, size, lower=False)
    kept = word_piece(texts, size, accents=False, prefix="@")
    kept.post_processor = processors.BertProcessing(("[SEP]", kept.token_to_id("[SEP]")), ("[CLS]", kept.token_to_id("[CLS]")))
    kept.decoder = decoders.WordPiece(prefix="@", cleanup=False)
    raw = word_piece(texts, size, lower=False, han=False, accents=False, clean=False)
    raw.model.max_input_chars_per_word = 7
    roberta = word_piece(texts, size, lower=True, han=False, accents=True, clean=False)
    roberta.post_processor = processors.RobertaProcessing(("[SEP]", roberta.token_to_id("[SEP]")), ("[CLS]", roberta.token_to_id("[CLS]")), trim_offsets=False, add_prefix_space=False)
    marked = word_piece(texts, size)
    marked.add_tokens(ODD_TOKENS)
    return {"BERT": bert, "BERT, cased": cased, "BERT, accents kept": kept, "BERT, no rules": raw, "BERT, accents alone": roberta, "BERT, added tokens": marked}


def with_parts(tokenizer, normalizer=None, pre_tokenizer=None, decoder=None, added=()):
    """A copy with other parts; None takes a part away."""
    plain = json.loads(tokenizer.to_str())
    copy = Tokenizer.from_str(json.dumps(plain | dict(normalizer=None, pre_tokenizer=None, decoder=None)))
    if normalizer:
        copy.normalizer = normalizer
    if pre_tokenizer:
        copy.pre_tokenizer = pre_tokenizer
    if decoder:
        copy.decoder = decoder
    copy.add_tokens(list(added))
    return copy


def legacy(tokenizer, edit=None):
    """As files of 2020 spell it: merges as lines, no model.type."""
    plain = json.loads(tokenizer.to_str())
    plain["model"]["merges"] = ["#version: 0.2"] + [" ".join(pair) for pair in plain["model"]["merges"]]
    del plain["model"]["type"]
    if edit:
        edit(plain)
    return json.dumps(plain, ensure_ascii=False)


def metaspace_as_before(plain):
    del plain["pre_tokenizer"]["prepend_scheme"], plain["pre_tokenizer"]["split"]
    plain["pre_tokenizer"].update(add_prefix_space=True, str_rep=META)


def kinds(texts, size=6000):
    """name -> tokenizer.json. The first five are the kinds of the public models."""
    gpt2 = byte_level(texts, size)
    llama3 = byte_level(texts, size, split=LLAMA3, ignore_merges=True)
    llama3.add_special_tokens([AddedToken(name, normalized=False) for name in ("<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>")])
    qwen2 = byte_level(texts, size, split=QWEN2, normalizer=normalizers.NFC())
    qwen2.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    smollm = byte_level(texts, size, digits=True)
    chars = characters(texts, size)
    chars_unknown = characters(texts, 2000, byte_fallback=False)
    llama2_normalizer = normalizers.Sequence([normalizers.Prepend(META), normalizers.Replace(" ", META)])
    llama2 = around(with_parts(chars, llama2_normalizer, None, llama_decoder()), ["<s>"])
    meta = pre_tokenizers.Metaspace
    result = {
        "GPT-2": gpt2, "Llama-3": around(llama3, ["<|begin_of_text|>"]), "Qwen2": qwen2, "SmolLM": smollm, "Llama-2": llama2,
        "Mistral": around(with_parts(chars, None, meta(META, "first", split=False), llama_decoder()), ["<s>"], ["</s>"]),
        "Metaspace always": with_parts(chars, None, meta(META, "always"), decoders.Metaspace(META, "always")),
        "Metaspace never": with_parts(chars, None, meta(META, "never"), decoders.Metaspace(META, "never")),
        "Metaspace first, added tokens": with_parts(chars, None, meta(META, "first"), decoders.Metaspace(META, "first"), ODD_TOKENS),
        "Llama-2, added tokens": with_parts(chars, llama2_normalizer, None, llama_decoder(), ODD_TOKENS),
        "unknown, fused": with_parts(chars_unknown, None, meta()),
        "unknown, each": with_parts(characters(texts, 2000, byte_fallback=False, fuse=False), None, meta(split=False)),
        "unknown dropped": with_parts(characters(texts, 2000, byte_fallback=False, unknown=None), None, meta()),
        "GPT-2, prefix space, added tokens": with_parts(gpt2, None, pre_tokenizers.ByteLevel(add_prefix_space=True), decoders.ByteLevel(), ODD_TOKENS),
        "NFC, added tokens": with_parts(qwen2, normalizers.NFC(), qwen2.pre_tokenizer, decoders.ByteLevel(), ODD_TOKENS),
        "lower case, added tokens": with_parts(gpt2, normalizers.Sequence([normalizers.Lowercase(), normalizers.NFC()]), gpt2.pre_tokenizer, None, ODD_TOKENS),
        "no pre-tokenizer": with_parts(chars),
    }
    normal = {"NFD": normalizers.NFD(), "NFKC": normalizers.NFKC(), "NFKD": normalizers.NFKD(),
              "accents stripped": normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()]),
              "spaces stripped": normalizers.Strip(), "left stripped": normalizers.Strip(left=True, right=False), "replaced": normalizers.Replace("ab", "")}
    for name, normalizer in normal.items():
        result[name] = with_parts(chars, normalizer, meta(META, "first"), decoders.Metaspace(META, "first"))
    for name, pattern in {"long digits": LONG_DIGITS, "possessive": POSSESSIVE, "marks": QWEN_MARKS, "GPT-4o": GPT4O, "Tekken": TEKKEN, "tiktoken GPT-2": TIKTOKEN_GPT2}.items():
        split = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "removed", invert=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        result[name] = with_parts(gpt2, None, split, decoders.ByteLevel())
    for behavior in ("isolated", "removed", "contiguous", "merged_with_previous", "merged_with_next"):
        for invert in (False, True):
            split = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=invert), pre_tokenizers.Split("e", behavior, invert),
                                             pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
            result[f"literal {behavior}{', inverted' if invert else ''}"] = with_parts(gpt2, None, split, decoders.ByteLevel())
    result |= bert_kinds(texts, size) | unigram_kinds.kinds(texts, size, ODD_TOKENS)
    texts_of = {name: tokenizer.to_str() for name, tokenizer in result.items()}
    texts_of["GPT-2 of 2020"] = legacy(gpt2)
    texts_of["Metaspace of 2020"] = legacy(result["Metaspace always"], metaspace_as_before)
    texts_of["Unigram of 2020"] = unigram_kinds.older(next(tokenizer for name, tokenizer in result.items() if name.startswith("Unigram")))
    return texts_of
