"""Generation with a trained model, as ``plimsoll generate`` does it."""
from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Sequence, Union

from . import _native


def generate(model: Union[str, "os.PathLike[str]"], prompt: Union[str, Sequence[str]], *,
             max_new_tokens: Optional[int] = None, temperature: Optional[float] = None, top_p: Optional[float] = None,
             top_k: Optional[int] = None, seed: Optional[int] = None, stop: Sequence[str] = (),
             adapter: Union[str, "os.PathLike[str]", None] = None, memory_budget: Union[int, str, None] = None,
             **options: Any) -> Union[str, List[str]]:
    """Continues a prompt and returns the new text; for a list of prompts returns a list of texts in the same order.

    :param model: a Hugging Face model directory, or the folder of a run.
    :param temperature: 0: greedy. Arguments that are not given have the values of the model's ``generation_config.json``.
    :param options: other options of ``plimsoll generate``, with underscores: ``repetition_penalty``, ``min_p``, ``dtype``, ``raw`` …
    """
    prompts = [prompt] if isinstance(prompt, str) else list(prompt)
    request: Dict[str, Any] = {"model": os.fspath(model), "prompts": prompts}
    given = {"max_new_tokens": max_new_tokens, "temperature": temperature, "top_p": top_p, "top_k": top_k, "seed": seed,
             "stop": list(stop) or None, "adapter": None if adapter is None else os.fspath(adapter),
             "memory_budget": memory_budget, **options}
    request.update({name: value for name, value in given.items() if value is not None})
    texts: List[str] = []

    def receive(event: Dict[str, Any]) -> None:
        if event.get("event") == "generation":
            texts.append(str(event.get("text", "")))

    _native.watch("pls_generate", [_native.text(request)], receive)
    return texts[0] if isinstance(prompt, str) and texts else texts
