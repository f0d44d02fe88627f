// Programs with copies on real queues: the bits of the same programs without copies, whatever the adversary
// does to the queues.
#include <gtest/gtest.h>

#include <filesystem>

#include "backends/discrete/discrete_device.h"
#include "passes/memory/in_place.h"
#include "passes/on_cpu.h"
#include "passes/order/check_hazards.h"
#include "passes/random_offload.h"

namespace plimsoll::passes {
namespace {

using fixtures::Bits;
using fixtures::Trained;

/// States after two runs.
Result<fixtures::Bits> run_on(runtime::Device& device, const Program& program,
                              const std::map<std::string, ir::RefTensor>& states) {
  std::vector<Program> programs = {program};
  PLIMSOLL_ASSIGN(SessionPlan plan, plan_session(std::move(programs), {.transfer_bytes = 4096}));
  PLIMSOLL_ASSIGN(auto session, runtime::Session::create(device, std::move(plan), {}));
  for (int run = 0; run < 2; ++run) {
    fixtures::write_states(*session, states);
    PLIMSOLL_TRY(session->run(0));
  }
  return fixtures::read_states(*session, states);
}

Result<std::unique_ptr<discrete::DiscreteDevice>> make_device(std::optional<uint64_t> seed) {
  return discrete::DiscreteDevice::create(
      {.seed = seed, .check = true, .disk_folder = std::filesystem::temp_directory_path().string()});
}

TEST(IssueOrder, CopiesOnQueuesOfAnyPaceLeaveEveryBitAsItIs) {
  int64_t programs = 0, copies = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    if (fixtures::is_large(seed)) continue;
    auto t = fixtures::train_program(seed, {}, static_cast<fixtures::Tail>(seed % 4));
    ASSERT_TRUE(t) << t.error().message();
    const auto expected = fixtures::run_on_cpu(*t, {});
    ASSERT_TRUE(expected) << expected.error().message();
    copies += 2 * fixtures::RandomOffload(t->graph, seed).insert(6);
    ++programs;
    auto in_place = passes::in_place(t->graph);
    ASSERT_TRUE(in_place) << in_place.error().message();
    for (uint64_t adversary = 0; adversary < 4; ++adversary) {
      auto device = make_device(adversary == 0 ? std::nullopt : std::optional(100 * seed + adversary));
      ASSERT_TRUE(device) << device.error().message();
      const auto program = session_testing::plan_program(t->graph, (*device)->target(), in_place->aliases);
      ASSERT_TRUE(program) << program.error().message();
      ASSERT_TRUE(check_hazards(program->graph, program->binding, program->plan, program->issue));
      const auto found = run_on(**device, *program, t->states);
      ASSERT_TRUE(found) << "seed " << seed << ": " << found.error().message();
      for (const auto& [name, words] : *expected)
        ASSERT_EQ(words, found->at(name)) << "seed " << seed << " adversary " << adversary << ": " << name;
    }
  }
  std::printf("%ld programs, %ld copies at least\n", programs, copies);
  EXPECT_GT(copies, 60);
}

}  // namespace
}  // namespace plimsoll::passes
