#!/usr/bin/env python3
"""Tests of the checks under tools/ and of what they sample, on made-up trees."""
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import unittest
from unittest import mock

from scratch import ROOT, TOOLS, Scratch, write


class CheckIncludes(Scratch):
    def check(self, *files):
        for path, text in files:
            write(self.dir / "src" / path, text)
        result = self.run_tool("check_includes", self.dir)
        return result.returncode, result.stdout

    def test_the_allowed_directions_pass(self):
        code, out = self.check(
            ("base/a.h", "#include <vector>\n"),
            ("ir/b.h", '#include "base/a.h"\n'),
            ("passes/c.cpp", '#include "base/a.h"\n#include "ir/b.h"\n#include "passes/c.h"\n'),
            ("passes/c.h", "#include <string>\n"),
            ("backends/cpu/d.cpp", '#include "ir/b.h"\n'),
            ("main.cpp", '#include "passes/c.h"\n'))
        self.assertEqual((code, out), (0, ""))

    def test_the_wrong_direction_is_named_with_its_line(self):
        code, out = self.check(("base/a.h", '\n#include "ir/b.h"\n'), ("ir/b.h", ""))
        self.assertEqual(code, 1)
        self.assertIn("src/base/a.h:2: base may not include ir", out)

    def test_a_backend_does_not_see_passes_nor_another_backend(self):
        code, out = self.check(("passes/p.h", ""), ("backends/reference/r.h", ""),
                               ("backends/cpu/a.cpp", '#include "passes/p.h"\n'),
                               ("backends/cpu/b.cpp", '#include "backends/reference/r.h"\n'))
        self.assertEqual(code, 1)
        self.assertIn("cpu may not include passes", out)
        self.assertIn("cpu may not include reference", out)

    def test_heavy_headers_and_cuda_are_kept_in_their_place(self):
        code, out = self.check(("io/a.h", "#include <nlohmann/json.hpp>\n"),
                               ("io/a.cpp", "#include <nlohmann/json.hpp>\n"),
                               ("training/b.cpp", "#include <cuda_runtime.h>\n"),
                               ("backends/cuda/c.cpp", "#include <cuda_runtime.h>\n"))
        self.assertEqual(code, 1)
        self.assertEqual(len(out.splitlines()), 2, out)

    def test_what_compiles_slowest_is_included_in_one_file(self):
        code, out = self.check(("cli/command_line.cpp", "#include <CLI/CLI.hpp>\n"), ("cli/plan.cpp", "\n#include <CLI/CLI.hpp>\n"))
        self.assertEqual((code, out), (1, "src/cli/plan.cpp:2: CLI/CLI.hpp outside src/cli/command_line.cpp\n"))

    def test_a_missing_file_an_unknown_module_and_an_empty_tree(self):
        self.assertIn("no file base/gone.h", self.check(("ir/a.h", '#include "base/gone.h"\n'))[1])
        self.assertIn("odd is no module", self.check(("odd/a.h", ""))[1])
        self.assertEqual(self.run_tool("check_includes", self.dir / "nothing").returncode, 1)

    def test_threads_and_numbers_come_by_ways_that_return_errors(self):
        code, out = self.check(("base/thread.h", "std::thread thread_;\n"),
                               ("io/a.cpp", "std::jthread t(work);\nint n = std::stoi(text);\n"),
                               ("io/b.cpp", "std::thread::id user;  // no std::thread\nstd::string s = std::to_string(1);\n"))
        self.assertEqual(code, 1)
        self.assertEqual([line.split(": ")[0] for line in out.splitlines()], ["src/io/a.cpp:1", "src/io/a.cpp:2"])

    def test_no_code_compares_names_of_programs(self):
        code, out = self.check(
            ("passes/program_id.cpp", 'auto names = {"micro_first"};\n'),
            ("passes/a.cpp", 'if (graph.name == "update") add();\n'
                             'if (p.graph.name.starts_with("micro_")) add();\n'
                             'return plan.find_program("eval");\n'
                             'return name == p->graph.name;\n'
                             'const auto name = "micro_next";\n'
                             'graph.name = name(id);  // not graph.name == "step"\n'
                             'if (layer.name == "step") add(graph.name);\n'))
        self.assertEqual(code, 1)
        self.assertEqual([line.split(": ")[0] for line in out.splitlines()], [f"src/passes/a.cpp:{i}" for i in range(1, 6)])

    def test_an_op_is_asked_by_its_definition_and_not_by_its_name(self):
        ops = ('constexpr std::string_view kSum = "sum_rows";\n{.name = "linear_dw"},\n{.name = kSum},\n'
               '  {"adamw", "adamw_sweep", "update"},\nloss_def(\n "bce", ""),\nbool own = op == "linear_dw";\n')
        code, out = self.check(
            ("ops/a.cpp", ops), ("ops/b.cpp", 'if (maker.def->name != "sum_rows") return;\n'),
            ("passes/fusion/c.cpp", 'if (op.def->name == "linear_dw") return;\n'),
            ("planner/d.cpp", 'bool a = kind.ends_with("_sweep");\nbool b = t.op.starts_with("linear");\n'
                              'bool c = t.op == "linear";  // no op\nb.op("linear_dw", {x});\n'
                              'bool d = op.def->name == "bce";\nbool e = key == "adamw";\n'))
        self.assertEqual(code, 1)
        self.assertEqual([line.split(": ")[0] for line in out.splitlines()],
                         ["src/ops/b.cpp:1", "src/planner/d.cpp:1", "src/planner/d.cpp:2", "src/planner/d.cpp:5",
                          "src/planner/d.cpp:6"])

    def test_the_names_of_this_tree_are_found(self):
        path = str(TOOLS / "check_includes")
        loader = importlib.machinery.SourceFileLoader("check_includes", path)
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_includes", loader))
        loader.exec_module(module)
        names = set().union(*module.op_names(ROOT / "src").values())
        self.assertLessEqual({"linear", "head_loss_dw", "adamw", "adamw_sweep", "sgd_momentum_sweep", "muon",
                              "adafactor_vector", "bce_with_logits_grad", "unscale", "random_normal"}, names)

    def test_what_concerns_the_process_stays_in_the_command_line(self):
        code, out = self.check(("cli/a.cpp", 'std::printf("x");\n::isatty(1);\n'), ("base/check.cpp", "std::abort();\n"),
                               ("engine/b.cpp", 'std::fwrite(a, 1, n, stdout);\nstd::snprintf(b, 9, "x");  // no printf(\nfmt::print("x");\n'),
                               ("io/c.cpp", "malloc_trim(0);\n::sigaction(SIGINT, &a, nullptr);\n::_exit(1);\nconst pid_t p = ::fork();\n"))
        self.assertEqual(code, 1)
        self.assertEqual([line.split(": ")[0] for line in out.splitlines()],
                         ["src/engine/b.cpp:1", "src/engine/b.cpp:3", "src/io/c.cpp:1", "src/io/c.cpp:2", "src/io/c.cpp:3", "src/io/c.cpp:4"])

    def test_cmake_may_not_link_against_the_direction(self):
        code, out = self.check(("base/a.h", ""), ("CMakeLists.txt", "plimsoll_module(io DEPS plimsoll_training)\n"))
        self.assertEqual(code, 1)
        self.assertIn("io may not link training", out)


    def test_a_module_keeps_to_its_namespace(self):
        code, out = self.check(("base/a.h", "namespace plimsoll {\n}\n"), ("io/b.h", "namespace plimsoll::io {\n}\n"),
                               ("training/c.h", "namespace plimsoll::io {\nclass File;\n}\n\nnamespace plimsoll::training {\n}\n"),
                               ("training/d.h", "namespace plimsoll::io {\nint wrong();\n}\n"),
                               ("strategy/e.cpp", "namespace plimsoll {\nint wrong;\n}\n"))
        self.assertEqual(code, 1)
        self.assertEqual([line.split(": ")[0] for line in out.splitlines()], ["src/strategy/e.cpp:1", "src/training/d.h:1"])


