"""The loader: one order for any number of threads, errors in the loop, no thread left behind."""
import threading
import time
import unittest

import common  # noqa: F401
import numpy as np
import plimsoll as pl


class Rows:
    def __init__(self, rows, broken=None):
        self.rows, self.broken = rows, broken

    def __len__(self):
        return self.rows

    def __getitem__(self, index):
        if index == self.broken:
            raise RuntimeError(f"row {index} is broken")
        time.sleep(0.0005 * (index % 3))
        return {"x": np.full(3, index, np.float32), "label": index, "weight": 0.5}


def order(loader):
    return [row for batch in loader for row in batch["label"].tolist()]


class Order(unittest.TestCase):
    def test_depends_on_seed_and_epoch_alone(self):
        wanted = pl.DataLoader(Rows(50), 5, shuffle=True, seed=7)
        epochs = [order(wanted), order(wanted)]
        self.assertNotEqual(epochs[0], epochs[1])
        self.assertEqual(sorted(epochs[0]), list(range(50)))
        for workers, prefetch in ((1, 1), (3, 2), (8, 4)):
            loader = pl.DataLoader(Rows(50), 5, shuffle=True, seed=7, workers=workers, prefetch=prefetch)
            self.assertEqual([order(loader), order(loader)], epochs)
        self.assertNotEqual(order(pl.DataLoader(Rows(50), 5, shuffle=True, seed=8)), epochs[0])
        self.assertEqual(order(pl.DataLoader(Rows(50), 5)), list(range(50)))

    def test_batches(self):
        batch = next(iter(pl.DataLoader(Rows(10), 4)))
        self.assertEqual((batch["x"].shape, batch["x"].dtype, batch["label"].dtype, batch["weight"].dtype),
                         ((4, 3), np.float32, np.int64, np.float32))
        self.assertEqual(len(pl.DataLoader(Rows(10), 4)), 2)
        self.assertEqual([len(b["x"]) for b in pl.DataLoader(Rows(10), 4, drop_last=False)], [4, 4, 2])

    def test_state_before_the_first_batch(self):
        loader = pl.DataLoader(Rows(20), 4, shuffle=True, seed=1)
        wanted = order(loader)
        loader = pl.DataLoader(Rows(20), 4, shuffle=True, seed=1)
        batches = iter(loader)
        other = pl.DataLoader(Rows(20), 4, shuffle=True, seed=1)
        other.load_state_dict(loader.state_dict())
        self.assertEqual(order(other), wanted)
        self.assertEqual([row for batch in batches for row in batch["label"].tolist()], wanted)
        self.assertEqual(loader.state_dict(), {"epoch": 1, "position": 0})

    def test_state_reads_on(self):
        loader = pl.DataLoader(Rows(20), 4, shuffle=True, seed=1, workers=2)
        wanted = order(loader) + order(loader)
        loader = pl.DataLoader(Rows(20), 4, shuffle=True, seed=1, workers=2)
        read, batches = [], iter(loader)
        for _ in range(3):
            read += next(batches)["label"].tolist()
        state = loader.state_dict()
        batches.close()
        other = pl.DataLoader(Rows(20), 4, shuffle=True, seed=1)
        other.load_state_dict(state)
        self.assertEqual(read + order(other) + order(other), wanted)


class Ends(unittest.TestCase):
    def tearDown(self):
        self.assertEqual([t.name for t in threading.enumerate() if t.name == "plimsoll-loader"], [])

    def test_errors_come_out_of_the_loop(self):
        for workers in (0, 3):
            with self.assertRaisesRegex(RuntimeError, "row 17 is broken"):
                order(pl.DataLoader(Rows(40, broken=17), 4, workers=workers))

    def test_no_thread_stays(self):
        for batch in pl.DataLoader(Rows(200), 4, workers=4):
            break
        self.assertEqual(threading.active_count(), 1)

    def test_rows_that_do_not_belong_together(self):
        rows = [{"x": [1, 2]}, {"x": [1, 2, 3]}]
        with self.assertRaisesRegex(pl.DataError, "x: row 1"):
            next(iter(pl.DataLoader(rows, 2)))
        with self.assertRaisesRegex(pl.DataError, "row 1"):
            next(iter(pl.DataLoader([{"x": 1}, {"y": 1}], 2)))
        with self.assertRaisesRegex(pl.DataError, "row 0"):
            next(iter(pl.DataLoader([1, 2], 2)))

    def test_wrong_arguments(self):
        for make, word in ((lambda: pl.DataLoader([{"x": 1}], 0), "batch_size"), (lambda: pl.DataLoader(iter([]), 1), "__len__"),
                           (lambda: pl.DataLoader([], 1, workers=-1), "workers")):
            with self.assertRaisesRegex(pl.SettingError, word):
                make()
        with self.assertRaisesRegex(pl.DataError, "1 rows"):
            iter(pl.DataLoader([{"x": 1}], 2))


if __name__ == "__main__":
    unittest.main()
