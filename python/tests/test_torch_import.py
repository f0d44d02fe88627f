"""Modules of PyTorch: losses and gradients are theirs, parameters go both ways, what is unknown is named."""
import importlib.util
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
            if not (module.training and plan.buffers):  # a step of BatchNorm has the batch's statistics, and evaluate has not
                self.assertAlmostEqual(session.evaluate(example), wanted.item(), delta=1e-5 * abs(wanted.item()))
            gradients = session.gradients(example)
            for name, parameter in module.named_parameters():
                if parameter.grad is not None and name in gradients:
                    norm = parameter.grad.norm().item()
                    self.assertLess(np.linalg.norm(gradients[name] - parameter.grad.numpy()), 1e-4 * norm + 1e-6, name)
            losses = [session.step(example).loss for _ in range(steps)]
            self.assertLessEqual(losses[-1], losses[0])
            plt.copy_back(session, module)
            for name, tensor in (*module.named_parameters(), *module.named_buffers()):
                if name in session:
                    np.testing.assert_array_equal(tensor.detach().numpy(), session[name])

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

    def test_masks_that_depend_on_the_batch(self):
        class Net(nn.Module):
            def __init__(self, mask):
                super().__init__()
                self.tokens, self.qkv, self.mask = nn.Embedding(11, 8), nn.Linear(8, 24), mask

            def forward(self, ids, kept):
                b, t = ids.shape
                q, k, v = [p.view(b, t, 2, 4).transpose(1, 2) for p in self.qkv(self.tokens(ids)).chunk(3, dim=-1)]
                mask = self.mask(kept)[:, None, None, :]
                if mask.dtype is torch.bool:
                    mask = mask & torch.ones(t, t, dtype=torch.bool).tril()
                return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).square().mean()

        example = {"ids": torch.arange(18).reshape(3, 6) % 11, "kept": torch.tensor([[3] * 6, [1] * 4 + [0] * 2, [2] + [0] * 5])}
        for mask in (lambda kept: kept != 0, lambda kept: kept.bool(), lambda kept: ~(kept == 0) | (kept > 2),
                     lambda kept: (kept * 0.5).bool(), lambda kept: (kept == 0).float() * -1e9):
            torch.manual_seed(0)
            self.compare(Net(mask), example)

    def test_numbers_as_booleans(self):
        class Net(nn.Module):
            def __init__(self, function):
                super().__init__()
                self.tokens, self.function = nn.Embedding(11, 4), function

            def forward(self, ids):
                return (self.tokens(ids) * self.function(ids)[..., None]).square().mean()

        ids = torch.arange(12).reshape(2, 6) % 11
        self.compare(Net(lambda ids: ids.bool() * 2.0 + (ids * 0.5).bool().float()), {"ids": ids})
        for function in (lambda ids: ids & 3, lambda ids: ids | 4, lambda ids: ~ids, lambda ids: torch.logical_and(ids, ids + 1),
                         lambda ids: torch.div(ids, 2, rounding_mode="floor")):
            with self.assertRaises(pl.UnsupportedOp):
                plt.plan(Net(function), {"ids": ids})

    def test_only_the_plain_loss_is_taken_for_a_shifted_one(self):
        class Net(nn.Module):
            def __init__(self, **options):
                super().__init__()
                self.tokens, self.head, self.options = nn.Embedding(11, 8), nn.Linear(8, 11), options

            def forward(self, ids, labels):
                shifted = F.pad(labels, (0, 1), value=-100)[..., 1:].contiguous()
                return F.cross_entropy(self.head(self.tokens(ids)).view(-1, 11), shifted.view(-1), **self.options)

        ids = torch.arange(12).reshape(2, 6) % 11
        self.compare(Net(), {"ids": ids, "labels": ids})
        for options in ({"reduction": "sum"}, {"label_smoothing": 0.1}, {"weight": torch.rand(11)}):
            with self.assertRaisesRegex(pl.UnsupportedOp, "cross_entropy"):
                plt.plan(Net(**options), {"ids": ids, "labels": ids})

    def test_a_head_and_its_shifted_loss_are_computed_in_chunks_of_tokens(self):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.tokens, self.head = nn.Embedding(800, 8), nn.Linear(8, 800, bias=False)

            def forward(self, ids, labels):
                shifted = F.pad(labels, (0, 1), value=-100)[..., 1:].contiguous()
                return F.cross_entropy(self.head(self.tokens(ids)).view(-1, 800), shifted.view(-1))

        ids = torch.arange(4096).reshape(4, 1024) % 800
        labels = ids.masked_fill(ids % 5 == 0, -100)
        self.compare(Net(), {"ids": ids, "labels": labels})
        plan = plt.plan(Net(), {"ids": ids, "labels": labels}, memory_budget=1000)
        self.assertLess(plan.least_bytes, ids.numel() * 800 * 4 / 2, "the logits of all tokens")
        plan = plt.plan(Net(), {"ids": ids, "labels": labels}, memory_budget=plan.least_bytes)
        with pl.Session(plan) as session, self.assertRaisesRegex(pl.DataError, "labels"):
            session.step({"ids": ids, "labels": torch.full_like(ids, 800)})

    def test_a_scalar_parameter(self):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.up, self.scale = nn.Linear(7, 4), nn.Parameter(torch.tensor(0.5))

            def forward(self, x):
                return (self.up(x) * self.scale.exp()).square().mean()

        module, example = Net(), {"x": torch.randn(8, 7)}
        with pl.Session(plt.plan(module, example, optimizer=pl.SGD(lr=0.1))) as session:
            session.step(example)
            self.assertEqual(session["scale"].shape, (1,))
            plt.copy_back(session, module)
            self.assertEqual(module.scale.item(), session["scale"][0])
            plt.load(session, module)
        self.assertNotEqual(module.scale.item(), 0.5)

    def test_what_would_stop_a_gradient_or_hide_a_parameter_is_refused(self):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.up, self.down = nn.Linear(4, 4), nn.Linear(4, 1)

            def forward(self, x):
                return self.down(self.up(x).detach_())

        example = {"x": torch.randn(3, 4)}
        with self.assertRaisesRegex(pl.UnsupportedOp, "detach_"):
            plt.plan(Net(), example, lambda output: output.mean())
        with self.assertRaisesRegex(pl.SettingError, "loss has a parameter of its own, 0.weight"):
            plt.plan(nn.Linear(4, 4), {"input": example["x"]}, nn.Sequential(nn.Linear(4, 1)))

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


