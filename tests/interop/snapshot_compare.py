"""Opens memory snapshots as PyTorch's viewer does, and holds them to the plan.

    python snapshot_compare.py --binary build/plimsoll [--only TEXT]

`plan --snapshot` and `train --snapshot` of a small model are read by an unpickler that makes nothing but builtin types,
with the opcodes that the viewer's own reader knows; the trace is replayed by the viewer's rules (every block in a
segment that lives, none over another, the last state reached backwards too), its peak held to the plan's event, and
torch.cuda._memory_viz draws it.
One line per check, PASS or FAIL.
"""
import argparse
import bisect
import json
import pathlib
import pickle
import pickletools
import signal
import subprocess
import sys
import tempfile
import time

import numpy
import torch.cuda._memory_viz as memory_viz

import cases
import checks

OPCODES = {"PROTO", "EMPTY_DICT", "EMPTY_LIST", "MARK", "BINUNICODE", "BININT1", "BININT", "LONG1", "NEWTRUE", "NEWFALSE",
           "TUPLE2", "SETITEMS", "APPENDS", "STOP"}
SEGMENT = {"device", "address", "total_size", "allocated_size", "active_size", "requested_size", "stream", "segment_type",
           "segment_pool_id", "is_expandable", "frames", "blocks"}
CASES = [("one micro-batch", {}), ("accumulation", {"training.micro_batch_size": 1}),
         ("recomputed", {"memory.recompute": "full"}), ("discrete", {"runtime.device": "discrete"}),
         ("bf16, 8-bit", {"training.precision": "bf16", "training.optimizer": "adamw_8bit"})]


class Builtin(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name}")


def read(path):
    """The snapshot, and what is wrong with its bytes."""
    content = path.read_bytes()
    wrong = {op.name for op, _, _ in pickletools.genops(content)} - OPCODES
    with path.open("rb") as file:
        return Builtin(file).load(), wrong


def replay(snapshot):
    """Peak of the live bytes; raises where the viewer would fail or show what is not."""
    segments, blocks, live, peak, categories = {}, {}, 0, 0, set()
    trace = snapshot["device_traces"][0]
    for i, entry in enumerate(trace):
        address, size, action = entry["addr"], entry["size"], entry["action"]
        assert 0 <= address and address + size < 2 ** 53 and size > 0 and entry["stream"] == 0
        assert all(isinstance(frame["name"], str) and isinstance(frame["filename"], str) and isinstance(frame["line"], int)
                   for frame in entry["frames"]) and entry["frames"]
        categories |= {entry["category"]} if "category" in entry else set()
        if action == "segment_alloc":
            segments[address] = size
        elif action == "alloc":
            assert any(start <= address and address + size <= start + total for start, total in segments.items())
            assert address not in blocks
            blocks[address] = size
            live += size
        elif action == "free_requested":
            following = trace[i + 1]
            assert following["action"] == "free_completed" and following["addr"] == address and following["size"] == size
        elif action == "free_completed":
            live -= blocks.pop(address)
        else:
            raise AssertionError(action)
        peak = max(peak, live)
    assert not categories or "unknown" in categories
    assert not overlapping(trace)
    return peak, segments, blocks, categories


def overlapping(trace):
    """Blocks that lie over one another while both live: neighbours by address, whenever one is made."""
    live = []
    for entry in trace:
        span = (entry["addr"], entry["addr"] + entry["size"])
        if entry["action"] == "alloc":
            at = bisect.bisect(live, span)
            if (at > 0 and live[at - 1][1] > span[0]) or (at < len(live) and live[at][0] < span[1]):
                return True
            live.insert(at, span)
        elif entry["action"] == "free_completed":
            live.remove(span)
    return False


def check_segments(snapshot, segments, blocks):
    """The last state: segments and blocks tile as the trace has left them."""
    active = {}
    for segment in snapshot["segments"]:
        assert SEGMENT <= segment.keys() and segment["segment_type"] in ("large", "small")
        assert isinstance(segment["segment_pool_id"], tuple) and segment["device"] == 0
        assert segments.pop(segment["address"]) == segment["total_size"]
        at = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == at and 0 <= block["requested_size"] <= block["size"]
            at += block["size"]
            if block["state"] == "active_allocated":
                active[block["address"]] = block["requested_size"]
        assert at == segment["address"] + segment["total_size"]
    assert not segments and active == blocks


def rewind(snapshot):
    """From the last state back to nothing, as the viewer draws the states between."""
    blocks = {block["address"]: block["requested_size"] for segment in snapshot["segments"] for block in segment["blocks"]
              if block["state"] == "active_allocated"}
    for entry in reversed(snapshot["device_traces"][0]):
        if entry["action"] == "free_completed":
            assert entry["addr"] not in blocks
            blocks[entry["addr"]] = entry["size"]
        elif entry["action"] == "alloc":
            assert blocks.pop(entry["addr"]) == entry["size"]
    assert not blocks


