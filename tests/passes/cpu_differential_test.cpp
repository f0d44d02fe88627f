// The differential fuzzer on the CPU backend. Whatever passes run, whatever the threads, poisoned or not, in
// the planned arena or with a buffer each: the same bits; and the values of the reference interpreter within
// what f32 allows.
#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "on_cpu.h"

namespace plimsoll::passes {
namespace {

using fixtures::Bits;
using fixtures::Tail;

/// Of a program of a dozen layers in f32, against f64: relative to the norm of the tensor.
constexpr double kTolerance = 2e-4;

void expect_close(const std::map<std::string, ir::RefTensor>& expected, const fixtures::Bits& found,
                  const std::string& what) {
  for (const auto& [name, want] : expected) {
    if (!ir::is_floating(want.type.dtype)) continue;
    double error = 0;
    double size = 0;
    for (size_t i = 0; i < want.data.size(); ++i) {
      const double difference = want.data[i] - static_cast<double>(std::bit_cast<float>(found.at(name)[i]));
      error += difference * difference;
      size += want.data[i] * want.data[i];
    }
    ASSERT_LE(std::sqrt(error), kTolerance * (1e-2 + std::sqrt(size))) << what << ": state " << name;
  }
}

void check(uint64_t seed, uint64_t mask, fixtures::Tail tail, const fixtures::CpuRun& how,
           const fixtures::Bits& expected) {
  const std::string what = "seed " + std::to_string(seed) + " mask " + std::to_string(mask) + " threads " +
                           std::to_string(how.threads) + (how.poison ? " poison" : "") +
                           (how.separate ? " separate" : "");
  const auto program = fixtures::train_program(seed, fixtures::some_passes(mask), tail);
  ASSERT_TRUE(program) << what << ": " << program.error().message();
  const auto found = fixtures::run_on_cpu(*program, how);
  ASSERT_TRUE(found) << what << ": " << found.error().message();
  for (const auto& [name, words] : expected) ASSERT_EQ(words, found->at(name)) << what << ": state " << name;
}

void check_seed_on_cpu(uint64_t seed) {
  fixtures::Dice dice(seed * 6007);
  const auto tail = static_cast<fixtures::Tail>(dice.range(0, 2));
  const auto plain = fixtures::train_program(seed, fixtures::no_passes(), tail);
  ASSERT_TRUE(plain) << "seed " << seed << ": " << plain.error().message();
  const auto bits = fixtures::run_on_cpu(*plain, {.threads = 1, .separate = true});
  ASSERT_TRUE(bits) << "seed " << seed << ": " << bits.error().message();
  if (!fixtures::is_large(seed))
    expect_close(fixtures::interpret(*plain, reference::Precision::kF64), *bits,
                 "seed " + std::to_string(seed));
  constexpr int kThreads[] = {1, 2, 3, 8};
  for (const int threads : kThreads) {
    const uint64_t mask = threads == 1 ? ~uint64_t{0} : static_cast<uint64_t>(dice.range(0, (1 << 20) - 1));
    check(seed, mask, tail, {.threads = threads, .poison = dice.chance(50), .separate = dice.chance(30)},
          *bits);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(CpuDifferential, TheSameBitsHoweverItRuns) {
  const char* seconds = std::getenv("PLIMSOLL_FUZZ_SECONDS");
  const char* first = std::getenv("PLIMSOLL_FUZZ_SEED");
  uint64_t seed = first != nullptr ? std::strtoull(first, nullptr, 10) : 1;
  const uint64_t last = seed + 25;
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::seconds(seconds != nullptr ? std::atoi(seconds) : 0);
  for (; seed < last || std::chrono::steady_clock::now() < end; ++seed) {
    check_seed_on_cpu(seed);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace plimsoll::passes
