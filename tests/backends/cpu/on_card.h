// Runs one op on this machine's card, or on the fake one of backends/cuda/fake, and holds it against the op's
// own `reference`. PLIMSOLL_CARD_ONLY=1: tests of ops run on the card and not on the CPU; =every:
// an op that has a kernel for cards and that no test ran there is a failure in the end.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/op_run.h"
#include "backends/cuda/card.h"
#include "backends/cuda/kernel.h"
#include "base/units.h"

namespace plimsoll::cpu::fixtures {

/// Names of the ops that tests have run on the card, once for each run.
inline std::vector<std::string>& runs_on_card() {
  static std::vector<std::string> ops;
  return ops;
}

class AfterAllTests : public testing::Environment {
 public:
  void TearDown() override {
    const std::vector<std::string>& ran = runs_on_card();
    if (!ran.empty()) std::printf("%zu runs of ops were held to their definition on the card\n", ran.size());
    const char* asked = std::getenv("PLIMSOLL_CARD_ONLY");
    if (asked == nullptr || asked != std::string("every")) return;
    for (const cuda::Kernel& kernel : cuda::all_kernels())
      EXPECT_TRUE(std::ranges::find(ran, kernel.op) != ran.end()) << kernel.op << " ran on no card";
  }
};
inline testing::Environment* const after_all_tests = testing::AddGlobalTestEnvironment(new AfterAllTests);

inline bool on_card_alone() { return std::getenv("PLIMSOLL_CARD_ONLY") != nullptr; }

/// The sizes of a test: `few` where its ops run on the fake card alone, a thread of a block at a time.
template <typename T>
T sizes_for(const T& few, const T& all) {
  return on_card_alone() ? few : all;
}

/// Whether input `i` may be a view of wider rows there.
inline bool takes_view(const cuda::CudaDevice& card, const OpRun& run, size_t i) {
  return run.inputs[i].type.shape.rank() >= 2 && card.target().accepts_strided(run.op, i);
}
inline bool takes_views(const cuda::CudaDevice& card, const OpRun& run) {
  for (size_t i = 0; i < run.inputs.size(); ++i)
    if (takes_view(card, run, i)) return true;
  return false;
}

/// Operands and results of one op on a card.
class CardRun {
 public:
  CardRun(cuda::CudaDevice& card, const OpRun& run)
      : card_(card), run_(run), op_(make_op(run)), types_(types_of(run, op_)) {}

  std::vector<Tensor> results(const RunOptions& options) {
    for (size_t i = 0; i < run_.inputs.size(); ++i) {
      if (op_.inputs[i].valid())
        in_.push_back(brought(run_.inputs[i], options.strided && takes_view(card_, run_, i),
                              options.wider * static_cast<int>(i + 1)));  // no two pitches alike
      else
        in_.emplace_back();
    }
    for (const ir::TensorType& type : types_.outputs) {
      const int64_t bytes = guarded(type.bytes().count);
      out_.push_back({&guarded_memory(bytes), bytes, {nullptr, type, ir::dense_strides(type.shape)}});
      out_.back().ref.data = out_.back().memory->address();
    }
    for (const ir::Alias& a : aliases_of(op_, types_, options.in_place)) {
      Placed &to = out_[static_cast<size_t>(a.output)], &from = in_[static_cast<size_t>(a.input)];
      to.memory = from.memory;
      to.ref.data = from.ref.data;
    }
    launch();
    std::vector<Tensor> all;
    for (const Placed& result : out_) all.push_back(taken_back(result));
    return all;
  }

 private:
  struct Placed {
    runtime::Memory* memory = nullptr;
    int64_t bytes = 0;
    runtime::TensorRef ref = {};
  };
  static constexpr int64_t kGuard = 256;

  static int64_t guarded(int64_t bytes) { return round_up(std::max<int64_t>(bytes, 4), 4); }

