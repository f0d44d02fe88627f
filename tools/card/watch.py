"""What the driver says is taken of a card while commands run."""
import shutil
import subprocess
import threading
import time

QUERY = ["nvidia-smi", "-i", "0", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]


class MemoryWatch:
    """MiB that anybody has taken of the card, twice a second, into a file. One process of the driver's that stays: starting one
    each time would disturb what is measured."""

    def __init__(self, file):
        self.file, self.process, self.thread = file, None, None
        self.last = self.most = None

    def __enter__(self):
        if shutil.which("nvidia-smi"):
            self.process = subprocess.Popen([*QUERY, "-lms", "500"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            self.thread = threading.Thread(target=self.read, daemon=True)
            self.thread.start()
        return self

    def read(self):
        with open(self.file, "a") as out:
            for line in self.process.stdout:
                if line.strip().isdigit():
                    self.last = int(line)
                    self.most = max(self.most or 0, self.last)
                    print(f"{time.time():.1f} {self.last}", file=out, flush=True)

    def begin(self):
        """What is taken before a command; grown() tells by how much that grew at most."""
        self.most = self.last
        return self.last

    def grown(self, before):
        return None if before is None or self.most is None else self.most - before

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.thread.join(5)
