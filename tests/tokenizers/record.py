"""Writes recorded/*.json: small tokenizers of each kind, trained here by the `tokenizers` package, and what the package
makes of some texts.

    python record.py

Each file holds the tokenizer.json under "tokenizer" and under "cases": the text (or its bytes in hex), its ids with and
without special tokens, the bytes where the tokens of the former end (where the package and this project count alike), their decoded text with and without special tokens, and the chunks of the package's decode_stream.
"""
import json
import pathlib
import sys
import unicodedata

from tokenizers import Tokenizer, decoders

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "interop"))
import tokenizer_kinds  # noqa: E402
import tokenizers_compare  # noqa: E402

KINDS = ["GPT-2", "Llama-3", "Qwen2", "SmolLM", "Llama-2", "Mistral", "Metaspace always", "Metaspace first, added tokens",
         "unknown, fused", "unknown, each", "NFC, added tokens", "accents stripped", "GPT-4o", "GPT-2 of 2020",
         "literal merged_with_next", "BERT", "BERT, accents kept", "BERT, added tokens",
         "Unigram, trained by tokenizers", "Unigram, small charsmap, added tokens"]
TRAINING = ["The line on a ship's hull shows how far she may be loaded. " * 3, "It's the owner's word: they'll load, we've seen it. " * 2,
            "for (int i = 0; i < 10; ++i) {\n        total += values[i];\n        count += 1;\n}\n" * 2, "caf\u00e9 cr\u00e8me na\u00efve \u4f60\u597d\u4e16\u754c " * 4]
TEXTS = ["The ship's line, 12345 tons.", "  two  spaces   and\ttabs\n\n    code()  ", "It'S they'LL we'\u017f 'Re o'clock", "cafe\u0301 caf\u00e9 \u212b \u1e9b\u0323 \u1100\u1161\u11a8",
         "\u4f60\u597d\uff0c\u4e16\u754c\uff01 \u3053\u3093\u306b\u3061\u306f \uc548\ub155", "\U0001F468\u200d\U0001F469\u200d\U0001F467 \U0001F44D\U0001F3FD \u2764\ufe0f", "\u0645\u0631\u062d\u0628\u0627 \u0928\u092e\u0938\u094d\u0924\u0947 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\u0661\u0662\u0663 \u00bd 1a2 \u2167",
         "a\0b\x7f\x85\u2028\ufeff", "helloWorld HTTPServer aB AB\u0301", "a" * 300, " " * 90 + "x", "", " ", "\u2581 a\u2581\u2581b", "<0x41><0x0A>"] + tokenizer_kinds.ODD_TEXTS[:8]
BYTES = [b"a\xff\xfeb \xe4\xbd \xe4\xbd\xa0\xa0 \xf0\x9f\x98 \xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \xe4", b"\xf0\x9f"]


def chunks(tokenizer, ids):
    stream = decoders.DecodeStream(skip_special_tokens=False)
    return [stream.step(tokenizer, token) or "" for token in ids]


def case(tokenizer, data):
    text = data.decode(errors="replace")
    encoding = tokenizer.encode(text)
    ids = encoding.ids
    plain = tokenizer.encode(text, add_special_tokens=False).ids
    spelled = dict(text=text) if data == text.encode() else dict(hex=data.hex())
    # A cluster that became one character has its marks in it here.
    mapped = "Precompiled" in tokenizer.to_str() and any(map(unicodedata.combining, text))
    if data == text.encode() and not mapped and tokenizers_compare.ends_comparer(tokenizer.to_str())(tokenizer, text) and not (text and all(encoding.special_tokens_mask)):
        spelled["ends"] = tokenizers_compare.ends_of(encoding, text)
    return spelled | dict(ids=ids, plain=plain, decoded=tokenizer.decode(ids, skip_special_tokens=False),
                          skipped=tokenizer.decode(ids, skip_special_tokens=True), chunks=chunks(tokenizer, ids))


def main():
    made = tokenizer_kinds.kinds(TRAINING, size=420)
    for name in KINDS:
        tokenizer = Tokenizer.from_str(made[name])
        cases = [case(tokenizer, data) for data in [text.encode() for text in TEXTS] + BYTES]
        lines = ",\n".join(json.dumps(entry, ensure_ascii=True) for entry in cases)
        spelled = json.dumps(json.loads(made[name]), ensure_ascii=True)
        file = HERE / "recorded" / (name.lower().replace(",", "").replace(" ", "_") + ".json")
        file.write_text(f'{{"tokenizer": {spelled},\n"cases": [\n{lines}\n]}}\n')
        print(file.name, file.stat().st_size)


if __name__ == "__main__":
    main()
