// Buffers read from files: float types, counts, and what does not fit.
#include "checkpoints/load_buffers.h"

#include <gtest/gtest.h>

#include <bit>

#include "io/safetensors_writer.h"
#include "io/temporary_folder.h"
#include "ops/op_list.h"
#include "planner/programs/finish_program.h"
#include "planner/programs/initial_values.h"
#include "runtime/session_testing.h"

namespace plimsoll::checkpoints {
namespace {

class NormedModel final : public models::Model {
 public:
  NormedModel() { add_batch_norm({.name = "net.norm", .channels = 2}); }
  [[nodiscard]] std::string_view base_prefix() const override { return "net."; }
};

struct BufferTensor {
  io::SafetensorsEntry entry;
  std::vector<std::byte> bytes;
};

template <typename T>
BufferTensor of_values(const std::string& name, const std::string& dtype, std::vector<int64_t> shape,
                       const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {{name, dtype, std::move(shape)}, {bytes.begin(), bytes.end()}};
}

class LoadBuffersTest : public testing::Test {
 protected:
  io::ModelWeights written(const std::vector<BufferTensor>& tensors) {
    std::vector<io::SafetensorsEntry> entries;
    for (const BufferTensor& t : tensors) entries.push_back(t.entry);
    auto writer = io::SafetensorsWriter::create(folder_.path("model.safetensors"), entries);
    EXPECT_TRUE(writer);
    for (size_t i = 0; i < tensors.size(); ++i) EXPECT_TRUE(writer->write(i, tensors[i].bytes));
    EXPECT_TRUE(writer->finish());
    auto weights = io::ModelWeights::open(folder_.path());
    EXPECT_TRUE(weights) << weights.error().message();
    return std::move(*weights);
  }
  /// A session with the model's buffers at their first values.
  std::unique_ptr<runtime::Session> session() {
    ir::Graph graph;
    ir::Builder b(graph, ops::find_op);
    planner::append_initial_buffers(b, model_);
    EXPECT_TRUE(b.status());
    passes::Pipeline pipeline(planner::program_options({}, graph, device_.target()));
    auto program = planner::finish_program({passes::ProgramRole::kInit}, std::move(graph), pipeline, {},
                                           device_.target());
    EXPECT_TRUE(program) << (program ? "" : program.error().message());
    std::vector<passes::Program> programs;
    programs.push_back(std::move(*program));
    auto planned = planner::finish_session(std::move(programs), device_.target());
    EXPECT_TRUE(planned);
    auto created = runtime::Session::create(device_, std::move(*planned));
    EXPECT_TRUE(created);
    EXPECT_TRUE((*created)->run(0));
    return std::move(*created);
  }

  const io::TemporaryFolder folder_;
  const NormedModel model_;
  cpu::CpuDevice device_{1};
};

TEST_F(LoadBuffersTest, BeginAtZeroAndOne) {
  const auto fresh = session();
  EXPECT_EQ(session_testing::read_state<float>(*fresh, "net.norm.running_mean"), (std::vector<float>{0, 0}));
  EXPECT_EQ(session_testing::read_state<float>(*fresh, "net.norm.running_var"), (std::vector<float>{1, 1}));
  EXPECT_EQ(*fresh->value<int64_t>("net.norm.num_batches_tracked"), 0);
}

/// bf16 is the upper half of f32; the bare model's file has no prefix.
TEST_F(LoadBuffersTest, AreReadInAnyFloatTypeAndWithoutThePrefix) {
  const auto weights = written({of_values<uint16_t>("norm.running_mean", "BF16", {2}, {0x3f80, 0xc000}),
                                of_values<float>("norm.running_var", "F32", {2}, {0.5F, 3}),
                                of_values<int64_t>("norm.num_batches_tracked", "I64", {}, {5'000'000'000})});
  const BufferMatch match = match_buffers(model_, weights);
  ASSERT_TRUE(match.fits());
  const auto loaded = session();
  ASSERT_TRUE(load_buffers(match, *loaded));
  EXPECT_EQ(session_testing::read_state<float>(*loaded, "net.norm.running_mean"),
            (std::vector<float>{1, -2}));
  EXPECT_EQ(session_testing::read_state<float>(*loaded, "net.norm.running_var"),
            (std::vector<float>{0.5F, 3}));
  EXPECT_EQ(*loaded->value<int64_t>("net.norm.num_batches_tracked"), 5'000'000'000);
}

TEST_F(LoadBuffersTest, StatisticsMustBeThereAndACountMayBeMissing) {
  const auto weights = written({of_values<float>("net.norm.running_var", "F32", {3}, {1, 1, 1})});
  const BufferMatch match = match_buffers(model_, weights);
  EXPECT_FALSE(match.fits());
  ASSERT_EQ(match.missing.size(), 1U);
  EXPECT_EQ(match.missing.front()->view, "net.norm.running_mean");
  ASSERT_EQ(match.misfit.size(), 1U);
  EXPECT_EQ(match.misfit.front().buffer->view, "net.norm.running_var");
}

}  // namespace
}  // namespace plimsoll::checkpoints
