// Packing: every token once and in order, nothing lost in silence, and the packer against a slow one.
#include "datasets/packing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>

#include "datasets/packing_window.h"
#include "datasets/shard_documents.h"
#include "io/temporary_folder.h"

namespace plimsoll::datasets {
namespace {

using packing::BestFit;
using packing::NumberSet;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(NumberSet, FindsTheNextMember) {
  for (const int64_t largest : {0, 1, 63, 64, 65, 4095, 4096, 5000, 270'000}) {
    NumberSet set(largest);
    std::set<int64_t> slow;
    std::mt19937 random(static_cast<unsigned>(largest));
    for (int round = 0; round < 2000; ++round) {
      const auto number = static_cast<int64_t>(random() % static_cast<uint64_t>(largest + 1));
      if (random() % 2 == 0) {
        set.insert(number);
        slow.insert(number);
      } else {
        set.erase(number);
        slow.erase(number);
      }
      const auto from = static_cast<int64_t>(random() % static_cast<uint64_t>(largest + 1));
      const auto next = slow.lower_bound(from);
      ASSERT_EQ(set.at_least(from), next == slow.end() ? -1 : *next);
    }
  }
}

/// Best-fit decreasing, every bin looked at for every piece.
std::vector<int32_t> pack_slowly(const std::vector<int32_t>& lengths, int64_t capacity) {
  struct Bin {
    int64_t room;
    int64_t since;
  };
  std::vector<size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
  std::vector<Bin> bins;
  std::vector<int32_t> bin_of(lengths.size());
  int64_t time = 0;
  for (const size_t piece : order) {
    auto best = static_cast<int32_t>(bins.size());
    for (int32_t b = 0; b < static_cast<int32_t>(bins.size()); ++b) {
      const Bin& bin = bins[static_cast<size_t>(b)];
      if (bin.room < lengths[piece]) continue;
      if (best == static_cast<int32_t>(bins.size()) || bin.room < bins[static_cast<size_t>(best)].room ||
          (bin.room == bins[static_cast<size_t>(best)].room &&
           bin.since > bins[static_cast<size_t>(best)].since))
        best = b;
    }
    if (best == static_cast<int32_t>(bins.size())) bins.push_back({capacity, 0});
    bins[static_cast<size_t>(best)].room -= lengths[piece];
    bins[static_cast<size_t>(best)].since = ++time;
    bin_of[piece] = best;
  }
  std::map<int32_t, int32_t> numbers;
  for (int32_t& bin : bin_of) bin = numbers.emplace(bin, static_cast<int32_t>(numbers.size())).first->second;
  return bin_of;
}

TEST(BestFit, IsThatOfASlowOne) {
  std::mt19937 random(11);
  for (const int64_t capacity : {1, 2, 7, 64, 65, 1000}) {
    BestFit packer(capacity);  // its memory is used again
    for (int round = 0; round < 30; ++round) {
      std::vector<int32_t> lengths(random() % 400);
      const uint64_t longest = round % 2 == 0 ? static_cast<uint64_t>(capacity)
                                              : std::max<uint64_t>(1, static_cast<uint64_t>(capacity) / 4);
      for (int32_t& length : lengths) length = static_cast<int32_t>(1 + random() % longest);
      std::vector<int32_t> bins(lengths.size());
      const int32_t count = packer.pack(lengths, bins);
      ASSERT_EQ(bins, pack_slowly(lengths, capacity)) << capacity << " " << round;
      ASSERT_EQ(count, bins.empty() ? 0 : *std::max_element(bins.begin(), bins.end()) + 1);
    }
  }
}

struct Packed {
  PackReport report;
  std::vector<std::vector<PackSegment>> sequences;
};

std::vector<Shard> open_all(const std::vector<std::string>& paths) {
  std::vector<Shard> shards;
  for (const std::string& path : paths) {
    auto shard = Shard::open(path);
    EXPECT_TRUE(shard) << shard.error().message();
    shards.push_back(std::move(*shard));
  }
  return shards;
}

Packed pack(const std::vector<Shard>& shards, const PackOptions& options, const std::string& path) {
  Packed packed;
  const auto built = PackIndex::build(shards, options, path);
  EXPECT_TRUE(built) << (built ? "" : built.error().message());
  const auto index = PackIndex::open(path, shards, options);
  EXPECT_TRUE(index) << (index ? "" : index.error().message());
  packed.report = index->report();
  std::vector<std::byte> scratch(static_cast<size_t>(PackIndex::kScratchBytes));
  for (int64_t s = 0; s < packed.report.num_sequences; ++s) {
    const auto range = index->segments_of(s, scratch);
    EXPECT_TRUE(range);
    auto& sequence = packed.sequences.emplace_back(static_cast<size_t>(range->end - range->begin));
    for (size_t done = 0; done < sequence.size();) {
      const auto read = index->read_segments(range->begin + static_cast<int64_t>(done),
                                             std::span(sequence).subspan(done), scratch);
      EXPECT_TRUE(read);
      done += static_cast<size_t>(*read);
    }
  }
  return packed;
}

/// Documents of the shards by (shard, begin), with what packing must know of them.
std::map<std::pair<int32_t, int64_t>, ShardDocument> documents_of(const std::vector<Shard>& shards) {
  std::map<std::pair<int32_t, int64_t>, ShardDocument> all;
  for (size_t s = 0; s < shards.size(); ++s)
    EXPECT_TRUE(shards[s].visit_documents([&](const ShardDocument& d) -> Status {
      all[{static_cast<int32_t>(s), d.begin}] = d;
      return Ok{};
    }));
  return all;
}

/// What holds for every packing: no sequence over T, pieces within one document each, no token twice, and the
/// report adds up.
void expect_sound(const Packed& packed, const std::vector<Shard>& shards, const PackOptions& options) {
  const auto documents = documents_of(shards);
  std::map<std::pair<int32_t, int64_t>, int64_t> covered;  // tokens by document
  std::set<std::pair<int32_t, int64_t>> taken;             // every single token
  int64_t tokens = 0, segments = 0;
  for (const auto& sequence : packed.sequences) {
    ASSERT_FALSE(sequence.empty());
    int64_t length = 0;
    for (const PackSegment& segment : sequence) {
      auto document = documents.upper_bound({segment.shard, segment.begin});
      ASSERT_NE(document, documents.begin());
      --document;
      ASSERT_EQ(document->first.first, segment.shard);
      ASSERT_LE(segment.begin + segment.length, document->second.end);
      for (int64_t t = 0; t < segment.length; ++t)
        ASSERT_TRUE(taken.insert({segment.shard, segment.begin + t}).second) << "a token twice";
      covered[document->first] += segment.length;
      length += segment.length;
    }
    ASSERT_LE(length, options.sequence_length);
    tokens += length;
    segments += static_cast<int64_t>(sequence.size());
  }
  const PackReport& r = packed.report;
  EXPECT_EQ(r.num_tokens, tokens);
  EXPECT_EQ(r.num_segments, segments);
  EXPECT_EQ(r.num_sequences, static_cast<int64_t>(packed.sequences.size()));
  EXPECT_EQ(r.documents, static_cast<int64_t>(documents.size()));
  EXPECT_EQ(r.documents, r.kept_documents + r.too_long_documents + r.no_target_documents +
                             r.other_side_documents + r.beyond_documents);
  EXPECT_EQ(r.tokens, r.num_tokens + r.too_long_tokens + r.no_target_tokens + r.no_target_piece_tokens +
                          r.other_side_tokens + r.tail_tokens + r.truncated_tokens + r.beyond_tokens);
  if (options.mode == PackMode::kStream) return;
  EXPECT_EQ(r.kept_documents, static_cast<int64_t>(covered.size()));
  for (const auto& [at, count] : covered)
    if (r.no_target_pieces == 0) {
      const bool truncates = options.long_documents == LongDocuments::kTruncate;
      const int64_t most = truncates ? options.sequence_length : INT64_MAX;
      EXPECT_EQ(count, std::min(most, documents.at(at).num_tokens()));
    }
}

TEST(PackIndex, EveryTokenOfEveryKeptDocumentOnce) {
  const io::TemporaryFolder folder;
  write_shard(folder.path("a"), random_documents(700, 60, 300, 1), {300, 9, true});
  write_shard(folder.path("b"), random_documents(900, 25, 300, 2), {300, 9, false});
  write_shard(folder.path("c"), random_documents(3, 2000, 300, 3), {300, 9, true});
  const auto shards = open_all({folder.path("a"), folder.path("b"), folder.path("c")});
  for (const PackMode mode : {PackMode::kBestFit, PackMode::kPad, PackMode::kStream})
    for (const LongDocuments policy : {LongDocuments::kCut, LongDocuments::kDrop, LongDocuments::kTruncate})
      for (const SplitSide side : {SplitSide::kAll, SplitSide::kTrain, SplitSide::kEval})
        for (const int64_t length : {1, 2, 31, 64, 300}) {
          const PackOptions options = {.sequence_length = length,
                                       .mode = mode,
                                       .long_documents = policy,
                                       .window = length == 31 ? 65'536 : 100,
                                       .keep_tail = side == SplitSide::kEval,
                                       .side = side,
                                       .max_documents = length == 64 ? 100 : 0,
                                       .eval_fraction = 0.3};
          const Packed packed = pack(shards, options, folder.path("index"));
          expect_sound(packed, shards, options);
          if (policy != LongDocuments::kDrop || mode == PackMode::kStream) {
            EXPECT_EQ(packed.report.too_long_documents, 0);
          }
        }
}

TEST(PackIndex, IsTheSameFileEveryTime) {
  const io::TemporaryFolder folder;
  write_shard(folder.path("a"), random_documents(5000, 60, 300, 1), {300, 9, true});
  const auto shards = open_all({folder.path("a")});
  const PackOptions options = {.sequence_length = 50, .window = 1000};
  ASSERT_TRUE(PackIndex::build(shards, options, folder.path("1")));
  ASSERT_TRUE(PackIndex::build(open_all({folder.path("a")}), options, folder.path("2")));
  EXPECT_EQ(io::read_all(folder.path("1")), io::read_all(folder.path("2")));
}

std::vector<Document> of_lengths(const std::vector<size_t>& lengths) {
  std::vector<Document> documents;
  int32_t id = 0;
  for (const size_t length : lengths) {
    Document& d = documents.emplace_back();
    for (size_t i = 0; i < length; ++i) d.ids.push_back(id++ % 300);
    d.in_loss.assign(length, 1);
  }
  return documents;
}

std::vector<std::vector<int>> lengths_of(const Packed& packed) {
  std::vector<std::vector<int>> all;
  for (const auto& sequence : packed.sequences) {
    auto& to = all.emplace_back();
    for (const PackSegment& segment : sequence) to.push_back(segment.length);
  }
  return all;
}

TEST(PackIndex, ModesLayDocumentsAsTheySay) {
  const io::TemporaryFolder folder;
  write_shard(folder.path("a"), of_lengths({6, 4, 23, 3, 7, 1}), {300, 9, false});
  const auto shards = open_all({folder.path("a")});
  using Lengths = std::vector<std::vector<int>>;
  Packed p = pack(shards, {.sequence_length = 10}, folder.path("i"));
  EXPECT_EQ(lengths_of(p), (Lengths{{6, 4}, {10}, {10}, {3, 7}, {3}}));
  EXPECT_EQ(p.report.cut_documents, 1);
  EXPECT_EQ(p.report.no_target_documents, 1) << "one token has nothing to learn from";
  EXPECT_EQ(p.report.num_targets, 5 + 3 + 9 + 9 + 2 + 6 + 2);
  EXPECT_DOUBLE_EQ(p.report.filled(), 43.0 / 50);
  p = pack(shards, {.sequence_length = 10, .long_documents = LongDocuments::kDrop}, folder.path("i"));
  EXPECT_EQ(lengths_of(p), (Lengths{{6, 4}, {3, 7}}));
  EXPECT_EQ(p.report.too_long_tokens, 23);
  p = pack(shards, {.sequence_length = 10, .long_documents = LongDocuments::kTruncate}, folder.path("i"));
  EXPECT_EQ(lengths_of(p), (Lengths{{6, 4}, {10}, {3, 7}}));
  EXPECT_EQ(p.report.truncated_documents, 1);
  EXPECT_EQ(p.report.truncated_tokens, 13);
  EXPECT_EQ(p.report.num_targets, 5 + 3 + 9 + 2 + 6);
  p = pack(shards, {.sequence_length = 10, .max_documents = 2}, folder.path("i"));
  EXPECT_EQ(lengths_of(p), (Lengths{{6, 4}}));
  EXPECT_EQ(p.report.beyond_documents, 4);
  EXPECT_EQ(p.report.beyond_tokens, 34);
  p = pack(shards, {.sequence_length = 10, .mode = PackMode::kPad}, folder.path("i"));
  EXPECT_EQ(lengths_of(p), (Lengths{{6}, {4}, {10}, {10}, {3}, {3}, {7}}));
  p = pack(shards, {.sequence_length = 10, .mode = PackMode::kStream}, folder.path("i"));
  EXPECT_EQ(lengths_of(p), (Lengths{{6, 4}, {10}, {10}, {3, 3, 4}}));
  EXPECT_EQ(p.report.tail_tokens, 3);
  p = pack(shards, {.sequence_length = 10, .mode = PackMode::kStream, .keep_tail = true}, folder.path("i"));
  EXPECT_EQ(lengths_of(p), (Lengths{{6, 4}, {10}, {10}, {3, 3, 4}, {3}}));
  EXPECT_EQ(p.report.tail_tokens, 0);
}

TEST(PackIndex, WhatTrainsNothingIsLeftOutAndCounted) {
  const io::TemporaryFolder folder;
  std::vector<Document> documents = of_lengths({5, 5, 25, 25});
  documents[0].in_loss = {1, 0, 0, 0, 0};  // nothing is before the first token
  documents[2].in_loss.assign(25, 0);
  documents[2].in_loss[22] = 1;  // in the third piece
  documents[3].in_loss.assign(25, 0);
  documents[3].in_loss[20] = 1;  // the first of its piece
  write_shard(folder.path("a"), documents, {300, 9, true});
  const auto shards = open_all({folder.path("a")});
  const Packed p = pack(shards, {.sequence_length = 10, .mode = PackMode::kPad}, folder.path("i"));
  EXPECT_THAT(lengths_of(p), ElementsAre(ElementsAre(5), ElementsAre(5)));
  EXPECT_EQ(p.report.kept_documents, 2);
  EXPECT_EQ(p.report.no_target_documents, 2);
  EXPECT_EQ(p.report.no_target_tokens, 30);
  EXPECT_EQ(p.report.no_target_pieces, 2);
  EXPECT_EQ(p.report.no_target_piece_tokens, 20);
  EXPECT_EQ(p.report.num_targets, 4 + 1);
}

TEST(PackIndex, SidesOfTheSplitAreComplements) {
  const io::TemporaryFolder folder;
  write_shard(folder.path("a"), random_documents(4000, 20, 300, 1), {300, 9, false});
  const auto shards = open_all({folder.path("a")});
  PackOptions options = {.sequence_length = 20, .side = SplitSide::kTrain, .eval_fraction = 0.1};
  const PackReport train = pack(shards, options, folder.path("t")).report;
  options.side = SplitSide::kEval;
  const PackReport eval = pack(shards, options, folder.path("e")).report;
  EXPECT_EQ(train.other_side_documents + eval.other_side_documents, 4000);
  EXPECT_EQ(train.other_side_tokens, eval.tokens - eval.other_side_tokens);
  EXPECT_NEAR(static_cast<double>(train.other_side_documents) / 4000, 0.1, 0.02);
  EXPECT_FALSE(on_eval_side(0, 0));
  EXPECT_TRUE(on_eval_side(~uint64_t{0}, 1));
}

/// Lengths as of chats: log-normal, median 300, few below 20, a tail of thousands.
TEST(PackIndex, FillsSequencesOfAChatCorpus) {
  const io::TemporaryFolder folder;
  std::mt19937 random(1);
  const std::vector<int32_t> ids(20'000, 7);
  auto writer = ShardWriter::create(folder.path("a"), {.vocab_size = 8});
  ASSERT_TRUE(writer);
  for (int i = 0; i < 20'000; ++i) {
    // A sum of uniform numbers: std::normal_distribution is not the same everywhere.
    double z = -6;
    for (int k = 0; k < 12; ++k) z += static_cast<double>(random()) * 0x1p-32;
    const auto length = static_cast<size_t>(std::clamp(300 * std::exp(0.9 * z), 8.0, 20'000.0));
    ASSERT_TRUE(writer->add(std::span(ids).first(length), {}));
  }
  ASSERT_TRUE(writer->finish());
  const auto shards = open_all({folder.path("a")});
  for (const int64_t length : {1024, 2048, 4096}) {
    const auto report = PackIndex::build(shards, {.sequence_length = length}, folder.path("i"));
    ASSERT_TRUE(report);
    EXPECT_GE(report->filled(), 0.99) << length;
  }
}

TEST(PackIndex, ShardsOfTwoVocabulariesAreRefused) {
  const io::TemporaryFolder folder;
  write_shard(folder.path("a"), of_lengths({5}), {300, 9, false});
  write_shard(folder.path("b"), of_lengths({5}), {300, 8, false});
  const auto shards = open_all({folder.path("a"), folder.path("b")});
  const auto report = PackIndex::build(shards, {}, folder.path("i"));
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(report.error().message(), HasSubstr(folder.path("a")));
  EXPECT_THAT(report.error().message(), HasSubstr(folder.path("b")));
  EXPECT_FALSE(std::filesystem::exists(folder.path("i")));
  LengthCounts lengths(PackOptions().sequence_length);
  const auto counted = PackIndex::count_lengths(shards, {}, lengths);
  ASSERT_FALSE(counted);
  EXPECT_EQ(counted.error().message(), report.error().message());
}

TEST(PackIndex, IsKeptWhileItFits) {
  const io::TemporaryFolder folder;
  const std::string cache = folder.path("cache");
  write_shard(folder.path("a"), of_lengths({5, 6}), {300, 9, false});
  PackOptions options = {.sequence_length = 8};
  auto shards = open_all({folder.path("a")});
  auto index = PackIndex::open_or_build(shards, options, cache);
  ASSERT_TRUE(index);
  const std::string path = index->path();
  const auto written = std::filesystem::last_write_time(path);
  ASSERT_TRUE(PackIndex::open_or_build(shards, options, cache));
  EXPECT_EQ(std::filesystem::last_write_time(path), written) << "read again, not built again";
  options.sequence_length = 9;
  EXPECT_NE(PackIndex::open_or_build(shards, options, cache)->path(), path);
  EXPECT_NE(PackIndex::open(path, shards, options).ok(), true) << "another length";
  options.sequence_length = 8;
  write_shard(folder.path("a"), of_lengths({5, 7}), {300, 9, false});
  shards = open_all({folder.path("a")});
  EXPECT_NE(PackIndex::open_or_build(shards, options, cache)->path(), path) << "other shards";
}

TEST(PackIndex, DamageIsFoundAndRepaired) {
  const io::TemporaryFolder folder;
  const MemoryFile file;
  write_shard(folder.path("a"), random_documents(30, 20, 300, 1), {300, 9, false});
  const auto shards = open_all({folder.path("a")});
  const PackOptions options = {.sequence_length = 16};
  ASSERT_TRUE(PackIndex::build(shards, options, folder.path("i")));
  const std::string whole = io::read_all(folder.path("i"));
  for (size_t byte = 0; byte < whole.size(); ++byte) {
    std::string flipped = whole;
    flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << (byte % 8)));
    for (const std::string& bytes : {flipped, whole.substr(0, byte)}) {
      const auto index = PackIndex::open(file.holding(bytes), shards, options);
      ASSERT_FALSE(index) << byte;
      EXPECT_EQ(index.error().code, ErrorCode::kBadData);
    }
  }
  const auto index = PackIndex::open_or_build(shards, options, folder.path("cache"));
  ASSERT_TRUE(index);
  std::ofstream(index->path(), std::ios::binary) << whole.substr(0, 300);
  ASSERT_TRUE(PackIndex::open_or_build(shards, options, folder.path("cache")));
  EXPECT_EQ(io::read_all(index->path()), whole);
}

TEST(PackIndex, WhatChangesBehindAnOpenIndexCannotBeOutOfOrder) {
  const io::TemporaryFolder folder;
  write_shard(folder.path("a"), random_documents(60, 12, 300, 1), {300, 9, false});
  const auto shards = open_all({folder.path("a")});
  const PackOptions options = {.sequence_length = 16};
  ASSERT_TRUE(PackIndex::build(shards, options, folder.path("i")));
  const auto index = PackIndex::open(folder.path("i"), shards, options);
  ASSERT_TRUE(index);
  ASSERT_NE(index->report().num_segments, index->report().num_sequences);
  std::string bytes = io::read_all(folder.path("i"));
  std::fill(bytes.begin() + 256, bytes.end(), '\x7f');
  std::ofstream(folder.path("i"), std::ios::binary) << bytes;
  std::vector<std::byte> scratch(static_cast<size_t>(PackIndex::kScratchBytes));
  const auto range = index->segments_of(3, scratch);
  ASSERT_FALSE(range);
  EXPECT_EQ(range.error().code, ErrorCode::kBadData);
  std::array<PackSegment, 2> segments;
  ASSERT_TRUE(index->read_segments(0, segments, scratch));
  EXPECT_FALSE(lies_within(segments[0], shards));
}

}  // namespace
}  // namespace plimsoll::datasets