class Sampling(Scratch):
    """tools/sampling.py in a repository of its own, where one file of base/ changed behind the main branch."""

    def setUp(self):
        super().setUp()
        write(self.dir / "tools/sampling.py", (TOOLS / "sampling.py").read_text())
        write(self.dir / "tests/CMakeLists.txt", "plimsoll_test(base plimsoll_base)\nplimsoll_test(backends/cpu plimsoll_cpu)\n")
        write(self.dir / "src/base/a.h", "1\n")
        self.git("init", "-q", "-b", "main")
        self.commit("first")
        self.git("checkout", "-q", "-b", "topic")
        write(self.dir / "src/base/a.h", "2\n")
        self.commit("second")

    def git(self, *words):
        return subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *words], cwd=self.dir, check=True, text=True,
                              capture_output=True).stdout.strip()

    def commit(self, title):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", title)

    def sample(self, *words):
        run = subprocess.run([sys.executable, self.dir / "tools/sampling.py", *words], text=True, capture_output=True,
                             env={k: v for k, v in os.environ.items() if k != "PLIMSOLL_BASE"})
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout.split()

    def test_one_part_is_everything(self):
        self.assertEqual(self.sample("--parts", "1", "a", "b", "c"), ["a", "b", "c"])

    def test_the_commit_chooses_the_part_and_all_parts_are_everything(self):
        names = [str(i) for i in range(10)]
        part = int(self.git("rev-parse", "--short=8", "HEAD"), 16) % 5
        self.assertEqual(self.sample("--parts", "5", *names), names[part::5])

    def test_what_changed_is_chosen_whatever_its_part(self):
        self.assertIn("base", self.sample("--parts", "1000003", "--modules"))
        self.assertIn("two", self.sample("--parts", "1000003", "one=src/ops/", "two=docs/,src/base/"))

    def test_the_part_is_told(self):
        self.assertEqual(self.sample("--parts", "5", "--part"), [str(int(self.git("rev-parse", "--short=8", "HEAD"), 16) % 5)])

    def test_of_what_changed_at_most_so_many(self):
        names = [f"n{i}=src/base/" for i in range(10)]
        self.assertEqual(len(self.sample("--parts", "1000003", *names)), 10)
        self.assertLessEqual(len(self.sample("--parts", "1000003", "--most", "4", *names)), 5)

    def test_a_file_that_is_not_committed_has_changed(self):
        write(self.dir / "src/backends/cpu/new.cpp", "")
        self.assertIn("backends_cpu", self.sample("--parts", "1000003", "--modules"))

    def test_the_lines_that_changed(self):
        write(self.dir / "src/base/a.h", "1\n2\n3\n")
        source = importlib.util.spec_from_file_location("sampling", self.dir / "tools/sampling.py")
        sampling = importlib.util.module_from_spec(source)
        source.loader.exec_module(sampling)
        write(self.dir / "src/base/new.h", "1\n")
        with mock.patch.dict(os.environ):
            os.environ.pop("PLIMSOLL_BASE", None)  # the caller's, of another repository
            self.assertEqual(sampling.changed_lines("src/base/a.h"), [[2, 3]])
            self.assertEqual(sampling.changed_lines("src/base/new.h"), [])

    def test_at_most_so_many(self):
        source = importlib.util.spec_from_file_location("sampling", self.dir / "tools/sampling.py")
        sampling = importlib.util.module_from_spec(source)
        source.loader.exec_module(sampling)
        names = [str(i) for i in range(10)]
        self.assertEqual(sampling.some(names, 10), names)
        self.assertIn(sampling.some(names, 4), [names[part::3] for part in range(3)])
        self.assertEqual(sampling.some([], 4), [])

    def test_on_the_main_branch_the_last_commit_has_changed(self):
        self.git("checkout", "-q", "main")
        self.git("merge", "-q", "--ff-only", "topic")
        self.assertEqual(self.sample("--parts", "1000003", "base=src/base/", "other=src/other/"), ["base"])


