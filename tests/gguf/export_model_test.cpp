// A folder to a file, read back from its bytes. tests/interop/gguf_compare.py holds whole files against the
// gguf package.
#include "gguf/export_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "io/safetensors_writer.h"
#include "io/temporary_folder.h"
#include "models/model.h"

namespace plimsoll::gguf {
namespace {

using testing::HasSubstr;

constexpr const char* kConfig =
    R"({"model_type": "llama", "vocab_size": 300, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
        "tie_word_embeddings": true, "bos_token_id": 1, "eos_token_id": [2, 3]})";

/// Element i of tensor t is t + i / 1024.
void write_model(const io::TemporaryFolder& folder) {
  folder.write("config.json", kConfig);
  const auto model = models::make_model(*io::parse_config_json(kConfig, "config.json"));
  std::vector<io::SafetensorsEntry> entries;
  for (const models::Parameter& p : (*model)->parameters())
    for (const models::ParameterView& view : p.views) {
      const auto dims = view.shape.dims();
      entries.push_back({view.name, "F32", {dims.begin(), dims.end()}});
    }
  auto writer = io::SafetensorsWriter::create(folder.path("model.safetensors"), entries);
  for (size_t t = 0; t < entries.size(); ++t) {
    std::vector<float> values(static_cast<size_t>(writer->payload_bytes(t) / 4));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(t) + static_cast<float>(i) / 1024;
    ASSERT_TRUE(writer->write(t, std::as_bytes(std::span(values))));
  }
  ASSERT_TRUE(writer->finish());
}

/// Where a tensor's payload begins, found by its entry in the list.
size_t offset_of(const std::string& file, const std::string& name, size_t dims) {
  const size_t entry = file.find(name) + name.size() + 4 + 8 * dims + 4;
  uint64_t offset = 0;
  std::memcpy(&offset, file.data() + entry, 8);
  // The list ends with the last tensor's offset; what follows is padded to 32.
  const std::string last = "output_norm.weight";
  const size_t end = file.find(last) + last.size() + 4 + 8 + 4 + 8;
  return (end + 31) / 32 * 32 + offset;
}

class Export : public testing::Test {
 protected:
  void SetUp() override { write_model(folder_); }
  Result<ExportReport> run(std::optional<TensorType> type = {}) {
    return export_model({folder_.path(), type, folder_.path("m.gguf")});
  }
  io::TemporaryFolder folder_;
};

TEST_F(Export, TurnsTheRowsOfQueriesIntoPairs) {
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->architecture, "llama");
  EXPECT_EQ(report->type, TensorType::kF32);
  const std::string file = io::read_all(folder_.path("m.gguf"));
  EXPECT_EQ(static_cast<int64_t>(file.size()), report->bytes);
  const size_t at = offset_of(file, "blk.0.attn_q.weight", 2);
  std::array<float, 3 * 32> rows;
  std::memcpy(rows.data(), file.data() + at, sizeof(rows));
  // head_dim is 16: row 1 is the checkpoint's row 8, row 2 its row 1.
  EXPECT_EQ(rows[32] - rows[0], 8 * 32 / 1024.0F);
  EXPECT_EQ(rows[64] - rows[0], 32 / 1024.0F);
  EXPECT_THAT(file, HasSubstr("tokenizer.ggml.model"));
  EXPECT_THAT(report->notes.front(), HasSubstr("no tokenizer"));
}

TEST_F(Export, EachTypeHasItsSizeAndTheSameBytesAgain) {
  int64_t last = INT64_MAX;
  for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kQ8_0}) {
    const auto report = run(type);
    ASSERT_TRUE(report);
    EXPECT_LT(report->bytes, last);
    last = report->bytes;
    const std::string file = io::read_all(folder_.path("m.gguf"));
    ASSERT_TRUE(run(type));
    EXPECT_TRUE(file == io::read_all(folder_.path("m.gguf")));
  }
  EXPECT_EQ(folder_.num_files(), 3U) << "no temporary is left";
}

TEST_F(Export, KeepsTheOldFileWhereSomethingIsWrong) {
  folder_.write("m.gguf", "old");
  folder_.write("tokenizer.json", "{}");
  EXPECT_FALSE(run());
  EXPECT_EQ(io::read_all(folder_.path("m.gguf")), "old");
  std::filesystem::remove(folder_.path("model.safetensors"));
  const auto nothing = run();
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, ErrorCode::kBadData);
}

TEST_F(Export, RefusesClassifiers) {
  std::string config = kConfig;
  config.insert(1, R"("architectures": ["LlamaForSequenceClassification"], "num_labels": 2, )");
  folder_.write("config.json", config);
  const auto refused = run();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace plimsoll::gguf
