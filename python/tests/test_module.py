"""Names, initialisation and misuse of modules: nothing here needs the library."""
import math
import unittest

import common  # noqa: F401
import plimsoll as pl


class Mlp(pl.Module):
    def __init__(self, dim):
        self.norm, self.up = pl.RMSNorm(dim), pl.Linear(dim, 4 * dim)


class Names(unittest.TestCase):
    def test_are_paths_of_attributes_and_lists(self):
        class Net(pl.Module):
            def __init__(self):
                self.tokens = pl.Embedding(8, 4)
                self.layers = [Mlp(4) for _ in range(2)]
                self.heads = {"a": pl.Linear(4, 2, bias=False)}
                self.tail = pl.Sequential(pl.Linear(4, 4), pl.gelu, pl.LayerNorm(4))

        self.assertEqual([name for name, _ in Net().named_parameters()], [
            "tokens.weight", "layers.0.norm.weight", "layers.0.up.weight", "layers.0.up.bias", "layers.1.norm.weight",
            "layers.1.up.weight", "layers.1.up.bias", "heads.a.weight", "tail.0.weight", "tail.0.bias", "tail.2.weight",
            "tail.2.bias"])

    def test_shared_parameters_have_the_first_name(self):
        class Net(pl.Module):
            def __init__(self):
                self.tokens, self.head = pl.Embedding(8, 4), pl.Linear(4, 8, bias=False)
                self.head.weight = self.tokens.weight

        self.assertEqual([name for name, _ in Net().named_parameters()], ["tokens.weight"])
        self.assertEqual(Net().num_parameters(), 32)

    def test_a_cycle_is_refused_with_its_path(self):
        net = Mlp(4)
        net.up.parent = net
        with self.assertRaisesRegex(pl.SettingError, "up.parent"):
            list(net.named_parameters())

    def test_modules_by_name(self):
        net = pl.Sequential(Mlp(4))
        self.assertEqual([name for name, _ in net.named_modules()], ["", "0", "0.norm", "0.up"])


class Layers(unittest.TestCase):
    def test_shapes_and_initialisation_are_torchs(self):
        linear, table, norm = pl.Linear(9, 5), pl.Embedding(7, 3), pl.LayerNorm(6)
        self.assertEqual((linear.weight.shape, linear.bias.shape), ((5, 9), (5,)))
        self.assertEqual(linear.bias.options(), {"init": "uniform", "trained": True, "bound": 1 / 3})
        self.assertEqual(table.weight.options(), {"init": "normal", "trained": True, "std": 1.0, "kind": "embedding"})
        self.assertEqual((norm.weight.options()["init"], norm.bias.options()["init"]), ("ones", "zeros"))
        self.assertTrue(math.isclose(pl.RMSNorm(4).eps, 2.0 ** -23))

    def test_wrong_sizes_are_named(self):
        for make, word in ((lambda: pl.Linear(0, 4), "in_features"), (lambda: pl.Embedding(4, "x"), "dim"),
                           (lambda: pl.Dropout(1.0), "p is"), (lambda: pl.Parameter((2, -1)), "shape"),
                           (lambda: pl.Parameter((2,), "kaiming"), "init")):
            with self.assertRaisesRegex(pl.SettingError, word):
                make()

    def test_frozen_parameters_say_so(self):
        net = Mlp(4).requires_grad_(False)
        self.assertEqual([p.options()["trained"] for p in net.parameters()], [False] * 3)


class Outside(unittest.TestCase):
    def test_functions_want_a_plan(self):
        with self.assertRaisesRegex(pl.SettingError, "inside of forward"):
            pl.gelu(pl.Parameter((2,)))
        with self.assertRaisesRegex(pl.SettingError, "inside of forward"):
            pl.Linear(2, 2)(1)

    def test_an_unknown_name_has_the_nearest(self):
        with self.assertRaisesRegex(AttributeError, "softmax"):
            pl.soft_max


if __name__ == "__main__":
    unittest.main()
