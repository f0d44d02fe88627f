"""What the measurements of offload to a disk share."""
import concurrent.futures
import json
import mmap
import os
import subprocess
import time


REQUEST = 4 << 20


def move(path, flags, mib):
    block = mmap.mmap(-1, REQUEST)
    file = os.open(path, flags | os.O_DIRECT)
    begin = time.monotonic()
    for _ in range((mib << 20) // REQUEST):
        os.write(file, block) if flags & os.O_WRONLY else os.readv(file, [block])
    os.close(file)
    return (mib << 20) / (time.monotonic() - begin)


def bandwidth(folder, mib=512):
    """Bytes a second of direct writes and reads, one after the other, and of both together."""
    one, other = folder / "bandwidth", folder / "bandwidth2"
    written = move(one, os.O_WRONLY | os.O_CREAT, mib)
    read = move(one, os.O_RDONLY, mib)
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor() as threads:
        list(threads.map(lambda job: move(*job), [(one, os.O_RDONLY, mib), (other, os.O_WRONLY | os.O_CREAT, mib)]))
    both = (2 * mib << 20) / (time.monotonic() - begin)
    one.unlink(), other.unlink()
    return written, read, both


def floor(rates, out, back):
    """Seconds that the disk alone takes: the better of one way after the other, and of both at once for as long as there are both."""
    written, read, both = rates
    together, rest = 2 * min(out, back), abs(out - back)
    return min(out / written + back / read, together / both + rest / (read if back > out else written))


def lines(command, folder):
    """What a command prints, an object a line."""
    done = subprocess.run(command, cwd=folder, text=True, capture_output=True)
    if done.returncode != 0:
        raise SystemExit(f"{command}: exit code {done.returncode}: {done.stderr[-500:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]
