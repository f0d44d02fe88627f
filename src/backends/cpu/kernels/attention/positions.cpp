#include "backends/cpu/kernel.h"

namespace plimsoll::cpu {
namespace {

/// The position of the first token.
int32_t first_of(const KernelCall& call) {
  return call.op->attrs.find("first") == nullptr ? 0 : static_cast<int32_t>(call.op->attrs.i64("first"));
}

void run_positions(const KernelCall& call, ThreadPool&) {
  const TensorRef& out = call.outputs[0];
  const int64_t tokens = out.shape().dim(1);
  const int32_t* start = call.inputs.empty() ? nullptr : call.inputs[0].as<int32_t>();
  const int32_t first = first_of(call);
  for (int64_t i = 0; i < out.num_elements(); ++i)
    out.as<int32_t>()[i] =
        static_cast<int32_t>(i % tokens) + first + (start != nullptr ? start[i / tokens] : 0);
}

void run_document_positions(const KernelCall& call, ThreadPool&) {
  const TensorRef& out = call.outputs[0];
  const int64_t tokens = out.shape().dim(1);
  const int32_t* start = call.inputs[0].as<int32_t>();
  const int32_t first = first_of(call);
  for (int64_t i = 0; i < out.num_elements(); ++i)
    out.as<int32_t>()[i] = static_cast<int32_t>(i % tokens) + first - start[i];
}

constexpr Kernel kPositionsKernels[] = {{.op = "positions", .run = run_positions},
                                        {.op = "document_positions", .run = run_document_positions}};

}  // namespace

std::span<const Kernel> positions_kernels() { return kPositionsKernels; }

}  // namespace plimsoll::cpu
