"""What looking at a run costs, as a page: each kind of watching in turn with steps that are not watched.

    bench/run-watching [--results FOLDER]

bench_watching does the measuring (bench/watching/watching_bench.cpp); `plimsoll profile` says how much of a step is in its trace.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "step"))

import machine  # noqa: E402
from report import against, table  # noqa: E402
from workplace import Workplace, add_arguments, progress  # noqa: E402

RUN = "bench/step/w1/run.yaml"
SMALL = ["model.config={model_type: llama, vocab_size: 512, hidden_size: 64, intermediate_size: 192, num_hidden_layers: 2, "
         "num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 256, rms_norm_eps: 1.0e-5, "
         "tie_word_embeddings: true}", "model.path=null", "data.sequence_length=128"]
WORKS = {"W1": [], "two layers": SMALL}
GOALS = {"profiling": 3, "events, TensorBoard's files and the monitor": 0.5, "debug.verify_steps=1": 110,
         "debug.verify_steps=50": 3, "debug.verify_steps=50 (put together)": 3}


def run(log, command):
    command = [str(word) for word in command]
    log.write(f"$ {machine.shown(command)}\n")
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log.stderr, stdin=subprocess.DEVNULL, text=True)
    log.write(done.stdout)
    if done.returncode != 0:
        raise SystemExit(f"bench: exit code {done.returncode}; see {log.path}")
    return done.stdout


def measure(args, log):
    """{work: ({what: event}, percent of the steps in the trace's ops)}."""
    found = {}
    bench = pathlib.Path(args.binary).parent / "bench" / "bench_watching"
    for work, settings in WORKS.items():
        figures = {}
        for mode in ("profile", "events", "verify"):
            progress(f"{work}: {mode}")
            for line in run(log, [bench, mode, RUN, *settings]).splitlines():
                if line.startswith("{"):
                    event = json.loads(line)
                    figures[event["what"]] = event
        text = run(log, [args.binary, "profile", RUN, "--active", 10, "--output", args.work / "profile", *settings])
        covered = sum(float(share) for share in re.findall(r"([\d.]+)%", text.split("in the trace:")[1].split("in no event")[0]))
        found[work] = figures, covered
    return found


def page(r):
    rows = []
    for work, (figures, covered) in r["works"].items():
        for what, goal in GOALS.items():
            event = figures.get(what)
            if event is None:
                continue
            median, low, high = (100 * (event[key] - 1) for key in ("median", "low", "high"))
            rows.append([work, f"{what}, % of a step", *against(median, goal, at_most=True), f"{low:+.2f} to {high:+.2f}",
                         str(event["pairs"]), f"{1e3 * event['step_seconds']:.1f}"])
        telling = figures["the telling itself"]
        rows.append([work, "the telling itself, by the clock around it, % of a step",
                     *against(100 * telling["seconds"] / telling["step_seconds"], 0.5, at_most=True), "", "",
                     f"{1e3 * telling['step_seconds']:.1f}"])
        rows.append([work, "of the steps in the trace's events, %", *against(covered, 97), "", "", ""])
    cpu = r["cpu"]
    return f"""{machine.title(f"What looking at a run costs, {r['date']}", r["commit"])}

Written by `{r["command"]}` at commit {r["commit"]}; every line the programs printed is in [{r["log_name"]}]({r["log_name"]}).

- Processor: {machine.named(cpu)}; load average at the start {r["load"]}
- Blocks of steps that are watched and blocks that are not, in turns in one process; medians and quartiles of the ratio over the pairs
- `debug.verify_steps=1` within 110 % is 2.1 times the step; `50` on the small work is 50 steps of a run of its own, on W1 put
  together from the step that is verified and one of the same run that is not (its plan has an update a tensor)

{table(["work", "figure", "measured", "goal", "", "quartiles", "pairs", "step, ms"], rows, left=2)}
"""


def main():
    parser = argparse.ArgumentParser(prog="bench/run-watching", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser, gigabytes=0.1)
    args = parser.parse_args()
    with Workplace(args, "watching", "bench/run-watching") as work:
        works = measure(args, work.log)
    work.publish(page(work.about | dict(works=works)))


if __name__ == "__main__":
    main()
