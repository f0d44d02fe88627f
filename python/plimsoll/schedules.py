"""Learning-rate schedules as plain functions of the step, for ``session.step(batch, lr=…)``.

Each takes the number of steps made so far (0 before the first), the steps of the run and the peak learning rate, and
returns the rate of the next step, as transformers' schedules do. Within ``warmup`` steps the rate rises linearly from 0.
"""
from __future__ import annotations

import math


def _warmup(step: int, peak: float, warmup: int) -> float:
    return peak * step / max(1, warmup)


def constant(step: int, total: int, peak: float, warmup: int = 0) -> float:
    """``peak`` at every step after the warm-up. ``total`` is ignored."""
    return _warmup(step, peak, warmup) if step < warmup else peak


def linear(step: int, total: int, peak: float, warmup: int = 0, floor: float = 0.0) -> float:
    """Decays linearly from ``peak`` to ``floor`` at step ``total``."""
    if step < warmup:
        return _warmup(step, peak, warmup)
    left = max(0.0, (total - step) / max(1, total - warmup))
    return floor + (peak - floor) * left


def cosine(step: int, total: int, peak: float, warmup: int = 0, floor: float = 0.0) -> float:
    """Decays along half a cosine from ``peak`` to ``floor`` at step ``total``."""
    if step < warmup:
        return _warmup(step, peak, warmup)
    progress = min(1.0, (step - warmup) / max(1, total - warmup))
    return floor + (peak - floor) * 0.5 * (1.0 + math.cos(math.pi * progress))
