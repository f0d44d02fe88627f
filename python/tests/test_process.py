"""What the package does to its process: imports, forks, Ctrl-C, threads, the end of the interpreter."""
import os
import signal
import subprocess
import sys
import textwrap
import unittest

import common


def run(code, **options):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120,
                          cwd=os.path.dirname(__file__), env=common.environment(), **options)


class Process(unittest.TestCase):
    def passes(self, code):
        done = run(code)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_import_opens_nothing(self):
        self.passes("""
            import os, sys
            before = set(os.listdir("/proc/self/task"))
            import plimsoll as pl
            assert set(os.listdir("/proc/self/task")) == before
            assert "numpy" not in sys.modules and "torch" not in sys.modules
            assert "libplimsoll" not in open("/proc/self/maps").read()
            pl.DataLoader, pl.Trainer, pl.TrainingArguments, pl.generate
            assert "numpy" not in sys.modules
        """)

    def test_prints_nothing_and_leaves_nothing(self):
        out = self.passes("""
            import os, signal, threading
            handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGSEGV)}
            import nets, plimsoll as pl
            here = len(os.listdir("/proc/self/task"))
            with pl.Session(nets.plan(), seed=0) as session:
                session.step(nets.batch())
                session.evaluate(nets.batch())
            assert len(os.listdir("/proc/self/task")) == here, os.listdir("/proc/self/task")
            assert handlers == {n: signal.getsignal(n) for n in handlers}
        """)
        self.assertEqual(out, "")

    def test_exit_with_a_live_session(self):
        self.passes("import nets, plimsoll as pl\nsession = pl.Session(nets.plan())\nsession.step(nets.batch())")
        self.passes("import nets, plimsoll as pl\nsession = pl.Session(nets.plan())\nloop = [session]\nloop.append(loop)\n"
                    "view = session.view('head.weight').__enter__()")

    def test_after_fork(self):
        self.passes("""
            import os, sys, nets, plimsoll as pl
            plan = nets.plan()
            session = pl.Session(plan)
            session.step(nets.batch())
            child = os.fork()
            if child == 0:
                for call in (lambda: session.step(nets.batch()), lambda: session["head.weight"], lambda: pl.Session(plan)):
                    try:
                        call()
                        os._exit(1)
                    except (pl.InternalError, pl.SettingError) as error:
                        if "fork" not in str(error):
                            os._exit(2)
                session.close()
                loader = pl.DataLoader([{"x": i} for i in range(8)], 4, shuffle=True, workers=2)
                if sum(len(batch["x"]) for batch in loader) != 8:
                    os._exit(3)
                sys.exit(0)
            assert os.waitpid(child, 0)[1] == 0, "the child failed"
            assert session.step(nets.batch()).index == 2
        """)

    def test_interrupt_ends_behind_a_whole_step(self):
        self.passes("""
            import os, signal, threading, time, nets, plimsoll as pl
            batch = nets.batch(2048)
            session = pl.Session(nets.plan(2048, nets.Net(hidden=128)))
            session.step(batch)
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            made = 1
            try:
                while True:
                    made = session.step(batch).index
            except KeyboardInterrupt:
                pass
            assert session.steps - made in (0, 1), (session.steps, made)
            assert session.step(batch).index == session.steps
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        """)

    def test_threads_share_a_session(self):
        self.passes("""
            import threading, nets, plimsoll as pl
            with pl.Session(nets.plan()) as session:
                indices = []
                def work():
                    for i in range(20):
                        indices.append(session.step(nets.batch(seed=i)).index)
                threads = [threading.Thread(target=work) for _ in range(4)]
                [t.start() for t in threads]; [t.join() for t in threads]
                assert sorted(indices) == list(range(1, 81))
        """)

    def test_a_step_costs_the_interpreter_little(self):
        """What a loop in Python takes beyond one in C++: all of a step but the library's own, in CPU time."""
        self.passes("""
            import time, nets, plimsoll as pl
            from plimsoll import _native
            batch, call = nets.batch(), _native.call
            with pl.Session(nets.plan(), seed=0) as session:
                session.step(batch, lr=1e-3)
                _native.call = lambda function, *arguments: function == "pls_session_step" or call(function, *arguments)
                spent = []
                for _ in range(10):
                    start = time.process_time()
                    for _ in range(300):
                        session.step(batch, lr=1e-3)
                    spent.append((time.process_time() - start) / 300)
                _native.call = call
            assert min(spent) < 50e-6, spent
        """)

    def test_sessions_leave_no_memory(self):
        self.passes("""
            import gc, nets, plimsoll as pl
            def resident():
                return int(open("/proc/self/statm").read().split()[1]) * 4096
            plan, batch = nets.plan(), nets.batch()
            def cycle(times):
                for _ in range(times):
                    with pl.Session(plan) as session:
                        session.step(batch)
            cycle(50)
            before = resident()
            cycle(1000)
            assert resident() - before < 1 << 20, resident() - before
        """)


    @common.needs_torch
    def test_a_session_takes_what_its_plan_says_beside_torch(self):
        """All memory of the process that is no file's, with PyTorch imported and its DataLoader's workers beside."""
        self.passes("""
            import gc, nets, numpy as np, torch, plimsoll as pl
            torch.set_num_threads(2)
            class Rows(torch.utils.data.Dataset):
                def __len__(self):
                    return 256 * 8
                def __getitem__(self, i):
                    x = np.full(7, i / 2048, np.float32)
                    return {"x": x, "y": x[:1]}
            def own():
                rollup = open("/proc/self/smaps_rollup").read().split()
                return int(rollup[rollup.index("Anonymous:") + 1]) * 1024
            def batches():
                return torch.utils.data.DataLoader(Rows(), 256, num_workers=2)
            layer = torch.nn.Linear(7, 64)
            for _ in range(3):
                for batch in batches():
                    layer(batch["x"]).sum().backward()
            plan = nets.plan(256, nets.Net(hidden=256, layers=6))
            gc.collect()
            before, most = own(), 0
            with pl.Session(plan, seed=0) as session:
                for _ in range(3):
                    for batch in batches():
                        session.step(batch)
                        most = max(most, own() - before)
            assert plan.peak_bytes > 8 << 20, plan.peak_bytes
            assert most > plan.peak_bytes // 2, (most, plan.peak_bytes)
            assert most <= plan.peak_bytes + (1 << 20), (most, plan.peak_bytes)
        """)


if __name__ == "__main__":
    unittest.main()
