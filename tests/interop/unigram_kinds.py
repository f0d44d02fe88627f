"""Unigram tokenizers as the families of transformers have them (XLM-RoBERTa, CamemBERT, T5, ALBERT and their like), trained here by the
packages sentencepiece and tokenizers; the charsmaps are sentencepiece's."""
import collections
import functools
import io
import json
import struct

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

META = "\u2581"
# A few of the rules of nmt_nfkc, and some that are nobody's.
SMALL_CHARSMAP = {"\t": " ", "\n": " ", "\r": " ", "\x7f": "", "\u3000": " ", "\ufb01": "fi", "e\u0301": "\u00e9", "\u212b": "\u00c5"}
RULES = ["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf"]


def double_array(entries):
    """The bytes of a charsmap that replaces each key: a block of 256 units for each node."""
    units, strings = [0] * 256, b""
    root = 256
    units += [0] * 256
    units[0] = root << 10
    nodes = {b"": root}
    for key, value in entries.items():
        key = key.encode()
        for i in range(len(key)):
            if key[:i + 1] not in nodes:
                nodes[key[:i + 1]] = len(units)
                at = nodes[key[:i]] ^ key[i]
                units[at] = key[i] | (at ^ len(units)) << 10
                units += [0] * 256
        at = nodes[key[:-1]] ^ key[-1]
        units[at] |= 0x100
        units[nodes[key]] = 1 << 31 | len(strings)
        strings += value.encode() + b"\0"
    return struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + strings


def have_sentencepiece():
    try:
        import google.protobuf  # noqa: F401
        import sentencepiece  # noqa: F401
    except ImportError:
        return False
    return True


def trained(texts, size, rule="nmt_nfkc", **more):
    """The message of a model that sentencepiece trained."""
    import sentencepiece as spm
    from sentencepiece import sentencepiece_model_pb2
    common = {c for c, _ in collections.Counter("".join(texts)).most_common(size // 2)}
    texts = ["".join(c for c in text if c in common) for text in texts]
    lines = [line[:2000] for text in texts for line in text.replace("\0", "").split("\n") if line.strip()]
    out = io.BytesIO()
    options = dict(vocab_size=size, model_type="unigram", normalization_rule_name=rule, hard_vocab_limit=False, minloglevel=2,
                   character_coverage=1.0, num_threads=1, max_sentence_length=10000) | more
    spm.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, **options)
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(out.getvalue())
    return model


@functools.cache
def charsmap(rule):
    return trained(["the ship floats on the sea"] * 4, 20, rule).normalizer_spec.precompiled_charsmap


def pieces(model):
    return [(piece.piece, piece.score) for piece in model.pieces]


def fairseq(model):
    """As XLM-RoBERTa shifts the ids."""
    return [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *pieces(model)[3:], ("<mask>", 0.0)]


def assembled(vocab, unk_id, normalizer=None, pre_tokenizer=None, decoder=None, byte_fallback=False, added=()):
    tokenizer = Tokenizer(models.Unigram(vocab, unk_id, byte_fallback))
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    if decoder:
        tokenizer.decoder = decoder
    tokenizer.add_tokens(list(added))
    return tokenizer


def special(*names):
    return [AddedToken(name, special=True, normalized=False) for name in names]


def template(tokenizer, single, pair, names):
    tokenizer.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=[(name, tokenizer.token_to_id(name)) for name in names])
    return tokenizer


def words_and_meta(scheme="always"):
    return pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(META, scheme)])


def blanks(content=META, stripped=True):
    return [normalizers.Strip(left=False, right=True)] * stripped + [normalizers.Replace(Regex(" {2,}"), content)]


