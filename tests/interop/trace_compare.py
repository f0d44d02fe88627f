"""Opens traces of `plimsoll profile` with those that they are for: TensorBoard's profiler page and Perfetto.

    python trace_compare.py --binary build/plimsoll

A run on the CPU, and one on a device with copies of its own. torch_tb_profiler, the profiler page's plugin, must find the
steps, the ops with their calls and the kernels; Perfetto (tools/trace-picture, in Chromium) must show the lanes. One line per
check, PASS or FAIL.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from torch_tb_profiler.profiler.data import RunProfileData
from torch_tb_profiler.profiler.run_generator import RunGenerator

import cases

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
STEPS = 3


def profile(binary, folder, name, *overrides):
    (folder / "run.yaml").write_text(json.dumps({"model": {"config": cases.LLAMA}}) + "\n")
    done = subprocess.run([binary, "profile", str(folder / "run.yaml"), "--active", str(STEPS), "--output", str(folder / name),
                           "data.sequence_length=32", "training.global_batch_size=2", "model.init=random",
                           f"output.dir={folder / 'out'}", *overrides], text=True, capture_output=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-800:])
    return folder / name


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", type=pathlib.Path, required=True)
    binary = str(parser.parse_args().binary.resolve())
    failed = 0

    def check(name, holds):
        nonlocal failed
        failed += not holds
        print(("PASS" if holds else "FAIL"), name, flush=True)

    def check_steps(device, page):
        check(f"{device}: TensorBoard's profiler finds the steps", page.steps_names == [str(i) for i in range(STEPS)])
        shown = RunGenerator("plimsoll", None, page).generate_run_profile()
        views = {view.display_name for view in shown.views}
        check(f"{device}: its pages are there ({', '.join(sorted(views))})", {"Overview", "Operator", "Trace"} <= views)

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cpu = profile(binary, folder, "cpu")
        page = RunProfileData.parse("plimsoll", None, str(cpu / "trace.json"), str(folder))
        check_steps("cpu", page)
        calls = {}
        for row in json.loads((cpu / "ops.json").read_text()):
            calls[row["op"]] = calls.get(row["op"], 0) + row["calls"]
        check("cpu: each op, as often as ops.json says",
              {op.name: op.calls for op in page.op_list_groupby_name} == {op: STEPS * n for op, n in calls.items()})
        check("cpu: ops have shapes", any(op.input_shape.startswith("[[2, 32, ") for op in page.op_list_groupby_name_input))
        steps = [event.duration for event in page.events if event.name.startswith("ProfilerStep")]
        ops = sum(op.self_host_duration for op in page.op_list_groupby_name)
        check(f"cpu: ops are {100 * ops / sum(steps):.1f} % of the steps, at most all of them", 0 < ops <= sum(steps))
        device = profile(binary, folder, "discrete", "runtime.device=discrete", "memory.offload={activations: host}")
        page = RunProfileData.parse("plimsoll", None, str(device / "trace.json"), str(folder))
        check_steps("discrete", page)
        check("discrete: kernels and copies", page.has_kernel and page.has_memcpy_or_memset)
        if shutil.which("chromium") is None:
            print("SKIP Perfetto: there is no chromium")
        else:
            done = subprocess.run([sys.executable, str(ROOT / "tools" / "trace-picture"), "--output", str(folder / "trace.png"),
                                   str(cpu / "trace.json")], text=True, capture_output=True, timeout=300)
            check(f"Perfetto opens it {done.stderr[-200:]}", done.returncode == 0)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
