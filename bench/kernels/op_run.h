// An op with made-up operands, for benchmarks of kernels.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/cpu/cpu_device.h"
#include "ops/op_list.h"

namespace plimsoll::cpu {

/// Of PLIMSOLL_BENCH_THREADS threads (default 1).
inline CpuDevice& bench_device() {
  static CpuDevice cpu([] {
    const char* threads = std::getenv("PLIMSOLL_BENCH_THREADS");
    return threads ? std::max(1, std::atoi(threads)) : 1;
  }());
  return cpu;
}

/// An op with made-up operands in memory.
struct Run {
  ir::Op op;
  ir::OpTypes types;
  std::vector<std::vector<std::byte>> memory;
  std::vector<runtime::TensorRef> in, out;
  std::span<std::byte> workspace;

  Run(std::string_view name, std::vector<ir::TensorType> inputs, ir::Attrs attrs)
      : types{name, std::move(inputs), {}, op.attrs} {
    op.def = ops::find_op(name);
    op.attrs = std::move(attrs);
    types.outputs = *op.def->infer(types);
    for (const ir::TensorType& t : types.inputs) in.push_back(operand(t));
    for (const ir::TensorType& t : types.outputs) out.push_back(operand(t));
    types.op = op.def->name;
    workspace = {aligned(bench_device().target().workspace_bytes(types)),
                 static_cast<size_t>(bench_device().target().workspace_bytes(types))};
  }

  [[nodiscard]] Status launch() const {
    return bench_device().launch({&op, in, out, workspace}, ir::Queue::kCompute);
  }
  std::byte* aligned(int64_t bytes) {
    memory.emplace_back(static_cast<size_t>(bytes) + 64);
    void* at = memory.back().data();
    size_t room = memory.back().size();
    return static_cast<std::byte*>(std::align(64, static_cast<size_t>(bytes), at, room));
  }
  runtime::TensorRef operand(const ir::TensorType& t) {
    std::byte* data = aligned(t.bytes().count);
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      const float value = static_cast<float>(i * 2654435761 % 2003) / 1001.5F - 1.0F;
      if (t.dtype == ir::DType::kF32)
        reinterpret_cast<float*>(data)[i] = value;
      else if (ir::is_half_precision(t.dtype))
        reinterpret_cast<uint16_t*>(data)[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
    }
    return {data, t, ir::dense_strides(t.shape)};
  }
};

}  // namespace plimsoll::cpu
