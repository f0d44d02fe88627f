#!/usr/bin/env python3
"""Tests of the other scripts under tools/: each runs as its user would run it, on a made-up tree or system."""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest
import zlib

from scratch import ROOT, TOOLS, Scratch, write


class InstallDeps(Scratch):
    """A made-up Debian: what is installed and what the archive offers are files, apt-get writes down its call."""

    def system(self, pins, installed, offered, root=True):
        write(self.dir / "packages.txt", "# comment\n\n" + pins)
        write(self.dir / "installed", installed)
        write(self.dir / "offered", offered)
        scripts = {
            "dpkg-query": 'cat "$STATE/installed"; exit 1\n',
            "apt-cache": 'grep "^$2 " "$STATE/offered" || true\n',
            "apt-get": 'echo "apt-get $*" >>"$STATE/calls"\n',
            "id": f"echo {0 if root else 1000}\n",
            "sudo": "exit 1\n",
        }
        for name, body in scripts.items():
            file = self.dir / "bin" / name
            write(file, "#!/bin/bash\n" + body)
            file.chmod(file.stat().st_mode | stat.S_IXUSR)
        env = dict(os.environ, PATH=f"{self.dir}/bin:{os.environ['PATH']}", STATE=str(self.dir),
                   PLIMSOLL_PACKAGES=str(self.dir / "packages.txt"))
        env.pop("PLIMSOLL_UNPINNED", None)
        return env

    def install(self, *args, **system):
        result = self.run_tool("install-deps", *args, env=self.system(**system))
        calls = self.dir / "calls"
        return result.returncode, result.stderr, calls.read_text() if calls.exists() else ""

    def test_nothing_missing_does_and_says_nothing(self):
        self.assertEqual(self.install(pins="a=1.0-1\n", installed="a installed 1.0-2\n", offered=""), (0, "", ""))

    def test_only_the_missing_are_installed_as_pinned(self):
        code, err, calls = self.install(pins="a=1.0-1\nb=2:3.0-1\n", installed="a installed 1.0-1\n",
                                        offered="b | 2:3.0-2 | x\nb | 2:3.0-1 | x\n")
        self.assertEqual(code, 0)
        self.assertIn("missing: b", err)
        self.assertEqual(calls, "apt-get install -q -y --no-install-recommends b=2:3.0-1\n")

    def test_a_dropped_revision_is_replaced_aloud(self):
        code, err, calls = self.install(pins="a=1:3.0-1\n", installed="a config-files 1:3.0-1\n",
                                        offered="a | 1:4.0-1 | x\na | 1:3.0-1+deb12u1 | x\n")
        self.assertEqual(code, 0)
        self.assertIn("a 1:3.0-1 is gone from the archive, taking 1:3.0-1+deb12u1", err)
        self.assertEqual(calls.splitlines()[0], "apt-get -q update")
        self.assertIn("a=1:3.0-1+deb12u1", calls)

    def test_another_upstream_version_is_an_error_with_a_hint(self):
        code, err, calls = self.install(pins="a=3.0-1\n", installed="", offered="a | 4.0-1 | x\n")
        self.assertEqual(code, 1)
        self.assertIn("no matching version of: a=3.0-1", err)
        self.assertIn("hint:", err)
        self.assertNotIn("install", calls)

    def test_without_root_it_says_so_and_touches_nothing(self):
        code, err, calls = self.install(pins="a=3.0-1\n", installed="", offered="a | 3.0-1 | x\n", root=False)
        self.assertEqual((code, calls), (1, ""))
        self.assertIn("needs root: a", err)

    def test_check_only_reports(self):
        code, err, calls = self.install("--check", pins="a=3.0-1\n", installed="", offered="a | 3.0-1 | x\n")
        self.assertEqual((code, calls), (1, ""))
        self.assertIn("missing: a", err)

    def test_an_installed_package_of_another_version_is_named(self):
        code, err, calls = self.install(pins="a=3.0-1\n", installed="a installed 4.0-1\n", offered="")
        self.assertEqual((code, calls), (0, ""))
        self.assertIn("a is 4.0-1 here, tested with 3.0-1", err)


