"""What the figures were taken on: processor, its flags that matter, memory, load, the commit, GEMM rates."""
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FLAGS = ["avx2", "fma", "avx512f", "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16", "amx_bf16"]
SHAPES = [(2048, 2048, 2048), (4096, 4096, 1024)]
# bench_kernels' names for them
NAMES = {"square_2048": SHAPES[0], "wide_4096": SHAPES[1]}


def shown(command):
    """A command for the log, without this machine's folders: what one would type at the top of the checkout."""
    return " ".join(str(word).replace(f"{ROOT}/", "").replace(sys.executable, "python") for word in command)


def cpu():
    text = pathlib.Path("/proc/cpuinfo").read_text()

    def field(name):
        match = re.search(rf"^{name}\s*: (.*)$", text, re.M)
        return match.group(1).strip() if match else "?"
    have = set(field("flags").split())
    return {
        "model": field("model name"), "family": field("cpu family"), "number": field("model"),
        "count": os.cpu_count(), "flags": [flag for flag in FLAGS if flag in have],
    }


def named(cpu_info):
    """A processor as every page names it; tools/readme-tables reads it there."""
    return f"{cpu_info['model']} (family {cpu_info['family']}, model {cpu_info['number']}), {cpu_info['count']} CPUs"


def memory_bytes(name):
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    return 0


UNCOMMITTED = "with uncommitted changes"


def commit(tree=ROOT):
    """The commit of a checkout, "… with uncommitted changes" where its files are others; "unknown" where `tree` is none.
    Ask before the figures are taken. Pages and logs of earlier runs, which lie under bench/results until somebody commits
    them, are no change."""
    def git(*args):
        done = subprocess.run(["git", "-C", str(tree), *args], capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""
    name = git("rev-parse", "--short=12", "HEAD")
    if not name or git("rev-parse", "--show-prefix"):  # no checkout, or a folder within another one
        return "unknown"
    changed = git("status", "--porcelain", "--", ":/", ":(top,exclude)bench/results")
    return f"{name} {UNCOMMITTED}" if changed else name


def title(text, commit_name):
    """A page's title, which says of itself where its figures are of no commit: nothing quotes such a page."""
    return f"# {text} ({UNCOMMITTED})" if UNCOMMITTED in commit_name else f"# {text}"


def slug(cpu_info):
    words = re.sub(r"\((R|TM|r|tm)\)|Processor|CPU|@.*", " ", cpu_info["model"])
    words = re.sub(r"[^A-Za-z0-9]+", "-", words).strip("-").lower()
    return f"{words}-f{cpu_info['family']}m{cpu_info['number']}-{cpu_info['count']}cpu"


def implementation(benchmark_name):
    lowered = benchmark_name.lower()
    for key, shown in (("dnnl", "oneDNN"), ("onednn", "oneDNN"), ("openblas", "OpenBLAS"), ("mkl", "MKL")):
        if key in lowered:
            return shown
    return "Plimsoll"


def kernel_rates(binary, threads, log):
    """GFLOP/s of each fp32 GEMM in bench_kernels at the two shapes: [(implementation, shape, rate)]."""
    pattern = "gemm/(" + "|".join(NAMES) + ")/"
    command = [str(binary), f"--benchmark_filter={pattern}", "--benchmark_format=json",
               "--benchmark_repetitions=7", "--benchmark_min_time=0.05"]
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads),
               PLIMSOLL_BENCH_THREADS=str(threads))
    log.write(f"$ {shown(command)}\n")
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    log.write(done.stdout)
    log.stderr.write(done.stderr)
    if done.returncode != 0:
        return []
    rates = []
    for row in json.loads(done.stdout or "{}").get("benchmarks", []):
        shape = NAMES.get(row["name"].split("/")[1])
        if shape is None or row.get("run_type") == "aggregate" or "error_message" in row or "bf16" in row["name"].lower():
            continue
        seconds = row["real_time"] * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[row["time_unit"]]
        m, n, k = shape
        rates.append((implementation(row["name"]), shape, 2 * m * n * k / seconds / 1e9))
    return rates


def plimsoll_rates(binary, threads, log):
    """Our own GEMM at the two shapes, from `plimsoll bench kernels`: x [1, m, k] times weights [n, k]."""
    command = [binary, "bench", "kernels", "--json"]
    log.write(f"$ {shown(command)}\n")
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log.stderr, text=True, check=True,
                          preexec_fn=lambda: os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads]))
    log.write(done.stdout)
    rates = []
    for row in map(json.loads, done.stdout.splitlines()):
        numbers = [int(number) for number in re.findall(r"\d+", row["operands"])]
        if row["op"] == "linear" and len(numbers) == 5 and (numbers[1], numbers[3], numbers[2]) in SHAPES:
            rates.append(("Plimsoll", (numbers[1], numbers[3], numbers[2]), row["gflops"]))
    return rates


def torch_rates(python, threads, precision, log):
    command = [python, str(ROOT / "bench/step/torch_gemm.py"), str(threads), precision]
    log.write(f"$ {shown(command)}\n")
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log.stderr, text=True, check=True)
    log.write(done.stdout)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [("PyTorch (MKL)", (row["m"], row["n"], row["k"]), row["gflops"]) for row in rows]
