// The recorded tokenizers (record.py) and what stands in their files.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/file.h"
#include "io/json.h"
#include "tokenizers/tokenizer.h"

namespace plimsoll::tokenizers {

inline std::vector<std::string> recorded_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(PLIMSOLL_TEST_DIR "/tokenizers/recorded"))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

inline std::string bytes_of(const io::Tree& entry) {
  if (const io::Tree* text = entry.find("text")) return text->text;
  std::string bytes;
  const std::string& hex = entry.find("hex")->text;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

inline std::vector<int32_t> ids_of(const io::Tree& entry, std::string_view key) {
  std::vector<int32_t> ids;
  for (const io::Tree& id : entry.find(key)->items) ids.push_back(static_cast<int32_t>(id.integer));
  return ids;
}

/// A test for each of the files.
class RecordedTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto text = io::read_small_file(PLIMSOLL_TEST_DIR "/tokenizers/recorded/" + GetParam(), 1 << 20);
    ASSERT_TRUE(text);
    auto tree = io::parse_json(*text);
    ASSERT_TRUE(tree) << tree.error().message();
    recorded_ = std::move(tree).value();
    auto tokenizer = Tokenizer::parse(io::to_json(*recorded_.find("tokenizer")), GetParam());
    ASSERT_TRUE(tokenizer) << tokenizer.error().message();
    tokenizer_ = std::move(tokenizer).value();
  }
  const std::vector<io::Tree>& cases() const { return recorded_.find("cases")->items; }
  std::vector<int32_t> encode(const std::string& text, bool special) const {
    std::vector<int32_t> ids;
    const auto status = tokenizer_->encode(text, special, ids);
    EXPECT_TRUE(status) << (status ? "" : status.error().message());
    return ids;
  }

  io::Tree recorded_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

inline std::string recorded_name(const testing::TestParamInfo<std::string>& test) {
  std::string name = test.param.substr(0, test.param.size() - 5);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}

}  // namespace plimsoll::tokenizers