def kinds(texts, size, odd_tokens):
    """name -> tokenizer. The first four are the kinds of the public models."""
    meta, decoder = pre_tokenizers.Metaspace, decoders.Metaspace
    plain = Tokenizer(models.Unigram())
    plain.pre_tokenizer = meta()
    few = ["".join(c for c in text if "\0" < c < "\u0500") for text in texts]  # every character gets a piece
    plain.train_from_iterator(few, trainers.UnigramTrainer(
        vocab_size=max(size // 2, 150), special_tokens=["<unk>"], unk_token="<unk>", show_progress=False))
    small = Tokenizer.from_str(plain.to_str())
    small.normalizer = normalizers.Sequence([normalizers.Precompiled(double_array(SMALL_CHARSMAP)), *blanks()])
    small.decoder = decoder()
    small.add_tokens([token for token in odd_tokens if token.content.strip()])
    bindings = Tokenizer.from_str(plain.to_str())  # as the package's SentencePieceUnigramTokenizer
    bindings.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), *blanks(" ", False)])
    bindings.decoder = decoder()
    result = {"trained by tokenizers": plain, "Nmt": bindings, "small charsmap, added tokens": small}
    if not have_sentencepiece():
        print("SKIP Unigram with charsmaps: the packages sentencepiece and protobuf are not installed")
        return {f"Unigram, {name}": tokenizer for name, tokenizer in result.items()}
    model, bytes_model = trained(texts, size), trained(texts, size, "identity", byte_fallback=True, remove_extra_whitespaces=False)
    mapped = {rule: normalizers.Precompiled(charsmap(rule)) for rule in RULES}
    nmt = mapped["nmt_nfkc"]
    roberta_pair = ("<s> $A </s>", "<s> $A </s> </s> $B </s>", ("<s>", "</s>"))
    xlmr_tokens = special("<s>", "<pad>", "</s>", "<unk>") + [AddedToken("<mask>", special=True, lstrip=True, normalized=False)]
    extra = [(f"<extra_id_{i}>", 0.0) for i in range(9, -1, -1)]
    t5 = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *pieces(model)[3:], *extra]
    albert = normalizers.Sequence([normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents(),
                                   normalizers.Lowercase(), nmt])
    byte_decoder = decoders.Sequence([decoders.Replace(META, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    result = {
        "XLM-R": template(assembled(fairseq(model), 3, nmt, words_and_meta(), decoder(), added=xlmr_tokens), *roberta_pair),
        "XLM-R of transformers 4": template(assembled(fairseq(model), 3, normalizers.Sequence([nmt, *blanks()]), meta(), decoder(), added=xlmr_tokens), *roberta_pair),
        "T5": template(assembled(t5, 2, nmt, words_and_meta(), decoder(), added=special(*(name for name, _ in extra[::-1]))), "$A </s>", "$A </s> $B </s>", ["</s>"]),
        "ALBERT": assembled(pieces(model), 0, albert, words_and_meta(), decoder()),
        "T5 of 2020": assembled(t5, 2, normalizers.Sequence([nmt, *blanks(" ", False)]), words_and_meta(), decoder()),
        "bytes": assembled(pieces(bytes_model), 0, None, meta(META, "first", split=False), byte_decoder, byte_fallback=True, added=special("<s>", "</s>")),
        "bytes, words": assembled(pieces(bytes_model), 0, normalizers.Replace(" ", META), meta(), byte_decoder, byte_fallback=True),
        "first, added tokens": assembled(pieces(model), 0, normalizers.Sequence([nmt, *blanks()]), meta(META, "first"), decoder(META, "first"),
                                         added=[token for token in odd_tokens if token.content.strip()]),
        "never": assembled(pieces(model), 0, nmt, meta(META, "never"), decoder(META, "never")),
        "one word": assembled(pieces(model), 0, nmt, added=odd_tokens),
        "no unknown piece": assembled(pieces(bytes_model), None, None, meta()),
        **{f"charsmap {rule}": assembled(pieces(model), 0, normalizers.Sequence([mapped[rule], *blanks()]), meta(), decoder()) for rule in RULES},
        "Lowercase behind": assembled(pieces(model), 0, normalizers.Sequence([nmt, normalizers.Lowercase(), normalizers.NFC()]), meta(), decoder(), added=odd_tokens),
    } | result
    return {f"Unigram, {name}": tokenizer for name, tokenizer in result.items()}


def older(tokenizer):
    """As files of 2020 spell it."""
    plain = json.loads(tokenizer.to_str())
    del plain["model"]["type"], plain["model"]["byte_fallback"]
    return json.dumps(plain, ensure_ascii=False)
