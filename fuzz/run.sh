#!/bin/sh
# Fuzzes each parser for the given number of seconds, as many at once as there are cores: fuzz/run.sh [SECONDS [PARTS]].
# Starts from the kept corpus; what it learns stays in build-fuzz, a crash is written there and named. PARTS: one part in
# so many, and what changed (tools/sampling.py). Needs clang (apt: clang, libclang-rt-dev).
set -eu
cd "$(dirname "$0")/.."
build=build-fuzz

# fuzz/run.sh --one SECONDS TARGET: of what is built already. 255 tells xargs to start no more.
if [ "${1:-}" = --one ]; then
  seconds=$2
  target=$3
  mkdir -p "$build/corpus/$target"
  log="$build/$target.log"
  if ! "$build/fuzz_$target" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=512 -malloc_limit_mb=32 -max_len=8192 -print_final_stats=1 \
    -verbosity=0 -print_funcs=0 -dict="fuzz/$target.dict" -artifact_prefix="$build/crash-$target-" \
    "$build/corpus/$target" "fuzz/corpus/$target" >"$log" 2>&1; then
    tail -n 60 "$log"
    echo "fuzz: $target failed; the input is $build/crash-$target-*" >&2
    exit 255
  fi
  echo "fuzz: $target, $seconds s, $(sed -n 's/^stat::number_of_executed_units: //p' "$log") inputs, no failure"
  exit 0
fi

compiler=${CXX:-clang++-14}
cmake -S fuzz -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1" \
  "-DCMAKE_CXX_COMPILER=$compiler" >/dev/null
# One part in five of them needs few modules: those that stand in one column.
names="
  run_file       checkpoint        image_jpeg      safetensors       shard
  import         quantized_tensors image_png       safetensors_index token_bin
  config_json    machine_profile   image_webp      tokenizer_json    npy
  adapter_config run_events        image_processor chat_template     jsonl"
targets=$(tools/sampling.py --parts "${2:-1}" $(for name in $names; do echo "$name=fuzz/$name."; done))
cmake --build "$build" --target $(for target in $targets; do echo "fuzz_$target"; done)
printf '%s\n' $targets | xargs -n 1 -P "$(nproc)" fuzz/run.sh --one "${1:-30}"