  runtime::Memory& take(ir::MemorySpace space, int64_t bytes) {
    auto taken = card_.allocate(space, Bytes(bytes));
    PLIMSOLL_CHECK(taken.ok(), taken ? "" : taken.error().message());
    memory_.push_back(std::move(*taken));
    return *memory_.back();
  }
  /// Of the card, no numbers from `begin` on, and a guard of them behind.
  runtime::Memory& guarded_memory(int64_t bytes, int64_t begin = 0) {
    auto& there = take(ir::MemorySpace::kDevice, bytes + kGuard);
    EXPECT_TRUE(
        card_.fill({&there, begin}, Bytes(bytes + kGuard - begin), 0x7FA5A5A5, ir::Queue::kCompute).ok());
    return there;
  }
  Placed brought(const Tensor& tensor, bool strided, int wider) {
    Memories host;
    runtime::TensorRef ref = place(tensor, strided, host, static_cast<size_t>(wider));
    const int64_t bytes = host.back()->bytes();
    auto& there = guarded_memory(guarded(bytes));
    if (bytes > 0) {
      auto& staging = take(ir::MemorySpace::kHostPinned, bytes);
      std::memcpy(staging.host().data(), ref.data, static_cast<size_t>(bytes));
      EXPECT_TRUE(card_.copy({&there, 0}, {&staging, 0}, Bytes(bytes), ir::Queue::kCompute).ok());
    }
    ref.data = there.address();
    return {&there, bytes, ref};
  }
  void launch() {
    std::vector<runtime::TensorRef> in, out;
    for (const Placed& operand : in_) in.push_back(operand.ref);
    for (const Placed& result : out_) out.push_back(result.ref);
    const int64_t scratch = card_.target().workspace_bytes(types_);
    std::span<std::byte> workspace;
    runtime::Memory* guard = nullptr;
    if (scratch > 0) {
      guard = &guarded_memory(guarded(scratch), guarded(scratch));
      workspace = {guard->address(), static_cast<size_t>(scratch)};
    }
    const Status status = card_.launch({&op_, in, out, workspace}, ir::Queue::kCompute);
    EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message());
    if (guard != nullptr) expect_guard(*guard, guarded(scratch), "its workspace");
  }
  /// The first `bytes` there, once the card has come to them, and the guard behind.
  const std::byte* fetched(const runtime::Memory& from, int64_t begin, int64_t bytes) {
    auto& back = take(ir::MemorySpace::kHostPinned, bytes);
    EXPECT_TRUE(
        card_
            .copy({&back, 0}, {const_cast<runtime::Memory*>(&from), begin}, Bytes(bytes), ir::Queue::kCompute)
            .ok());
    const Status done = card_.synchronize(ir::Queue::kCompute);
    PLIMSOLL_CHECK(done.ok(), run_.op + ": " + (done.ok() ? "" : done.error().message()));
    return back.host().data();
  }
  void expect_guard(const runtime::Memory& memory, int64_t bytes, const std::string& what) {
    const std::byte* guard = fetched(memory, bytes, kGuard);
    for (int64_t g = 0; g < kGuard; g += 4)
      if (std::memcmp(guard + g, "\xA5\xA5\xA5\x7F", 4) != 0) {
        ADD_FAILURE() << run_.op << ": the card wrote beyond " << what;
        return;
      }
  }
  Tensor taken_back(const Placed& result) {
    const int64_t bytes = guarded(result.ref.type.bytes().count);
    expect_guard(*result.memory, bytes, "a result");
    return tensor_at(fetched(*result.memory, 0, bytes), result.ref.type);
  }

  cuda::CudaDevice& card_;
  const OpRun& run_;
  const ir::Op op_;
  const ir::OpTypes types_;
  std::vector<std::unique_ptr<runtime::Memory>> memory_;
  std::vector<Placed> in_, out_;
};

inline std::vector<Tensor> run_on_card(cuda::CudaDevice& card, const OpRun& run,
                                       const RunOptions& options = {}) {
  return CardRun(card, run).results(options);
}

/// On the card too, where there is one and it has a kernel: close to the definition, the same bits twice,
/// with operands of wider rows - of which each begins at 16 bytes or not - and in place.
inline void expect_op_on_card(const OpRun& run, const std::vector<ir::RefTensor>& expected,
                              double tolerance) {
  cuda::CudaDevice* card = cuda::fixtures::card();
  if (card == nullptr || !card->target().accepts(types_of(run, make_op(run)))) return;
  const auto hold = [&](const RunOptions& options, const std::string& how) {
    runs_on_card().push_back(run.op);
    auto got = run_on_card(*card, run, options);
    for (size_t i = 0; i < got.size(); ++i)
      expect_close(got[i], expected[i], 2 * tolerance + 2e-6,
                   run.op + " (card" + how + "), result " + std::to_string(i));
    return got;
  };
  const auto got = hold({}, "");
  expect_same_bits(got, run_on_card(*card, run), run.op + " (card), again");
  const ir::Op op = make_op(run);
  if (aliases_of(op, types_of(run, op), true).size() > ir::op_consumes(op).size())
    hold({.in_place = true}, ", in place");
  if (!takes_views(*card, run)) return;
  hold({.strided = true, .wider = 5}, ", strided");
  hold({.strided = true, .wider = 8}, ", strided by vectors");
}

}  // namespace plimsoll::cpu::fixtures
