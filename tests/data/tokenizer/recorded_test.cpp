// Small tokenizers of each kind against what the `tokenizers` package made of the same texts (record.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "data/tokenizer/tokenizer.h"
#include "io/file.h"
#include "io/json.h"

namespace plimsoll {
namespace {

std::vector<std::string> recorded_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(PLIMSOLL_TEST_DIR "/data/tokenizer/recorded"))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string bytes_of(const Tree& entry) {
  if (const Tree* text = entry.find("text")) return text->text;
  std::string bytes;
  const std::string& hex = entry.find("hex")->text;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

std::vector<int32_t> ids_of(const Tree& entry, std::string_view key) {
  std::vector<int32_t> ids;
  for (const Tree& id : entry.find(key)->items) ids.push_back(static_cast<int32_t>(id.integer));
  return ids;
}

class Recorded : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto text = read_small_file(PLIMSOLL_TEST_DIR "/data/tokenizer/recorded/" + GetParam(), 1 << 20);
    ASSERT_TRUE(text);
    auto tree = parse_json(*text);
    ASSERT_TRUE(tree) << tree.error().message();
    recorded_ = std::move(tree).value();
    auto tokenizer = Tokenizer::parse(to_json(*recorded_.find("tokenizer")), GetParam());
    ASSERT_TRUE(tokenizer) << tokenizer.error().message();
    tokenizer_ = std::move(tokenizer).value();
  }
  const std::vector<Tree>& cases() const { return recorded_.find("cases")->items; }
  std::vector<int32_t> encode(const std::string& text, bool special) const {
    std::vector<int32_t> ids;
    const auto status = tokenizer_->encode(text, special, ids);
    EXPECT_TRUE(status) << (status ? "" : status.error().message());
    return ids;
  }

  Tree recorded_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_P(Recorded, EncodesAsThePackage) {
  ASSERT_GT(cases().size(), 20u);
  for (int round = 0; round < 2; ++round)  // from the caches the second time
    for (const Tree& entry : cases()) {
      const std::string text = bytes_of(entry);
      EXPECT_EQ(encode(text, true), ids_of(entry, "ids")) << text;
      EXPECT_EQ(encode(text, false), ids_of(entry, "plain")) << text;
    }
}

TEST_P(Recorded, DecodesAsThePackage) {
  for (const Tree& entry : cases()) {
    const std::vector<int32_t> ids = ids_of(entry, "ids");
    EXPECT_EQ(tokenizer_->decode(ids, false), entry.find("decoded")->text);
    EXPECT_EQ(tokenizer_->decode(ids, true), entry.find("skipped")->text);
  }
}

TEST_P(Recorded, StreamsAsThePackage) {
  for (const Tree& entry : cases()) {
    DecodeStream stream(*tokenizer_, false);
    const std::vector<int32_t> ids = ids_of(entry, "ids");
    for (size_t i = 0; i < ids.size(); ++i)
      ASSERT_EQ(stream.push(ids[i]), entry.find("chunks")->items[i].text) << bytes_of(entry) << " at " << i;
  }
}

TEST_P(Recorded, IsTheSameFromManyThreads) {
  const auto work = [this] {
    for (const Tree& entry : cases()) EXPECT_EQ(encode(bytes_of(entry), true), ids_of(entry, "ids"));
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Recorded, testing::ValuesIn(recorded_files()), [](const auto& test) {
  std::string name = test.param.substr(0, test.param.size() - 5);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
});

}  // namespace
}  // namespace plimsoll
