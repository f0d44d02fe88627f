"""Each function against PyTorch's of the same name: the loss, and the gradient of each parameter."""
import unittest

import common
import numpy as np
import plimsoll as pl

if common.HAS_TORCH:
    import torch
    import torch.nn.functional as F

SHAPES = {"a": (4, 6), "b": (4, 6), "r": (6,), "m": (6, 5), "p": (3, 4, 6), "q": (2, 3, 4, 8)}


def both(ours, theirs=None, **inputs):
    return ours, theirs or ours, inputs


# name -> (on values of plimsoll, on tensors). `n` is plimsoll or PyTorch, `t` the parameters by letter.
CASES = {
    "operators": both(lambda n, t: (t.a + 2 * t.b - t.r) / (t.b * t.b + 1.5) - 3 + (1 - t.a) * -t.r),
    "reverse": both(lambda n, t: 2 / (t.a * t.a + 1) + 2.0 ** t.b),
    "pow": both(lambda n, t: (t.a * t.a + 0.5) ** 1.5 + t.b ** 3 + n.pow(n.exp(t.a), t.b)),
    "exponentials": both(lambda n, t: n.exp(t.a * 0.3) + n.log(t.b * t.b + 1) + n.sqrt(t.r * t.r + 0.1)),
    "rsqrt": both(lambda n, t: n.rsqrt(t.a * t.a + 0.3) + n.square(t.b) + n.abs(t.a)),
    "activations": both(lambda n, t: n.relu(t.a) + n.tanh(t.b) * n.sigmoid(t.a)),
    "gelu": both(lambda n, t: pl.gelu(t.a) + pl.gelu(t.b, "tanh"), lambda n, t: F.gelu(t.a) + F.gelu(t.b, approximate="tanh")),
    "silu": both(lambda n, t: pl.silu(t.a * t.r), lambda n, t: F.silu(t.a * t.r)),
    "softmax": both(lambda n, t: n.softmax(t.a, dim=-1) * t.b + n.softmax(t.b, dim=0)),
    "log_softmax": both(lambda n, t: n.log_softmax(t.a, dim=-1) * t.b),
    "where": both(lambda n, t: n.where(t.a > t.b, t.a * 2, t.b * t.b) + n.where(t.a <= 0, 0.5, t.b)),
    "clamp": both(lambda n, t: n.clamp(t.a, -0.5, 0.7) * t.b + n.clamp(t.b, min=0.1)),
    "layer_norm_without_bias": both(lambda n, t: pl.layer_norm(t.p, t.r), lambda n, t: F.layer_norm(t.p, (6,), t.r)),
    "maximum": both(lambda n, t: n.maximum(t.a, t.b) + n.minimum(t.a, t.r)),
    "reductions": both(lambda n, t: n.sum(t.p, dim=(0, 2)).sum() + n.mean(t.p, dim=1, keepdim=True) * t.p + t.p.mean()),
    "max": both(lambda n, t: pl.max(t.p, dim=-1), lambda n, t: torch.amax(t.p, dim=-1)),
    "matmul": both(lambda n, t: t.a @ t.m, lambda n, t: t.a @ t.m),
    "batched_matmul": both(lambda n, t: n.matmul(t.p, t.a.transpose(0, 1)) + n.matmul(t.p, t.p.transpose(1, 2)).sum()),
    "broadcast_matmul": both(lambda n, t: n.matmul(t.q, t.q.transpose(-2, -1))),
    "permute": both(lambda n, t: t.p.permute(2, 0, 1) * t.r.reshape(6, 1, 1)),
    "reshape": both(lambda n, t: t.p.reshape(2, -1) * t.a.flatten().unsqueeze(0).sum()),
    "index": both(lambda n, t: t.p[1] * t.p[:, 2:3].sum() + t.p[..., 0].sum() + t.p[:, None, ::2, 1:].mean()),
    "expand": both(lambda n, t: t.r.expand(3, 4, 6) * t.p),
    "cat": both(lambda n, t: n.cat([t.a, t.b * 2], dim=0).sum(dim=1).sum() + n.cat([t.a, t.b], dim=1)
                * n.cat([t.b, t.a], dim=-1) + n.stack([t.a, t.b], dim=1).mean()),
    "split": both(lambda n, t: t.a.split([1, 3], dim=0)[1] * 2 + t.a.chunk(3, dim=-1)[1].sum()),
    "rms_norm": both(lambda n, t: pl.rms_norm(t.p, t.r, 1e-5), lambda n, t: F.rms_norm(t.p, (6,), t.r, 1e-5)),
    "layer_norm": both(lambda n, t: pl.layer_norm(t.p, t.r, t.r * 2, 1e-5),
                       lambda n, t: F.layer_norm(t.p, (6,), t.r, t.r * 2, 1e-5)),
    "attention": both(lambda n, t: pl.attention(t.q, t.q * 0.5, t.q, causal=True),
                      lambda n, t: F.scaled_dot_product_attention(t.q, t.q * 0.5, t.q, is_causal=True)),
    "attention_whole": both(lambda n, t: pl.attention(t.q, t.q * 0.5, t.q, layout="bthd", scale=0.2),
                            lambda n, t: F.scaled_dot_product_attention(*[x.transpose(1, 2) for x in (t.q, t.q * 0.5, t.q)],
                                                                        scale=0.2).transpose(1, 2)),
    "gather": both(lambda n, t: n.gather(t.a, 1, t.ids) * t.b[:, :2], ids=np.array([[0, 5], [2, 2], [3, 1], [4, 0]])),
    "index_select": both(lambda n, t: n.index_select(t.a, 0, t.ids), ids=np.array([3, 0, 3])),
    "mse": both(lambda n, t: pl.mse(t.a, t.b), lambda n, t: F.mse_loss(t.a, t.b)),
    "binary": both(lambda n, t: pl.binary_cross_entropy_with_logits(t.a, pl.sigmoid(t.b)),
                   lambda n, t: F.binary_cross_entropy_with_logits(t.a, torch.sigmoid(t.b))),
    "cross_entropy": both(lambda n, t: pl.cross_entropy(t.p, t.ids),
                          lambda n, t: F.cross_entropy(t.p.flatten(0, 1), t.ids.flatten().long()),
                          ids=np.array([[0, 1, -100, 5], [-100, 2, 3, 4], [1, 1, 1, -100]])),
    "embedding": both(lambda n, t: pl.embedding(t.ids, t.a) * t.b, lambda n, t: F.embedding(t.ids.long(), t.a) * t.b,
                      ids=np.array([0, 3, 3, 1])),
    "detach": both(lambda n, t: t.a.detach() * t.b + t.a),
}


