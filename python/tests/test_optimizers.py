"""Optimizers as settings, and their steps against torch.optim."""
import unittest

import common
import numpy as np
import plimsoll as pl
import rules


class Settings(unittest.TestCase):
    def test_groups_name_the_parameters_that_match_first(self):
        names = ["norm.weight", "up.weight", "up.bias", "norm.bias"]
        run = pl.AdamW(lr=1e-3, weight_decay=0.1).group("norm", lr=1e-4).group("bias", weight_decay=0).resolved(names)
        self.assertEqual(run["param_groups"], [{"params": ["norm.weight", "norm.bias"], "learning_rate": 1e-4},
                                               {"params": ["up.bias"], "weight_decay": 0.0}])

    def test_wrong_arguments_are_refused(self):
        with self.assertRaises(TypeError):
            pl.AdamW(learning_rate=1e-3)
        for make, word in ((lambda: pl.AdamW(lr=-1), "lr"), (lambda: pl.Adam(betas=(0.9, 1.0)), "betas"),
                           (lambda: pl.SGD(lr=0.1, nesterov=True), "nesterov"), (lambda: pl.AdamW().group("a(", lr=1), "a\\("),
                           (lambda: pl.AdamW().group("head", lr=1).resolved(["tail"]), "head")):
            with self.assertRaisesRegex(pl.SettingError, word):
                make()


class Net(pl.Module):
    def __init__(self, hidden=64):
        self.up, self.norm, self.down = pl.Linear(7, hidden), pl.LayerNorm(hidden), pl.Linear(hidden, 3)

    def forward(self, x, y):
        return pl.mse(self.down(pl.tanh(self.norm(self.up(x)))), y)


@common.needs_torch
class AgainstTorch(unittest.TestCase):
    def compare(self, ours, theirs, clip=None, steps=20):
        import torch

        class Twin(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.up, self.norm, self.down = torch.nn.Linear(7, 64), torch.nn.LayerNorm(64), torch.nn.Linear(64, 3)

            def forward(self, x, y):
                return torch.nn.functional.mse_loss(self.down(torch.tanh(self.norm(self.up(x)))), y)

        plan = pl.plan(Net(), inputs={"x": ((16, 7), "float32"), "y": ((16, 3), "float32")}, optimizer=ours, clip_norm=clip)
        twin, rng = Twin(), np.random.default_rng(0)
        with pl.Session(plan, seed=3) as session:
            with torch.no_grad():
                for name, parameter in twin.named_parameters():
                    parameter.copy_(torch.from_numpy(session[name]))
            optimizer = theirs(twin.parameters())
            for _ in range(steps):
                x, y = rng.normal(size=(16, 7)).astype(np.float32), rng.normal(size=(16, 3)).astype(np.float32)
                step = session.step({"x": x, "y": y})
                optimizer.zero_grad()
                loss = twin(torch.from_numpy(x), torch.from_numpy(y))
                loss.backward()
                norm = torch.nn.utils.clip_grad_norm_(twin.parameters(), clip if clip else float("inf"))
                optimizer.step()
                self.assertAlmostEqual(step.loss, loss.item(), delta=1e-4 * abs(loss.item()))
                self.assertAlmostEqual(step.grad_norm, norm.item(), delta=1e-3 * norm.item())
            for name, parameter in twin.named_parameters():
                wanted = parameter.detach().numpy()
                self.assertLess(np.linalg.norm(session[name] - wanted), 2e-4 * (np.linalg.norm(wanted) + 1e-3), name)

    def test_sgd(self):
        import torch

        self.compare(pl.SGD(lr=0.05), lambda p: torch.optim.SGD(p, lr=0.05))
        self.compare(pl.SGD(lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.1),
                     lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.1))

    def test_adam(self):
        import torch

        self.compare(pl.Adam(lr=1e-2), lambda p: torch.optim.Adam(p, lr=1e-2))
        self.compare(pl.Adam(lr=1e-2, weight_decay=0.1), lambda p: torch.optim.Adam(p, lr=1e-2, weight_decay=0.1))

    def test_adamw(self):
        import torch

        self.compare(pl.AdamW(lr=1e-2), lambda p: torch.optim.AdamW(p, lr=1e-2))
        self.compare(pl.AdamW(lr=1e-2, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.2),
                     lambda p: torch.optim.AdamW(p, lr=1e-2, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.2), clip=0.5)


class AgainstTheRule(unittest.TestCase):
    """Twenty steps beside the formula, which gets the session's gradients and begins with its parameters."""

    def compare(self, ours, make_rule, limit=1e-6):
        plan = pl.plan(Net(hidden=640), inputs={"x": ((16, 7), "float32"), "y": ((16, 3), "float32")}, optimizer=ours)
        rng = np.random.default_rng(0)
        with pl.Session(plan, seed=3) as session:
            start = session.state_dict()
            rule = make_rule(start)
            for step in range(20):
                batch = {"x": rng.normal(size=(16, 7)).astype(np.float32), "y": rng.normal(size=(16, 3)).astype(np.float32)}
                rule.step(session.gradients(batch))
                session.step(batch)
                for name, wanted in rule.values.items():
                    apart = np.linalg.norm(session[name] - wanted) / np.linalg.norm(wanted)
                    self.assertLess(apart, limit, f"{name} after step {step + 1}")
            for name, wanted in rule.values.items():
                self.assertGreater(np.linalg.norm(wanted - start[name]), 1e-3 * np.linalg.norm(wanted), name)

    def test_lion(self):
        self.compare(pl.Lion(lr=1e-3), lambda p: rules.Lion(p, 1e-3, 0.0, (0.9, 0.99)))
        self.compare(pl.Lion(lr=1e-3, betas=(0.8, 0.95), weight_decay=0.5), lambda p: rules.Lion(p, 1e-3, 0.5, (0.8, 0.95)))

    def test_adafactor(self):
        self.compare(pl.Adafactor(lr=1e-2), lambda p: rules.Adafactor(p, 1e-2))

    def test_muon(self):
        self.compare(pl.Muon(lr=1e-2), lambda p: rules.Muon(p, 1e-2, 0.1, 0.95, True))
        self.compare(pl.Muon(lr=1e-2, momentum=0.8, nesterov=False, weight_decay=0.0),
                     lambda p: rules.Muon(p, 1e-2, 0.0, 0.8, False))

    @common.needs_torch
    def test_adamw_8bit(self):
        self.compare(pl.AdamW8bit(lr=1e-2, weight_decay=0.1), lambda p: rules.AdamW8bit(p, 1e-2, 0.1))



if __name__ == "__main__":
    unittest.main()
