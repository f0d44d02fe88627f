"""Layers of images: shapes and errors, PyTorch's numbers and gradients, running values, and what a plan says of them."""
import tempfile
import unittest

import common
import numpy as np
import plimsoll as pl
from plimsoll import nn

if common.HAS_TORCH:
    import torch
    import torch.nn.functional as F
    import twins


class One(pl.Module):
    """The loss sum(layer(scale * x) * y), so that y is the gradient that comes to the layer's result."""

    def __init__(self, layer):
        self.layer, self.scale = layer, pl.Parameter((1,), "ones")

    def forward(self, x, y):
        return pl.sum(self.layer(x * self.scale) * y)


def shape_of(layer, shape):
    found = []

    class Shape(pl.Module):
        def __init__(self):
            self.layer, self.scale = layer, pl.Parameter((1,), "ones")

        def forward(self, x):
            y = self.layer(x * self.scale)
            found.append(y.shape)
            return pl.sum(y)

    pl.plan(Shape(), inputs={"x": (shape, "float32")})
    return found[0]


class Small(pl.Module):
    def __init__(self, norm=nn.BatchNorm2d):
        self.conv, self.norm, self.drop = nn.Conv2d(3, 8, 3, padding=1, bias=False), norm(8), nn.Dropout(0.5)
        self.fc = nn.Linear(8, 4)

    def forward(self, x, labels):
        y = pl.relu(self.norm(self.conv(x)))
        return pl.cross_entropy(self.fc(self.drop(y.mean((2, 3)))), labels)


def plan(net=None, **options):
    return pl.plan(net or Small(), inputs={"x": ((8, 3, 6, 5), "float32"), "labels": ((8,), "int32")},
                   optimizer=pl.SGD(lr=0.1), **options)


def batch(seed=0, rows=8):
    rng = np.random.default_rng(seed)
    return {"x": rng.normal(0.5, 2, (rows, 3, 6, 5)).astype(np.float32), "labels": rng.integers(0, 4, rows)}


class Shapes(unittest.TestCase):
    def test_are_torchs(self):
        for layer, wanted in ((nn.Conv2d(4, 6, 3), (2, 6, 5, 7)), (nn.Conv2d(4, 6, (3, 1), (2, 1), (1, 0)), (2, 6, 4, 9)),
                              (nn.Conv2d(4, 8, 3, padding="same", dilation=2, groups=2), (2, 8, 7, 9)),
                              (nn.MaxPool2d(3, 2, 1), (2, 4, 4, 5)), (nn.AvgPool2d((2, 3)), (2, 4, 3, 3)),
                              (nn.AdaptiveAvgPool2d((None, 3)), (2, 4, 7, 3)), (nn.AdaptiveAvgPool2d(1), (2, 4, 1, 1)),
                              (nn.BatchNorm2d(4), (2, 4, 7, 9)), (nn.GroupNorm(2, 4), (2, 4, 7, 9)), (nn.Flatten(), (2, 252))):
            with self.subTest(layer=layer):
                self.assertEqual(shape_of(layer, (2, 4, 7, 9)), wanted)

    def test_what_does_not_fit_is_named(self):
        for layer, words in ((nn.Conv2d(3, 8, 3), "3 channels|4 channels"), (nn.Conv2d(4, 8, 11), "kernel reaches over 11"),
                             (nn.AdaptiveAvgPool2d(0), "size"), (nn.BatchNorm2d(5), "4 channels"),
                             (nn.BatchNorm1d(4), "BatchNorm1d"), (nn.MaxPool2d(20), "window"), (nn.Conv1d(4, 8, 3), "batch, channels, length")):
            with self.subTest(layer=layer), self.assertRaisesRegex(pl.SettingError, words):
                shape_of(layer, (2, 4, 7, 9))
        for make, words in ((lambda: nn.Conv2d(4, 6, 3, groups=4), "groups"), (lambda: nn.Conv2d(4, 6, 2, padding="same"), "same"),
                            (lambda: nn.Conv2d(4, 6, 3, padding="full"), "padding"), (lambda: nn.GroupNorm(3, 4), "groups"),
                            (lambda: nn.Conv1d(4, 6, (3, 3)), "kernel_size"), (lambda: nn.Conv1d(4, 6, 3, 2, "same"), "stride"),
                            (lambda: nn.BatchNorm2d(4, momentum=None), "momentum"), (lambda: nn.Conv2d(4, 6, 3.5), "kernel_size")):
            with self.assertRaisesRegex(pl.SettingError, words):
                make()
        filters = np.ones((4, 4, 3, 3), np.float32)
        for function, words in ((lambda x: pl.conv2d(x, filters, groups=1.5), "groups"), (lambda x: pl.group_norm(x, 2.5), "groups"),
                                (lambda x: pl.conv2d(x, filters[:, :, 0, 0], padding="same"), "weight is"),
                                (lambda x: pl.adaptive_avg_pool2d(x, (None, None, None)), "output_size")):
            with self.assertRaisesRegex(pl.SettingError, words):
                shape_of(function, (2, 4, 7, 9))
        with self.assertRaisesRegex(pl.SettingError, "one value"):
            shape_of(nn.BatchNorm1d(4), (1, 4))


