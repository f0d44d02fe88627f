"""What tools/card/check runs on a card, stage by stage: correctness first, then speed, in calls of under seven minutes."""
import dataclasses
import sys

# In the place of a small model, for the fake card.
REHEARSED = ["{scratch}/small.yaml", "runtime.device=cuda", "training.precision=bf16"]
# Each of the program's runs would compile all kernels again, were none kept for the next.
ON_CARD = {"PLIMSOLL_E2E_DEVICE": "runtime.device=cuda", "PLIMSOLL_E2E_CACHE": "{kernels}"}
# Rates are measured for the run behind them, and not for the other stages.
PROFILED = {"XDG_CACHE_HOME": "{profiled}"}
# For tests: a card alone is looked at, not the instruction sets of the CPU beside it, and kernels come from the cache.
CARD_ONLY = {"PLIMSOLL_CARD_ONLY": "1", "PLIMSOLL_CARD_KERNELS": "kept"}
# Replays of a graph are as they are, but for launches that overlap.
APART = {"PLIMSOLL_CUDA_SYNCHRONOUS": "1"}


@dataclasses.dataclass
class Command:
    """`program`: the first word; one of the build's by its path in the build folder, or one on PATH. A name in braces is
    replaced: {python}, {out}, {build}, {scratch} (files that nobody wants later), {kernels}, {profiled}. `rehearsed`: the words
    without a card, where a card is played (check --rehearse); None: the same; empty: none."""
    words: list
    environment: dict = dataclasses.field(default_factory=dict)
    rehearsed: list = None
    label: str = ""  # what the page calls it; empty: its words


@dataclasses.dataclass
class Stage:
    name: str
    call: str  # A, B or C
    seconds: int  # that it may take
    what: str
    commands: list
    kind: str = "log"  # how the page shows it: log, tests, rates, steps
    shards: int = 1  # processes that share the tests of a command
    together: bool = False  # its commands run beside each other


def step(folder, *overrides, steps=3):
    """Its steps; without a card its plan alone."""
    run = [f"bench/card/{folder}/run.yaml", "runtime.device=cuda", *overrides]
    return Command(["plimsoll", "bench", "step", *run, "--steps", str(steps), "--json"],
                   rehearsed=["plimsoll", "plan", *run, "runtime.profile=h100", "memory.budget=100GiB"])


def small_steps(steps, environment=None, label=""):
    words = ["plimsoll", "bench", "step", "bench/card/w2b/run.yaml", "--steps", str(steps), "--json"]
    return Command(words, environment or {}, [*words[:3], *REHEARSED, "--steps", "1", "--json"], label)


def tests(name, pattern="*", environment=None, rehearsed=None):
    """`rehearsed`: the pattern of fewer tests; all of them run on the fake card with `make test`."""
    words = [f"tests/test_{name}", f"--gtest_filter={pattern}"]
    return Command(words, environment or {}, rehearsed and [words[0], f"--gtest_filter={rehearsed}"])


def sanitized(tool, module, *suites, rehearsed=None):
    """Without a card and the tool: the tests of the last of the suites alone, or those of `rehearsed`."""
    program = f"tests/test_{module}"
    return Command(["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", program, f"--gtest_filter={':'.join(suites)}"],
                   CARD_ONLY, [program, f"--gtest_filter={rehearsed or suites[-1]}"])


def python(*words, rehearsed=()):
    return Command(["{python}", *words], rehearsed=["{python}", *rehearsed] if rehearsed else [])


IN_4_BITS = "quantization={load_in_4bit: true, bnb_4bit_use_double_quant: true, bnb_4bit_compute_dtype: bfloat16}"
QWEN_15 = ["model.preset=qwen2.5-1.5b", "training.global_batch_size=32"]
PICTURES = ["data.train={scratch}/pictures"]

