// An op and its operands, in guarded memory, and what its results are held to: for kernels on the CPU
// (kernel_harness.h) and on a card (on_card.h).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/tensors.h"
#include "base/check.h"
#include "ir/op_def.h"
#include "ops/op_list.h"
#include "runtime/tensor_ref.h"

namespace plimsoll::cpu::fixtures {

using ir::Attrs;

/// One execution of an op: what it is given.
struct OpRun {
  std::string op;
  std::vector<Tensor> inputs;
  Attrs attrs = {};
};

/// Which GELU.
inline Attrs approximate(const char* which) { return {{"approximate", std::string(which)}}; }

inline ir::OpTypes types_of(const OpRun& run, const ir::Op& op) {
  ir::OpTypes types{op.def->name, {}, {}, op.attrs};
  for (const Tensor& t : run.inputs) types.inputs.push_back(t.type);
  auto inferred = op.def->infer(types);
  PLIMSOLL_CHECK(inferred.ok(), inferred ? "" : inferred.error().message());
  types.outputs = *inferred;
  return types;
}

inline ir::Op make_op(const OpRun& run) {
  ir::Op op;
  op.def = ops::find_op(run.op);
  PLIMSOLL_CHECK(op.def != nullptr, run.op);
  op.attrs = run.attrs;
  for (size_t i = 0; i < run.inputs.size(); ++i)
    op.inputs.push_back({run.inputs[i].type.shape.rank() == 0 ? -1 : static_cast<int32_t>(i)});
  const size_t outputs = types_of(run, op).outputs.size();
  for (size_t i = 0; i < outputs; ++i) op.outputs.push_back({static_cast<int32_t>(run.inputs.size() + i)});
  return op;
}

inline std::vector<ir::RefTensor> run_reference(const OpRun& run) {
  const ir::Op op = make_op(run);
  const ir::OpTypes types = types_of(run, op);
  std::vector<ir::RefTensor> inputs(run.inputs.size()), outputs(types.outputs.size());
  ir::RefContext context{op, {}, {}};
  for (size_t i = 0; i < inputs.size(); ++i) {
    inputs[i].type = run.inputs[i].type;
    for (size_t e = 0; e < run.inputs[i].bits.size(); ++e) inputs[i].data.push_back(run.inputs[i].value(e));
    context.inputs.push_back(op.inputs[i].valid() ? &inputs[i] : nullptr);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] = {types.outputs[i], std::vector<double>(size_of(types.outputs[i].shape))};
    context.outputs.push_back(&outputs[i]);
  }
  op.def->reference(context);
  return outputs;
}

/// Memory between two guard zones, filled with NaNs of a known pattern.
class Guarded {
 public:
  explicit Guarded(size_t words) : words_(words), memory_(words + 2 * kGuard + 16, kPattern) {
    const auto at = reinterpret_cast<uintptr_t>(memory_.data());
    begin_ = kGuard + (64 - (at + kGuard * 4) % 64) % 64 / 4;
  }
  uint32_t* data() { return memory_.data() + begin_; }
  [[nodiscard]] int64_t bytes() const { return 4 * static_cast<int64_t>(words_); }
  [[nodiscard]] bool intact() const {
    for (size_t i = 0; i < memory_.size(); ++i)
      if ((i < begin_ || i >= begin_ + words_) && memory_[i] != kPattern) return false;
    return true;
  }

 private:
  static constexpr size_t kGuard = 64;
  static constexpr uint32_t kPattern = 0x7FA5A5A5;
  size_t words_, begin_ = 0;
  std::vector<uint32_t> memory_;
};

struct RunOptions {
  int threads = 2;
  bool strided = false;   ///< operands as views of wider rows, where the kernel says that it reads such
  int wider = 5;          ///< by how many elements
  bool in_place = false;  ///< the first result in the first operand that its definition allows
};

using Memories = std::vector<std::unique_ptr<Guarded>>;

