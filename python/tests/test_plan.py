"""What a plan says, what it refuses, and that its least budget is exact."""
import unittest

import nets
import numpy as np
import plimsoll as pl
from plimsoll import planning


class Plan(unittest.TestCase):
    def test_says_what_a_step_takes(self):
        plan = nets.plan()
        numbers = nets.Net().num_parameters()
        self.assertTrue(plan.fits)
        self.assertGreaterEqual(plan.classes["parameters"], 4 * numbers)
        self.assertGreaterEqual(plan.classes["optimizer_state"], 8 * numbers)
        self.assertGreaterEqual(plan.peak_bytes, sum(plan.classes[c] for c in ("parameters", "optimizer_state")))
        self.assertGreater(plan.seconds, 0)
        self.assertIn("parameters", plan.table())
        self.assertEqual(str(plan), plan.table())
        self.assertIn("<svg", plan._repr_html_())
        self.assertEqual(plan.inputs["x"], ((16, 7), "float32"))

    def test_least_budget_is_exact(self):
        small = nets.plan(rows=256, memory_budget=1000)
        self.assertFalse(small.fits)
        with self.assertRaises(pl.DoesNotFit) as caught:
            pl.Session(small)
        least = caught.exception.least_bytes
        self.assertIn(str(least), str(caught.exception))
        self.assertIsInstance(caught.exception, MemoryError)
        self.assertTrue(nets.plan(rows=256, memory_budget=least).fits)
        self.assertFalse(nets.plan(rows=256, memory_budget=least - 1).fits)
        self.assertLessEqual(nets.plan(rows=256, memory_budget=least).peak_bytes, least)

    def test_numbers_of_numpy(self):
        plain = nets.plan(clip_norm=0.5, memory_budget=1 << 28)
        plan = nets.plan(clip_norm=np.float32(0.5), memory_budget=np.int64(1 << 28))
        self.assertEqual((plan.peak_bytes, plan.budget_bytes), (plain.peak_bytes, plain.budget_bytes))
        for wrong in (np.zeros(2), object(), 1j):
            with self.assertRaisesRegex(pl.SettingError, type(wrong).__name__):
                nets.plan(clip_norm=wrong)

    def test_budgets_of_the_process_have_the_same_units(self):
        for text in ("2GiB", "2gib", "2 GB", "2G", "1.5g", "2147483648", "0.001TB", "3000000000b"):
            whole = nets.plan(memory_budget=text).budget_bytes
            self.assertEqual(planning._bytes(text), whole, text)
            self.assertLess(nets.plan(memory_budget=text, budget_scope="process").budget_bytes, whole, text)
        for text in ("1.2.3GiB", "4 gigs", "-1", ""):
            with self.assertRaisesRegex(pl.SettingError, "size"):
                nets.plan(memory_budget=text, budget_scope="process")

    def test_checkpoint_lowers_the_peak_and_no_bit_changes(self):
        class Deep(nets.Net):
            def __init__(self, segments):
                super().__init__(hidden=64, layers=8)
                self.segments = segments

            def forward(self, x, y):
                run = [lambda h, layer=layer: h + pl.gelu(layer(pl.gelu(layer(h)))) for layer in self.layers]
                h = self.embed(x)
                if self.segments:
                    h = pl.checkpoint_sequential(run, self.segments, h)
                else:
                    for block in run:
                        h = block(h)
                return pl.mse(self.head(h), y)

        plain, kept = nets.plan(512, Deep(0)), nets.plan(512, Deep(4))
        self.assertLess(kept.peak_bytes, plain.peak_bytes)
        batch = nets.batch(512)
        with pl.Session(plain, seed=1) as one, pl.Session(kept, seed=1) as other:
            for _ in range(3):
                first, second = one.step(batch), other.step(batch)
                self.assertEqual((first.loss, first.grad_norm), (second.loss, second.grad_norm))
            for name in one.names():
                np.testing.assert_array_equal(one[name], other[name])

    def test_checkpoint_sequential_wants_as_many_segments_as_modules_at_most(self):
        class Wrong(nets.Net):
            def forward(self, x, y):
                return pl.mse(self.head(pl.checkpoint_sequential(self.layers, 3, self.embed(x))), y)

        with self.assertRaisesRegex(pl.SettingError, "segments"):
            nets.plan(net=Wrong())

    def test_wrong_arguments(self):
        inputs = {"x": ((16, 7), "float32"), "y": ((16, 1), "float32")}
        cases = [
            (lambda: pl.plan(nets.Net(), inputs={"x": ((16, 7), "float32")}), "y"),
            (lambda: pl.plan(nets.Net(), inputs={**inputs, "z": ((1,), "float32")}), "z"),
            (lambda: pl.plan(nets.Net(), inputs={"x": ((16, 7), "float33"), "y": ((16, 1), "float32")}), "float32"),
            (lambda: pl.plan(nets.Net(), inputs={"x": ((16, 0), "float32"), "y": ((16, 1), "float32")}), "x"),
            *((lambda size=size: pl.plan(nets.Net(), inputs={**inputs, "x": ((size, 7), "float32")}), "shape of x")
              for size in (16.5, 16.0, True, "16", None, -16)),
            (lambda: pl.plan(nets.Net(), inputs=[1]), "inputs"),
            (lambda: pl.plan(nets.Net(), inputs={"x": (16, 8), "y": ((16, 1), "float32")}), "x"),
            (lambda: pl.plan(nets.Net(), inputs={"x": ((16, 8), "float32"), "y": ((16, 1), "float32")}), "linear"),
            (lambda: pl.plan(nets.Net()), "inputs"),
            (lambda: pl.plan(object(), inputs=inputs), "module"),
            (lambda: pl.plan(nets.Net(), inputs=inputs, optimizer="adamw"), "AdamW"),
            (lambda: pl.plan(nets.Net(), inputs=inputs, memory_budget="4 gigs"), "budget|4 gigs"),
            (lambda: pl.plan(nets.Net(), inputs=inputs, device="gpu"), "gpu"),
            (lambda: pl.plan(nets.Net(), inputs=inputs, settings={"training": {"learing_rate": 1}}), "learning_rate"),
        ]
        for make, word in cases:
            with self.assertRaisesRegex(pl.SettingError, word):
                make()

    def test_errors_name_arguments_as_python_does(self):
        cases = [
            (dict(clip_norm=-1.0), "clip_norm"),
            (dict(memory_budget="4 gigs"), "memory_budget"),
            (dict(memory_budget=-5), "memory_budget"),
            (dict(threads=0), "threads"),
            (dict(recompute="everything"), "recompute"),
            (dict(offload="everything"), "offload"),
            (dict(device="gpu"), "device"),
            (dict(loss_scale="much"), "loss_scale"),
        ]
        for arguments, name in cases:
            with self.assertRaises(pl.SettingError, msg=str(arguments)) as caught:
                nets.plan(**arguments)
            message = str(caught.exception)
            self.assertRegex(message, rf"(^|\W){name}\W", msg=message)
            self.assertNotRegex(message, r"(training|memory|runtime)\.|settings line", msg=message)

    def test_a_name_is_used_once(self):
        class Net(pl.Module):
            def __init__(self):
                self.parts = {"a.b": pl.Linear(7, 1), "a": {"b": pl.Linear(7, 1)}}

            def forward(self, x, y):
                return pl.mse(self.parts["a.b"](x) + self.parts["a"]["b"](x), y)

        with self.assertRaisesRegex(pl.SettingError, "two parameters are named parts.a.b"):
            pl.plan(Net(), inputs={"x": ((4, 7), "float32"), "y": ((4, 1), "float32")})

    def test_the_loss_is_one_number_and_needs_every_parameter(self):
        class Wrong(nets.Net):
            def forward(self, x, y):
                return self.embed(x)

        class Unused(nets.Net):
            def __init__(self):
                super().__init__()
                self.spare = pl.Linear(3, 3)

        class Nothing(nets.Net):
            def forward(self, x, y):
                self.embed(x)

        for net, word in ((Wrong(), "one number"), (Unused(), "spare.weight"), (Nothing(), "NoneType")):
            with self.assertRaisesRegex(pl.SettingError, word):
                nets.plan(net=net)


if __name__ == "__main__":
    unittest.main()