class DemoReport(Scratch):
    SUMMARY = dict(event="summary", steps=2, tokens=100, seconds=1.5, tokens_per_second=66.7, startup_seconds=0.1,
                   planned_peak_bytes=3 << 20, measured_peak_bytes=2 << 20, arena_bytes=1 << 20,
                   allocations_after_first_step=0, small_allocations_per_step=1.5)

    def report(self, *events):
        write(self.dir / "events", "".join(json.dumps(event) + "\n" for event in events))
        return self.run_tool("demo-report", self.dir / "events")

    def test_a_good_run(self):
        done = self.report(dict(event="eval", step=1, loss=2.0, perplexity=7.39),
                           dict(event="eval", step=2, loss=1.0, perplexity=2.72), self.SUMMARY)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("3,145,728 bytes", done.stdout)
        self.assertRegex(done.stdout, r"small allocations per step +1\.5")
        self.assertRegex(done.stdout, r"2 +1\.0000 +2\.7")

    def test_what_is_wrong_is_said(self):
        over = self.SUMMARY | dict(measured_peak_bytes=4 << 20)
        done = self.report(dict(event="eval", step=1, loss=1.0, perplexity=2.72), dict(event="eval", step=2, loss=1.0, perplexity=2.72), over)
        self.assertEqual(done.returncode, 1)
        self.assertIn("measured peak is above", done.stderr)
        self.assertIn("has not fallen", done.stderr)

    def test_a_run_that_did_not_end(self):
        done = self.report(dict(event="eval", step=1, loss=1.0, perplexity=2.72))
        self.assertEqual(done.returncode, 1)
        self.assertIn("no summary", done.stderr)