class Letters:
    def __init__(self, items):
        self.__dict__.update(items)


class Case(pl.Module):
    def __init__(self, function, used):
        self.function = function
        for letter in used:
            setattr(self, letter, pl.Parameter(SHAPES[letter], "normal", 1.0))
        self.used = used

    def forward(self, weight, **inputs):
        value = self.function(pl, Letters({**{letter: getattr(self, letter) for letter in self.used}, **inputs}))
        return (value * weight).sum()


def used_by(function):
    """The letters of the parameters that a case reads."""
    names = set()
    for code in [function.__code__, *[c for c in function.__code__.co_consts if hasattr(c, "co_names")]]:
        names |= set(code.co_names)
    return [letter for letter in SHAPES if letter in names]


@common.needs_torch
class AgainstTorch(unittest.TestCase):
    def compare(self, ours, theirs, inputs):
        used = used_by(ours)
        declared = {"weight": ((1,), "float32"), **{name: (array.shape, "int32") for name, array in inputs.items()}}
        batch = {"weight": np.array([0.7], np.float32), **inputs}
        with pl.Session(pl.plan(Case(ours, used), inputs=declared, optimizer=pl.SGD(lr=0.0)), seed=5) as session:
            tensors = {letter: torch.from_numpy(session[letter]).requires_grad_() for letter in used}
            loss = (theirs(torch, Letters({**tensors, **{n: torch.from_numpy(a) for n, a in inputs.items()}})) * 0.7).sum()
            loss.backward()
            self.assertAlmostEqual(session.evaluate(batch), loss.item(), delta=2e-5 * max(1.0, abs(loss.item())))
            gradients = session.gradients(batch)
            for letter, tensor in tensors.items():
                wanted = torch.zeros_like(tensor) if tensor.grad is None else tensor.grad
                np.testing.assert_allclose(gradients[letter], wanted.numpy(), rtol=2e-4, atol=2e-5, err_msg=letter)


def add(name, case):
    setattr(AgainstTorch, f"test_{name}", lambda self: self.compare(*case))


for case_name, case_row in CASES.items():
    add(case_name, case_row)


class Refused(unittest.TestCase):
    def plan(self, function):
        class Net(pl.Module):
            def __init__(self):
                self.up = pl.Linear(6, 6)

            def forward(self, x):
                return function(self.up(x)).mean()

        return pl.plan(Net(), inputs={"x": ((4, 6), "float32")})

    def test_by_name_with_what_came(self):
        for function, word in ((lambda x: x[9], "index 9"), (lambda x: x.unsqueeze(3), "dim 3"), (lambda x: pl.stack([x, x], dim=-4), "dim -4"), (lambda x: x.sum(dim=3), "dim 3"), (lambda x: x @ x, "matmul"),
                               (lambda x: x.reshape(5, 5), "reshape"),
                               (lambda x: x.reshape(4 / 2, 12), "2.0 is not an integer"), (lambda x: x.reshape("24"), "integer"),
                               (lambda x: x.permute(0.0, 1), "integer"), (lambda x: pl.split(x, [1.5, 4.5], dim=1)[0], "integer"), (lambda x: x[4:2], "slice"),
                               (lambda x: pl.gelu(x, "erf"), "approximate"), (lambda x: x + "a", "str"),
                               (lambda x: pl.attention(x, x, x, layout="x"), "layout"), (lambda x: x * float("nan"), "finite"),
                               (lambda x: x + pl.Parameter((6,)), "no parameter of the module")):
            with self.assertRaisesRegex((pl.SettingError, TypeError), word):
                self.plan(function)

    def test_a_value_is_neither_true_nor_false(self):
        with self.assertRaisesRegex(TypeError, "where"):
            self.plan(lambda x: x if x.sum() > 0 else -x)

    def test_values_of_another_plan(self):
        kept = []
        self.plan(lambda x: kept.append(x) or x)
        with self.assertRaisesRegex(pl.SettingError, "another plan"):
            self.plan(lambda x: x + kept[0])


if __name__ == "__main__":
    unittest.main()
