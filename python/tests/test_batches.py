"""Batches of every kind: right, or refused by name."""
import unittest

import common
import nets
import numpy as np
import plimsoll as pl

REFUSED = (pl.SettingError, pl.DataError)


class Right(unittest.TestCase):
    def setUp(self):
        self.session = pl.Session(nets.plan(), seed=0)
        self.batch = nets.batch()
        self.wanted = self.session.evaluate(self.batch)

    def tearDown(self):
        self.session.close()

    def same(self, **changed):
        self.assertEqual(self.session.evaluate({**self.batch, **changed}), self.wanted)

    def test_strided_reversed_and_read_only(self):
        x = self.batch["x"]
        wide = np.zeros((16, 14), np.float32)
        wide[:, ::2] = x
        self.same(x=wide[:, ::2])
        self.same(x=np.asfortranarray(x))
        self.same(x=x[::-1].copy()[::-1])
        fixed = x.copy()
        fixed.flags.writeable = False
        self.same(x=fixed)

    def test_lists_and_other_byte_orders(self):
        x = self.batch["x"]
        self.same(x=x.tolist())
        self.same(x=x.astype(">f4"))
        self.same(x=memoryview(x))

    @common.needs_torch
    def test_torch_tensors(self):
        import torch

        x = torch.from_numpy(self.batch["x"])
        self.same(x=x)
        self.same(x=x.clone().requires_grad_())
        self.same(x=torch.from_numpy(np.asfortranarray(self.batch["x"])))
        half = x.to(torch.bfloat16)
        self.assertEqual(self.session.evaluate({**self.batch, "x": half}),
                         self.session.evaluate({**self.batch, "x": half.float()}))
        with self.assertRaisesRegex(REFUSED, "x"):
            self.session.step({**self.batch, "x": torch.zeros(16, 7, device="meta")})

    def test_integers_of_any_width(self):
        batch = nets.labelled_batch()
        with pl.Session(nets.labelled_plan(), seed=0) as session:
            wanted = session.evaluate(batch)
            for kind in (np.int64, np.uint8, np.int16, np.uint16, np.uint32, np.uint64, ">i8"):
                self.assertEqual(session.evaluate({**batch, "ids": batch["ids"].astype(kind)}), wanted)
            self.assertEqual(session.evaluate({name: array.tolist() for name, array in batch.items()}), wanted)


class Wrong(unittest.TestCase):
    def test_is_refused_by_name_and_the_session_goes_on(self):
        good = nets.batch()
        with pl.Session(nets.plan(), seed=0) as session:
            for changed, words in (
                    ({"x": good["x"][:8]}, "x.*8.*16|x.*16.*8"), ({"x": good["x"][:, :6]}, "x"), ({"x": good["x"].astype(int)}, "x"),
                    ({"x": good["x"].astype(complex)}, "x"), ({"x": np.array(["a"])}, "x"),
                    ({"x": [[1.0], [1.0, 2.0]]}, "x"), ({"x": None}, "x"), ({"z": good["x"]}, "z"), ({"x": good["x"].ravel()}, "x")):
                with self.assertRaisesRegex(REFUSED, words):
                    session.step({**good, **changed})
            with self.assertRaisesRegex(REFUSED, "y"):
                session.step({"x": good["x"]})
            with self.assertRaisesRegex(REFUSED, "dict"):
                session.step(good["x"])
            self.assertEqual(session.step(good).index, 1)

    def test_ids_and_labels_out_of_range(self):
        with pl.Session(nets.labelled_plan(), seed=0) as session:
            for name, number in (("ids", 11), ("ids", -1), ("labels", 5), ("labels", -3), ("ids", 2 ** 40)):
                batch = {key: array.astype(np.int64) for key, array in nets.labelled_batch().items()}
                batch[name][1, 2] = number
                with self.assertRaisesRegex(REFUSED, f"{name}|{number}"):
                    session.step(batch)
            batch = nets.labelled_batch()
            batch["labels"][0] = -100
            session.step(batch)


if __name__ == "__main__":
    unittest.main()
