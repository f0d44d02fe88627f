// Ops between ranks: the sum, and the exchange of bytes through the device's communicator. A device without
// one computes what rank 0 gets if all ranks hold the same values, as the ops' references do.
#include "ops/ranks.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "backends/cpu/collectives.h"
#include "backends/cpu/kernels/operands.h"
#include "ops/shard.h"

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
  Status broadcast(int /*root*/, std::span<std::byte> /*bytes*/) override { return Ok{}; }
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

/// Where piece `rank` of so many bytes lies in a tensor; of the last ones less, or nothing.
std::span<std::byte> piece_of(std::span<std::byte> whole, int rank, size_t piece_bytes) {
  const size_t begin = std::min(whole.size(), static_cast<size_t>(rank) * piece_bytes);
  return whole.subspan(begin, std::min(piece_bytes, whole.size() - begin));
}

void own_piece(const KernelCall& call, int rank) {
  const std::span<std::byte> piece = bytes_of(call.outputs[0]);
  const std::span<std::byte> own = piece_of(bytes_of(call.inputs[0]), rank, piece.size());
  std::ranges::copy(own, piece.begin());
  std::ranges::fill(piece.subspan(own.size()), std::byte{0});
}

void put_piece(const KernelCall& call, int rank) {
  const std::span<std::byte> piece = bytes_of(call.inputs[0]), whole = bytes_of(call.outputs[0]);
  if (call.inputs[1].data != whole.data()) std::ranges::copy(bytes_of(call.inputs[1]), whole.begin());
  const std::span<std::byte> own = piece_of(whole, rank, piece.size());
  std::ranges::copy(piece.first(own.size()), own.begin());
}

/// Of operands of one type, that which is of rank `rank`, or the last.
void own_tensor(const KernelCall& call, int rank) {
  const size_t own = std::min(static_cast<size_t>(rank), call.inputs.size() - 1);
  std::ranges::copy(bytes_of(call.inputs[own]), call.outputs[0].data);
}

void put_owned(const KernelCall& call, int rank) {
  const TensorRef &x = call.inputs[0], &kept = call.inputs[1], &out = call.outputs[0];
  if (rank == call.op->attrs.i64("owner"))
    std::ranges::copy(bytes_of(x), out.data);
  else if (kept.data != out.data)
    std::ranges::copy(bytes_of(kept), out.data);
}

void own_draws(const KernelCall& call, int rank) {
  const auto* random = call.inputs[0].as<const int32_t>();
  auto* draws = call.outputs[0].as<int32_t>();
  const std::vector<int64_t>& keys = call.op->attrs.ints("keys");
  const int64_t key = keys[std::min(static_cast<size_t>(rank), keys.size() - 1)] ^ keys[0];
  std::copy_n(random, 3, draws);
  draws[3] = 0;
  draws[4] = static_cast<int32_t>(rank * call.op->attrs.i64("elements") / 4);
  draws[5] = static_cast<int32_t>(static_cast<uint32_t>(key));
}

void own_chunks(const KernelCall& call, int rank) {
  const ir::Attrs& attrs = call.op->attrs;
  const std::vector<int64_t>&elements = attrs.ints("elements"), &held = attrs.ints("held");
  auto* words = call.outputs[0].as<int32_t>();
  for (size_t t = 0; t < elements.size(); ++t) {
    const ops::OwnChunks own = ops::own_chunks_of(elements[t], held[t], attrs.i64("ranks"), rank);
    *words++ = own.first;
    *words++ = own.count;
    *words++ = own.last_elements;
  }
}

/// Ops that ask which rank this is, and move nothing between ranks.
struct LocalOp {
  std::string_view name;
  void (*run)(const KernelCall& call, int rank);
};
constexpr LocalOp kLocalOps[] = {{"own_piece", own_piece},   {"put_piece", put_piece},
                                 {"own_tensor", own_tensor}, {"put_owned", put_owned},
                                 {"own_draws", own_draws},   {"own_chunks", own_chunks}};

Status from_owner(const KernelCall& call, runtime::Communicator& communicator) {
  const std::span<std::byte> x = bytes_of(call.inputs[0]), out = bytes_of(call.outputs[0]);
  std::ranges::copy(x, out.begin());
  return communicator.broadcast(static_cast<int>(call.op->attrs.i64("owner")), out);
}

}  // namespace

bool is_collective(const ir::Op& op) {
  const Kernel* kernel = find_kernel(op.def->name);
  return kernel != nullptr && kernel->run == run_alone;
}

Status run_collective(const KernelCall& call, runtime::Communicator& communicator) {
  PLIMSOLL_CHECK(communicator.ranks() == call.op->attrs.i64("ranks"), "a program of other ranks");
  const std::string_view name = call.op->def->name;
  const auto* local = std::ranges::find(kLocalOps, name, &LocalOp::name);
  if (local != std::end(kLocalOps)) {
    local->run(call, communicator.rank());
    return Ok{};
  }
  if (name == "from_owner" || (name == "unshard" && call.op->attrs.i64("owner") >= 0))
    return from_owner(call, communicator);
  const std::span<std::byte> from = bytes_of(call.inputs[0]), to = bytes_of(call.outputs[0]);
  if (name != "exchange") return communicator.gather(from, to);
  return communicator.exchange(from, static_cast<int64_t>(to.size()) / communicator.ranks(), to);
}

std::span<const Kernel> rank_kernels() {
  static const std::vector<Kernel> kKernels = {
      {.op = "exchange", .run = run_alone},
      {.op = "gather_ranks", .run = run_alone, .stored_dtypes = true},
      {.op = "all_gather", .run = run_alone, .stored_dtypes = true},
      {.op = "own_piece", .run = run_alone, .stored_dtypes = true},
      {.op = "put_piece", .run = run_alone, .stored_dtypes = true},
      {.op = "unshard", .run = run_alone, .stored_dtypes = true},
      {.op = "own_tensor", .run = run_alone, .stored_dtypes = true},
      {.op = "put_owned", .run = run_alone, .stored_dtypes = true},
      {.op = "from_owner", .run = run_alone, .stored_dtypes = true},
      {.op = "own_draws", .run = run_alone, .stored_dtypes = true},
      {.op = "own_chunks", .run = run_alone, .stored_dtypes = true},
      {.op = "sum_ranks", .run = sum_ranks}};
  return kKernels;
}

}  // namespace plimsoll::cpu