class ReadmeTables(Scratch):
    """Made-up pages in a made-up tree, and this tree's own README.md and docs/performance.md."""

    BEGIN, END = "<!-- figures: written by tools/readme-tables -->", "<!-- figures: end -->"

    def page(self, name, *rows, title="A training step in fp32 against PyTorch, 2026-01-01", commit="0123456789ab",
             processor="A Chip (family 6, model 1)", columns=5):
        header = ("work", "figure", "memory")[:columns - 3] + ("measured", "goal", "")
        goals = "".join(f"| {' | '.join(row)} |\n" for row in (header, ("-",) * columns, *rows))
        write(self.dir / "bench" / "results" / name,
              f"# {title}\n\nWritten by `bench/run` at commit {commit}; the log.\n\n- Processor: {processor}, 2 CPUs\n\n"
              f"## Goals\n\n{goals}\n## Speed\n\n| work | program | median | spread |\n| - | - | - | - |\n| W1 | plimsoll | 9 | 9 |\n")

    def tables(self, *args, between="", page="docs/performance.md"):
        for name in ("README.md", "docs/performance.md"):
            write(self.dir / name, f"# A project\n\n{self.BEGIN}\n{between}{self.END}\n\nThe end.\n")
        done = self.run_tool("readme-tables", "--root", self.dir, *args)
        return done.returncode, done.stderr, (self.dir / page).read_text()

    def test_this_tree_quotes_the_newest_pages(self):
        done = self.run_tool("readme-tables", "--check")
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_the_newest_page_of_a_work_counts_misses_included(self):
        eager = "tokens/s against eager"
        self.page("2026-01-01-chip-2cpu.md", ("W1", eager, "9.99", "≥ 1.30", "met"), ("W2", eager, "1.40", "≥ 1.30", "met"))
        self.page("2026-01-01-chip-2cpu-2.md", ("W1", eager, "8.88", "≥ 1.30", "met"))
        self.page("2026-01-01-chip-2cpu-10.md", ("W1", eager, "1.20", "≥ 1.30", "missed"), ("W1", "share of 300 GFLOP/s (9)", "0.50", "–", ""))
        code, _, text = self.tables()
        self.assertEqual(code, 0)
        self.assertIn("**1.20 (≥ 1.30, missed)**", text)
        self.assertRegex(text, r"\| W1 .* 0\.50 \|")
        self.assertRegex(text, r"\| W2 .* 1\.40 \(≥ 1\.30\) \|")
        self.assertIn("- W1: [page](../bench/results/2026-01-01-chip-2cpu-10.md), commit 0123456789ab, A Chip 6/1, 2 CPUs", text)
        self.assertIn("- W2: [page](../bench/results/2026-01-01-chip-2cpu.md)", text)
        self.assertNotIn("9.99", text)
        self.assertNotIn("8.88", text)
        self.assertTrue(text.startswith("# A project\n") and text.endswith("The end.\n"))

    def test_readme_has_speed_and_memory_without_goals(self):
        self.page("2026-01-01-chip-2cpu.md", ("W1", "tokens/s against eager", "1.20", "≥ 1.30", "missed"),
                  ("W1", "peak memory against eager", "0.50", "≤ 0.60", "met"))
        self.page("2026-01-01-bf16-chip-2cpu.md", ("W1", "tokens/s against compiled", "2.10", "≥ 1.80", "met"),
                  title="A training step in bf16 against PyTorch, 2026-01-01")
        code, _, text = self.tables(page="README.md")
        self.assertEqual(code, 0)
        self.assertRegex(text, r"\| W1 +\| A Chip 6/1, 2 CPUs +\| +1\.20 \| +– \| +0\.50 \| +– \| +2\.10 \| +– \|")

    def test_each_kind_of_processor_has_its_row(self):
        eager = "tokens/s against eager"
        self.page("2026-01-01-chip-2cpu.md", ("W1", eager, "2.50", "≥ 1.30", "met"))
        self.page("2026-01-02-other-2cpu.md", ("W1", eager, "1.20", "≥ 1.30", "missed"), processor="Another(R) Chip (family 7, model 2)")
        self.page("2026-01-03-other-2cpu.md", ("W1", eager, "1.35", "≥ 1.30", "met"), processor="Another(R) Chip (family 7, model 2)")
        text = self.tables()[2]
        self.assertRegex(text, r"\| W1 +\| A Chip 6/1, 2 CPUs +\| +2\.50")
        self.assertRegex(text, r"\| W1 +\| Another Chip 7/2, 2 CPUs +\| +1\.35")
        self.assertNotIn("1.20", text)

    def test_the_comparison_by_hand_is_quoted(self):
        self.page("2026-01-01-by-hand-chip-2cpu.md", ("W1", "tokens/s against eager, 1 x 8", "960 MiB", "2.16", "1.40", "met"),
                  title="What a PyTorch user gets by hand, and Plimsoll within the same memory, fp32, 2026-01-01", columns=6)
        self.assertRegex(self.tables()[2], r"W1: tokens/s against eager, 1 x 8: 960 MiB \| +2\.16")

    def test_a_page_of_no_commit_is_not_quoted(self):
        row = ("loading", "GB/s", "4.62", "≥ 2.00", "met")
        self.page("2026-01-01-models-chip-2cpu.md", row, title="Loading, saving, decoding, 2026-01-01")
        self.assertIn("4.62 (≥ 2.00)", self.tables()[2])
        newer = ("loading", "GB/s", "7.77", "≥ 2.00", "met")
        self.page("2026-01-02-models-chip-2cpu.md", newer, title="Loading, saving, decoding, 2026-01-02",
                  commit="0123456789ab with uncommitted changes")
        self.page("2026-01-03-models-chip-2cpu.md", newer, title="Loading, saving, decoding (with uncommitted changes)")
        text = self.tables()[2]
        self.assertIn("4.62 (≥ 2.00)", text)
        self.assertNotIn("7.77", text)
        (self.dir / "bench/results/2026-01-01-models-chip-2cpu.md").unlink()
        text = self.tables()[2]
        self.assertIn("2026-01-03-models-chip-2cpu.md) names no clean commit, so it is not quoted; `bench/run-models` writes one", text)
        self.assertIn("Text processing: there is no page; `bench/run-data` writes one", text)

    def test_check_writes_nothing_and_shows_the_difference(self):
        self.page("2026-01-01-chip-2cpu.md", ("W1", "tokens/s against eager", "1.20", "≥ 1.30", "missed"))
        code, err, text = self.tables("--check", between="made up: 5 times as fast\n")
        self.assertEqual(code, 1)
        self.assertIn("run tools/readme-tables", err)
        self.assertIn("made up", text)

    def test_a_page_without_markers_is_left_alone(self):
        write(self.dir / "README.md", "nothing\n")
        write(self.dir / "docs" / "performance.md", "nothing\n")
        done = self.run_tool("readme-tables", "--root", self.dir)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("needs the lines", done.stderr)