class PlantedBugs(unittest.TestCase):
    def test_the_text_of_each_bug_stands_once_in_its_kernel(self):
        folder = ROOT / "tests/backends/cuda"
        source = importlib.util.spec_from_file_location("planted_bugs", folder / "planted_bugs.py")
        planted = importlib.util.module_from_spec(source)
        source.loader.exec_module(planted)
        times = {bug.what: (planted.SOURCES / bug.file).read_text().count(bug.before) for bug in planted.bugs()}
        self.assertEqual({what: n for what, n in times.items() if n != 1}, {})


class CheckSkips(Scratch):
    def check(self, log, *options):
        write(self.dir / "log", log)
        result = self.run_tool("check_skips", *options, self.dir / "log")
        return result.returncode, result.stdout

    def test_a_skip_that_is_not_in_the_list_is_named(self):
        code, out = self.check("[  SKIPPED ] Loss.IsRight (0 ms)\n[  SKIPPED ] Completion.OfZshCompletesInZsh (0 ms)\n")
        self.assertEqual(code, 1)
        self.assertEqual(out, "Loss.IsRight was skipped, and tools/skips.txt does not say why\n")

    def test_some_are_allowed_under_a_sanitizer_alone(self):
        log = "[  SKIPPED ] OutOfMemory.Ends (0 ms)\n[  SKIPPED ] 1 test, listed below:\n"
        self.assertEqual(self.check(log)[0], 1)
        self.assertEqual(self.check(log, "--sanitized"), (0, ""))


