"""Optimizers: descriptions that ``plan()`` makes part of the step. SGD, Adam, AdamW and Muon compute what PyTorch's classes
of these names compute; Lion, Adafactor and AdamW8bit are those of run files.

``lr`` is the learning rate of every step that is not given one (``session.step(batch, lr=…)``).
"""
from __future__ import annotations

import copy
import re
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

from .errors import SettingError, nearest

Betas = Tuple[float, float]


class Optimizer:
    """The base class of the optimizers. Use one of the classes below."""

    name = ""

    def __init__(self, lr: float, **settings: Any) -> None:
        self.lr = _number("lr", lr)
        self.settings: Dict[str, Any] = {"optimizer": self.name, "learning_rate": self.lr, **settings}
        self.groups: List[Tuple[str, Dict[str, Any]]] = []

    def group(self, pattern: str, *, lr: Optional[float] = None, weight_decay: Optional[float] = None,
              betas: Optional[Betas] = None) -> "Optimizer":
        """A copy of this optimizer in which the parameters whose name matches ``pattern`` (a regular expression, found
        anywhere in the name) have hyper-parameters of their own. If several patterns match, the first one applies.

        ``AdamW(lr=3e-4, weight_decay=0.1).group("norm|bias", weight_decay=0)``
        """
        try:
            re.compile(pattern)
        except re.error as error:
            raise SettingError(f"optimizer group: {pattern!r} is not a regular expression: {error}") from None
        own: Dict[str, Any] = {}
        if lr is not None:
            own["learning_rate"] = _number("lr", lr)
        if weight_decay is not None:
            own["weight_decay"] = _number("weight_decay", weight_decay)
        if betas is not None:
            own["betas"] = list(_betas(betas))
        if not own:
            raise SettingError(f"optimizer group {pattern!r} changes nothing", "give lr, weight_decay or betas")
        changed = copy.copy(self)
        changed.groups = [*self.groups, (pattern, own)]
        return changed

    def resolved(self, names: Sequence[str]) -> Dict[str, Any]:
        """The settings of a run file's section ``training``, for parameters of these names."""
        settings = dict(self.settings)
        taken: Set[str] = set()
        groups = []
        for pattern, own in self.groups:
            matched = [name for name in names if name not in taken and re.search(pattern, name)]
            if not any(re.search(pattern, name) for name in names):
                raise SettingError(f"optimizer group {pattern!r} matches no parameter",
                                   nearest(pattern, names, "parameters"))
            taken.update(matched)
            if matched:
                groups.append({"params": matched, **own})
        if groups:
            settings["param_groups"] = groups
        return settings

    def __repr__(self) -> str:
        inside = ", ".join(f"{key}={value!r}" for key, value in self.settings.items() if key != "optimizer")
        return f"{type(self).__name__}({inside})"


class SGD(Optimizer):
    """Stochastic gradient descent as ``torch.optim.SGD``: weight decay is added to the gradient."""

    name = "sgd"

    def __init__(self, lr: float = 1e-3, momentum: float = 0.0, nesterov: bool = False, weight_decay: float = 0.0,
                 dampening: float = 0.0) -> None:
        if nesterov and (not momentum or dampening):
            raise SettingError("SGD: nesterov needs a momentum and no dampening", "give momentum=0.9")
        super().__init__(lr, momentum=_number("momentum", momentum), nesterov=bool(nesterov),
                         weight_decay=_number("weight_decay", weight_decay), dampening=_number("dampening", dampening),
                         weight_decay_scope="all")


class _AdamLike(Optimizer):
    def __init__(self, lr: float, betas: Betas, eps: float, weight_decay: float) -> None:
        beta1, beta2 = _betas(betas)
        super().__init__(lr, adam_beta1=beta1, adam_beta2=beta2, adam_epsilon=_number("eps", eps),
                         weight_decay=_number("weight_decay", weight_decay), weight_decay_scope="all")


class Adam(_AdamLike):
    """Adam as ``torch.optim.Adam``: weight decay is added to the gradient."""

    name = "adam"

    def __init__(self, lr: float = 1e-3, betas: Betas = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0) -> None:
        super().__init__(lr, betas, eps, weight_decay)


class AdamW(_AdamLike):
    """AdamW as ``torch.optim.AdamW``: weight decay is decoupled from the gradient."""

    name = "adamw"

    def __init__(self, lr: float = 1e-3, betas: Betas = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.01) -> None:
        super().__init__(lr, betas, eps, weight_decay)


class AdamW8bit(AdamW):
    """AdamW whose moments are kept in 8 bits, as bitsandbytes' ``AdamW8bit``."""

    name = "adamw_8bit"


class Lion(Optimizer):
    """Lion (Chen et al. 2023, arXiv:2302.06675): one moment, the update is a sign."""

    name = "lion"

    def __init__(self, lr: float = 1e-4, betas: Betas = (0.9, 0.99), weight_decay: float = 0.0) -> None:
        beta1, beta2 = _betas(betas)
        super().__init__(lr, adam_beta1=beta1, adam_beta2=beta2, weight_decay=_number("weight_decay", weight_decay),
                         weight_decay_scope="all")


class Adafactor(Optimizer):
    """Adafactor (Shazeer and Stern 2018) with a given learning rate: no relative step, no scaling by the parameter."""

    name = "adafactor"

    def __init__(self, lr: float = 1e-3, weight_decay: float = 0.0, beta1: Optional[float] = None,
                 clip_threshold: float = 1.0, decay_rate: float = -0.8, eps: Tuple[float, float] = (1e-30, 1e-3)) -> None:
        super().__init__(lr, weight_decay=_number("weight_decay", weight_decay), weight_decay_scope="all",
                         adafactor={"beta1": beta1, "clip_threshold": _number("clip_threshold", clip_threshold),
                                    "decay_rate": float(decay_rate), "eps": [float(e) for e in eps]})


class Muon(Optimizer):
    """Muon as ``torch.optim.Muon`` for the matrices of hidden layers; AdamW updates all other parameters."""

    name = "muon"

    def __init__(self, lr: float = 1e-3, momentum: float = 0.95, nesterov: bool = True, weight_decay: float = 0.1,
                 ns_steps: int = 5, betas: Betas = (0.9, 0.999), eps: float = 1e-8) -> None:
        beta1, beta2 = _betas(betas)
        super().__init__(lr, weight_decay=_number("weight_decay", weight_decay), weight_decay_scope="all",
                         adam_beta1=beta1, adam_beta2=beta2, adam_epsilon=_number("eps", eps),
                         muon={"momentum": _number("momentum", momentum), "nesterov": bool(nesterov),
                               "ns_steps": int(ns_steps)})


def _number(what: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise SettingError(f"{what}: {value!r} is not a number") from None
    if not 0.0 <= number < float("inf"):
        raise SettingError(f"{what}: {value!r} is negative or not finite")
    return number


def _betas(betas: Any) -> Betas:
    try:
        first, second = betas
    except (TypeError, ValueError):
        raise SettingError(f"betas: expected two numbers, got {betas!r}") from None
    for beta in (_number("betas", first), _number("betas", second)):
        if beta >= 1.0:
            raise SettingError(f"betas: {beta!r} is not below 1")
    return float(first), float(second)
