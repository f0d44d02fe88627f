"""Modules of PyTorch: losses and gradients are theirs, parameters go both ways, what is unknown is named."""
import sys
import unittest

import common
import numpy as np
import plimsoll as pl

if common.HAS_TORCH:
    import plimsoll.torch as plt
    import torch
    import torch.nn.functional as F
    from torch import nn


@common.needs_torch
class Imports(unittest.TestCase):
    def compare(self, module, example, loss=None, steps=5):
        wanted = module(**{k: v for k, v in example.items() if loss is None or k != "target"})
        wanted = loss(wanted, example["target"]) if loss else getattr(wanted, "loss", wanted)
        module.zero_grad()
        wanted.backward()
        plan = plt.plan(module, example, loss, optimizer=pl.AdamW(lr=1e-3))
        with pl.Session(plan) as session:
            self.assertAlmostEqual(session.evaluate(example), wanted.item(), delta=1e-5 * abs(wanted.item()))
            gradients = session.gradients(example)
            for name, parameter in module.named_parameters():
                if parameter.grad is not None and name in gradients:
                    norm = parameter.grad.norm().item()
                    self.assertLess(np.linalg.norm(gradients[name] - parameter.grad.numpy()), 1e-4 * norm + 1e-6, name)
            losses = [session.step(example).loss for _ in range(steps)]
            self.assertLessEqual(losses[-1], losses[0])
            plt.copy_back(session, module)
            for name, parameter in module.named_parameters():
                if name in session:
                    np.testing.assert_array_equal(parameter.detach().numpy(), session[name])

    def test_a_perceptron(self):
        module = nn.Sequential(nn.Linear(7, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 1))
        self.compare(module, {"input": torch.randn(8, 7), "target": torch.randn(8, 1)}, lambda out, target: F.mse_loss(out, target))

    def test_attention_masks_and_tied_weights(self):
        class Net(nn.Module):
            def __init__(self, masked):
                super().__init__()
                self.tokens, self.head = nn.Embedding(31, 16), nn.Linear(16, 31, bias=False)
                self.head.weight, self.qkv, self.masked = self.tokens.weight, nn.Linear(16, 32), masked

            def forward(self, ids, labels):
                b, t = ids.shape
                q, k, v = self.qkv(self.tokens(ids)).split([16, 8, 8], dim=-1)
                q, k, v = [p.view(b, t, -1, 4).transpose(1, 2) for p in (q, k, v)]
                if self.masked == "gqa":
                    x = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
                else:
                    k, v = [p[:, :, None].expand(b, 2, 2, t, 4).reshape(b, 4, t, 4) for p in (k, v)]
                    i = torch.arange(t)
                    mask = (i[None] <= i[:, None]) & (i[None] > i[:, None] - 3) if self.masked == "window" else i[None] != 2
                    x = F.scaled_dot_product_attention(q, k, v, attn_mask=mask.expand(t, t))
                x = x.transpose(1, 2).reshape(b, t, 16)
                return F.cross_entropy(self.head(x).view(-1, 31), F.pad(labels, (0, 1), value=-100)[:, 1:].reshape(-1))

        ids = torch.randint(0, 31, (2, 6), generator=torch.Generator().manual_seed(0))
        for masked in ("gqa", "window", "other"):
            torch.manual_seed(0)
            self.compare(Net(masked), {"ids": ids, "labels": ids})

    def test_a_norm_written_out_becomes_one_op(self):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.up, self.weight = nn.Linear(7, 16), nn.Parameter(torch.rand(16) + 0.5)

            def forward(self, x):
                x = self.up(x)
                return (self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))).pow(2).sum(-1).sigmoid().mean()

        self.compare(Net(), {"x": torch.randn(8, 7)})

    def test_frozen_parameters_stay(self):
        module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        module[0].requires_grad_(False)
        example = {"input": torch.randn(5, 3), "target": torch.randn(5, 1)}
        with pl.Session(plt.plan(module, example, lambda o, target: F.mse_loss(o, target))) as session:
            session.step(example)
            np.testing.assert_array_equal(session["0.weight"], module[0].weight.numpy())
            self.assertEqual(sorted(session.gradients(example)), ["2.bias", "2.weight"])

    def test_what_is_unknown_is_named_with_its_line(self):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.up = nn.Linear(4, 4)

            def forward(self, x):
                return torch.cumsum(self.up(x), 1).mean() + torch.cumsum(x, 0).sum()

        with self.assertRaisesRegex(pl.UnsupportedOp, "cumsum .*2 times.*test_torch_import.py") as caught:
            plt.plan(Net(), {"x": torch.randn(2, 4)})
        self.assertEqual(caught.exception.op, "cumsum")
        with self.assertRaisesRegex(pl.SettingError, "y"):
            plt.plan(Net(), {"x": torch.randn(2, 4), "y": torch.randn(2)})


@unittest.skipUnless(common.HAS_TORCH and common.HAS_TRANSFORMERS, "transformers is not installed")
class Families(unittest.TestCase):
    def compare(self, name):
        sys.path.insert(0, str(common.ROOT / "bench" / "imports"))
        import families

        module, example = families.build(name)
        Imports.compare(self, module, example, steps=3)


for family in ("llama", "qwen2", "qwen3", "mistral", "gemma", "phi", "gpt2", "gpt_neox", "bert", "roberta", "distilbert", "t5", "vit"):
    setattr(Families, f"test_{family}", lambda self, family=family: self.compare(family))


if __name__ == "__main__":
    unittest.main()