class Running(unittest.TestCase):
    def test_names_files_and_what_leaves_them_alone(self):
        with pl.Session(plan(), seed=1) as session:
            self.assertEqual(session.names()[-3:], ["norm.running_mean", "norm.running_var", "norm.num_batches_tracked"])
            np.testing.assert_array_equal(session["norm.running_var"], np.ones(8, np.float32))
            session.evaluate(batch())
            session.gradients(batch(), accumulate=1)
            np.testing.assert_array_equal(session["norm.running_mean"], np.zeros(8, np.float32))
            self.assertNotIn("norm.running_mean", session.gradients(batch()))
            spoiled = batch()
            spoiled["x"][0] = np.nan
            with self.assertRaises(pl.Diverged):
                session.step(spoiled)
            np.testing.assert_array_equal(session["norm.running_mean"], np.zeros(8, np.float32))
            self.assertEqual(session["norm.num_batches_tracked"], 0)
            session.step(batch())
            before = session.state_dict()
            self.assertEqual((before["norm.num_batches_tracked"], before["norm.num_batches_tracked"].dtype), (1, np.int64))
            self.assertGreater(np.abs(before["norm.running_mean"]).max(), 0)
            with tempfile.TemporaryDirectory() as folder:
                session.save(f"{folder}/run")
                later = session.step(batch(1)), session.evaluate(batch(2))
                with pl.Session(plan()) as other:
                    other.load(f"{folder}/run")
                    for name, array in before.items():
                        np.testing.assert_array_equal(other[name], array, name)
                    self.assertEqual((other.step(batch(1)).loss, other.evaluate(batch(2))), (later[0].loss, later[1]))
                    self.assertEqual(other["norm.num_batches_tracked"], 2)
                    other.step(batch(0, 24), accumulate=3)
                    self.assertEqual(other["norm.num_batches_tracked"], 5)
                    other.write("norm.num_batches_tracked", 40)
                    other.step(batch())
                    self.assertEqual(other["norm.num_batches_tracked"], 41)
                    with self.assertRaisesRegex(pl.SettingError, "num_batches_tracked"):
                        other.write("norm.num_batches_tracked", 0.5)
            session.write("norm.running_mean", np.full(8, 2))
            np.testing.assert_array_equal(session["norm.running_mean"], np.full(8, 2, np.float32))

    def test_filters_are_read_and_written_in_torchs_order(self):
        with pl.Session(plan(), seed=1) as session:
            filters = np.arange(8 * 3 * 3 * 3, dtype=np.float32).reshape(8, 3, 3, 3)
            session.write("conv.weight", filters)
            np.testing.assert_array_equal(session["conv.weight"], filters)
            with session.view("conv.weight") as view:
                self.assertEqual(view.shape, (8, 3, 3, 3))
                np.testing.assert_array_equal(view, filters)
                with self.assertRaises(ValueError):
                    view[0] = 0
            session.step(batch())
            with session.view("conv.weight") as view:
                np.testing.assert_array_equal(view, session["conv.weight"])

    def test_evaluation_mode_freezes_them_and_drops_nothing(self):
        net = Small().eval()
        self.assertFalse(net.norm.training)
        with pl.Session(plan(net), seed=1) as session:
            loss = session.evaluate(batch())
            self.assertAlmostEqual(session.step(batch()).loss, loss, delta=1e-6)
            np.testing.assert_array_equal(session["norm.running_mean"], np.zeros(8, np.float32))
            self.assertEqual(session["norm.num_batches_tracked"], 0)
        self.assertTrue(net.train().drop.training)

    def test_a_layer_that_is_called_twice_follows_twice(self):
        class Twice(pl.Module):
            def __init__(self):
                self.norm, self.fc = nn.BatchNorm1d(3), nn.Linear(3, 1)

            def forward(self, a, b):
                return pl.mse(self.fc(self.norm(a)), self.fc(self.norm(b)))

        rng = np.random.default_rng(0)
        a, b = (rng.normal(size=(8, 3)).astype(np.float32) for _ in range(2))
        with pl.Session(pl.plan(Twice(), inputs={n: ((8, 3), "float32") for n in "ab"})) as session:
            session.step({"a": a, "b": b})
            self.assertEqual(session["norm.num_batches_tracked"], 2)
            np.testing.assert_allclose(session["norm.running_mean"], 0.9 * 0.1 * a.mean(0) + 0.1 * b.mean(0), atol=1e-6)

    def test_the_plan_says_what_the_batch_is_for(self):
        self.assertIn("statistics of the micro-batch", plan().table())
        self.assertIn("eval() of the norms before plan()", plan().table())
        self.assertNotIn("model.norm_statistics", plan().table())
        self.assertIn("running statistics", plan(Small().eval()).table())
        self.assertNotIn("BatchNorm", plan(Small(lambda channels: nn.GroupNorm(2, channels))).table())
        self.assertEqual(plan().buffers, {"norm.running_mean": (8,), "norm.running_var": (8,), "norm.num_batches_tracked": ()})

    def test_checkpoint_changes_no_bit(self):
        class Checkpointed(Small):
            def forward(self, x, labels):
                y = pl.checkpoint(lambda x: pl.relu(self.norm(self.conv(x))), x)
                return pl.cross_entropy(self.fc(self.drop(y.mean((2, 3)))), labels)

        results = []
        for net in (Small(), Checkpointed()):
            with pl.Session(plan(net), seed=3) as session:
                losses = [session.step(batch(i)).loss for i in range(3)]
                results.append((losses, {name: array.tobytes() for name, array in session.state_dict().items()}))
        self.assertEqual(results[0], results[1])


