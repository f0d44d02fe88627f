"""Steps, accumulation, evaluation, gradients, reading and writing, checkpoints."""
import math
import os
import tempfile
import unittest

import nets
import numpy as np
import plimsoll as pl


class Steps(unittest.TestCase):
    def test_train_and_count(self):
        with pl.Session(nets.plan(), seed=0) as session:
            steps = [session.step(nets.batch(seed=i)) for i in range(40)]
            self.assertEqual([s.index for s in steps], list(range(1, 41)))
            self.assertEqual(session.steps, 40)
        self.assertLess(steps[-1].loss, steps[0].loss)
        self.assertTrue(all(s.seconds > 0 and s.grad_norm > 0 and not s.skipped for s in steps))

    def test_same_seed_same_bits(self):
        plan = nets.plan(net=nets.Net(p=0.3))
        losses = []
        for seed in (1, 1, 2):
            with pl.Session(plan, seed=seed) as session:
                losses.append([session.step(nets.batch(seed=i)).loss for i in range(4)])
        self.assertEqual(losses[0], losses[1])
        self.assertNotEqual(losses[0], losses[2])

    def test_lr_holds_for_its_step(self):
        with pl.Session(nets.plan(), seed=0) as session:
            before = session["head.weight"]
            self.assertEqual(session.step(nets.batch(), lr=0.0).learning_rate, 0.0)
            np.testing.assert_array_equal(session["head.weight"], before)
            self.assertAlmostEqual(session.step(nets.batch()).learning_rate, 1e-2)
            self.assertTrue((session["head.weight"] != before).any())

    def test_accumulation_is_the_mean_of_its_parts(self):
        parts = [nets.batch(8, seed=i) for i in range(3)]
        whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        plan = nets.plan(rows=8)
        with pl.Session(plan, seed=0) as one, pl.Session(plan, seed=0) as other, pl.Session(nets.plan(24), seed=0) as large:
            for _ in range(3):
                a, b, c = one.step(whole, accumulate=3), other.step(parts, accumulate=3), large.step(whole)
                self.assertEqual((a.loss, a.grad_norm), (b.loss, b.grad_norm))
                self.assertAlmostEqual(a.loss, c.loss, delta=1e-5 * a.loss)
            np.testing.assert_array_equal(one["head.weight"], other["head.weight"])
            with self.assertRaisesRegex(pl.SettingError, "accumulate"):
                one.step(parts, accumulate=2)
            with self.assertRaisesRegex(pl.SettingError, "accumulate"):
                one.step(whole, accumulate=0)
            with self.assertRaises((pl.SettingError, pl.DataError)):
                one.step(whole, accumulate=2)

    def test_steps_of_one_part_are_the_same(self):
        with pl.Session(nets.plan(accumulate=False), seed=0) as one, pl.Session(nets.plan(), seed=0) as other:
            for i in range(3):
                self.assertEqual(one.step(nets.batch(seed=i)).loss, other.step(nets.batch(seed=i)).loss)
            np.testing.assert_array_equal(one["head.weight"], other["head.weight"])
            with self.assertRaisesRegex(pl.SettingError, "accumulators"):
                one.gradients(nets.batch())
            with self.assertRaisesRegex(pl.SettingError, "accumulators"):
                one.step([nets.batch()] * 2, accumulate=2)

    def test_rates_that_no_weight_survives_are_refused(self):
        with pl.Session(nets.plan(), seed=0) as session:
            for lr in (-1, 1e300, 1e7, float("inf"), float("nan"), "a"):
                with self.assertRaisesRegex(pl.SettingError, "lr is"):
                    session.step(nets.batch(), lr=lr)
            self.assertEqual(session.step(nets.batch(), lr=np.float32(1e-3)).index, 1)

    def test_evaluate_and_gradients_change_nothing(self):
        plan = nets.plan(net=nets.Net(p=0.2))
        with pl.Session(plan, seed=0) as one, pl.Session(plan, seed=0) as other:
            for i in range(3):
                one.evaluate(nets.batch(seed=9))
                gradients = one.gradients(nets.batch(seed=i))
                a, b = one.step(nets.batch(seed=i)), other.step(nets.batch(seed=i))
                self.assertEqual((a.loss, a.grad_norm, a.index), (b.loss, b.grad_norm, b.index))
                norm = math.sqrt(sum(float((g.astype(np.float64) ** 2).sum()) for g in gradients.values()))
                self.assertAlmostEqual(norm, a.grad_norm, delta=1e-4 * norm)
            np.testing.assert_array_equal(one["head.weight"], other["head.weight"])
            self.assertEqual(list(gradients), one.names())
            self.assertEqual(one.evaluate(nets.batch()), one.evaluate(nets.batch()))

    def test_clipping(self):
        with pl.Session(nets.plan(optimizer=pl.SGD(lr=1.0), clip_norm=0.01), seed=0) as session:
            before = {name: session[name] for name in session.names()}
            norm = session.step(nets.batch()).grad_norm
            moved = math.sqrt(sum(float(((session[n] - w) ** 2).sum()) for n, w in before.items()))
        self.assertGreater(norm, 0.01)
        self.assertAlmostEqual(moved, 0.01, delta=1e-4)

    def test_frozen_parameters_stay(self):
        net = nets.Net()
        net.embed.requires_grad_(False)
        with pl.Session(nets.plan(net=net), seed=0) as session:
            before = session["embed.weight"]
            session.step(nets.batch())
            np.testing.assert_array_equal(session["embed.weight"], before)
            self.assertNotIn("embed.weight", session.gradients(nets.batch()))

    def test_what_is_not_finite_changes_nothing(self):
        with pl.Session(nets.plan(), seed=0) as session:
            session.step(nets.batch())
            before, bad = session["head.weight"], nets.batch()
            bad["x"][3, 2] = np.nan
            with self.assertRaises(pl.Diverged):
                session.step(bad)
            np.testing.assert_array_equal(session["head.weight"], before)
            self.assertEqual(session.step(nets.batch()).index, 2)

    def test_autocast_rounds_products(self):
        class Low(nets.Net):
            def forward(self, x, y):
                with pl.autocast("bf16"):
                    return super().forward(x, y)

        with pl.Session(nets.plan(net=Low()), seed=0) as low, pl.Session(nets.plan(), seed=0) as full:
            a, b = low.step(nets.batch()).loss, full.step(nets.batch()).loss
        self.assertNotEqual(a, b)
        self.assertAlmostEqual(a, b, delta=0.02 * abs(b))