/// `t` in guarded memory; where `strided`, as a view of wider rows as `split` makes it: a row is the last
/// axis, or the heads and their size.
inline runtime::TensorRef place(const Tensor& t, bool strided, Memories& memory, size_t wider = 5) {
  const Shape& shape = t.type.shape;
  if (ir::is_block(t.type.dtype)) {
    memory.push_back(std::make_unique<Guarded>((t.storage.size() + 3) / 4));
    std::memcpy(memory.back()->data(), t.storage.data(), t.storage.size());
    return {reinterpret_cast<std::byte*>(memory.back()->data()), t.type, ir::dense_strides(shape)};
  }
  const int rank = shape.rank(), lead = std::max(0, rank - (rank == 4 ? 2 : 1));
  size_t cols = 1;
  for (int a = lead; a < rank; ++a) cols *= static_cast<size_t>(shape.dim(a));
  const size_t pitch = cols + (strided ? wider : 0), rows = size_of(shape) / cols;
  const auto bytes = static_cast<size_t>(ir::bits(t.type.dtype) / 8);
  memory.push_back(std::make_unique<Guarded>((rows * pitch * bytes + 3) / 4));
  uint32_t* data = memory.back()->data();
  for (size_t r = 0; r < rows && !t.bits.empty(); ++r) {
    const uint32_t* row = t.bits.data() + r * cols;
    if (bytes == 1)
      std::copy_n(row, cols, reinterpret_cast<uint8_t*>(data) + r * pitch);
    else if (bytes == 2)
      std::copy_n(row, cols, reinterpret_cast<uint16_t*>(data) + r * pitch);
    else
      std::copy_n(row, cols, data + r * pitch);
  }
  runtime::TensorRef ref{reinterpret_cast<std::byte*>(data), t.type, ir::dense_strides(shape)};
  if (strided)
    for (int64_t a = lead - 1, step = static_cast<int64_t>(pitch); a >= 0;
         step *= shape.dim(static_cast<int>(a--)))
      ref.strides[static_cast<size_t>(a)] = step;
  return ref;
}

/// Results that lie where operands do: what the op consumes, and with `in_place` the first that its
/// definition allows.
inline std::vector<ir::Alias> aliases_of(const ir::Op& op, const ir::OpTypes& types, bool in_place) {
  std::vector<ir::Alias> aliases = ir::op_consumes(op);
  const auto same_size = [&](const ir::Alias& a) {
    return types.outputs[static_cast<size_t>(a.output)].bytes() ==
           types.inputs[static_cast<size_t>(a.input)].bytes();
  };
  if (in_place && !op.def->in_place.empty() && same_size(op.def->in_place[0]))
    aliases.push_back(op.def->in_place[0]);
  return aliases;
}

/// The elements that lie densely there.
inline Tensor tensor_at(const std::byte* data, const ir::TensorType& type) {
  const auto count = size_of(type.shape);
  Tensor t{type, std::vector<uint32_t>(count)};
  if (ir::bits(type.dtype) == 8)
    std::copy_n(reinterpret_cast<const uint8_t*>(data), count, t.bits.begin());
  else if (ir::bits(type.dtype) == 16)
    std::copy_n(reinterpret_cast<const uint16_t*>(data), count, t.bits.begin());
  else
    std::copy_n(reinterpret_cast<const uint32_t*>(data), count, t.bits.begin());
  return t;
}

inline void expect_same_bits(const Tensor& a, const Tensor& b, const std::string& what) {
  ASSERT_EQ(a.bits.size(), b.bits.size()) << what;
  const auto at = std::mismatch(a.bits.begin(), a.bits.end(), b.bits.begin()).first;
  if (at != a.bits.end()) {
    const auto i = static_cast<size_t>(at - a.bits.begin());
    ADD_FAILURE() << what << ": element " << i << " differs: " << a.value(i) << " and " << b.value(i);
  }
}
inline void expect_same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b,
                             const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i) expect_same_bits(a[i], b[i], what + ", result " + std::to_string(i));
}

/// |got - expected| <= tolerance * (|expected| + rms of the result) for every element.
inline void expect_close(const Tensor& got, const ir::RefTensor& expected, double tolerance,
                         const std::string& what) {
  double squares = 0;
  for (const double v : expected.data) squares += v * v;
  const double rms = std::sqrt(squares / static_cast<double>(expected.data.size()));
  for (size_t i = 0; i < expected.data.size(); ++i) {
    const double e = expected.data[i], bound = tolerance * (std::abs(e) + rms);
    if (!(std::abs(got.value(i) - e) <= bound)) {
      ADD_FAILURE() << what << ": element " << i << " is " << got.value(i) << ", expected " << e;
      return;
    }
  }
}

}  // namespace plimsoll::cpu::fixtures
