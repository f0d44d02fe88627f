"""Records what transformers renders for the templates beside this file: recorded/<template>.json.

    python record.py

The templates use what public models' templates use; the conversations are conversations.py's. Texts are
apply_chat_template's, "generation" are the {% generation %} blocks in bytes, an error is null. The clock stands at
2025-01-01.
"""
import datetime
import json
import pathlib

from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

from conversations import CONVERSATIONS, TOKENS

HERE = pathlib.Path(__file__).resolve().parent


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2025, 1, 1)


chat_template_utils.datetime = Clock


def make_tokenizer(tokens=TOKENS):
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), **tokens)


def render(tokenizer, template, record, prompt):
    """The text, and the generation blocks in bytes; None where it fails, with the error."""
    more = dict(tools=record.get("tools"), documents=record.get("documents"), **record.get("chat_template_kwargs") or {})
    try:
        text = tokenizer.apply_chat_template(record["messages"], chat_template=template, tokenize=False,
                                             add_generation_prompt=prompt, **more)
        messages = [{key: value for key, value in message.items() if value is not None} for message in record["messages"]]
        texts, blocks = chat_template_utils.render_jinja_template(
            [messages], chat_template=template, return_assistant_tokens_mask=True, add_generation_prompt=prompt,
            **tokenizer.special_tokens_map, **more)
    except Exception as error:  # a template raises what it likes
        return None, f"{type(error).__name__}: {error}"
    assert texts[0] == text
    return text, [[len(text[:begin].encode()), len(text[:end].encode())] for begin, end in blocks[0] if end > begin]


def main():
    tokenizer = make_tokenizer()
    (HERE / "recorded").mkdir(exist_ok=True)
    for file in sorted((HERE / "templates").glob("*.jinja")):
        cases = []
        for name, record in CONVERSATIONS.items():
            for prompt in (False, True) if name in ("pair", "turns", "tools", "no thinking") else (False,):
                text, spans = render(tokenizer, file.read_text(), record, prompt)
                cases.append({"conversation": name, "prompt": prompt, "text": text,
                              "generation": spans if text is not None else []})
        lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
        (HERE / "recorded" / f"{file.stem}.json").write_text(f"[\n{lines}\n]\n")
        print(file.stem, len(cases), sum(case["text"] is None for case in cases))
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(record, ensure_ascii=False)}" for name, record in CONVERSATIONS.items())
    (HERE / "recorded" / "conversations.json").write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
