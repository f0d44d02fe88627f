// Packed sequences against the documents that they were made from.
#include "datasets/packed_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <thread>

#include "datasets/shard_documents.h"
#include "io/temporary_folder.h"

namespace plimsoll::datasets {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

struct Sequence {
  std::vector<int32_t> tokens, targets, doc_start;
  ExampleCounts counts;
};

Sequence read_sequence(const PackedDataset& data, int64_t index) {
  const auto length = static_cast<size_t>(data.sequence_length());
  Sequence s{std::vector<int32_t>(length, -7),
             std::vector<int32_t>(length, -7),
             std::vector<int32_t>(length, -7),
             {}};
  std::vector<std::byte> scratch(static_cast<size_t>(data.scratch_bytes()));
  const auto counts = data.read_sequence(index, s.tokens, s.targets, s.doc_start, scratch);
  EXPECT_TRUE(counts) << (counts ? "" : counts.error().message());
  s.counts = *counts;
  return s;
}

TEST(PackedDataset, TokensTargetsAndStarts) {
  const io::TemporaryFolder folder;
  const std::vector<Document> documents = {
      {{10, 11, 12}, {1, 1, 1}},
      {{20, 21, 22, 23}, {0, 0, 1, 0}},
      {{30, 31, 32, 33, 34, 35, 36, 37, 38, 39}, std::vector<uint8_t>(10, 1)}};
  write_shard(folder.path("a"), documents, {300, 9, true});
  const std::vector<std::string> paths = {folder.path("a")};
  const auto data =
      PackedDataset::open(paths, {.pack = {.sequence_length = 8}, .pad_id = 5}, folder.path("c"));
  ASSERT_TRUE(data) << data.error().message();
  ASSERT_EQ(data->num_sequences(), 3);
  const Sequence a = read_sequence(*data, 0);
  EXPECT_THAT(a.tokens, ElementsAre(10, 11, 12, 20, 21, 22, 23, 5));
  EXPECT_THAT(a.targets, ElementsAre(11, 12, kNoTarget, kNoTarget, 22, kNoTarget, kNoTarget, kNoTarget));
  EXPECT_THAT(a.doc_start, ElementsAre(0, 0, 0, 3, 3, 3, 3, 7));
  EXPECT_EQ(a.counts.units, 7);
  EXPECT_EQ(a.counts.targets, 3);
  const Sequence b = read_sequence(*data, 1);
  EXPECT_THAT(b.tokens, ElementsAre(30, 31, 32, 33, 34, 35, 36, 37));
  EXPECT_THAT(b.targets, ElementsAre(31, 32, 33, 34, 35, 36, 37, kNoTarget))
      << "38 stands in another sequence";
  EXPECT_THAT(b.doc_start, Each(0));
  const Sequence c = read_sequence(*data, 2);
  EXPECT_THAT(c.tokens, ElementsAre(38, 39, 5, 5, 5, 5, 5, 5));
  EXPECT_THAT(c.targets[0], 39);
  EXPECT_THAT(c.doc_start, ElementsAre(0, 0, 2, 3, 4, 5, 6, 7)) << "padding attends to itself alone";
  EXPECT_EQ(data->report().num_targets, a.counts.targets + b.counts.targets + c.counts.targets);
}

/// Ids that are their own place, so that a sequence tells where its tokens come from.
std::vector<Document> numbered(int count, int longest, int32_t first, unsigned seed) {
  auto documents = random_documents(count, longest, 2, seed);
  for (Document& d : documents)
    for (int32_t& id : d.ids) id = first++;
  return documents;
}

TEST(PackedDataset, EveryTokenComesOnceWithItsOwnTarget) {
  const io::TemporaryFolder folder;
  std::map<int32_t, std::pair<int32_t, bool>> next;  // id -> the one behind it in its document, in the loss?
  const auto note = [&](const std::vector<Document>& documents) {
    for (const Document& d : documents)
      for (size_t i = 0; i + 1 < d.ids.size(); ++i) next[d.ids[i]] = {d.ids[i + 1], d.in_loss[i + 1] != 0};
    return documents;
  };
  write_shard(folder.path("a1"), note(numbered(500, 40, 0, 1)), {200'000, 9, true});
  write_shard(folder.path("a2"), note(numbered(2, 9'000, 50'000, 2)), {200'000, 9, true});
  const std::vector<std::string> paths = {folder.path("a*")};
  for (const PackMode mode : {PackMode::kBestFit, PackMode::kPad, PackMode::kStream}) {
    const auto data = PackedDataset::open(
        paths, {.pack = {.sequence_length = 100, .mode = mode, .keep_tail = true}, .vocab_size = 200'000},
        folder.path("cache"));
    ASSERT_TRUE(data) << data.error().message();
    std::map<int32_t, int> seen;
    int64_t tokens = 0, targets = 0;
    for (int64_t i = 0; i < data->num_sequences(); ++i) {
      const Sequence s = read_sequence(*data, i);
      int64_t here = 0;
      for (int64_t t = 0; t < s.counts.units; ++t) {
        const auto at = static_cast<size_t>(t);
        ASSERT_EQ(seen[s.tokens[at]]++, 0);
        ASSERT_EQ(s.tokens[at] - s.tokens[static_cast<size_t>(s.doc_start[at])], t - s.doc_start[at])
            << "a piece is in order";
        const bool last = t + 1 == s.counts.units || s.doc_start[at + 1] == t + 1;
        const auto behind = next.find(s.tokens[at]);
        const bool counts = !last && behind != next.end() && behind->second.second;
        ASSERT_EQ(s.targets[at], counts ? behind->second.first : kNoTarget);
        here += counts ? 1 : 0;
      }
      ASSERT_EQ(here, s.counts.targets);
      tokens += s.counts.units;
      targets += here;
    }
    EXPECT_EQ(tokens, data->num_tokens());
    EXPECT_EQ(targets, data->report().num_targets);
  }
}

TEST(PackedDataset, ThreadsReadTheSame) {
  const io::TemporaryFolder folder;
  write_shard(folder.path("a"), random_documents(2000, 200, 300, 1), {300, 9, true});
  const std::vector<std::string> paths = {folder.path("a")};
  const auto data = PackedDataset::open(paths, {.pack = {.sequence_length = 512}}, folder.path("c"));
  ASSERT_TRUE(data);
  std::vector<Sequence> alone;
  for (int64_t i = 0; i < data->num_sequences(); ++i) alone.push_back(read_sequence(*data, i));
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int64_t i = 0; i < data->num_sequences(); ++i) {
        const Sequence s = read_sequence(*data, i);
        EXPECT_EQ(s.tokens, alone[static_cast<size_t>(i)].tokens);
        EXPECT_EQ(s.targets, alone[static_cast<size_t>(i)].targets);
      }
    });
}

TEST(PackedDataset, GivesTheSameFromMemory) {
  const io::TemporaryFolder folder;
  write_shard(folder.path("a"), numbered(500, 40, 0, 1), {200'000, 9, true});
  write_shard(folder.path("b"), numbered(300, 40, 50'000, 2), {200'000, 9, true});
  const std::vector<std::string> paths = {folder.path("a"), folder.path("b")};
  const auto open = [&] {
    return PackedDataset::open(paths, {.pack = {.sequence_length = 100}, .vocab_size = 200'000},
                               folder.path("c"));
  };
  const auto data = open();
  ASSERT_TRUE(data);
  const auto size = [](const std::string& path) {
    return static_cast<int64_t>(std::filesystem::file_size(path));
  };
  const int64_t index = size(data->index_path()), both = index + size(paths[0]) + size(paths[1]);
  for (const auto& [most, left] : {std::pair{both + 5, int64_t{5}}, {index + size(paths[1]), int64_t{0}}}) {
    auto kept = open();
    ASSERT_TRUE(kept);
    int64_t room = most;
    ASSERT_TRUE(kept->keep_within(room));
    EXPECT_EQ(room, left) << "the first shard is the larger one";
    for (int64_t i = 0; i < data->num_sequences(); ++i) {
      const Sequence a = read_sequence(*data, i), b = read_sequence(*kept, i);
      ASSERT_EQ(a.tokens, b.tokens);
      ASSERT_EQ(a.targets, b.targets);
      ASSERT_EQ(a.doc_start, b.doc_start);
    }
  }
}

TEST(PackedDataset, Refusals) {
  const io::TemporaryFolder folder;
  write_shard(folder.path("a"), {{{1, 2, 3}, {}}}, {300, 9, false});
  const std::string cache = folder.path("c");
  const auto message = [&](const std::vector<std::string>& paths, const PackedDatasetOptions& options) {
    const auto data = PackedDataset::open(paths, options, cache);
    return data ? "" : data.error().message();
  };
  const std::vector<std::string> one = {folder.path("a")};
  EXPECT_EQ(message(one, {}), "");
  EXPECT_THAT(message({}, {}), HasSubstr("data.train names no file"));
  EXPECT_THAT(message({folder.path("z")}, {.setting = "data.eval"}), HasSubstr("no such file: data.eval"));
  EXPECT_THAT(message(one, {.vocab_size = 299}), HasSubstr("vocabulary of 300, the model's has 299"));
  EXPECT_THAT(message(one, {.vocabulary_hash = 8}), HasSubstr("0000000000000009"));
  EXPECT_THAT(message(one, {.pack = {.sequence_length = 2, .long_documents = LongDocuments::kDrop}}),
              HasSubstr("1 are too long"));
}

TEST(PackedDataset, DamageSinceItWasOpenedIsAnError) {
  const io::TemporaryFolder folder;
  write_shard(folder.path("a"), random_documents(50, 20, 300, 1), {300, 9, false});
  const std::vector<std::string> paths = {folder.path("a")};
  const auto data = PackedDataset::open(paths, {.pack = {.sequence_length = 32}}, folder.path("c"));
  ASSERT_TRUE(data);
  std::fstream file(folder.path("a"), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(150).put(static_cast<char>(0xff)).flush();
  std::vector<int32_t> tokens(32), targets(32);
  std::vector<std::byte> scratch(static_cast<size_t>(data->scratch_bytes()));
  const auto counts = data->read_sequence(0, tokens, targets, {}, scratch);
  ASSERT_FALSE(counts);
  EXPECT_EQ(counts.error().code, ErrorCode::kBadData);
  EXPECT_THAT(counts.error().message(), HasSubstr("does not match its checksum"));
}

TEST(PackedDataset, WithoutTargetsLengthIsNotBlamed) {
  const io::TemporaryFolder folder;
  const auto hint = [&](const std::vector<Document>& documents, bool keeps_long) {
    write_shard(folder.path("a"), documents, {300, 9, true});
    const std::vector<std::string> paths = {folder.path("a")};
    PackOptions pack{.sequence_length = 8};
    if (!keeps_long) pack.long_documents = LongDocuments::kDrop;
    const auto data = PackedDataset::open(paths, {.pack = pack}, folder.path("c"));
    EXPECT_FALSE(data);
    return data ? "" : data.error().hint;
  };
  EXPECT_THAT(hint({{{10, 11, 12}, {0, 0, 0}}, {{20, 21}, {0, 0}}}, true),
              testing::AllOf(HasSubstr("data.loss=all"), testing::Not(HasSubstr("sequence_length"))));
  EXPECT_THAT(hint({{std::vector<int32_t>(20, 7), std::vector<uint8_t>(20, 1)}}, false),
              HasSubstr("data.sequence_length"));
}

}  // namespace
}  // namespace plimsoll::datasets
