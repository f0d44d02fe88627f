"""Training with the `tokenizers` package as `plimsoll data tokenizer` does it."""
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, decoders, trainers

import tokenizer_kinds

PRE_TOKENIZERS = ("gpt2", "llama3", "qwen2", "smollm", "gpt4o")


def words_of(name):
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if name == "gpt2":
        return byte_level
    if name == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])
    pattern = {"llama3": tokenizer_kinds.LLAMA3, "qwen2": tokenizer_kinds.QWEN2, "gpt4o": tokenizer_kinds.GPT4O}[name]
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def train(texts, pre_tokenizer, vocab_size, min_frequency, special_tokens):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = words_of(pre_tokenizer)
    if pre_tokenizer == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=vocab_size, min_frequency=min_frequency, special_tokens=list(special_tokens), show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer
