// An op on the card with operands of its own, launched or replayed.
#pragma once

#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "backends/cuda/cuda_device.h"
#include "base/check.h"
#include "ir/op_def.h"

namespace plimsoll::bench {

void expect_ok(const Status& status);
/// The card of this machine; ends the program where it cannot be used.
cuda::CudaDevice& card();
/// Memory of the card with random numbers in it, as bf16 and as f32 of either sign, from 2^-7 to 2. Constants
/// flatter a card, whose units take less power where no bit changes. Memory of the host is as it comes.
std::unique_ptr<runtime::Memory> take(ir::MemorySpace space, int64_t bytes);

/// --small: shapes that the fake card of the tests gets through. --once: each graph has one launch, so that a
/// profiler sees every kernel early.
struct Options {
  bool small = false, once = false;
};
Options& options();
/// An extent of that size, or a small one.
int64_t extent(int64_t full);
/// Launches of a graph.
int times(int full);

struct Bound {
  std::vector<std::unique_ptr<runtime::Memory>> memory;
  ir::Op op;
  std::vector<runtime::TensorRef> in, out;
  std::unique_ptr<runtime::Memory> workspace;

  runtime::TensorRef tensor(ir::DType dtype, const ir::Shape& shape);
  /// Of indices: all zero.
  runtime::TensorRef zeros(ir::DType dtype, const ir::Shape& shape);
  /// Of i32, all of that value.
  runtime::TensorRef indices(const ir::Shape& shape, int32_t value);
  void finish(const char* name);
  /// As finish, with results of the types that the op infers from `in`.
  void infer(const char* name);
  void launch() const;
  /// Of all operands and results.
  [[nodiscard]] int64_t bytes() const;
};

std::unique_ptr<runtime::CapturedGraph> captured(const Bound& bound, int times);
/// Replays it and waits for the card.
void run(const runtime::CapturedGraph& graph);
/// Times replays of a graph of it: a rate of operations where they are given, else of bytes.
void measure(benchmark::State& state, const Bound& bound, double operations = 0);

}  // namespace plimsoll::bench
