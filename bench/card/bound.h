// An op on the card with operands of its own, launched or replayed.
#pragma once

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

struct Bound {
  std::vector<std::unique_ptr<runtime::Memory>> memory;
  ir::Op op;
  std::vector<runtime::TensorRef> in, out;
  std::unique_ptr<runtime::Memory> workspace;

  runtime::TensorRef tensor(ir::DType dtype, const ir::Shape& shape);
  /// Of indices: all zero.
  runtime::TensorRef zeros(ir::DType dtype, const ir::Shape& shape);
  void finish(const char* name);
  void launch() const;
  /// Of all operands and results.
  [[nodiscard]] int64_t bytes() const;
};

std::unique_ptr<runtime::CapturedGraph> captured(const Bound& bound, int times);
/// Replays it and waits for the card.
void run(const runtime::CapturedGraph& graph);

}  // namespace plimsoll::bench