class CheckTests(Scratch):
    def check(self, *files):
        for path in files:
            write(self.dir / path, "")
        result = self.run_tool("check_tests", self.dir)
        # The exceptions of this tree are not in a made-up one.
        return result.returncode, [line for line in result.stdout.splitlines() if not line.startswith("tools/check_tests")]

    def test_a_test_is_named_for_its_source(self):
        _, out = self.check("src/io/file.cpp", "src/io/only.h", "src/numerics/convert-inl.h", "tests/io/file_test.cpp",
                            "tests/io/only_test.cpp", "tests/numerics/convert_inl_test.cpp", "tests/e2e/anything_test.cpp")
        self.assertEqual(out, [])

    def test_one_without_its_source_is_named(self):
        code, out = self.check("src/io/file.cpp", "tests/io/files_test.cpp", "tests/file_test.cpp")
        self.assertEqual(code, 1)
        self.assertEqual([line.split(":")[0] for line in out], ["tests/file_test.cpp", "tests/io/files_test.cpp"])

    def test_a_source_that_decides_wants_a_test(self):
        branches = "if (a) b();\n" * 8
        write(self.dir / "src/odd/choice.cpp", branches)
        write(self.dir / "src/odd/held.cpp", branches)
        write(self.dir / "src/odd/plain.cpp", "if (a) b();  // if (a) if (b) if (c) if (d) if (e) if (f) if (g)\n")
        write(self.dir / "src/passes/choice.cpp", branches)
        code, out = self.check("tests/odd/held_test.cpp")
        self.assertEqual(code, 1)
        self.assertEqual([line.split(":")[0] for line in out], ["src/odd/choice.cpp"])

    def test_this_tree(self):
        self.assertEqual(self.run_tool("check_tests").stdout, "")


class CheckWords(Scratch):
    def check(self, *files):
        for path, text in files:
            write(self.dir / path, text)
        result = self.run_tool("check_words", self.dir)
        return result.returncode, result.stdout

    def test_plain_texts_pass(self):
        code, out = self.check(
            ("src/cli/a.cpp", '// Prints a plan.\n\n// It lies elsewhere.\nconst char* text = "the plan fits the budget";\n'),
            ("README.md", "# A page\n\nThe planner offloads the state to the disk.\n\n```\n$ plimsoll plan\n```\n"),
            ("docs/history.md", "The same bits as before, nearly free.\n"))
        self.assertEqual((code, out), (0, "check_words: 0 violations\n"))

    def test_a_private_phrase_is_named_with_its_place_and_with_what_to_write(self):
        code, out = self.check(
            ("src/cli/a.cpp", 'const char* one = "fit";\nconst char* text =\n    "what lies else"\n    "where";\n'),
            ("docs/page.md", "# A page\n\nThe run gives\nthe same bits.\n\n```\nA step: 2 x 4 sequences\n```\n"))
        self.assertEqual(code, 1)
        self.assertIn("src/cli/a.cpp:3: 'elsewhere': write: offloaded", out)
        self.assertIn("docs/page.md:3: 'the same bits': write: bit-identical results", out)
        self.assertIn("docs/page.md:7: '2 x 4 sequences': write: micro-batch", out)
        self.assertIn("check_words: 3 violations", out)

    def test_a_sentence_needs_a_subject_and_a_verb(self):
        code, out = self.check(("docs/page.md", "# A page\n\nWhat goes out of the device is weighed.\n\n"
                                                "- A very long chain of tensors without end.\n- The planner compares strategies.\n"))
        self.assertEqual(code, 1)
        self.assertIn("docs/page.md:3: 'What goes out of the device is weighed.': write: a subject that acts", out)
        self.assertIn("docs/page.md:5: 'A very long chain of tensors without end.': write: a verb", out)
        self.assertIn("check_words: 2 violations", out)

    def test_sentences_of_help_and_messages_are_held_to_the_same(self):
        code, out = self.check(("src/cli/a.cpp", 'const char* help = "What it needs is said here.";\n'))
        self.assertEqual(code, 1)
        self.assertIn("src/cli/a.cpp:1: 'What it needs is said here.': write: a subject that acts", out)

    def test_a_file_comment_says_what_the_file_does_or_is(self):
        code, out = self.check(("src/base/a.h", "#pragma once\n\n// What a run leaves behind, by name.\nint a();\n"),
                               ("src/base/b.h", "#pragma once\n\n// Writes the files of a run.\nint b();\n"))
        self.assertEqual(code, 1)
        self.assertIn("src/base/a.h:1: the comment begins with 'What a run leaves behind", out)
        self.assertIn("check_words: 1 violations", out)

    def test_this_tree(self):
        result = self.run_tool("check_words")
        self.assertEqual(result.returncode, 0, result.stdout)


if __name__ == "__main__":
    unittest.main()
