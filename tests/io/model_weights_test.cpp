// One file, shards, and directories that are not what they should be.
#include "io/model_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "safetensors_bytes.h"
#include "temporary_folder.h"

namespace plimsoll::io {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kIndex = "model.safetensors.index.json";

/// A file with one-element f32 tensors of these names.
std::string file_with(const std::vector<std::string>& names) {
  std::string members, payload;
  for (const std::string& name : names) {
    const std::string begin = std::to_string(payload.size());
    payload += "1234";
    members += (members.empty() ? "" : ",") +
               header_entry(name, "F32", "1", begin + "," + std::to_string(payload.size()));
  }
  return safetensors_bytes("{" + members + "}", payload);
}

TEST(ModelWeights, OpensOneFile) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", file_with({"b", "a"}));
  const auto weights = ModelWeights::open(folder.path());
  ASSERT_TRUE(weights) << weights.error().message();
  EXPECT_THAT(weights->names(), ElementsAre("a", "b"));
  ASSERT_TRUE(weights->find("b"));
  EXPECT_EQ(weights->find("b")->tensor->bytes, 4);
  EXPECT_EQ(weights->find("b")->file, &weights->files()[0]);
  EXPECT_FALSE(weights->find("c"));
  EXPECT_EQ(weights->directory(), folder.path());
}

TEST(ModelWeights, OpensShards) {
  const TemporaryFolder folder;
  folder.write("model-1.safetensors", file_with({"a", "c", "stale"}));
  folder.write("other.bin", file_with({"b", "a"}));
  folder.write(kIndex, R"({"metadata": {"total_size": 16, "x": [1, {"y": null}]},
                           "weight_map": {"c": "model-1.safetensors", "b": "other.bin", "a": "other.bin"}})");
  auto opened = ModelWeights::open(folder.path());
  ASSERT_TRUE(opened) << opened.error().message();
  const ModelWeights weights = std::move(opened).value();
  EXPECT_THAT(weights.names(), ElementsAre("a", "b", "c", "stale"))
      << "what the index does not name counts too";
  EXPECT_THAT(weights.find("a")->file->path(), HasSubstr("other.bin")) << "the index decides";
  EXPECT_THAT(weights.find("c")->file->path(), HasSubstr("model-1"));
}

TEST(ModelWeights, AreKnownByTheirContentWhereverItLies) {
  const TemporaryFolder one, shards, other;
  one.write("model.safetensors", file_with({"b", "a"}));
  shards.write("x", file_with({"a"}));
  shards.write("y", file_with({"b"}));
  shards.write(kIndex, R"({"weight_map": {"a": "x", "b": "y"}})");
  std::string changed = file_with({"b", "a"});
  changed.back() = '5';
  other.write("model.safetensors", changed);
  const auto of = [](const TemporaryFolder& folder) {
    return ModelWeights::open(folder.path())->fingerprint();
  };
  EXPECT_EQ(*of(one), *of(shards));
  EXPECT_NE(*of(one), *of(other));
}

TEST(ModelWeights, FollowsLinks) {
  const TemporaryFolder folder, blobs;
  std::filesystem::create_symlink(blobs.write("0123abcd", file_with({"a"})),
                                  folder.path("model.safetensors"));
  EXPECT_TRUE(ModelWeights::open(folder.path()));
}

TEST(ModelWeights, SaysWhatThereIsInstead) {
  struct Row {
    const char *file, *what, *hint;
  };
  const Row rows[] = {
      {"config.json", "there are no weights", "model.init=random"},
      {"pytorch_model.bin", "pickle", "save_pretrained(…, safe_serialization=True)"},
      {"pytorch_model.bin.index.json", "pickle", "safe_serialization=True"},
      {"adapter_model.safetensors", "adapter", "base model"},
  };
  for (const Row& row : rows) {
    const TemporaryFolder folder;
    folder.write(row.file, "x");
    const auto weights = ModelWeights::open(folder.path());
    ASSERT_FALSE(weights) << row.file;
    EXPECT_EQ(weights.error().code, ErrorCode::kBadData);
    EXPECT_THAT(weights.error().what, HasSubstr(row.what));
    EXPECT_THAT(weights.error().hint, HasSubstr(row.hint));
  }
  EXPECT_EQ(ModelWeights::open("/nowhere/at/all").error().code, ErrorCode::kBadData);
}