def draw(snapshot):
    """What torch makes of it; the flame graph's script would be downloaded, so its input is taken."""
    lines = memory_viz.memory(snapshot, format_flamegraph=lambda text: text)
    return (len(memory_viz.trace_plot(snapshot)) > 1000 and len(memory_viz.segment_plot(snapshot)) > 1000
            and "segments: " in memory_viz.segsum(snapshot) and " entries" in memory_viz.trace(snapshot)
            and "embed_tokens" in lines)


def check_snapshot(report, case, what, path, plan, programs):
    snapshot, wrong = read(path)
    report.check(case, f"{what}: read", not wrong and snapshot.keys() == {"segments", "device_traces", "allocator_settings"},
                 f"{path.stat().st_size} bytes, {len(snapshot['device_traces'][0])} entries{', ' if wrong else ''}{sorted(wrong) or ''}")
    try:
        peak, segments, blocks, categories = replay(snapshot)
        check_segments(snapshot, segments, blocks)
        rewind(snapshot)
    except AssertionError as error:
        report.check(case, f"{what}: the viewer's rules", False, repr(error))
        return
    report.check(case, f"{what}: the viewer's rules", draw(snapshot), f"{len(categories)} categories, {len(blocks)} states")
    device, classes = plan["device"], plan["classes"]
    most = device["persistent_bytes"] + device["arena_bytes"]
    least = most - classes["padding"] - classes["fragmentation"]
    report.check(case, f"{what}: the peak", least <= peak <= most, f"{peak} of {least} to {most}")
    shown = {entry["frames"][-1]["name"] for entry in snapshot["device_traces"][0]} - {"states", "persistent", "arena"}
    report.check(case, f"{what}: programs", programs <= shown, ", ".join(sorted(shown)))


def run(binary, arguments):
    return subprocess.run([binary, *arguments], text=True, capture_output=True, timeout=600)


def compare(report, case, settings, binary, folder):
    settings = {"model.config": json.dumps(cases.LLAMA), "model.init": "random", "data.train": folder / "data.npy",
                "data.sequence_length": 32, "data.packing": "stream", "output.dir": folder / "out", "training.max_steps": 3,
                "training.global_batch_size": 2, "output.save_steps": 0, **settings}
    overrides = [f"{key}={value}" for key, value in settings.items()]
    file = str(folder / "run.yaml")
    planned = run(binary, ["plan", file, "--json", "--snapshot", str(folder / "plan.pickle"), *overrides])
    trained = run(binary, ["train", file, "--json", "--snapshot", str(folder / "train.pickle"), *overrides])
    if planned.returncode or trained.returncode:
        raise RuntimeError(planned.stderr[-800:] + trained.stderr[-800:])
    event = json.loads(planned.stdout.splitlines()[0])
    step = {"micro_first", "micro_next", "update"} if settings.get("training.micro_batch_size") else {"step"}
    check_snapshot(report, case, "plan", folder / "plan.pickle", event, step)
    event = json.loads(trained.stdout.splitlines()[0])
    check_snapshot(report, case, "train", folder / "train.pickle", event, step)


def compare_interrupted(report, binary, folder):
    """A signal ends the run; what has run until then is there."""
    settings = {"model.config": json.dumps(cases.LLAMA), "model.init": "random", "data.train": folder / "data.npy",
                "data.sequence_length": 32, "data.packing": "stream", "output.dir": folder / "out", "training.max_steps": 100000,
                "training.global_batch_size": 2, "output.save_steps": 0, "training.logging_steps": 1}
    arguments = [f"{key}={value}" for key, value in settings.items()]
    path = folder / "train.pickle"
    with subprocess.Popen([binary, "train", str(folder / "run.yaml"), "--json", "--snapshot", str(path), *arguments],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        for line in process.stdout:
            if '"step"' in line:
                break
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        _, messages = process.communicate(timeout=60)
    report.check("interrupted", "exit and file", process.returncode == 75 and path.exists(), f"{process.returncode}")
    if path.exists():
        snapshot, _ = read(path)
        replay(snapshot)
        report.check("interrupted", "bounded", len(snapshot["device_traces"][0]) < 101_000,
                     f"{len(snapshot['device_traces'][0])} entries, {path.stat().st_size} bytes; "
                     + next((line for line in messages.splitlines() if "memory_viz" in line), "no note"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--only", default="", help="cases whose name holds this text")
    arguments = parser.parse_args()
    report = checks.Checks()
    with tempfile.TemporaryDirectory() as temporary:
        for name, settings in [*CASES, ("interrupted", None)]:
            if arguments.only not in name:
                continue
            folder = pathlib.Path(temporary) / name.replace(", ", "-").replace(" ", "-")
            folder.mkdir()
            numpy.save(folder / "data.npy", numpy.arange(2000, dtype=numpy.int32) * 37 % cases.LLAMA["vocab_size"])
            (folder / "run.yaml").write_text("{}\n")
            if settings is None:
                compare_interrupted(report, arguments.binary, folder)
            else:
                compare(report, name, settings, arguments.binary, folder)
    print(f"{report.passed} passed, {report.failed} failed")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
