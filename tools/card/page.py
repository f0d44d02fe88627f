"""The page of a check of a card: a table of stages, then what each found."""
import datetime
import json
import pathlib
import re

ORDER = ["failed", "nothing ran", "out of time", "missing", "no card", "not rehearsed", "passed"]
COUNTED = re.compile(r"^\[  (PASSED|FAILED)  \] (\d+) tests?", re.M)
FAILED_TEST = re.compile(r"^\[  FAILED  \] (\S+)", re.M)
MOST_OPS = 15  # that are listed one by one
PASSED_TEST = re.compile(r"^\[       OK \] ", re.M)


def worst(states):
    return min(states, key=ORDER.index) if states else "passed"


def tests_of(output):
    """(passed, failed, the names of those that failed), of a run that was cut off too."""
    names = sorted({name.rstrip(",") for name in FAILED_TEST.findall(output) if not name.isdigit()})
    counts = {"PASSED": 0, "FAILED": 0}
    for word, count in COUNTED.findall(output):
        counts[word] += int(count)
    if counts["PASSED"] + counts["FAILED"] == 0:
        return len(PASSED_TEST.findall(output)), len(names), names
    return counts["PASSED"], counts["FAILED"], names


def short(command):
    words = " ".join(pathlib.Path(word).name if index == 0 else word for index, word in enumerate(command["words"]))
    return f"{command['label']}: {words}" if command.get("label") else words


def tests_section(result):
    rows = ["| command | passed | failed | |", "| --- | --: | --: | --- |"]
    for command in result["commands"]:
        passed, failed, names = tests_of(command["output"])
        note = command["state"] if command["state"] != "passed" else ""
        rows.append(f"| {short(command)} | {passed} | {failed} | {' '.join([note, *names]).strip()} |")
    return rows


def rates_section(result, out):
    file = out / "rates.json"
    if not file.exists():
        return []
    rows = ["| | ms | |", "| --- | --: | --: |"]
    for one in json.loads(file.read_text()).get("benchmarks", []):
        scale = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}[one.get("time_unit", "ns")]
        rate = next((f"{one[name]:,.1f} {name}" for name in ("TFLOP/s", "GB/s") if name in one), "")
        if "us_a_launch" in one:
            rate = f"{one['us_a_launch']:.2f} µs a launch"
        rows.append(f"| {one['name'].removesuffix('/real_time')} | {one['real_time'] * scale:,.3f} | {rate} |")
    return rows


def events(output):
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                continue


def steps_section(result):
    rows = ["| run | s a step | tokens/s | TFLOP/s | planned MiB | measured MiB | the driver's MiB | estimate / measured | "
            "first step after s |",
            "| --- | --: | --: | --: | --: | --: | --: | --: | --: |"]
    for command in result["commands"]:
        found = {event.get("event"): event for event in events(command["output"])}
        done, plan = found.get("round"), found.get("plan", {})
        if done is None:
            last = command["output"].strip().splitlines()[-1:] or [""]
            rows.append(f"| {short(command)} | {command['state']}: {last[0][:200]} | | | | | | | |")
            continue
        seconds, summary, step = done["seconds"] / done["steps"], found.get("summary", {}), plan.get("step", {})
        # Without rates of the card there is no estimate.
        estimate = f"{step['seconds_estimated'] / seconds:.2f}" if step.get("seconds_estimated") else "–"
        tokens = done.get("tokens", done.get("images", 0)) / done["seconds"]
        planned, measured = (summary.get(f"{which}_peak_bytes", 0) / 2**20 for which in ("planned", "measured"))
        rows.append(f"| {short(command)} | {seconds:.3f} | {tokens:,.0f} | {step.get('flops', 0) / seconds / 1e12:,.1f} | {planned:,.0f} | "
                    f"{measured:,.0f} | {command.get('card_mib') or '–'} | {estimate} | {summary.get('startup_seconds', 0):.1f} |")
    return rows


def estimates(event):
    """Seconds of each op of a step against what was estimated, those that take longest first."""
    rows = ["| op | calls | ms | estimate / measured |", "| --- | --: | --: | --: |"]
    ops = sorted((op for op in event["ops"] if op["seconds"] > 0), key=lambda op: -op["seconds"])
    rows += [f"| {op['op']}, {op['type']} | {op['calls']} | {1e3 * op['seconds']:,.3f} | {op['seconds_estimated'] / op['seconds']:.2f} |"
             for op in [{"op": "a step", "type": "all of it", "calls": 1, **event}, *ops[:MOST_OPS]]]
    apart = sorted(abs(op["seconds_estimated"] / op["seconds"] - 1) for op in ops)
    if apart:
        rows.append(f"| {len(ops)} kinds of ops | | | off by {apart[len(apart) // 2]:.0%} in the middle, {apart[-1]:.0%} at most |")
    return [*rows, ""]


def log_section(result):
    rows = []
    for command in result["commands"]:
        for event in events(command["output"]):
            rows += estimates(event) if event.get("event") == "estimate" and event.get("seconds") else []
        lines = command["output"].strip().splitlines()
        tables = [line for line in lines if line.startswith("|")]
        if tables:
            rows += [*tables, ""]
        elif command["state"] != "passed":
            rows.append(f"`{short(command)}`: {command['state']}: {lines[-1] if lines else ''}")
    return rows


def page(results, card, out):
    today = datetime.date.today().isoformat()
    lines = [f"# A card, {today}", "", f"{card or 'No card: a dry run'}. `tools/card/check`; raw log beside this page.", "",
             "| stage | | state | s |", "| --- | --- | --- | --: |"]
    lines += [f"| {r['stage']} | {r['what']} | {r['state']} | {r['seconds']} |" for r in results]
    for result in results:
        kind = result["kind"]
        rows = (tests_section(result) if kind == "tests" else rates_section(result, out) if kind == "rates"
                else steps_section(result) if kind == "steps" else log_section(result))
        if result["commands"] and rows:
            lines += ["", f"## {result['stage'].capitalize()}: {result['what']}", "", *rows]
    return "\n".join(lines) + "\n"