class Parameters(unittest.TestCase):
    def test_names_read_write(self):
        with pl.Session(nets.plan(), seed=0) as session:
            self.assertEqual(session.names(), [name for name, _ in nets.Net().named_parameters()])
            weight = session["layers.1.weight"]
            self.assertEqual((weight.shape, weight.dtype), ((32, 32), np.float32))
            session.write("layers.1.weight", np.tril(weight))
            np.testing.assert_array_equal(session["layers.1.weight"], np.tril(weight))
            session.write("head.weight", np.arange(32.0)[None, :])
            self.assertEqual(session["head.weight"][0, 5], 5)
            state = session.state_dict()
            session.step(nets.batch())
            session.load_state_dict(state)
            np.testing.assert_array_equal(session["layers.1.weight"], np.tril(weight))

    def test_initialisation_is_torchs(self):
        with pl.Session(nets.plan(net=nets.Net(hidden=200)), seed=0) as session:
            weight, bias = session["layers.0.weight"], session["layers.0.bias"]
            for array in (weight, bias):
                self.assertLessEqual(np.abs(array).max(), 200 ** -0.5)
            self.assertAlmostEqual(float(weight.std()), (200 * 3) ** -0.5, delta=2e-3)
        with pl.Session(nets.labelled_plan(), seed=0) as session:
            self.assertAlmostEqual(float(session["tokens.weight"].std()), 1.0, delta=0.3)

    def test_wrong_ones_are_named(self):
        with pl.Session(nets.plan(), seed=0) as session:
            for call, word in ((lambda: session["head.wieght"], "head.weight"),
                               (lambda: session.write("head", np.zeros(3)), "head.weight|head.bias"),
                               (lambda: session.write("head.weight", np.zeros((32, 1))), r"\[32, 1\].*\[1, 32\]"),
                               (lambda: session.write("head.weight", np.full((1, 32), np.nan)), "head.weight"),
                               (lambda: session.write("head.bias", ["a"]), "^write head.bias")):
                with self.assertRaisesRegex((pl.SettingError, pl.DataError), word):
                    call()

    def test_a_view_is_the_parameter_itself(self):
        with pl.Session(nets.plan(), seed=0) as session:
            with session.view("head.weight") as view:
                self.assertFalse(view.flags.writeable)
                np.testing.assert_array_equal(view, session["head.weight"])
                with self.assertRaisesRegex(pl.SettingError, "view"):
                    session.step(nets.batch())
            session.step(nets.batch())
            np.testing.assert_array_equal(view, session["head.weight"])
        self.assertTrue(np.isfinite(view).all())


