// The differential fuzzer: random networks x pass options, each against the same network with no pass at all.
// PLIMSOLL_FUZZ_SECONDS lets it run for longer, PLIMSOLL_FUZZ_SEED starts it elsewhere.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>

#include "ir/printer.h"
#include "sanitizer.h"
#include "training.h"

namespace plimsoll::passes {
namespace {

using fixtures::Tail;
using reference::Precision;

/// Bits of some_passes' mask, in the order of the list.
constexpr uint64_t kAllPasses = ~uint64_t{0};

double norm(const ir::RefTensor& t) {
  double sum = 0;
  for (const double v : t.data) sum += v * v;
  return std::sqrt(sum);
}

void expect_close(const std::map<std::string, ir::RefTensor>& expected,
                  const std::map<std::string, ir::RefTensor>& found, double tolerance,
                  const std::string& what) {
  for (const auto& [name, want] : expected) {
    ASSERT_TRUE(found.contains(name)) << what << " " << name;
    const auto& have = found.at(name);
    double error = 0;
    for (size_t i = 0; i < want.data.size(); ++i)
      error += (want.data[i] - have.data[i]) * (want.data[i] - have.data[i]);
    ASSERT_LE(std::sqrt(error), tolerance * (1 + norm(want))) << what << ": state " << name;
  }
}

/// Whether a mask turns on nothing that replaces ops by fused ones: then even rounded results stay the same
/// bits.
passes::PipelineOptions structural(uint64_t mask) {
  passes::PipelineOptions o = fixtures::some_passes(mask);
  o.fuse_norms = o.fuse_activations = o.fuse_attention = o.fuse_head_loss = false;
  o.fuse_bias_grads = o.fuse_linear_adds = o.fuse_norm_grads = o.fuse_embedding_grads = o.fuse_pointwise =
      false;
  return o;
}

void check_seed(uint64_t seed) {
  if (fixtures::is_large(seed)) return;
  fixtures::Dice dice(seed * 7919);
  const auto tail = static_cast<fixtures::Tail>(dice.range(0, 2));
  const auto plain = fixtures::train_program(seed, fixtures::no_passes(), tail);
  ASSERT_TRUE(plain) << "seed " << seed << ": " << plain.error().message();
  const auto expected = fixtures::interpret(*plain, Precision::kF64);
  const auto rounded = fixtures::interpret(*plain, Precision::kStored);
  for (int round = 0; round < 4; ++round) {
    const uint64_t mask = round == 0 ? kAllPasses : static_cast<uint64_t>(dice.range(0, (1 << 20) - 1));
    const std::string what = "seed " + std::to_string(seed) + " mask " + std::to_string(mask);
    const auto fused = fixtures::train_program(seed, fixtures::some_passes(mask), tail);
    ASSERT_TRUE(fused) << what << ": " << fused.error().message();
    expect_close(expected, fixtures::interpret(*fused, Precision::kF64), 1e-11, what);
    const auto moved = fixtures::train_program(seed, structural(mask), tail);
    ASSERT_TRUE(moved) << what << ": " << moved.error().message();
    expect_close(rounded, fixtures::interpret(*moved, Precision::kStored), 0.0, what + " structural");
  }
}

TEST(Differential, EveryCombinationOfPassesGivesTheSameNumbers) {
  const char* seconds = std::getenv("PLIMSOLL_FUZZ_SECONDS");
  const char* first = std::getenv("PLIMSOLL_FUZZ_SEED");
  uint64_t seed = first != nullptr ? std::strtoull(first, nullptr, 10) : 1;
  const uint64_t last = seed + static_cast<uint64_t>(cases_here(60));
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::seconds(seconds != nullptr ? std::atoi(seconds) : 0);
  for (; seed < last || std::chrono::steady_clock::now() < end; ++seed) {
    check_seed(seed);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(Differential, TheSameTextTwice) {
  for (uint64_t seed = 1; seed < 10; ++seed) {
    const auto once = fixtures::train_program(seed, {}, fixtures::Tail::kOptimizer);
    const auto twice = fixtures::train_program(seed, {}, fixtures::Tail::kOptimizer);
    ASSERT_TRUE(once && twice);
    EXPECT_EQ(ir::print(once->graph), ir::print(twice->graph));
    EXPECT_EQ(once->in_place, twice->in_place);
  }
}

}  // namespace
}  // namespace plimsoll::passes
