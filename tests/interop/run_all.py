"""Runs the comparisons, two at once: run_all.py --build build [--jobs 2] [arguments of compare.py].

What they all import takes seconds a script, so it is imported once, here, and each script runs in a fork. The output
of each is printed whole, in the order below; after a failure none is started any more.
"""
import argparse
import os
import pathlib
import runpy
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
# The longest first, so that none is left alone at the end.
SCRIPTS = ["compare", "generate_compare", "gguf_compare", "classification_compare", "import_compare",
           "precision_compare", "lora_compare", "masked_compare", "questions_compare", "state_compare", "optimizer_compare", "formats_compare", "packed_compare",
           "tokenizers_compare", "tokenizer_folders_compare", "chat_compare", "evaluate_compare", "loss_scale_compare", "snapshot_compare", "kernels_compare", "final_compare",
           "run_folder_compare", "report_compare", "trace_compare", "quantize_compare", "qlora_start_compare", "add_tokens_compare", "images_compare", "vision_compare", "mpi_compare",
           "timm_compare"]
WITH_BUILD = {"tokenizers_compare", "tokenizer_folders_compare", "chat_compare", "images_compare"}


def arguments_of(name, build, rest):
    where = ["--build", str(build)] if name in WITH_BUILD else ["--binary", str(build / "plimsoll")]
    return where + (rest if name == "compare" else [])


def import_peers():
    """Before any of their threads is started: a fork has none but its own."""
    import torch  # noqa: F401
    import transformers
    from transformers.optimization import Adafactor  # noqa: F401
    for name in ("AutoConfig", "AutoModelForCausalLM", "AutoTokenizer", "GPT2LMHeadModel", "LlamaForCausalLM"):
        getattr(transformers, name)


def run_script(name, arguments, output):
    """In the fork: ends the process."""
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    sys.argv = [str(HERE / f"{name}.py"), *arguments]
    code = 1
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001: whatever it is, it is this script's failure
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


class Runs:
    """Scripts as processes; their outputs in files until their turn to be printed."""

    def __init__(self, names):
        self.names, self.files, self.codes, self.started, self.running = names, {}, {}, {}, {}
        self.printed = 0

    def start(self, name, arguments):
        self.files[name] = tempfile.TemporaryFile()
        self.started[name] = time.monotonic()
        sys.stdout.flush()
        process = os.fork()
        if process == 0:
            run_script(name, arguments, self.files[name])
        self.running[process] = name

    def wait(self):
        process, status = os.wait()
        name = self.running.pop(process)
        self.codes[name] = os.waitstatus_to_exitcode(status)
        self.started[name] = time.monotonic() - self.started[name]
        self.print_finished()

    def print_finished(self):
        while self.printed < len(self.names) and self.names[self.printed] in self.codes:
            name = self.names[self.printed]
            self.files[name].seek(0)
            print(f"-- {name}", flush=True)
            sys.stdout.buffer.write(self.files[name].read())
            sys.stdout.buffer.flush()
            print(f"-- {name}: exit code {self.codes[name]}, {self.started[name]:.0f} s", flush=True)
            self.printed += 1

    @property
    def failed(self):
        return [name for name, code in self.codes.items() if code != 0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--jobs", type=int, default=2)
    args, rest = parser.parse_known_args()
    for library in ("OMP", "OPENBLAS", "MKL"):
        os.environ.setdefault(f"{library}_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // args.jobs)))
    import_peers()
    runs = Runs(SCRIPTS)
    for name in SCRIPTS:
        while len(runs.running) >= args.jobs:
            runs.wait()
        if runs.failed:
            break
        runs.start(name, arguments_of(name, args.build, rest))
    while runs.running:
        runs.wait()
    if runs.failed:
        print(f"failed: {', '.join(runs.failed)}", file=sys.stderr)
    return 1 if runs.failed else 0


if __name__ == "__main__":
    sys.exit(main())