class Files(unittest.TestCase):
    def test_resumes_bit_for_bit(self):
        plan = nets.plan(net=nets.Net(p=0.2))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "saved")
            with pl.Session(plan, seed=4) as session:
                for i in range(3):
                    session.step(nets.batch(seed=i))
                session.save(path, host_state={"epoch": 2})
                wanted = [session.step(nets.batch(seed=i)) for i in range(3, 6)]
                weights = session.state_dict()
            self.assertTrue(os.path.isfile(os.path.join(path, "model.safetensors")))
            with pl.Session(plan, seed=99) as session:
                self.assertEqual(session.load(path), {"epoch": 2})
                steps = [session.step(nets.batch(seed=i)) for i in range(3, 6)]
                self.assertEqual([(s.index, s.loss, s.grad_norm) for s in steps],
                                 [(s.index, s.loss, s.grad_norm) for s in wanted])
                for name, array in weights.items():
                    np.testing.assert_array_equal(session[name], array)

    def test_missing_damaged_and_foreign(self):
        with tempfile.TemporaryDirectory() as folder, pl.Session(nets.plan(), seed=0) as session:
            with self.assertRaisesRegex(OSError, "^there is no such file") as caught:
                session.load(os.path.join(folder, "none"))
            self.assertTrue(caught.exception.hint)
            path, other = os.path.join(folder, "saved"), os.path.join(folder, "other")
            session.save(path)
            with pl.Session(nets.plan(net=nets.Net(layers=3)), seed=0) as foreign:
                foreign.save(other)
            with self.assertRaisesRegex(pl.DataError, "layers.2"):
                session.load(other)
            with open(os.path.join(path, "model.safetensors"), "r+b") as file:
                file.truncate(100)
            before = session["head.weight"]
            with self.assertRaises(pl.DataError):
                session.load(path)
            np.testing.assert_array_equal(session["head.weight"], before)
            session.step(nets.batch())


class Ends(unittest.TestCase):
    def test_a_closed_session_refuses(self):
        session = pl.Session(nets.plan(), seed=0)
        session.close()
        session.close()
        for call in (lambda: session.step(nets.batch()), lambda: session["head.weight"], lambda: session.save("x"),
                     lambda: session.steps, lambda: session.evaluate(nets.batch())):
            with self.assertRaisesRegex(pl.SettingError, "closed"):
                call()

    def test_two_sessions_of_one_plan(self):
        plan = nets.plan()
        with pl.Session(plan, seed=0) as one, pl.Session(plan, seed=1) as other:
            self.assertNotEqual(one.step(nets.batch()).loss, other.step(nets.batch()).loss)

    def test_two_sessions_over_one_budget(self):
        """A budget of the process counts what a session has taken already."""
        net, budget = nets.Net(hidden=512, layers=8), "2GiB"
        first = nets.plan(net=net, memory_budget=budget, budget_scope="process")
        with pl.Session(first):
            second = nets.plan(net=net, memory_budget=budget, budget_scope="process")
            self.assertGreater(first.budget_bytes - second.budget_bytes, 0.9 * first.peak_bytes)

    def test_arguments(self):
        with self.assertRaisesRegex(pl.SettingError, "plan"):
            pl.Session(nets.Net())
        with self.assertRaisesRegex(pl.SettingError, "seed"):
            pl.Session(nets.plan(), seed=-1)


if __name__ == "__main__":
    unittest.main()
