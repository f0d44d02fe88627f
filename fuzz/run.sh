#!/bin/sh
# Fuzzes each parser for the given number of seconds: fuzz/run.sh [SECONDS]. Starts from the kept corpus; what it
# learns stays in build-fuzz, a crash is written there and named. Needs clang (apt: clang, libclang-rt-dev).
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-30}
compiler=${CXX:-clang++-14}
build=build-fuzz
cmake -S fuzz -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1" \
  "-DCMAKE_CXX_COMPILER=$compiler" >/dev/null
cmake --build "$build"
for target in run_file import config_json npy safetensors safetensors_index checkpoint tokenizer_json chat_template jsonl shard token_bin; do
  mkdir -p "$build/corpus/$target"
  log="$build/$target.log"
  if ! "$build/fuzz_$target" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=512 -malloc_limit_mb=32 -max_len=8192 -print_final_stats=1 \
    -verbosity=0 -print_funcs=0 -dict="fuzz/$target.dict" -artifact_prefix="$build/crash-$target-" \
    "$build/corpus/$target" "fuzz/corpus/$target" >"$log" 2>&1; then
    tail -n 60 "$log"
    echo "fuzz: $target failed; the input is $build/crash-$target-*" >&2
    exit 1
  fi
  echo "fuzz: $target, $seconds s, $(sed -n 's/^stat::number_of_executed_units: //p' "$log") inputs, no failure"
done
