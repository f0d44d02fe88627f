"""One side of the comparison: a child process that runs steps when told to and blocks otherwise."""
import json
import os
import subprocess
import time

import machine

CLOCK_TICK = os.sysconf("SC_CLK_TCK")


class SideFailed(Exception):
    """The child ended or said something that is not the protocol."""


def busy_seconds():
    """CPU time of the whole machine that was not idle, in seconds since boot."""
    with open("/proc/stat") as stat:
        fields = [int(field) for field in stat.readline().split()[1:]]
    return (sum(fields[:8]) - fields[3] - fields[4]) / CLOCK_TICK


def floor_bytes(command, log):
    """The most resident memory (the kernel's figure) of a command that loads a program's code and ends."""
    log.write(f"$ {machine.shown(command)}\n")
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log.stderr)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SideFailed(f"{command[0]} ended with exit code {process.returncode}")
    log.write(f"most resident: {usage.ru_maxrss} KiB\n")
    return usage.ru_maxrss * 1024


class Side:
    """Starts `command`, speaks `go N`, keeps every line in `log`.

    Figures of memory and of CPU time are the kernel's, read from /proc by us, not the child's own.
    """

    def __init__(self, name, command, log, environment=None):
        self.name = name
        self.log = log
        self.events = []
        self.spawned = time.perf_counter()
        self.log.write(f"$ {machine.shown(command)}\n")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=log.stderr, text=True, bufsize=1,
                                        env={**os.environ, **(environment or {})})

    def go(self, steps):
        """Runs `steps` steps; returns the round's event with `foreign_cores`, the load of everyone else."""
        busy_before, own_before, started = busy_seconds(), self.cpu_seconds(), time.perf_counter()
        try:
            self.process.stdin.write(f"go {steps}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise SideFailed(f"{self.name} has ended (exit code {self.process.wait()})") from None
        event = self.read_until("round")
        wall = time.perf_counter() - started
        foreign = (busy_seconds() - busy_before) - (self.cpu_seconds() - own_before)
        return {**event, "wall": wall, "foreign_cores": max(0.0, foreign / wall)}

    def read_until(self, wanted):
        for line in self.process.stdout:
            self.log.write(f"{self.name}: {line}")
            try:
                event = json.loads(line)
            except json.JSONDecodeError:
                raise SideFailed(f"{self.name} printed {line!r} among its JSON") from None
            self.events.append(event)
            if event.get("event") == wanted:
                return event
        raise SideFailed(f"{self.name} ended before its {wanted} event (exit code {self.process.wait()})")

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / CLOCK_TICK

    def peak_bytes(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        raise SideFailed(f"{self.name}: the kernel shows no VmHWM")

    def finish(self):
        """Ends the child's input and returns its summary event, {} where it gave none."""
        self.process.stdin.close()
        for line in self.process.stdout:
            self.log.write(f"{self.name}: {line}")
            self.events.append(json.loads(line))
        code = self.process.wait()
        if code != 0:
            raise SideFailed(f"{self.name} ended with exit code {code}")
        return self.last("summary")

    def last(self, name):
        return next((event for event in reversed(self.events) if event.get("event") == name), {})

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Log:
    """The raw log beside the results: every command and every line the children printed."""

    def __init__(self, path):
        self.path = path
        self.file = open(path, "w", buffering=1)
        self.stderr = open(f"{path}.stderr", "w")

    def write(self, text):
        self.file.write(text)

    def close(self):
        """Joins what the children said on stderr to the end of the log."""
        self.stderr.close()
        with open(self.stderr.name) as stderr:
            said = stderr.read()
        if said.strip():
            self.file.write(f"\n--- stderr of the children\n{said}")
        os.remove(self.stderr.name)
        self.file.close()
