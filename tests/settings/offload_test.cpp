// memory.offload: what it takes, and where each class comes to lie on which device.
#include "settings/offload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::settings {
namespace {

using ir::MemorySpace;
using passes::OffloadClass;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kOffloadRun =
    "model: {preset: gpt2}\ndata: {train: a.npy}\ntraining: {max_steps: 20}\n";

Result<RunConfig> parse_offload(const std::vector<std::string>& overrides) {
  return parse_run_config(kOffloadRun, "run.yaml", overrides);
}

RunConfig run_with(const std::vector<std::string>& overrides) {
  auto run = parse_offload(overrides);
  EXPECT_TRUE(run) << (run ? "" : run.error().message());
  return run ? std::move(*run) : RunConfig{};
}

TEST(OffloadSetting, PutsEachClassWhereItSays) {
  const RunConfig run = run_with(
      {"runtime.device=discrete", "memory.offload={activations: host, optimizer: disk, masters: none}"});
  const passes::OffloadOptions options = offload_options(run);
  EXPECT_EQ(options.space(OffloadClass::kActivations), MemorySpace::kHostPinned);
  EXPECT_EQ(options.space(OffloadClass::kOptimizer), MemorySpace::kDisk);
  EXPECT_EQ(options.space(OffloadClass::kMasters), MemorySpace::kDevice);
  EXPECT_EQ(offload_text(options), "activations host, optimizer disk");
  EXPECT_FALSE(chooses_offload(run));
  EXPECT_THAT(offload_notes(run), IsEmpty());
}

TEST(OffloadSetting, MayBeOfSomeLayers) {
  const RunConfig run =
      run_with({"runtime.device=discrete", "memory.offload={parameters: {host: 4}, optimizer: {disk: 0}}"});
  passes::OffloadOptions options = offload_options(run);
  options.num_blocks = 12;
  EXPECT_EQ(options.space(OffloadClass::kParameters), MemorySpace::kHostPinned);
  EXPECT_EQ(options.space(OffloadClass::kOptimizer), MemorySpace::kDevice);
  EXPECT_EQ(offload_text(options), "parameters host 4 of 12 layers");
  EXPECT_THAT(run_with({"memory.offload={parameters: {host: 4}}"}).notes,
              testing::Contains(HasSubstr("memory.offload: host has no effect")));
  for (const char* value : {"{host: -1}", "{host: some}", "{host: 1, disk: 2}", "{nvme: 3}", "{}"}) {
    const auto refused = parse_offload({std::string("memory.offload={optimizer: ") + value + "}"});
    ASSERT_FALSE(refused) << value;
    EXPECT_THAT(refused.error().hint, HasSubstr("{host: 12}")) << value;
  }
}

TEST(OffloadSetting, HostMeansNothingOnTheCpuAndSaysSo) {
  const RunConfig run = run_with({"memory.offload={activations: host, optimizer: disk}"});
  EXPECT_EQ(offload_text(offload_options(run)), "optimizer disk");
  EXPECT_THAT(run.notes, testing::Contains(HasSubstr("memory.offload: host has no effect")));
}

TEST(OffloadSetting, ACardHasNoDiskBesideIt) {
  const auto run = parse_offload({"runtime.device=cuda", "memory.offload={optimizer: disk}"});
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().what, HasSubstr("memory.offload.optimizer is disk, and runtime.device cuda"));
  EXPECT_THAT(run.error().hint, HasSubstr("{optimizer: host}"));
  EXPECT_TRUE(parse_offload({"runtime.device=cuda", "memory.offload={optimizer: host}"}));
}

TEST(OffloadSetting, OfACardThatIsPlannedForTheHostIsTheOnlyOtherPlace) {
  const RunConfig run = run_with({"runtime.profile=h100", "memory.offload={optimizer: host}"});
  EXPECT_EQ(offload_text(offload_options(run)), "optimizer host");
  EXPECT_THAT(offload_notes(run), IsEmpty());
  EXPECT_EQ(offload_places(run), std::vector<std::string>{"host"});
  const auto refused = parse_offload({"runtime.profile=h100", "memory.offload={optimizer: disk}"});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("the card h100 has no memory there"));
}

TEST(OffloadSetting, NoneAndAutoAskForNothing) {
  EXPECT_FALSE(offload_options(run_with({"memory.offload=none"})).any());
  EXPECT_TRUE(chooses_offload(run_with({"memory.offload=auto"})));
  EXPECT_FALSE(chooses_offload(run_with({"memory.offload=none"})));
}

TEST(OffloadSetting, FolderIsTheOutputsUnlessGiven) {
  EXPECT_EQ(offload_folder(run_with({"output.dir=somewhere"})),
            run_with({"output.dir=somewhere"}).output.dir);
  EXPECT_THAT(offload_folder(run_with({"memory.offload_dir=fast"})), HasSubstr("fast"));
}

TEST(OffloadSetting, RefusesOtherWords) {
  for (const auto& [override, what] :
       {std::pair{"memory.offload={weights: host}", "memory.offload has weights, expected activations"},
        {"memory.offload={optimizer: nvme}",
         "memory.offload.optimizer is \"nvme\", expected host, disk, none"},
        {"memory.disk_budget=50%", "memory.disk_budget is a share"}}) {
    const auto run = parse_offload({override});
    ASSERT_FALSE(run) << override;
    EXPECT_EQ(run.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(run.error().what, HasSubstr(what));
  }
}

}  // namespace
}  // namespace plimsoll::settings
