// Programs of several lengths in one session: what a micro-batch gives does not depend on how far it is
// padded.
#include "training/batch_feeder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "datasets/shard_documents.h"
#include "io/temporary_folder.h"
#include "runtime/session_testing.h"
#include "strategy/prepare.h"
#include "training/initialise.h"

namespace plimsoll::training {
namespace {

constexpr int64_t kVocabulary = 200;

class BucketsTest : public testing::Test {
 protected:
  void SetUp() override {
    datasets::write_shard(folder_.path("d.shard"), datasets::random_documents(80, 300, kVocabulary, 7),
                          {kVocabulary, 9, true});
  }

  [[nodiscard]] settings::RunConfig config(const std::string& buckets, const std::string& model = "") const {
    auto parsed = settings::parse_run_config(
        "model:\n  config: {model_type: llama, vocab_size: 200, hidden_size: 36, intermediate_size: 44, "
        "num_hidden_layers: 2,\n    num_attention_heads: 2, num_key_value_heads: 1, head_dim: 18, "
        "max_position_embeddings: 300, rms_norm_eps: 1.0e-5" +
            model + "}\ndata: {train: " + folder_.path("d.shard") +
            ", sequence_length: 300, packing: pad, tokenizer: bytes, buckets: " + buckets +
            "}\noutput: {dir: " + folder_.path("out") +
            "}\ntraining: {global_batch_size: 4, micro_batch_size: 2}\nruntime: {threads: 2}\n",
        "run.yaml");
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message());
    return std::move(*parsed);
  }

  const io::TemporaryFolder folder_;
};

/// Loss and gradients of one micro-batch.
std::vector<float> run_at(runtime::Session& session, const strategy::Prepared& prepared, BatchFeeder& feeder,
                          const datasets::LoadedBatch& batch, size_t bucket) {
  EXPECT_TRUE(feeder.copy(batch, 0, 2, bucket));
  session_testing::write_state<float>(session, planner::kLossState, {planner::kLossStart});
  session_testing::write_state<float>(session, planner::kGradScaleState, {0.01F});
  const std::vector<int64_t>& lengths = prepared.buckets.lengths;
  EXPECT_TRUE(session.run(session.plan().find_program(
      {passes::ProgramRole::kMicroFirst, planner::bucket_of(lengths[bucket], lengths)})));
  std::vector<float> values = session_testing::read_state<float>(session, planner::kLossState);
  for (const auto& states : prepared.programs.gradients)
    for (const std::string& name : states.accumulators) {
      const std::vector<float> gradient = session_testing::read_state<float>(session, name);
      values.insert(values.end(), gradient.begin(), gradient.end());
    }
  return values;
}

TEST_F(BucketsTest, LossAndGradientsDoNotDependOnPadding) {
  const settings::RunConfig run = config("[40, 130, 257]");
  cpu::CpuDevice device(2);
  auto prepared = strategy::prepare(run, device.target(), {.num_threads = 2});
  ASSERT_TRUE(prepared) << prepared.error().message();
  ASSERT_EQ(prepared->buckets.lengths, (std::vector<int64_t>{40, 130, 257, 300}));
  passes::SessionPlan plan = prepared->programs.session;
  const auto session = runtime::Session::create(device, std::move(plan), {.poison = true});
  ASSERT_TRUE(session);
  ASSERT_TRUE(initialise(run, *prepared, **session, false, 2));
  const std::vector<datasets::DataFiles> files = {{{folder_.path("d.shard")}}};
  const auto data =
      datasets::TrainingData::open(files, strategy::data_options(run, *prepared, {}, /*eval=*/false));
  ASSERT_TRUE(data) << data.error().message();
  BatchFeeder feeder(**session, *prepared->task, prepared->buckets.lengths);
  const auto loader = datasets::Loader::start(*data, prepared->loader, 0);
  ASSERT_TRUE(loader);
  std::map<int64_t, int> lengths;
  for (int i = 0; i < 16; ++i) {
    const auto batch = (*loader)->next();
    ASSERT_TRUE(batch) << batch.error().message();
    ++lengths[batch->length];
    const size_t own = feeder.bucket_of(batch->length);
    const std::vector<float> expected = run_at(**session, *prepared, feeder, *batch, own);
    EXPECT_GT(expected[0], 0);
    for (size_t bucket = own + 1; bucket < prepared->buckets.lengths.size(); ++bucket) {
      const std::vector<float> padded = run_at(**session, *prepared, feeder, *batch, bucket);
      EXPECT_NEAR(padded[0], expected[0], 1e-6 * expected[0]);
      double difference = 0, norm = 0;
      for (size_t v = 1; v < padded.size(); ++v) {
        difference += std::pow(double{padded[v]} - double{expected[v]}, 2);
        norm += std::pow(double{expected[v]}, 2);
      }
      EXPECT_LE(std::sqrt(difference), 1e-6 * std::sqrt(norm)) << batch->length << " in " << bucket;
    }
  }
  EXPECT_GE(lengths.size(), 3U);
}

TEST_F(BucketsTest, ThePlanKnowsThem) {
  cpu::CpuDevice device(2);
  const auto one = strategy::prepare(config("null"), device.target(), {.num_threads = 2});
  const auto several = strategy::prepare(config("3"), device.target(), {.num_threads = 2});
  ASSERT_TRUE(one && several);
  const planner::PlanReport& report = several->report;
  EXPECT_EQ(report.buckets.size(), 3U);
  EXPECT_EQ(report.buckets.back(), 300);
  EXPECT_GT(report.bucket_sequences, 60);
  EXPECT_LT(report.padding(), report.padding_of_one_length() - 0.1);
  EXPECT_EQ(report.arena_bytes, one->report.arena_bytes) << "the longest needs most, and all share it";
  std::map<std::string, int64_t> arenas;
  for (const auto& phase : report.phases) arenas[phase.name] = phase.arena_bytes;
  const auto arena = [&](int64_t length) { return arenas.at("micro_first@" + std::to_string(length)); };
  EXPECT_LT(arena(report.buckets[0]), arena(report.buckets[1]));
  EXPECT_LT(arena(report.buckets[1]), arena(report.buckets[2]));
  const std::string table = planner::plan_table(report);
  EXPECT_NE(table.find("; padding "), std::string::npos) << table;
  EXPECT_NE(io::to_json(planner::plan_event(report)).find("\"buckets\""), std::string::npos);
  EXPECT_EQ(planner::plan_table(one->report).find("Buckets"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::training
