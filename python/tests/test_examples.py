"""The examples: each runs, none is longer than fifty lines, and their models are PyTorch's to 1e-4 over fifty steps."""
import io
import os
import tempfile
import unittest
from contextlib import redirect_stdout

import common
import numpy as np
import plimsoll as pl

if common.HAS_TORCH:
    import torch
    import twins


class Runs(unittest.TestCase):
    def run_example(self, name, limit, **options):
        with redirect_stdout(io.StringIO()):
            self.assertLess(common.example(name).main(**options), limit)

    def test_mlp(self):
        self.run_example("mlp", 0.5)

    def test_byte_lm(self):
        self.run_example("byte_lm", 3.0, steps=60)

    def test_vit(self):
        self.run_example("vit", 1.0, steps=60)

    def test_resnet(self):
        self.run_example("resnet", 0.9, steps=40)

    def test_two_towers(self):
        self.run_example("two_towers", 3.0, epochs=3)

    def test_own_loop_resumes(self):
        with tempfile.TemporaryDirectory() as folder:
            self.run_example("own_loop", 1.5, folder=os.path.join(folder, "run"), steps=40)
            self.run_example("own_loop", 1.2, folder=os.path.join(folder, "run"), steps=60)

    def test_are_short(self):
        for path in common.EXAMPLES.glob("*.py"):
            self.assertLessEqual(len(path.read_text().splitlines()), 50, path.name)


@common.needs_torch
class AgainstTorch(unittest.TestCase):
    def compare(self, net, twin, inputs, batches, lr=1e-3, limit=1e-4, accumulate=1):
        plan = pl.plan(net, inputs=inputs, optimizer=pl.AdamW(lr=lr, weight_decay=0.01))
        with pl.Session(plan, seed=11) as session:
            names = dict(twin.named_parameters()) | dict(twin.named_buffers())
            self.assertEqual(sorted(names), sorted(session.names()))
            with torch.no_grad():
                for name, parameter in names.items():
                    parameter.copy_(torch.from_numpy(session[name]))
            optimizer = torch.optim.AdamW(twin.parameters(), lr=lr, weight_decay=0.01)
            for i in range(50):
                parts = [batches(i * accumulate + k) for k in range(accumulate)]
                step = session.step(parts if accumulate > 1 else parts[0], accumulate=accumulate)
                optimizer.zero_grad()
                total = 0.0
                for part in parts:
                    loss = twin(**{name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in part.items()}) / accumulate
                    loss.backward()
                    total += loss.item()
                optimizer.step()
                self.assertAlmostEqual(step.loss, total, delta=limit * abs(total), msg=f"step {i + 1}")
                if i == 9:  # running values
                    for name, buffer in twin.named_buffers():
                        if name in session:
                            np.testing.assert_allclose(session[name], buffer.numpy(), rtol=1e-4, atol=1e-5, err_msg=name)

    def test_mlp(self):
        module = common.example("mlp")
        self.compare(module.Mlp(), twins.Mlp(), {"x": ((64, 3), "float32"), "y": ((64, 1), "float32")},
                     lambda i: module.batch(64, i))

    def test_byte_lm(self):
        module = common.example("byte_lm")
        text = np.fromfile(module.__file__, np.uint8).astype(np.int32)
        self.compare(module.ByteLM(), twins.ByteLM(), {n: ((8, 64), "int32") for n in ("ids", "labels")},
                     lambda i: module.batch(text, 8, 64, i))

    def test_vit(self):
        module = common.example("vit")
        self.compare(module.ViT(), twins.ViT(), {"images": ((32, 16, 16), "float32"), "labels": ((32,), "int32")},
                     lambda i: module.batch(32, i))

    def test_resnet(self):
        module = common.example("resnet")
        self.compare(module.ResNet(), twins.ResNet(), {"images": ((32, 3, 16, 16), "float32"), "labels": ((32,), "int32")},
                     lambda i: module.batch(32, i), lr=1e-4)

    def test_two_towers(self):
        module = common.example("two_towers")
        rows = module.Pairs()
        self.compare(module.TwoTowers(), twins.TwoTowers(), {"queries": ((32, 3), "int32"), "documents": ((32, 8), "int32")},
                     lambda i: {name: np.stack([rows[i * 32 + k][name] for k in range(32)]) % 200 for name in rows[0]})

    def test_own_loop_in_fp32(self):
        module = common.example("own_loop")

        class Full(module.Net):
            def forward(self, x, labels):
                autocast, pl.autocast = pl.autocast, lambda word: autocast("fp32")
                try:
                    return super().forward(x, labels)
                finally:
                    pl.autocast = autocast

        self.compare(Full(), twins.OwnLoop(), {"x": ((16, 20), "float32"), "labels": ((16,), "int32")},
                     lambda i: module.batch(16, i), accumulate=3)


if __name__ == "__main__":
    unittest.main()
