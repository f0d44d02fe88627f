#include "telemetry/run_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "io/json.h"
#include "telemetry/event_file.h"
#include "telemetry/trainer_state.h"

namespace plimsoll::telemetry {
namespace {

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string step_line(int step, double loss) {
  return "{\"event\": \"step\", \"step\": " + std::to_string(step) +
         ", \"loss\": 9.0, \"grad_norm\": 2.5, \"learning_rate\": 0.001, \"loss_mean\": " +
         std::to_string(loss) + "}\n";
}

constexpr const char* kPlan = "{\"event\": \"plan\", \"fits\": true}\n";
constexpr const char* kSaved = "{\"event\": \"checkpoint\", \"step\": 2, \"path\": \"out/checkpoint-2\"}\n";

TEST(RunLog, KnowsWhichStepAnEventIsOf) {
  EXPECT_EQ(step_of_event(step_line(12, 1)), 12);
  EXPECT_EQ(step_of_event("{\"event\": \"eval\", \"name\": \"news\", \"step\": 3}"), 3);
  EXPECT_EQ(step_of_event("{\"event\": \"summary\", \"steps\": 3}"), -1);
  EXPECT_EQ(step_of_event("{\"event\": \"plan\", \"step\": 3}"), -1);
  for (const char* other :
       {"", "{", "{\"event\": \"step\", \"step\": ", "{\"event\": \"step\", \"step\": x}"})
    EXPECT_EQ(step_of_event(other), -1) << other;
}

/// What comes after the checkpoint is repeated; that it was written is not.
TEST(RunLog, CutsWhatWillBeRepeated) {
  const std::string path = testing::TempDir() + "/cut.jsonl",
                    head = kPlan + step_line(1, 4) + step_line(2, 3);
  const auto cut = [&](const std::string& text, int64_t step) {
    std::ofstream(path) << text;
    EXPECT_TRUE(cut_events(path, step));
    return read(path);
  };
  EXPECT_EQ(cut(head + step_line(3, 2) + kSaved + step_line(4, 1) + "{\"event\": \"st", 2), head + kSaved);
  EXPECT_EQ(cut(head + "{\"event\": \"st", 2), head);
  EXPECT_EQ(cut(head, 2), head);
  EXPECT_EQ(cut(head, 0), "");
  std::filesystem::remove(path);
  EXPECT_TRUE(cut_events(path, 2));
}

TEST(TrainerState, IsTransformersOfTheEvents) {
  const std::string events = testing::TempDir() + "/state.jsonl", path = testing::TempDir() + "/state.json";
  std::ofstream(events)
      << kPlan << step_line(2, 4) << "no event\n"
      << "{\"event\": \"eval\", \"step\": 2, \"loss\": 3.5, \"metrics\": {\"accuracy\": 0.5}}\n"
      << step_line(3, 1) << step_line(4, 0);
  settings::RunConfig config;
  config.training.global_batch_size = 2;
  const RunState state{.step = 3,
                       .total_steps = 8,
                       .units = 60,
                       .sequences_per_epoch = 4,
                       .flops_per_step = 10,
                       .seconds = 6,
                       .seconds_steps = 3};
  ASSERT_TRUE(write_trainer_state(path, events, config, state));
  const auto json = io::parse_json(read(path));
  ASSERT_TRUE(json) << json.error().message();
  EXPECT_EQ(json->find("global_step")->integer, 3);
  EXPECT_EQ(json->find("epoch")->number, 1.5);
  EXPECT_EQ(json->find("num_train_epochs")->integer, 4);
  const auto& log = json->find("log_history")->items;
  ASSERT_EQ(log.size(), 4U);
  EXPECT_EQ(io::to_json(log[0]),
            "{\"epoch\": 1, \"grad_norm\": 2.5, \"learning_rate\": 0.001, \"loss\": 4, \"step\": 2}");
  EXPECT_EQ(io::to_json(log[1]), "{\"epoch\": 1, \"eval_loss\": 3.5, \"eval_accuracy\": 0.5, \"step\": 2}");
  EXPECT_EQ(log[2].find("step")->integer, 3);
  EXPECT_EQ(log[3].find("train_loss")->number, 3);  // (2 × 4 + 1 × 1) / 3
  EXPECT_EQ(log[3].find("train_steps_per_second")->number, 0.5);
  EXPECT_EQ(log[3].find("train_samples_per_second")->number, 1);
  EXPECT_EQ(log[3].find("total_flos")->number, 30);
}

TEST(TrainerState, IsWrittenWithoutAHistoryThatCannotBeRead) {
  const std::string path = testing::TempDir() + "/state.json";
  EXPECT_FALSE(
      write_trainer_state(path, testing::TempDir() + "/none.jsonl", {}, {.step = 3, .total_steps = 8}));
  const auto json = io::parse_json(read(path));
  ASSERT_TRUE(json) << json.error().message();
  EXPECT_EQ(json->find("global_step")->integer, 3);
  EXPECT_TRUE(json->find("log_history")->items.empty());
  EXPECT_EQ(json->find("max_steps")->integer, 8);
}

TEST(EventFile, RecordsAreTensorBoards) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  // Field 1 double 1.0, field 2 varint 300, field 5 {field 1 {"a", simple_value 0.5}}.
  EXPECT_EQ(scalars_event(1.0, 300, {{"a", 0.5}}),
            std::string("\x09\0\0\0\0\0\0\xf0\x3f\x10\xac\x02\x2a\x0a\x0a\x08\x0a\x01"
                        "a\x15\0\0\0\x3f",
                        24));
  EXPECT_EQ(start_event(1.0, 5), std::string("\x09\0\0\0\0\0\0\xf0\x3f\x10\x05\x3a\x02\x08\x01", 15));
  const std::string record = event_record("xyz");
  ASSERT_EQ(record.size(), 8U + 4 + 3 + 4);
  EXPECT_EQ(record.substr(0, 8), std::string("\x03\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(record.substr(12, 3), "xyz");
}

TEST(EventFile, NamesSortInTheOrderOfStart) {
  const std::string folder = testing::TempDir() + "/tb";
  std::filesystem::remove_all(folder);
  std::string last;
  for (int i = 0; i < 3; ++i) {
    auto file = EventFile::create(folder, i);
    ASSERT_TRUE(file);
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      names.push_back(entry.path().filename().string());
    ASSERT_EQ(names.size(), static_cast<size_t>(i + 1));
    std::sort(names.begin(), names.end());
    EXPECT_TRUE(std::find(names.begin(), names.end(), last) + 2 == names.end() || i == 0);
    last = names.back();
  }
}

}  // namespace
}  // namespace plimsoll::telemetry