class Small(nn.Module if common.HAS_TORCH else object):
    """What vision models are made of, with ops that write in place."""

    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8)
        self.depth, self.group = nn.Conv2d(8, 8, 3, padding="same", groups=8), nn.GroupNorm(2, 8)
        self.act, self.pool, self.mean = nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1), nn.AdaptiveAvgPool2d((1, 1))
        self.gate, self.head = nn.Conv2d(8, 8, 1), nn.Linear(8, 5)

    def forward(self, x, labels):
        x = self.pool(self.act(self.norm(self.stem(x))))
        y = F.hardswish(self.group(self.depth(x)))
        y *= F.hardsigmoid(self.gate(self.mean(y)))
        x = F.avg_pool2d(torch.cat([x, y], 1), 2, ceil_mode=True)
        x = F.relu6(x[:, :8] + x[:, 8:])
        return F.cross_entropy(self.head(torch.flatten(self.mean(x), 1)), labels)


@common.needs_torch
class Images(unittest.TestCase):
    example = property(lambda self: {"x": torch.randn(4, 3, 16, 24, generator=torch.Generator().manual_seed(0)),
                                     "labels": torch.tensor([0, 4, 2, 2])})

    def test_layers_of_vision_models(self):
        for training in (True, False):
            torch.manual_seed(0)
            Imports.compare(self, Small().train(training), self.example)

    def test_running_values_follow_as_torchs(self):
        torch.manual_seed(0)
        module, example = Small(), self.example
        plan = plt.plan(module, example, optimizer=pl.SGD(lr=0.05, momentum=0.9))
        optimizer = torch.optim.SGD(module.parameters(), lr=0.05, momentum=0.9)
        with pl.Session(plan) as session:
            self.assertIn("statistics of the micro-batch", plan.table())
            for _ in range(10):
                step, loss = session.step(example), module(**example)
                self.assertAlmostEqual(step.loss, loss.item(), delta=1e-4 * loss.item())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            for name in ("norm.running_mean", "norm.running_var"):
                theirs = module.get_buffer(name).numpy()
                np.testing.assert_allclose(session[name], theirs, rtol=1e-5, atol=1e-6)
            self.assertEqual(session["norm.num_batches_tracked"], 10)
            session.step(example)
            plt.copy_back(session, module)
            self.assertEqual(module.norm.num_batches_tracked.item(), 11)
            module.eval()
            self.assertAlmostEqual(session.evaluate(example), module(**example).item(), delta=1e-4)

    def test_what_was_written_is_what_is_read(self):
        class Net(nn.Module):
            def __init__(self, write):
                super().__init__()
                self.up, self.down, self.write = nn.Linear(4, 4), nn.Linear(4, 1), write

            def forward(self, x):
                return self.down(self.write(self.up(x))).mean()

        def alone(x):
            x.relu_()
            return x + 1

        def through_a_view(x):
            x[:, 1].mul_(2)
            return x

        def behind_a_view(x):
            y = x.view(2, -1)
            x.add_(1)
            return y.view(4, 4)

        def behind_the_transpose(x):
            x.T.add_(1)
            return x

        def dropout_that_drops_nothing(x):
            F.dropout(x, training=False).sub_(1)
            return x

        def a_view_alone(x):
            return torch.flatten(x).add_(1).view(4, 4).mul_(2)

        def another_result(x):
            y = x.add_(1)
            x.mul_(2)
            return y

        def assigned(x):
            x[:, 0] = 1.0
            return x

        example = {"x": torch.randn(4, 4, generator=torch.Generator().manual_seed(0))}
        for write in (alone, a_view_alone, another_result, dropout_that_drops_nothing):
            torch.manual_seed(0)
            Imports.compare(self, Net(write), example)
        for write, name in ((through_a_view, "mul_"), (behind_a_view, "add_"), (assigned, "copy_|fill_"),
                            (behind_the_transpose, "add_")):
            with self.subTest(write=name), self.assertRaisesRegex(pl.UnsupportedOp, name):
                plt.plan(Net(write), example)

    def test_stochastic_depth_is_drawn_in_each_step(self):
        class Net(nn.Module):
            def __init__(self, draw):
                super().__init__()
                self.up, self.down, self.draw = nn.Linear(4, 64), nn.Linear(64, 1), draw

            def forward(self, x):
                y = self.up(x)
                return self.down(y * self.draw(y) if self.training else y).square().mean()

        module = Net(lambda y: torch.empty([len(y), 1]).bernoulli_(0.5).div_(0.5))
        example = {"x": torch.randn(64, 4, generator=torch.Generator().manual_seed(0))}
        with pl.Session(plt.plan(module, example, optimizer=pl.SGD(lr=0.0))) as session:
            losses = [session.step(example).loss for _ in range(4)]
            self.assertEqual(len(set(losses)), 4)
            self.assertAlmostEqual(session.evaluate(example), module.eval()(**example).item(), delta=1e-5)
        with self.assertRaisesRegex(pl.UnsupportedOp, "rand"):
            plt.plan(Net(lambda y: torch.rand(len(y), 1)), example)

    def test_roll(self):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.up = nn.Linear(4, 6)

            def forward(self, x):
                return (self.up(x).roll((-2, 1), (0, 1)) * torch.arange(30.0).view(5, 6)).square().mean()

        Imports.compare(self, Net(), {"x": torch.randn(5, 4)})

    def test_other_buffers_that_are_written_are_refused(self):
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 1)
                self.register_buffer("seen", torch.zeros(1))

            def forward(self, x):
                self.seen.add_(1)
                return (self.fc(x) * self.seen).mean()

        with self.assertRaisesRegex(pl.SettingError, "buffer seen"):
            plt.plan(Net(), {"x": torch.randn(2, 4)})


@unittest.skipUnless(common.HAS_TORCH and importlib.util.find_spec("torchvision"), "torchvision is not installed")
class Torchvision(unittest.TestCase):
    def test_resnet18(self):
        import torchvision

        torch.manual_seed(0)
        module = torchvision.models.resnet18(num_classes=10)
        example = {"x": torch.randn(4, 3, 32, 32), "target": torch.tensor([1, 2, 3, 4])}
        example["x"].mul_(0.5)
        Imports.compare(self, module, example, lambda out, target: F.cross_entropy(out, target), steps=2)


@unittest.skipUnless(common.HAS_TORCH and common.HAS_TRANSFORMERS, "transformers is not installed")
class Families(unittest.TestCase):
    def compare(self, name):
        sys.path.insert(0, str(common.ROOT / "bench" / "imports"))
        import families

        module, example = families.build(name)
        Imports.compare(self, module, example, steps=3)


for family in ("llama", "qwen2", "qwen3", "mistral", "gemma", "phi", "gpt2", "gpt_neox", "bert", "roberta", "distilbert", "t5", "vit", "resnet"):
    setattr(Families, f"test_{family}", lambda self, family=family: self.compare(family))


if __name__ == "__main__":
    unittest.main()
