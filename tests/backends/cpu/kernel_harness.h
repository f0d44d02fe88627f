// Runs one op on the CPU and holds it against the op's own `reference` in double: on every
// instruction set of this CPU, with 1, 2, 3 and 8 threads, dense and strided operands, guard zones around
// everything that is written. And on this machine's card, where it has one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "backends/cpu/cpu_device.h"
#include "backends/cpu/kernels/isa.h"
#include "backends/cpu/tensors.h"
#include "backends/cuda/card.h"
#include "backends/cuda/kernel.h"
#include "ir/op_def.h"
#include "ops/op_list.h"
#include "ops/ops.h"
#include "sanitizer.h"

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
  bool in_place = false;  ///< the first result in the first operand that its definition allows
};

inline CpuDevice& device(int threads) {
  static std::map<int, std::unique_ptr<CpuDevice>> devices;
  auto& d = devices[threads];
  if (!d) d = std::make_unique<CpuDevice>(threads);
  return *d;
}

using Memories = std::vector<std::unique_ptr<Guarded>>;

/// `t` in guarded memory; where `strided`, as a view of wider rows as `split` makes it: a row is the last
/// axis, or the heads and their size.
inline runtime::TensorRef place(const Tensor& t, bool strided, Memories& memory) {
  const Shape& shape = t.type.shape;
  const int rank = shape.rank(), lead = std::max(0, rank - (rank == 4 ? 2 : 1));
  size_t cols = 1;
  for (int a = lead; a < rank; ++a) cols *= static_cast<size_t>(shape.dim(a));
  const size_t pitch = cols + (strided ? 5 : 0), rows = size_of(shape) / cols;
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

/// Results of the CPU kernel. Operands that the op consumes are consumed.
inline std::vector<Tensor> run_cpu(const OpRun& run, const RunOptions& options = {}) {
  CpuDevice& cpu = device(options.threads);
  const ir::Op op = make_op(run);
  const ir::OpTypes types = types_of(run, op);
  Memories memory;
  std::vector<runtime::TensorRef> in(run.inputs.size()), out;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!op.inputs[i].valid()) continue;
    const bool viewable = run.inputs[i].type.shape.rank() >= 2 && cpu.target().accepts_strided(run.op, i);
    in[i] = place(run.inputs[i], options.strided && viewable, memory);
  }
  for (const auto& type : types.outputs) out.push_back(place(Tensor{type, {}}, false, memory));
  std::vector<ir::Alias> aliases = ir::op_consumes(op);
  const auto same_size = [&](const ir::Alias& a) {
    return types.outputs[static_cast<size_t>(a.output)].bytes() ==
           types.inputs[static_cast<size_t>(a.input)].bytes();
  };
  if (options.in_place && !op.def->in_place.empty() && same_size(op.def->in_place[0]))
    aliases.push_back(op.def->in_place[0]);
  for (const ir::Alias& a : aliases)
    out[static_cast<size_t>(a.output)].data = in[static_cast<size_t>(a.input)].data;

  const auto workspace_bytes = static_cast<size_t>(cpu.target().workspace_bytes(types));
  Guarded workspace((workspace_bytes + 3) / 4);
  const runtime::KernelCall call{
      &op, in, out, {reinterpret_cast<std::byte*>(workspace.data()), workspace_bytes}};
  EXPECT_TRUE(cpu.launch(call, ir::Queue::kCompute).ok());
  EXPECT_TRUE(workspace.intact()) << run.op << ": wrote beyond its workspace";
  for (const auto& m : memory) EXPECT_TRUE(m->intact()) << run.op << ": wrote beyond an operand";
  std::vector<Tensor> results;
  for (const auto& o : out) {
    const auto count = static_cast<size_t>(o.num_elements());
    Tensor result{o.type, std::vector<uint32_t>(count)};
    if (ir::bits(o.type.dtype) == 8)
      std::copy_n(o.as<uint8_t>(), count, result.bits.begin());
    else if (ir::bits(o.type.dtype) == 16)
      std::copy_n(o.as<uint16_t>(), count, result.bits.begin());
    else
      std::copy_n(o.as<uint32_t>(), count, result.bits.begin());
    results.push_back(std::move(result));
  }
  return results;
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

