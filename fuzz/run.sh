#!/bin/sh
# Fuzzes each parser for the given number of seconds, as many at once as there are cores: fuzz/run.sh [SECONDS]. Starts
# from the kept corpus; what it learns stays in build-fuzz, a crash is written there and named. Needs clang (apt: clang,
# libclang-rt-dev).
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
cmake --build "$build"
printf '%s\n' run_file import config_json adapter_config npy safetensors safetensors_index checkpoint tokenizer_json chat_template \
  jsonl shard token_bin run_events quantized_tensors machine_profile image_jpeg image_png image_webp image_processor | xargs -n 1 -P "$(nproc)" fuzz/run.sh --one "${1:-30}"
