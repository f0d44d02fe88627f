// Random programs end with the CPU's bits whatever the adversary does; and it finds the waits that are
// missing.
#include "command_stream.h"

#include <cstdlib>
#include <functional>

#include "part_of.h"
#include "sanitizer.h"

namespace plimsoll::discrete::fixtures {
namespace {

constexpr unsigned kStreams = 200, kSeeds = 20;
constexpr int kCommands = 60;

// A third of the streams, each with one seed in turn, as a part (part_of.h); PLIMSOLL_EVERY_SEED=1: with
// each.
TEST(CommandStreams, EndAsOnTheCpu) {
  const bool every = std::getenv("PLIMSOLL_EVERY_SEED") != nullptr;
  const io::TemporaryFolder folder;
  cpu::CpuDevice cpu(1, folder.path());
  for (unsigned stream = 0; stream < kStreams; ++stream) {
    if (!in_part(stream, 3)) continue;
    const auto commands = random_commands(stream, kCommands);
    const auto expected = CommandRunner(cpu).run(commands);
    for (unsigned seed = 0; seed < kSeeds; ++seed) {
      if (!every && seed != stream % kSeeds) continue;
      const auto device = make_discrete(
          {.num_threads = 2, .seed = seed, .check = stream % 2 == 0, .disk_folder = folder.path()});
      const auto result = CommandRunner(*device).run(commands);
      for (size_t b = 0; b < result.size(); ++b)
        ASSERT_EQ(std::memcmp(result[b].data(), expected[b].data(), 4 * result[b].size()), 0)
            << "stream " << stream << ", seed " << seed << ", buffer " << b;
    }
  }
}

TEST(CommandStreams, EndAsOnTheCpuWithoutAnAdversary) {
  const io::TemporaryFolder folder;
  cpu::CpuDevice cpu(1, folder.path());
  const auto device = make_discrete({.num_threads = 2, .disk_folder = folder.path()});
  for (unsigned stream = 0; stream < kStreams; ++stream) {
    if (!in_part(stream, 3)) continue;
    const auto commands = random_commands(stream, kCommands);
    ASSERT_EQ(CommandRunner(*device).run(commands), CommandRunner(cpu).run(commands)) << stream;
  }
}

constexpr int64_t kCount = 5000;

// Without the wait they race, which the thread sanitizer is not to be shown.
constexpr bool kMayRace = !kThreadSanitizer;

/// How many of 20 seeds show another result than `expected` without the wait, in one of 30 rounds, or all
/// where none may be tried; with the wait none may.
unsigned num_found(const std::function<float(Program&, Device&, bool)>& run, float expected) {
  unsigned found = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed)
    for (const bool waits : {true, false}) {
      if (!waits && !kMayRace) {
        ++found;
        continue;
      }
      const auto device = make_discrete({.num_threads = 1, .seed = seed});
      Program program(*device);
      bool differs = false;
      for (int round = 0; round < 30 && !differs; ++round) differs = run(program, *device, waits) != expected;
      found += differs && !waits;
      EXPECT_FALSE(differs && waits) << "seed " << seed;
    }
  return found;
}

float sum(const std::vector<float>& values) { return std::accumulate(values.begin(), values.end(), 0.0F); }

void order(Device& device, Queue first, Queue second) {
  const auto event = device.make_event();
  EXPECT_TRUE(device.record(event, first).ok() && device.wait(second, event).ok());
}

TEST(Adversary, FindsAKernelThatDoesNotWaitForItsInput) {
  EXPECT_GE(num_found(
                [](Program& p, Device& device, bool waits) {
                  const auto in = p.pinned(kCount, 1);
                  const auto x = p.filled(kCount, 0), y = p.filled(kCount, 0);
                  EXPECT_TRUE(p.copy(x, in, Queue::kCopyIn).ok());
                  if (waits) order(device, Queue::kCopyIn, Queue::kCompute);
                  EXPECT_TRUE(p.add(y, y, x).ok());
                  return sum(p.read(y));
                },
                kCount),
            kSeeds / 2);
}

TEST(Adversary, FindsACopyThatOverwritesWhatAKernelReads) {
  EXPECT_GE(num_found(
                [](Program& p, Device& device, bool waits) {
                  const auto in = p.pinned(kCount, 1);
                  const auto x = p.filled(kCount, 2), y = p.filled(kCount, 0);
                  for (int i = 0; i < 4; ++i) EXPECT_TRUE(p.add(y, y, x).ok());
                  if (waits) order(device, Queue::kCompute, Queue::kCopyIn);
                  EXPECT_TRUE(p.copy(x, in, Queue::kCopyIn).ok());
                  return sum(p.read(y));
                },
                8 * kCount),
            kSeeds / 2);
}

TEST(Adversary, FindsACopyThatLeavesBeforeTheKernelHasWritten) {
  EXPECT_GE(num_found(
                [](Program& p, Device& device, bool waits) {
                  const auto x = p.filled(kCount, 1), y = p.filled(kCount, 0);
                  const auto out = p.pinned(kCount, 0);
                  EXPECT_TRUE(p.add(y, x, x).ok());
                  if (waits) order(device, Queue::kCompute, Queue::kCopyOut);
                  EXPECT_TRUE(p.copy(out, y, Queue::kCopyOut).ok());
                  return sum(p.read(out));
                },
                2 * kCount),
            kSeeds / 2);
}

TEST(Adversary, FindsAHostThatReadsTooEarly) {
  EXPECT_GE(num_found(
                [](Program& p, Device& device, bool waits) {
                  const auto x = p.filled(kCount, 1), out = p.pinned(kCount, 0);
                  EXPECT_TRUE(p.copy(out, x, Queue::kCopyOut).ok());
                  if (waits) {
                    EXPECT_TRUE(device.synchronize(Queue::kCopyOut).ok());
                  }
                  const volatile float last = out.host().back();
                  const float seen = last;
                  EXPECT_TRUE(device.synchronize(Queue::kCopyOut).ok());
                  return seen;
                },
                1),
            kSeeds / 2);
}

TEST(Adversary, FindsAHostThatWritesTooEarly) {
  EXPECT_GE(num_found(
                [](Program& p, Device& device, bool waits) {
                  const auto x = p.filled(kCount, 0), in = p.pinned(kCount, 1);
                  EXPECT_TRUE(p.copy(x, in, Queue::kCopyIn).ok());
                  if (waits) {
                    EXPECT_TRUE(device.synchronize(Queue::kCopyIn).ok());
                  }
                  std::fill(in.host().begin(), in.host().end(), 2.0F);
                  return sum(p.read(x));
                },
                kCount),
            kSeeds / 2);
}

}  // namespace
}  // namespace plimsoll::discrete::fixtures