/// Results of the kernel of this machine's card, operands of the host copied to it and results back; a guard
/// behind each result.
inline std::vector<Tensor> run_on_card(cuda::CudaDevice& card, const OpRun& run) {
  constexpr int64_t kGuard = 256;
  const ir::Op op = make_op(run);
  const ir::OpTypes types = types_of(run, op);
  std::vector<std::unique_ptr<runtime::Memory>> memory;
  const auto take = [&](ir::MemorySpace space, int64_t bytes) -> runtime::Memory& {
    auto taken = card.allocate(space, Bytes(bytes));
    PLIMSOLL_CHECK(taken.ok(), taken ? "" : taken.error().message());
    memory.push_back(std::move(*taken));
    return *memory.back();
  };
  const auto place_there = [&](const ir::TensorType& type) {
    const int64_t bytes = round_up(std::max<int64_t>(type.bytes().count, 4), 4);
    auto& there = take(ir::MemorySpace::kDevice, bytes + kGuard);
    EXPECT_TRUE(card.fill({&there, 0}, Bytes(bytes + kGuard), 0x7FA5A5A5, ir::Queue::kCompute).ok());
    return std::pair<runtime::Memory*, runtime::TensorRef>(
        &there, {there.address(), type, ir::dense_strides(type.shape)});
  };
  Memories host;
  std::vector<runtime::Memory*> owners(run.inputs.size() + types.outputs.size());
  std::vector<runtime::TensorRef> in(run.inputs.size()), out;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!op.inputs[i].valid()) continue;
    const runtime::TensorRef here = place(run.inputs[i], false, host);
    std::tie(owners[i], in[i]) = place_there(run.inputs[i].type);
    const int64_t bytes = here.type.bytes().count;
    auto& staging = take(ir::MemorySpace::kHostPinned, bytes);
    if (bytes > 0) std::memcpy(staging.host().data(), here.data, static_cast<size_t>(bytes));
    EXPECT_TRUE(card.copy({owners[i], 0}, {&staging, 0}, Bytes(bytes), ir::Queue::kCompute).ok());
  }
  for (size_t i = 0; i < types.outputs.size(); ++i) {
    out.emplace_back();
    std::tie(owners[in.size() + i], out.back()) = place_there(types.outputs[i]);
  }
  for (const ir::Alias& a : ir::op_consumes(op)) {
    out[static_cast<size_t>(a.output)].data = in[static_cast<size_t>(a.input)].data;
    owners[in.size() + static_cast<size_t>(a.output)] = owners[static_cast<size_t>(a.input)];
  }
  const int64_t scratch = card.target().workspace_bytes(types);
  std::span<std::byte> workspace;
  if (scratch > 0)
    workspace = {take(ir::MemorySpace::kDevice, scratch).address(), static_cast<size_t>(scratch)};
  const Status status = card.launch({&op, in, out, workspace}, ir::Queue::kCompute);
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message());
  std::vector<Tensor> results;
  for (size_t i = 0; i < out.size(); ++i) {
    const auto count = static_cast<size_t>(out[i].num_elements());
    const int64_t bytes = out[i].type.bytes().count, all = round_up(std::max<int64_t>(bytes, 4), 4) + kGuard;
    auto& back = take(ir::MemorySpace::kHostPinned, all);
    EXPECT_TRUE(card.copy({&back, 0}, {owners[in.size() + i], 0}, Bytes(all), ir::Queue::kCompute).ok());
    const Status done = card.synchronize(ir::Queue::kCompute);
    PLIMSOLL_CHECK(done.ok(), run.op + ": " + (done.ok() ? "" : done.error().message()));
    for (int64_t g = all - kGuard; g < all; g += 4)
      if (std::memcmp(back.host().data() + g, "\xA5\xA5\xA5\x7F", 4) != 0) {
        ADD_FAILURE() << run.op << ": the card wrote beyond result " << i;
        break;
      }
    Tensor result{out[i].type, std::vector<uint32_t>(count)};
    const std::byte* data = back.host().data();
    if (ir::bits(out[i].type.dtype) == 8)
      std::copy_n(reinterpret_cast<const uint8_t*>(data), count, result.bits.begin());
    else if (ir::bits(out[i].type.dtype) == 16)
      std::copy_n(reinterpret_cast<const uint16_t*>(data), count, result.bits.begin());
    else
      std::copy_n(reinterpret_cast<const uint32_t*>(data), count, result.bits.begin());
    results.push_back(std::move(result));
  }
  return results;
}

/// On the card too, where there is one and it has a kernel: close to the definition, the same bits twice.
inline void expect_op_on_card(const OpRun& run, const std::vector<ir::RefTensor>& expected,
                              double tolerance) {
  if (cuda::find_kernel(run.op) == nullptr || cuda::fixtures::card() == nullptr) return;
  static struct Count {
    int runs = 0;
    ~Count() { std::printf("%d runs of ops were held to their definition on the card\n", runs); }
  } count;
  ++count.runs;
  const std::string what = run.op + " (card)";
  const auto got = run_on_card(*cuda::fixtures::card(), run);
  for (size_t i = 0; i < got.size(); ++i)
    expect_close(got[i], expected[i], 2 * tolerance + 2e-6, what + ", result " + std::to_string(i));
  expect_same_bits(got, run_on_card(*cuda::fixtures::card(), run), what + ", again");
}

/// body(name) on every instruction set of this CPU; beside the thread sanitizer on the widest, as they share
/// work out alike.
template <typename F>
void for_each_isa(F body) {
  const std::string widest(isa_name(*select_isa(nullptr)));
  for (const char* isa : {"portable", "avx2", "avx512", "avx512_bf16", "amx"}) {
    if (kThreadSanitizer && isa != widest) continue;
    const auto chosen = select_isa(isa);
    ASSERT_TRUE(chosen.ok());
    if (isa_name(*chosen) == isa) body(std::string(isa));
  }
  ASSERT_TRUE(select_isa(nullptr).ok());
}

/// The whole test of an op on one set of operands.
inline void expect_op(const OpRun& run, double tolerance) {
  const auto expected = run_reference(run);
  for_each_isa([&](const std::string& isa) {
    const std::string what = run.op + " (" + isa + ")";
    const auto got = run_cpu(run, {.threads = 1});
    for (size_t i = 0; i < got.size(); ++i)
      expect_close(got[i], expected[i], tolerance, what + ", result " + std::to_string(i));
    for (const int threads : kSanitizer ? std::vector{3} : std::vector{2, 3, 8})
      expect_same_bits(got, run_cpu(run, {.threads = threads}),
                       what + ", threads " + std::to_string(threads));
    expect_same_bits(got, run_cpu(run, {.strided = true}), what + ", strided");
    expect_same_bits(got, run_cpu(run, {.in_place = true}), what + ", in place");
  });
  expect_op_on_card(run, expected, tolerance);
}

}  // namespace plimsoll::cpu::fixtures