TEST(ModelWeights, RefusesBrokenIndices) {
  const std::pair<std::string, const char*> rows[] = {
      {"", "breaks off"},
      {"[]", "expected '{'"},
      {"{}", "no weight_map"},
      {R"({"weight_map": {}})", "empty"},
      {R"({"weight_map": []})", "expected '{'"},
      {R"({"weight_map": {"a": 1}})", "expected a string"},
      {R"({"weight_map": {"a": null}})", "expected a string"},
      {R"({"weight_map": {"a": ["one"]}})", "expected a string"},
      {R"({"weight_map": {"a": "one"}, "weight_map": {"a": "one"}})", "weight_map stands twice"},
      {R"({"weight_map": {"a": "one", "a": "one"}})", "'a' stands twice"},
      {R"({"weight_map": {"a": "one", "\u0061": "one"}})", "'a' stands twice"},
      {R"({"weight_map": {"a": "one"}} x)", "follows"},
      {R"({"weight_map": {"a": "one"})", "breaks off"},
      {R"({"weight_map": {"a": "one",}})", "expected a string"},
      {R"({"weight_map": {"a": "../secret"}})", "no name in this folder"},
      {R"({"weight_map": {"a": "/etc/passwd"}})", "no name in this folder"},
      {R"({"weight_map": {"a": "\u002fetc\u002fpasswd"}})", "no name in this folder"},
      {R"({"weight_map": {"a": "sub/one"}})", "no name in this folder"},
      {R"({"weight_map": {"a": ".."}})", "no name in this folder"},
      {R"({"weight_map": {"a": "."}})", "no name in this folder"},
      {R"({"weight_map": {"a": ""}})", "no name in this folder"},
      {R"({"weight_map": {"a": "one\u0000two"}})", "no name in this folder"},
      {R"({"weight_map": {"a": "one", "b": "absent-1", "c": "absent-2"}})",
       "2 of 3 shards that the index names are missing, the first is absent-1"},
      {R"({"weight_map": {"a": "one", "x": "one"}})", "'x' is not in one, where the index places it"},
      {R"({"weight_map": {"b": "one"}})", "'b' is not in one"},
      {R"({"weight_map": {"a": "one", "b": "two"}})", "'twice' stands in two shards"},
      {"{\"weight_map\": {\"a\": \"one\"}, \"x\": " + std::string(100'000, '[') + "}", "nested deeper"},
      {"{\"weight_map\": {\"\xff\": \"one\"}}", "not valid UTF-8"},
  };
  const TemporaryFolder folder;
  folder.write("one", file_with({"a", "twice"}));
  folder.write("two", file_with({"b", "twice"}));
  for (const auto& [index, what] : rows) {
    folder.write(kIndex, index);
    const auto weights = ModelWeights::open(folder.path());
    ASSERT_FALSE(weights) << index.substr(0, 200);
    EXPECT_EQ(weights.error().code, ErrorCode::kBadData);
    EXPECT_THAT(weights.error().what, HasSubstr(what)) << index.substr(0, 200);
    EXPECT_THAT(weights.error().where, HasSubstr(folder.path()));
  }
}

TEST(ModelWeights, NamesTheBrokenShard) {
  const TemporaryFolder folder;
  folder.write("one", file_with({"a"}));
  folder.write("two", "version https://git-lfs.github.com/spec/v1\n");
  folder.write(kIndex, R"({"weight_map": {"a": "one", "b": "two"}})");
  const auto weights = ModelWeights::open(folder.path());
  ASSERT_FALSE(weights);
  EXPECT_THAT(weights.error().message(), HasSubstr("Git-LFS pointer"));
  EXPECT_THAT(weights.error().where, HasSubstr("/two"));
}

}  // namespace
}  // namespace plimsoll::io