class BenchPages(Scratch):
    """What the page to writes of bench/run and its kin say of the tree that they were made from."""

    def setUp(self):
        super().setUp()
        sys.path.insert(0, str(ROOT / "bench" / "step"))
        self.addCleanup(sys.path.pop, 0)
        self.machine = importlib.import_module("machine")
        self.git("init", "-q")
        write(self.dir / "src" / "a.cpp", "int a;\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "a")

    def git(self, *args):
        subprocess.run(["git", "-C", self.dir, "-c", "user.name=A", "-c", "user.email=a@example.com", *args], check=True,
                       capture_output=True)

    def test_a_changed_tree_is_in_the_title(self):
        clean = self.machine.commit(self.dir)
        self.assertRegex(clean, "^[0-9a-f]{12}$")
        self.assertEqual(self.machine.title("A page", clean), "# A page")
        write(self.dir / "bench" / "results" / "page.md", "a page of the run before\n")
        self.assertEqual(self.machine.commit(self.dir), clean)
        for name in ("src/new.cpp", "src/a.cpp"):
            write(self.dir / name, "int b;\n")
            changed = self.machine.commit(self.dir)
            self.assertEqual(changed, clean + " with uncommitted changes")
            self.assertEqual(self.machine.title("A page", changed), "# A page (with uncommitted changes)")
            self.git("stash", "-u", "-q", "--", "src")

    def test_llmc_is_a_checkout_with_a_commit(self):
        def refused(folder):
            done = subprocess.run([sys.executable, ROOT / "bench/llmc/rounds.py", folder], text=True, capture_output=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            return done.stderr
        self.assertIn("has no train_gpt2.c", refused(self.dir))
        write(self.dir / "src" / "train_gpt2.c", "")
        self.assertIn("is no checkout", refused(self.dir / "src"))

    def test_a_folder_that_is_no_checkout_has_no_commit(self):
        self.assertEqual(self.machine.commit(self.dir / "src"), "unknown")
        with tempfile.TemporaryDirectory() as other:
            self.assertEqual(self.machine.commit(other), "unknown")


class GatherText(Scratch):
    def setUp(self):
        super().setUp()
        loader = importlib.machinery.SourceFileLoader("gather_text", str(TOOLS / "gather-text"))
        self.tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("gather_text", loader))
        loader.exec_module(self.tool)

    def gather(self, most_kib=1024):
        return self.tool.gather([("made up", str(self.dir / "text"), ["**/*.txt"], most_kib)])

    def test_files_are_whole_in_one_of_the_two_and_the_order_is_fixed(self):
        for number in range(400):
            write(self.dir / "text" / f"{number}.txt", f"file {number}\nnothing else\n")
        train, evaluation, rows = self.gather()
        self.assertEqual((train, evaluation, rows), self.gather())
        held_out = {line for line in "".join(evaluation).splitlines() if line.startswith("file ")}
        trained = {line for line in "".join(train).splitlines() if line.startswith("file ")}
        self.assertFalse(held_out & trained)
        self.assertEqual(rows[0][1], len(trained))
        self.assertGreater(len(trained), 350)

    def test_copies_binaries_and_giants_are_passed_over(self):
        write(self.dir / "text" / "a.txt", "once\n")
        write(self.dir / "text" / "b.txt", "once\n")
        write(self.dir / "text" / "giant.txt", "x" * (self.tool.MOST_OF_A_FILE + 1))
        (self.dir / "text" / "binary.txt").write_bytes(b"\xff\xfe\x00")
        train, evaluation, _ = self.gather()
        self.assertEqual("".join(train + evaluation).split(), ["once"])

    def test_a_group_stops_at_its_limit(self):
        for number in range(100):
            write(self.dir / "text" / f"{number}.txt", f"{number} " + "y" * 500)
        self.assertLessEqual(sum(map(len, self.gather(most_kib=4)[0])), 4 * 1024)


class GatherDigits(Scratch):
    def setUp(self):
        super().setUp()
        loader = importlib.machinery.SourceFileLoader("gather_digits", str(TOOLS / "gather-digits"))
        self.tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("gather_digits", loader))
        loader.exec_module(self.tool)

    def test_the_last_images_of_each_digit_are_held_out(self):
        rows = [[number % 256] * 784 + [digit] for digit in (3, 7) for number in range(402)]
        self.assertEqual(self.tool.write_digits(rows, self.dir / "digits"), {3: 402, 7: 402})
        found = sorted(str(path.relative_to(self.dir / "digits")) for path in (self.dir / "digits").rglob("*.png"))
        self.assertEqual([name for name in found if "/val/" in name],
                         ["high/val/7/401.png", "high/val/7/402.png", "low/val/3/401.png", "low/val/3/402.png"])
        self.assertEqual(len(found), 804)

    def test_images_are_grey_png_files(self):
        data = self.tool.png(28, 28, list(range(256)) * 3 + [9] * 16, 1)
        self.assertTrue(data.startswith(b"\x89PNG\r\n\x1a\n"))
        size = int.from_bytes(data[33:37], "big")
        lines = zlib.decompress(data[41:41 + size])
        self.assertEqual(len(lines), 28 * 29)
        self.assertEqual(lines[:29], b"\0" + bytes(range(28)))

    def test_a_file_of_another_form_is_refused(self):
        for row in ([0] * 784 + [10], [0] * 783 + [1]):
            with self.assertRaises(SystemExit):
                self.tool.write_digits([row], self.dir / "digits")


