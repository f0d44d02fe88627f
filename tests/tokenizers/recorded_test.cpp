// Small tokenizers of each kind against what the `tokenizers` package made of the same texts (record.py).
#include "tokenizers/recorded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace plimsoll::tokenizers {
namespace {

class Recorded : public RecordedTest {};

TEST_P(Recorded, EncodesAsThePackage) {
  ASSERT_GT(cases().size(), 20u);
  for (int round = 0; round < 2; ++round)  // from the caches the second time
    for (const io::Tree& entry : cases()) {
      const std::string text = bytes_of(entry);
      EXPECT_EQ(encode(text, true), ids_of(entry, "ids")) << text;
      EXPECT_EQ(encode(text, false), ids_of(entry, "plain")) << text;
    }
}

TEST_P(Recorded, KnowsWhereTokensEndAsThePackage) {
  size_t compared = 0;
  for (const io::Tree& entry : cases()) {
    std::vector<int32_t> ids;
    std::vector<size_t> ends = {7};
    ASSERT_TRUE(tokenizer_->encode_with_ends(bytes_of(entry), true, ids, ends));
    EXPECT_EQ(ids, ids_of(entry, "ids"));
    ASSERT_EQ(ends.size(), ids.size() + 1);
    if (entry.find("ends") == nullptr) continue;  // where the package counts otherwise
    std::vector<size_t> expected = {7};
    for (const int32_t end : ids_of(entry, "ends")) expected.push_back(static_cast<size_t>(end));
    EXPECT_EQ(ends, expected) << bytes_of(entry);
    ++compared;
  }
  EXPECT_GT(compared, 15u);
}

TEST_P(Recorded, DecodesAsThePackage) {
  for (const io::Tree& entry : cases()) {
    const std::vector<int32_t> ids = ids_of(entry, "ids");
    EXPECT_EQ(tokenizer_->decode(ids, false), entry.find("decoded")->text);
    EXPECT_EQ(tokenizer_->decode(ids, true), entry.find("skipped")->text);
  }
}

TEST_P(Recorded, StreamsAsThePackage) {
  for (const io::Tree& entry : cases()) {
    DecodeStream stream(*tokenizer_, false);
    const std::vector<int32_t> ids = ids_of(entry, "ids");
    for (size_t i = 0; i < ids.size(); ++i)
      ASSERT_EQ(stream.push(ids[i]), entry.find("chunks")->items[i].text) << bytes_of(entry) << " at " << i;
  }
}

TEST_P(Recorded, IsTheSameFromManyThreads) {
  const auto work = [this] {
    for (const io::Tree& entry : cases()) EXPECT_EQ(encode(bytes_of(entry), true), ids_of(entry, "ids"));
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Recorded, testing::ValuesIn(recorded_files()), recorded_name);

}  // namespace
}  // namespace plimsoll::tokenizers
