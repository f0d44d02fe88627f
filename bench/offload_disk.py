"""What the measurements of offload to a disk share."""
import json
import mmap
import os
import subprocess
import time


def bandwidth(folder, mib=512):
    """Bytes a second of direct writes and of direct reads."""
    block = mmap.mmap(-1, 256 << 10)
    path = folder / "bandwidth"
    rates = []
    for flags in (os.O_WRONLY | os.O_CREAT, os.O_RDONLY):
        file = os.open(path, flags | os.O_DIRECT)
        begin = time.monotonic()
        for _ in range(mib * 4):
            os.write(file, block) if flags & os.O_WRONLY else os.readv(file, [block])
        rates.append((mib << 20) / (time.monotonic() - begin))
        os.close(file)
    path.unlink()
    return rates


def lines(command, folder):
    """What a command prints, an object a line."""
    done = subprocess.run(command, cwd=folder, text=True, capture_output=True)
    if done.returncode != 0:
        raise SystemExit(f"{command}: exit code {done.returncode}: {done.stderr[-500:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]