@common.needs_torch
class AgainstTorch(unittest.TestCase):
    def compare(self, layer, function, shape, limit=1e-5):
        """Result, gradients of x and of the layer's parameters, beside torch's."""
        wanted = shape_of(layer, shape)
        rng = np.random.default_rng(0)
        x, y = (rng.normal(size=size).astype(np.float32) for size in (shape, wanted))
        net = One(layer)
        with pl.Session(pl.plan(net, inputs={"x": (shape, "float32"), "y": (wanted, "float32")}), seed=2) as session:
            parameters = {name: torch.from_numpy(session[name]).requires_grad_(name in session.plan.parameters)
                          for name in session.names()}
            loss = (function(torch.from_numpy(x) * parameters["scale"], *(
                parameters[name] for name in session.names() if name.startswith("layer."))) * torch.from_numpy(y)).sum()
            loss.backward()
            gradients = session.gradients({"x": x, "y": y})
            for name, gradient in gradients.items():
                theirs = parameters[name].grad.numpy()
                np.testing.assert_allclose(gradient, theirs, rtol=1e-3, atol=limit * max(1, np.abs(theirs).max()), err_msg=name)

    def test_convolutions(self):
        for options in ({}, {"stride": 2, "padding": 1}, {"groups": 4, "bias": False}, {"dilation": (1, 2), "padding": (0, 2)},
                        {"groups": 2, "stride": (1, 2)}):
            called = {name: value for name, value in options.items() if name != "bias"}
            with self.subTest(options=options):
                self.compare(nn.Conv2d(4, 8, 3, **options),
                             lambda x, w, b=None, called=called: F.conv2d(x, w, b, **called), (2, 4, 7, 9))
            if not isinstance(options.get("padding", 0), tuple):
                called = {name: value[1] if isinstance(value, tuple) else value for name, value in called.items()}
                self.compare(nn.Conv1d(4, 8, 3, **called, bias="bias" not in options),
                             lambda x, w, b=None, called=called: F.conv1d(x, w, b, **called), (2, 4, 9))
        self.compare(nn.Conv1d(4, 8, 5, padding="same", dilation=2), lambda x, w, b: F.conv1d(x, w, b, padding=4, dilation=2), (2, 4, 9))
        self.compare(nn.Conv2d(4, 6, 1, 2), lambda x, w, b: F.conv2d(x, w, b, 2), (2, 4, 6, 8))

    def test_pooling_and_norms(self):
        self.compare(nn.MaxPool2d(3, 2, 1), lambda x: F.max_pool2d(x, 3, 2, 1), (2, 4, 7, 9))
        self.compare(nn.AvgPool2d(3, 2, 1, False), lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), (2, 4, 7, 9))
        for size in ((2, 3), (3, 4), (11, 2)):
            self.compare(nn.AdaptiveAvgPool2d(size), lambda x, size=size: F.adaptive_avg_pool2d(x, size), (2, 4, 8, 9))
        self.compare(nn.GroupNorm(2, 6), lambda x, w, b: F.group_norm(x, 2, w, b), (3, 6, 5, 4))
        self.compare(nn.GroupNorm(3, 6), lambda x, w, b: F.group_norm(x, 3, w, b), (3, 6, 7))
        for layer, shape in ((nn.BatchNorm2d(4), (3, 4, 5, 6)), (nn.BatchNorm1d(4), (9, 4)), (nn.BatchNorm1d(4), (3, 4, 7))):
            self.compare(layer, lambda x, w, b, m, v, n: F.batch_norm(x, m.clone(), v.clone(), w, b, True), shape, 1e-4)
            self.compare(layer.eval(), lambda x, w, b, m, v, n: F.batch_norm(x, m, v, w, b, False), shape)

    def test_filters_are_values_too(self):
        """Weight standardisation, and filters that a matrix product reads."""
        class Standardised(pl.Module):
            def __init__(self):
                self.weight = pl.Parameter((6, 4, 3, 2), "normal", kind="filters")

            def forward(self, x):
                w = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
                rows = pl.matmul(x.mean((2, 3)), pl.transpose(self.weight[:, :, 0, 1], 0, 1))
                return pl.conv2d(x, w) * rows[:, :, None, None]

        def theirs(x, weight):
            rows = x.mean((2, 3)) @ weight[:, :, 0, 1].T
            return F.conv2d(x, weight - weight.mean((1, 2, 3), keepdim=True)) * rows[:, :, None, None]

        self.compare(Standardised(), theirs, (2, 4, 7, 5))

    def test_a_state_dict_is_torchs(self):
        example = common.example("resnet")
        twin = twins.ResNet()
        plan = pl.plan(example.ResNet(), inputs={"images": ((32, 3, 16, 16), "float32"), "labels": ((32,), "int32")})
        with pl.Session(plan) as session:
            for i in range(3):
                session.step(example.batch(32, i))
            twin.load_state_dict({name: torch.from_numpy(array) for name, array in session.state_dict().items()}, strict=True)
            counts = [value.item() for name, value in twin.named_buffers() if name.endswith("num_batches_tracked")]
            self.assertEqual(set(counts), {3})
            shown = example.batch(32, 3)
            theirs = twin.eval()(torch.from_numpy(shown["images"]), torch.from_numpy(shown["labels"])).item()
            self.assertAlmostEqual(session.evaluate(shown), theirs, delta=1e-5)
            with pl.Session(plan, seed=9) as other:
                other.load_state_dict(twin.state_dict())
                self.assertEqual(other.evaluate(shown), session.evaluate(shown))
                count = next(name for name in other if name.endswith("num_batches_tracked"))
                self.assertEqual(other[count], 3)
                other.load_state_dict({name: array for name, array in twin.state_dict().items() if name != count})

    def test_elementwise_functions_between_layers(self):
        """Whatever stands between images, with channels first or last."""
        def ours(x):
            y = pl.conv2d(pl.gelu(x), np.ones((4, 4, 3, 3), np.float32) / 9, padding=1)
            gate = pl.sigmoid(y.mean((2, 3), keepdim=True))
            z = pl.cat([y * gate, pl.silu(y) + 1, x], 1)
            return z.permute(0, 2, 3, 1)[:, 1:].sum(1) + z.max(1).mean(1)[:, :, None]

        def theirs(x):
            y = F.conv2d(F.gelu(x), torch.ones(4, 4, 3, 3) / 9, padding=1)
            gate = torch.sigmoid(y.mean((2, 3), keepdim=True))
            z = torch.cat([y * gate, F.silu(y) + 1, x], 1)
            return z.permute(0, 2, 3, 1)[:, 1:].sum(1) + z.amax(1).mean(1)[:, :, None]

        class Function(pl.Module):
            def forward(self, x):
                return ours(x)

        self.compare(Function(), theirs, (2, 4, 6, 5))


if __name__ == "__main__":
    unittest.main()
