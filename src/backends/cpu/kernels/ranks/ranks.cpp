// Ops between ranks: the sum, and the exchange of bytes through the device's communicator. A device without
// one computes what rank 0 gets if all ranks hold the same values, as the ops' references do.
#include "ops/ranks.h"

#include <cstring>
#include <vector>

#include "backends/cpu/collectives.h"
#include "backends/cpu/kernels/operands.h"

namespace plimsoll::cpu {
namespace {

/// Elements of the sum that a thread adds at a time, at every level of the tree.
constexpr int64_t kSummed = 2048;
/// Of 8^8 ranks.
constexpr int64_t kMostLevels = 8;

void sum_block(const float* received, int64_t ranks, int64_t stride, int64_t n, float* out) {
  const int64_t top = ops::rank_levels(ranks) - 1;
  PLIMSOLL_CHECK(top < kMostLevels, "too many ranks");
  std::array<std::array<float, kSummed>, kMostLevels - 1> below;
  const auto at = [&](int64_t level) {
    return level == top ? out : below[static_cast<size_t>(level)].data();
  };
  const auto copy = [n](float* to, const float* from) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(float));
  };
  const auto add = [n](float* to, const float* from) {
    for (int64_t i = 0; i < n; ++i) to[i] += from[i];
  };
  ops::in_order_of_ranks(
      ranks, [&](int64_t rank) { copy(at(0), received + rank * stride); },
      [&](int64_t rank) { add(at(0), received + rank * stride); },
      [&](int64_t level) { copy(at(level), at(level - 1)); },
      [&](int64_t level) { add(at(level), at(level - 1)); });
}

void sum_ranks(const KernelCall& call, ThreadPool& pool) {
  const TensorRef& received = call.inputs[0];
  const int64_t ranks = received.shape().dim(0), n = call.outputs[0].num_elements();
  const auto* from = received.as<const float>();
  auto* to = call.outputs[0].as<float>();
  pool.run(ceil_div(n, kSummed), [&](int64_t block, int /*thread*/) {
    const int64_t begin = block * kSummed;
    sum_block(from + begin, ranks, n, std::min(kSummed, n - begin), to + begin);
  });
}

class SameOnAllRanks final : public runtime::Communicator {
 public:
  explicit SameOnAllRanks(int64_t ranks) : ranks_(ranks) {}
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int ranks() const override { return static_cast<int>(ranks_); }
  Status exchange(std::span<const std::byte> own, int64_t piece_bytes,
                  std::span<std::byte> received) override {
    const auto piece = static_cast<size_t>(piece_bytes), first = std::min(own.size(), piece);
    for (size_t at = 0; at < received.size(); at += piece) {
      std::memcpy(received.data() + at, own.data(), first);
      std::memset(received.data() + at + first, 0, piece - first);
    }
    return Ok{};
  }
  Status gather(std::span<const std::byte> piece, std::span<std::byte> whole) override {
    for (size_t at = 0; at < whole.size(); at += piece.size())
      std::memcpy(whole.data() + at, piece.data(), std::min(piece.size(), whole.size() - at));
    return Ok{};
  }

 private:
  int64_t ranks_;
};

void run_alone(const KernelCall& call, ThreadPool& /*pool*/) {
  SameOnAllRanks alone(call.op->attrs.i64("ranks"));
  (void)run_collective(call, alone);  // has no errors
}

std::span<std::byte> bytes_of(const TensorRef& ref) {
  return {ref.data, static_cast<size_t>(ref.type.bytes().count)};
}

}  // namespace

bool is_collective(const ir::Op& op) {
  const Kernel* kernel = find_kernel(op.def->name);
  return kernel != nullptr && kernel->run == run_alone;
}

Status run_collective(const KernelCall& call, runtime::Communicator& communicator) {
  PLIMSOLL_CHECK(communicator.ranks() == call.op->attrs.i64("ranks"), "a program of other ranks");
  const std::span<std::byte> from = bytes_of(call.inputs[0]), to = bytes_of(call.outputs[0]);
  if (call.op->def->name != "exchange") return communicator.gather(from, to);
  return communicator.exchange(from, static_cast<int64_t>(to.size()) / communicator.ranks(), to);
}

std::span<const Kernel> rank_kernels() {
  static const std::vector<Kernel> kKernels = {{.op = "exchange", .run = run_alone},
                                               {.op = "gather_ranks", .run = run_alone},
                                               {.op = "all_gather", .run = run_alone},
                                               {.op = "sum_ranks", .run = sum_ranks}};
  return kKernels;
}

}  // namespace plimsoll::cpu