class CardCheck(Scratch):
    """tools/card: without a card, and with programs that play one."""

    def check(self, *args, path=None):
        if path is None:
            self.program("bin/nvidia-smi", "exit 9\n")  # of a machine that has a card, too
            path = self.path()
        return self.run_tool("card/check", "--bundle", self.dir / "no-bundle", "--out", self.dir / "out", *args,
                             env=os.environ | {"PATH": path})

    def program(self, name, text):
        write(self.dir / name, "#!/bin/sh\n" + text)
        (self.dir / name).chmod(0o755)

    def stages(self):
        return [json.loads(line) for line in (self.dir / "out/stages.jsonl").read_text().splitlines()]

    def path(self):
        return f"{self.dir}/bin:{pathlib.Path(sys.executable).parent}:/usr/bin:/bin"

    def with_card(self):
        self.program("bin/nvidia-smi", 'case "$*" in *gpu=name*) echo "A card, 1.0";; esac\n')
        return self.path()

    def test_without_a_card_each_stage_says_so_and_the_next_follows(self):
        result = self.check()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual({stage["state"] for stage in self.stages()}, {"no card"})
        self.assertEqual([stage["call"] for stage in self.stages()], sorted(stage["call"] for stage in self.stages()))
        self.assertIn("No card: a dry run", (self.dir / "out/page.md").read_text())

    def test_a_call_fits_into_its_seven_minutes(self):
        total = {}
        for line in self.check("--list").stdout.splitlines():
            call, _, seconds = line.split()[:3]
            total[call] = total.get(call, 0) + int(seconds)
        self.assertEqual(sorted(total), ["A", "B", "C"])
        self.assertLess(max(total.values()), 7 * 60)

    def test_a_failed_test_is_named_and_later_stages_run(self):
        path = self.with_card()
        self.program("build/tests/test_backends_cpu",
                     'echo "[  PASSED  ] 7 tests."; echo "[  FAILED  ] 1 test, listed below:"; echo "[  FAILED  ] Norm.IsRight"; exit 1\n')
        # Google Benchmark 1.7 takes no unit behind the time.
        self.program("build/bench/bench_card", 'for a; do case $a in --benchmark_out=*) f=${a#*=};;\n'
                     '--benchmark_min_time=*[!0-9.]*) exit 2;; esac; done\n'
                     'echo \'{"benchmarks": [{"name": "cast/real_time", "real_time": 2.0, "time_unit": "ms", "GB/s": 1234.5}]}\' >$f\n')
        result = self.check(self.dir / "build", "--only", "ops,rates", path=path)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual([(s["stage"], s["state"]) for s in self.stages()], [("ops", "failed"), ("rates", "passed")])
        page = (self.dir / "out/page.md").read_text()
        self.assertIn("| 7 | 1 | failed Norm.IsRight |", page)
        self.assertIn("| cast | 2.000 | 1,234.5 GB/s |", page)
        self.assertIn("A card, 1.0", page)
        self.assertIn("7 tests.", (self.dir / "out/log").read_text())

    def test_what_is_not_here_is_no_failure(self):
        result = self.check(self.dir / "nothing", "--only", "contract", path=self.with_card())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.stages()[0]["state"], "missing")

    def test_steps_are_read_from_events(self):
        path = self.with_card()
        self.program("build/plimsoll", """cat <<'EOF'
{"event": "plan", "step": {"flops": 4e12, "seconds_estimated": 1.0}}
{"event": "round", "steps": 2, "seconds": 4.0, "tokens": 8000}
{"event": "summary", "planned_peak_bytes": 2097152, "measured_peak_bytes": 1048576, "startup_seconds": 1.5}
EOF
""")
        self.assertEqual(self.check(self.dir / "build", "--only", "full", path=path).returncode, 0)
        self.assertIn("| 2.000 | 2,000 | 2.0 | 2 | 1 | – | 0.50 | 1.5 |", (self.dir / "out/page.md").read_text())

    def test_a_card_of_unknown_rates_has_no_estimate(self):
        path = self.with_card()
        events = [{"event": "plan", "step": {"flops": 4e12, "seconds_estimated": None}},
                  {"event": "round", "steps": 2, "seconds": 4.0, "images": 8000}]
        self.program("build/plimsoll", "".join(f"echo '{json.dumps(event)}'\n" for event in events))
        self.assertEqual(self.check(self.dir / "build", "--only", "full", path=path).returncode, 0)
        self.assertIn("| 2.000 | 2,000 | 2.0 | 0 | 0 | – | – | 0.0 |", (self.dir / "out/page.md").read_text())

    def test_estimates_stand_beside_what_was_measured(self):
        path = self.with_card()
        event = {"event": "estimate", "seconds": 0.004, "seconds_estimated": 0.003,
                 "ops": [{"op": name, "type": "bf16", "calls": 2, "seconds": seconds, "seconds_estimated": 0.001}
                         for name, seconds in (("cast", 0.0005), ("linear", 0.002), ("views", 0))]}
        self.program("bin/cat", f"echo '{json.dumps(event)}'\n")
        self.program("build/plimsoll", "echo 1\n")
        self.assertEqual(self.check(self.dir / "build", "--only", "calibrate", path=path).returncode, 0)
        rows = [line for line in (self.dir / "out/page.md").read_text().splitlines() if line.startswith("| ") and "bf16" in line]
        self.assertEqual(rows, ["| linear, bf16 | 2 | 2.000 | 0.50 |", "| cast, bf16 | 2 | 0.500 | 2.00 |"])
        self.assertIn("| a step, all of it | 1 | 4.000 | 0.75 |", (self.dir / "out/page.md").read_text())

    def test_results_that_no_page_can_show_stop_no_stage(self):
        path = self.with_card()
        event = json.dumps({"event": "round", "steps": 0, "seconds": 1.0, "tokens": 1})
        self.program("build/plimsoll", f"echo '{event}'\n")
        self.assertEqual(self.check(self.dir / "build", "--only", "full,start", path=path).returncode, 0)
        self.assertEqual([stage["stage"] for stage in self.stages()], ["full", "start"])
        self.assertIn("could not be written: ZeroDivisionError", (self.dir / "out/page.md").read_text())

    def test_the_bundle_is_unpacked_and_its_programs_run(self):
        path = self.with_card()
        self.program("build/plimsoll", "echo from the bundle")
        self.program("build/tests/test_backends_cuda", 'echo "[  PASSED  ] 3 tests."\n')
        packed = self.run_tool("card/bundle", "--build", self.dir / "build", "--output", self.dir / "packed", "--capability")
        self.assertEqual(packed.returncode, 0, packed.stderr)
        self.assertIn("test_e2e: not built, left out", packed.stdout)
        result = self.run_tool("card/check", "--bundle", self.dir / "packed", "--out", self.dir / "out", "--only", "contract",
                               env=os.environ | {"PATH": path})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("| 3 | 0 |", (self.dir / "out/page.md").read_text())

    def test_what_was_built_elsewhere_is_linked_to_where_tests_look_for_it(self):
        path = self.with_card()
        self.program("build/plimsoll", "echo from the bundle")
        self.program("build/tests/test_backends_cuda", 'echo "[  PASSED  ] 3 tests."\n')
        self.run_tool("card/bundle", "--build", self.dir / "build", "--output", self.dir / "packed", "--capability")
        (self.dir / "build").rename(self.dir / "elsewhere")
        (self.dir / "build/card").mkdir(parents=True)  # as the bundle's own folder is
        self.run_tool("card/check", "--bundle", self.dir / "packed", "--out", self.dir / "out", "--only", "contract",
                      env=os.environ | {"PATH": path})
        for program in ("plimsoll", "tests/test_backends_cuda", "tests/../plimsoll"):
            self.assertTrue((self.dir / "build" / program).is_file(), program)

    def test_all_calls_are_on_the_page(self):
        for call in "ABC":
            self.assertEqual(self.check("--call", call).returncode, 0)
        page = (self.dir / "out/page.md").read_text()
        for stage in ("contract", "rates", "steps", "lora", "fp8", "ranks"):
            self.assertEqual(page.count(f"| {stage} |"), 1, stage)

    def test_tests_that_were_cut_off_are_counted_as_far_as_they_came(self):
        path = self.with_card()
        self.program("build/tests/test_e2e", 'echo "[       OK ] A.One (3 ms)"; echo "[       OK ] A.Two (3 ms)"\n'
                     'echo "[  FAILED  ] A.Three (3 ms)"; kill -9 $$\n')
        self.assertEqual(self.check(self.dir / "build", "--only", "programs", path=path).returncode, 1)
        self.assertIn("| 2 | 1 | failed A.Three |", (self.dir / "out/page.md").read_text())

    def test_a_peer_whose_package_is_not_here_is_no_failure(self):
        (self.dir / "site").mkdir()
        (self.dir / "site/torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\")\n")
        path = self.with_card()
        self.program("build/plimsoll", "echo 1.0")
        result = self.run_tool("card/check", self.dir / "build", "--bundle", self.dir / "no-bundle", "--out", self.dir / "out",
                               "--only", "machine", env=os.environ | {"PATH": path, "PYTHONPATH": str(self.dir / "site")})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.stages()[0]["state"], "missing")

    def test_a_filter_that_no_test_fits_is_a_failure(self):
        path = self.with_card()
        self.program("build/tests/test_e2e", 'echo "[  PASSED  ] 0 tests."\n')
        self.assertEqual(self.check(self.dir / "build", "--only", "programs", path=path).returncode, 1)
        self.assertEqual(self.stages()[0]["state"], "nothing ran")

    def test_tests_are_dealt_among_processes(self):
        path = self.with_card()
        self.program("build/tests/test_backends_cpu",
                     'echo "[  PASSED  ] 2 tests."; echo "$PLIMSOLL_CARD_KERNELS ${GTEST_TOTAL_SHARDS:-1}" >>"$XDG_CACHE_HOME/ran"\n')
        self.assertEqual(self.check(self.dir / "build", "--only", "ops", path=path).returncode, 0)
        ran = (self.dir / "no-bundle/kernels/ran").read_text().splitlines()
        self.assertEqual(set(ran), {f"kept {len(ran)}"})
        self.assertIn(f"| {2 * len(ran)} | 0 |", (self.dir / "out/page.md").read_text())

    def test_results_are_files_without_folders(self):
        path = self.with_card()
        self.program("build/plimsoll", 'case "$*" in calibrate*) echo "{}" >"$XDG_CACHE_HOME/plimsoll/card-a.json";; esac\n')
        self.check(self.dir / "build", "--only", "calibrate", path=path)
        found = sorted(file.name for file in (self.dir / "out").iterdir() if file.is_file())
        self.assertEqual(found, ["card-a.json", "log", "memory", "page.md", "stages.jsonl"])
        self.assertEqual([file for file in (self.dir / "out").iterdir() if file.is_dir()], [])

    def test_the_toolkits_own_programs_are_found(self):
        loader = importlib.machinery.SourceFileLoader("programs", str(TOOLS / "card/programs.py"))
        programs = importlib.util.module_from_spec(importlib.util.spec_from_loader("programs", loader))
        loader.exec_module(programs)
        for folder in ("usr/local/cuda-99.0/bin", "opt/nvidia/nsight-compute/2099.1"):
            (self.dir / folder).mkdir(parents=True)
        found = programs.tool_folders(self.dir)
        self.assertEqual(found, [f"{self.dir}/usr/local/cuda-99.0/bin", f"{self.dir}/opt/nvidia/nsight-compute/2099.1"])

    def test_libraries_of_wheels_are_found(self):
        path = self.with_card()
        wheel = self.dir / "site/nvidia/cu99/lib"
        wheel.mkdir(parents=True)
        (wheel / "libnvrtc.so.13").write_text("")
        self.program("build/plimsoll", 'echo "$PLIMSOLL_CUDA_LIBRARIES"\n')
        environment = {name: value for name, value in os.environ.items() if name != "PLIMSOLL_CUDA_LIBRARIES"}
        for given in ({}, {"PLIMSOLL_CUDA_LIBRARIES": "/elsewhere"}):
            self.run_tool("card/check", self.dir / "build", "--bundle", self.dir / "no-bundle", "--out", self.dir / "out", "--only",
                          "machine", env=environment | {"PATH": path, "PYTHONPATH": str(self.dir / "site")} | given)
        said = [stage["commands"][2]["output"].strip() for stage in self.stages()]
        self.assertIn(str(wheel), said[0].split(":"))
        self.assertEqual(said[1], "/elsewhere")

    def test_libraries_of_the_bundle_are_for_a_machine_that_has_none(self):
        path = self.with_card()
        self.program("build/plimsoll", 'echo "${LD_LIBRARY_PATH%%:*}"; ls "${LD_LIBRARY_PATH%%:*}"\n')
        self.run_tool("card/bundle", "--build", self.dir / "build", "--output", self.dir / "packed", "--capability")
        self.program("bin/ldd", f"[ -e {self.dir}/packed/unpacked/lib-wanted/libb.so.1 ] || echo '\tlibb.so.1 => not found'\n")
        unpacked = self.dir / "packed/unpacked"
        for round in range(2):
            self.run_tool("card/check", "--bundle", self.dir / "packed", "--out", self.dir / "out", "--only", "machine",
                          env=os.environ | {"PATH": path})
            for name in ("liba.so.1", "libb.so.1"):
                write(unpacked / "lib" / name, "")
        said = self.stages()[1]["commands"][2]["output"].split()
        self.assertEqual(said, [str(unpacked / "lib-wanted"), "libb.so.1"])

    def test_a_rehearsal_takes_small_models_in_the_place_of_large_ones(self):
        self.program("build/plimsoll", 'echo "$*"; cat "$3" 2>/dev/null | head -1\n')
        result = self.check(self.dir / "build", "--rehearse", self.dir / "fake", "--only", "full,start,lora")
        self.assertEqual(result.returncode, 0, result.stderr)
        words = [" ".join(command["words"][1:]) for stage in self.stages() for command in stage["commands"]]
        self.assertTrue(any(word.startswith("plan bench/card/qwen2.5/run.yaml") for word in words), words)
        self.assertTrue(any(word.startswith("bench step") and "small.yaml" in word for word in words), words)
        self.assertIn("but what is played by", (self.dir / "out/page.md").read_text())

    def test_a_rehearsal_takes_what_was_bundled(self):
        self.program("build/plimsoll", "echo from the bundle\n")
        self.run_tool("card/bundle", "--build", self.dir / "build", "--output", self.dir / "packed", "--capability")
        self.check(self.dir / "none", "--rehearse", self.dir / "fake", "--bundle", self.dir / "packed", "--only", "start")
        self.assertEqual([command["output"] for command in self.stages()[0]["commands"]], ["from the bundle\n"] * 2)

    def test_a_bundle_without_the_program_is_refused(self):
        result = self.run_tool("card/bundle", "--build", self.dir / "none", "--output", self.dir / "packed")
        self.assertEqual(result.returncode, 1)
        self.assertIn("build it first", result.stderr)


if __name__ == "__main__":
    unittest.main()