CALLS = ["A", "B", "C"]
STAGES = [
    Stage("machine", "A", 10, "the card, its clocks and the versions around it", [
        Command(["nvidia-smi", "-q", "-d", "CLOCK,POWER,MEMORY,PERFORMANCE"]),
        Command(["{python}", "-c", "import torch; print('torch', torch.__version__, 'CUDA', torch.version.cuda)"]),
        Command(["plimsoll", "--version"])]),
    Stage("kernels", "A", 60, "each module of kernels compiled for this card, or found in the bundle", [
        Command(["bench/bench_card", "--compile"], {"XDG_CACHE_HOME": "{kernels}"})]),
    Stage("contract", "A", 30, "each line of runtime/device.h", [
        tests("backends_discrete", "*/card", CARD_ONLY),
        tests("backends_cuda", "-*CompilesForEveryGeneration*", CARD_ONLY)], "tests", together=True),  # minutes, and no card's matter
    Stage("ops", "A", 80, "each op against its definition, the same bits twice", [
        tests("backends_cpu", "-Isas/*:Gemm*:Strip*:IsaTest.*:*Vector*:ThreadPool*:*Disk*", CARD_ONLY, "Elementwise*:*Cast*")],
          "tests", shards=8),
    Stage("programs", "A", 70, "training runs on the card beside the same runs on the CPU", [
        tests("e2e", "Runs/OnCard.*", ON_CARD, "Runs/OnCard.*/Llama:Runs/OnCard.*/Fp8")], "tests", shards=6),
    Stage("sanitizer", "A", 80, "reads and writes out of bounds, races, memory that nobody wrote", [
        sanitized("memcheck", "backends_cpu", "*Norm*", "AttentionGradient*", "AttentionCached*", "Linear*", "*Conv*", "*Quantize*",
                  "ScaledMatmul*", "*Embedding*"),
        sanitized("memcheck", "backends_cuda", "Forms/MmaAttention*", rehearsed="Forms/MmaAttention*/12"),
        sanitized("racecheck", "backends_cpu", "*Norm*", "*Quantize*", "*Embedding*"),
        sanitized("racecheck", "backends_cuda", "Forms/MmaAttention*", rehearsed="Forms/MmaAttention*/14"),
        sanitized("initcheck", "backends_cpu", "FusedQuantize*", "*HeadLoss*")], "tests", shards=3, together=True),
    Stage("rates", "A", 85, "ops, products, copies and launches", [
        Command(["bench/bench_card", "--benchmark_min_time=0.02", "--benchmark_format=console",
                 "--benchmark_out={out}/rates.json", "--benchmark_out_format=json"],
                rehearsed=["bench/bench_card", "--small", "--benchmark_min_time=0", "--benchmark_out={out}/rates.json",
                           "--benchmark_out_format=json"])], "rates"),
    Stage("steps", "B", 150, "steps of small models beside PyTorch's, in turn", [
        python("bench/card/steps.py", "--only", "W2b,W1", "--precisions", "bf16", "--peers", "eager,compiled", "--rounds", "4", "{build}",
               rehearsed=["bench/card/steps.py", "--help"])]),
    Stage("full", "B", 80, "all of a model, 131,072 tokens a step", [
        step("qwen2.5", steps=2), step("qwen2.5", "model.preset=qwen2.5-1.5b", steps=2),
        step("qwen2.5", "model.preset=qwen2.5-0.5b", steps=2)], "steps"),
    Stage("lora", "B", 75, "LoRA on 7B within 22.5 GiB, and PEFT", [
        step("llama-2-7b", steps=4),
        step("llama-2-7b", "data.sequence_length=4096", "training.global_batch_size=2", steps=4),
        python("bench/card/lora_peer.py", "--micro", "1", "--steps", "3"),
        python("bench/card/lora_peer.py", "--micro", "2", "--checkpointing", "--steps", "3")], "steps"),
    Stage("start", "B", 30, "the first step without kept kernels, and with them", [
        small_steps(1, {"XDG_CACHE_HOME": "{scratch}/empty-cache"}, "no kernels kept"),
        small_steps(1, {"XDG_CACHE_HOME": "{scratch}/empty-cache"}, "kernels kept")], "steps"),
    Stage("calibrate", "B", 75, "the card's rates, and what a profiled step takes against its estimate", [
        Command(["plimsoll", "calibrate", "--device", "cuda"], PROFILED, []),
        Command(["plimsoll", "calibrate", "--products", "bench/card/w2b/run.yaml"], PROFILED,
                ["plimsoll", "calibrate", "--products", REHEARSED[0]]),
        Command(["plimsoll", "profile", "bench/card/w2b/run.yaml", "--output", "{scratch}/profile"], PROFILED,
                ["plimsoll", "profile", *REHEARSED, "--active", "1", "--output", "{scratch}/profile"]),
        Command(["cat", "{scratch}/profile/estimate.json"]),
        Command(["sh", "-c", "for f in '{profiled}'/plimsoll/*; do [ ! -f \"$f\" ] || cp \"$f\" '{out}'; done"])]),
    Stage("early", "C", 40, "launches that overlap, and those that do not, in turn", [
        small_steps(20, each, label) for _ in range(2) for each, label in (({}, "overlapping"), (APART, "one by one"))], "steps"),
    Stage("fp8", "C", 100, "a step in bf16 and in each FP8 recipe that the card has units for", [
        step("qwen2.5", *QWEN_15, *precision, steps=2) for precision in (
            [], *(["training.precision=fp8", f"training.fp8.recipe={recipe}"] for recipe in ("delayed", "current", "block")))], "steps"),
    Stage("qlora", "C", 100, "Llama-3.1-8B, 2 x 2,048 tokens: LoRA within 16.2 GiB and QLoRA within 7.4", [
        step("llama-3.1-8b", steps=2), step("llama-3.1-8b", IN_4_BITS, "memory.device_budget=7.4GiB", steps=2)], "steps"),
    Stage("offload", "C", 50, "optimizer states on the host", [
        step("qwen2.5", "memory.offload={optimizer: host}", steps=2),
        step("qwen2.5", "model.preset=qwen2.5-1.5b", "memory.offload={optimizer: host}", "memory.update_on_host=true", steps=2)], "steps"),
    Stage("images", "C", 35, "ResNet-50 and ViT-B/16, images of 224 x 224", [
        python("bench/card/pictures.py", "{scratch}/pictures", rehearsed=["bench/card/pictures.py", "{scratch}/pictures"]),
        step("images", *PICTURES, steps=4), step("images", "model.preset=vit-b-16", *PICTURES, steps=4)], "steps"),
    Stage("ranks", "C", 40, "two ranks on this card through their host, or on two cards through NCCL too", [
        python("bench/card/ranks.py", "{build}/plimsoll", "{scratch}/ranks",
               rehearsed=["bench/card/ranks.py", "{build}/plimsoll", "{scratch}/ranks"])]),
    Stage("counters", "C", 45, "what the units of the card were doing", [
        Command(["ncu", "--set", "basic", "--clock-control", "none", "--launch-count", "60", "bench/bench_card", "--once",
                 "--benchmark_min_time=0", "--benchmark_filter=attention|rms_norm|swiglu|cross_entropy|quantize"],
                {"XDG_CACHE_HOME": "{kernels}"},
                ["bench/bench_card", "--small", "--once", "--benchmark_min_time=0", "--benchmark_filter=swiglu"])]),
]


def filled(text, names):
    for name, value in names.items():
        text = text.replace("{" + name + "}", value)
    return text


def words_of(words, names, resolve):
    """A command as it is run; None where its program is not here. `names`: what the words in braces stand for; `resolve`: a name
    to a path or None."""
    made = [filled(word, names) for word in words]
    for place, word in enumerate(made):
        if place == 0 or word.startswith(("tests/test_", "bench/bench_")):
            made[place] = resolve(word)
    return None if None in made else made


def names_of(check):
    return {"python": sys.executable, "out": str(check.out), "build": str(check.build.folder), "scratch": str(check.scratch),
            "kernels": str(check.kernels), "profiled": str(check.profiled)}
