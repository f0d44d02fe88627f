"""What tools/card/check runs on a card, stage by stage: correctness first, then speed, in two calls of under seven minutes."""
import dataclasses
import sys

SMALL = ["runtime.device=cuda", "training.precision=bf16"]
# Each of the program's runs would compile all kernels again, were none kept for the next.
ON_CARD = {"PLIMSOLL_E2E_DEVICE": "runtime.device=cuda", "PLIMSOLL_E2E_CACHE": "{out}/kernels"}
# Rates are measured for the run behind them, and not for the other stages.
PROFILED = {"XDG_CACHE_HOME": "{out}/profiled"}
# For tests: a card alone is looked at, not the instruction sets of the CPU beside it.
CARD_ONLY = {"PLIMSOLL_CARD_ONLY": "1"}


@dataclasses.dataclass
class Command:
    """`program`: the first word; one of the build's by its path in the build folder, or one on PATH. A name in braces is
    replaced: {python}, {out}."""
    words: list
    environment: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Stage:
    name: str
    call: str  # A or B
    seconds: int  # that it may take
    what: str
    commands: list
    kind: str = "log"  # how the page shows it: log, tests, rates, steps


def step(folder, *overrides, steps=3):
    return Command(["plimsoll", "bench", "step", f"bench/card/{folder}/run.yaml", "runtime.device=cuda", *overrides,
                    "--steps", str(steps), "--json"])


def tests(name, pattern="*", environment=None):
    return Command([f"tests/test_{name}", f"--gtest_filter={pattern}"], environment or {})


def sanitized(tool, pattern):
    return Command(["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", "tests/test_backends_cpu",
                    f"--gtest_filter={pattern}"], CARD_ONLY)


STAGES = [
    Stage("machine", "A", 10, "the card, its clocks and the versions around it", [
        Command(["nvidia-smi", "-q", "-d", "CLOCK,POWER,MEMORY,PERFORMANCE"]),
        Command(["{python}", "-c", "import torch; print('torch', torch.__version__, 'CUDA', torch.version.cuda)"]),
        Command(["plimsoll", "--version"])]),
    Stage("contract", "A", 15, "each line of runtime/device.h", [
        tests("backends_discrete", "*/card"), tests("backends_cuda")], "tests"),
    Stage("ops", "A", 70, "each op against its definition, the same bits twice", [
        tests("backends_cpu", "-Isas/*:Gemm*:Strip*:IsaTest.*:*Vector*:ThreadPool*:*Disk*", CARD_ONLY)], "tests"),
    Stage("programs", "A", 70, "training runs on the card beside the same runs on the CPU", [
        Command(["tests/test_e2e", "--gtest_filter=Runs/OnCard.*"], ON_CARD)], "tests"),
    Stage("sanitizer", "A", 110, "reads and writes out of bounds, races, memory that nobody wrote", [
        sanitized("memcheck", "*Norm*:*Embedding*:*Attention*:*Linear*"),
        sanitized("racecheck", "*Norm*:*Embedding*"),
        sanitized("initcheck", "*HeadLoss*")], "tests"),
    Stage("rates", "A", 80, "ops, products, copies and launches", [
        Command(["bench/bench_card", "--benchmark_min_time=0.02", "--benchmark_format=console",
                 "--benchmark_out={out}/rates.json", "--benchmark_out_format=json"])], "rates"),
    Stage("counters", "A", 45, "what the units of the card were doing", [
        Command(["ncu", "--set", "basic", "--clock-control", "none", "--launch-count", "40", "bench/bench_card",
                 "--benchmark_min_time=0", "--benchmark_filter=attention|rms_norm_grad|swiglu|cross_entropy"])]),
    Stage("steps", "B", 130, "steps of small models beside PyTorch's, in turn", [
        Command(["{python}", "bench/card/steps.py", "--only", "W2b,W1", "--precisions", "bf16", "--peers", "eager,compiled",
                 "--rounds", "4", "{build}"])]),
    Stage("full", "B", 80, "all of a model, 131,072 tokens a step", [
        step("qwen2.5"), step("qwen2.5", "model.preset=qwen2.5-1.5b", steps=2),
        step("qwen2.5", "model.preset=qwen2.5-0.5b", steps=2)], "steps"),
    Stage("lora", "B", 75, "LoRA on 7B within 22.5 GiB, and PEFT", [
        step("llama-2-7b", steps=4),
        step("llama-2-7b", "data.sequence_length=4096", "training.global_batch_size=2", steps=4),
        Command(["{python}", "bench/card/lora_peer.py", "--micro", "1", "--steps", "3"]),
        Command(["{python}", "bench/card/lora_peer.py", "--micro", "2", "--checkpointing", "--steps", "3"])], "steps"),
    Stage("offload", "B", 40, "optimizer states on the host", [
        step("qwen2.5", "memory.offload={optimizer: host}", steps=2),
        step("qwen2.5", "model.preset=qwen2.5-1.5b", "memory.offload={optimizer: host}", "memory.update_on_host=true", steps=2)], "steps"),
    Stage("start", "B", 30, "the first step without kept kernels, and with them", [
        Command(["plimsoll", "bench", "step", "bench/step/w2b/run.yaml", *SMALL, "--steps", "1", "--json"],
                {"XDG_CACHE_HOME": "{out}/empty-cache"}),
        Command(["plimsoll", "bench", "step", "bench/step/w2b/run.yaml", *SMALL, "--steps", "1", "--json"],
                {"XDG_CACHE_HOME": "{out}/empty-cache"})], "steps"),
    Stage("calibrate", "B", 60, "the card's rates, and what a profiled step takes against its estimate", [
        Command(["plimsoll", "calibrate", "--device", "cuda"], PROFILED),
        Command(["plimsoll", "calibrate", "--products", "bench/step/w2b/run.yaml"], PROFILED),
        Command(["plimsoll", "profile", "bench/step/w2b/run.yaml", *SMALL, "--output", "{out}/profile"], PROFILED),
        Command(["cat", "{out}/profile/estimate.json"])]),
]


def words_of(command, build, out, resolve):
    """The command as it is run; None where its program is not here. `resolve`: a name to a path or None."""
    names = {"{python}": sys.executable, "{out}": str(out), "{build}": str(build)}
    words = []
    for word in command.words:
        for name, value in names.items():
            word = word.replace(name, value)
        words.append(word)
    for place, word in enumerate(words):
        if place > 0 and not word.startswith(("tests/test_", "bench/bench_")):
            continue
        found = resolve(word)
        if found is None:
            return None
        words[place] = found
    return words
