"""Where a benchmark works and what it leaves: a folder for its files, a log, a page beside the log."""
import datetime
import os
import pathlib
import shutil
import sys
import tempfile

import machine
from processes import Log


def progress(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def opening(about, title, conditions):
    """How a page begins: its title, what wrote it, on which machine, and the conditions of the run. `about`: a Workplace's."""
    return f"""{machine.title(f"{title}, {about['date']}", about["commit"])}

Written by `{about["command"]}` at commit {about["commit"]}; every line the programs printed is in [{about["log_name"]}]({about["log_name"]}).

- Processor: {machine.named(about["cpu"])}; {" ".join(about["cpu"]["flags"])}
- {conditions}; load average at the start {about["load"]}"""


def add_arguments(parser, gigabytes):
    parser.add_argument("--binary", default="build/plimsoll")
    parser.add_argument("--results", default="bench/results", help="the folder to write to")
    parser.add_argument("--work", type=pathlib.Path, help=f"a folder for {gigabytes} GB; a temporary one by default")


class Workplace:
    """`with` it the process is in the repository's root, args.work is a folder, and `log` is open. `about`: what every page
    says of the run. `kind`: what the page's name says."""

    def __init__(self, args, kind, command):
        os.chdir(machine.ROOT)
        self.args, self.made = args, args.work is None
        self.results = pathlib.Path(args.results)
        cpu, date = machine.cpu(), datetime.date.today().isoformat()
        self.name = f"{date}-{kind}-{machine.slug(cpu)}"
        self.about = {"date": date, "commit": machine.commit(), "cpu": cpu, "log_name": f"{self.name}.log",
                      "load": " ".join(f"{value:.2f}" for value in os.getloadavg()),
                      "command": " ".join([command, *sys.argv[1:]])}

    def __enter__(self):
        if self.made:
            self.args.work = pathlib.Path(tempfile.mkdtemp(prefix="plimsoll-bench-"))
        self.args.work.mkdir(parents=True, exist_ok=True)
        self.results.mkdir(parents=True, exist_ok=True)
        self.log = Log(self.results / f"{self.name}.log")
        return self

    def __exit__(self, *_):
        self.log.close()
        if self.made:
            shutil.rmtree(self.args.work, ignore_errors=True)

    def publish(self, text):
        (self.results / f"{self.name}.md").write_text(text)
        print(text)
