// Token shards: what goes in comes out, damage is found, nothing is left behind.
#include "datasets/shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "datasets/shard_documents.h"
#include "datasets/shard_header.h"
#include "io/checksum.h"
#include "io/temporary_folder.h"

namespace plimsoll::datasets {
namespace {

using testing::HasSubstr;

/// Everything of a shard as documents, read `at_once` tokens a time with the least scratch.
std::vector<Document> read_shard(const Shard& shard, size_t blocks = 1) {
  std::vector<Document> documents;
  std::vector<std::byte> scratch(blocks * static_cast<size_t>(shard.block_bytes()));
  EXPECT_TRUE(shard.visit_documents([&](const ShardDocument& d) -> Status {
    Document& to = documents.emplace_back();
    to.ids.resize(static_cast<size_t>(d.num_tokens()));
    to.in_loss.resize(to.ids.size());
    return shard.read(d.begin, to.ids, to.in_loss, scratch);
  }));
  return documents;
}

void expect_equal(const std::vector<Document>& got, const std::vector<Document>& expected, bool mask) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].ids, expected[i].ids) << i;
    EXPECT_EQ(got[i].in_loss,
              mask ? expected[i].in_loss : std::vector<uint8_t>(expected[i].ids.size(), uint8_t{1}))
        << i;
  }
}

TEST(Shard, WhatGoesInComesOut) {
  const io::TemporaryFolder folder;
  struct Row {
    int64_t vocab_size;
    bool mask;
    int id_bytes;
    unsigned pieces;
    int count, longest;
  };
  const Row rows[] = {{1, false, 2, 1, 3, 5},
                      {65'536, true, 2, 1, 700, 90},
                      {65'537, true, 4, 3, 900, 40},
                      {INT32_MAX, false, 4, 2, 5, 20'000},
                      {300, true, 2, 7, 4, 30'000}};
  for (const Row& row : rows) {
    const auto documents = random_documents(row.count, row.longest, row.vocab_size, 7);
    const std::string path = folder.path("a.shard");
    const ShardInfo written =
        write_shard(path, documents, {row.vocab_size, 0x1234567890abcdefu, row.mask}, row.pieces);
    const auto shard = Shard::open(path);
    ASSERT_TRUE(shard) << shard.error().message();
    EXPECT_EQ(shard->info().vocab_size, row.vocab_size);
    EXPECT_EQ(shard->info().vocabulary_hash, 0x1234567890abcdefu);
    EXPECT_EQ(shard->info().id_bytes, row.id_bytes);
    EXPECT_EQ(shard->info().has_mask, row.mask);
    EXPECT_EQ(shard->info().num_documents, row.count);
    EXPECT_EQ(shard->info().num_targets, written.num_targets);
    EXPECT_EQ(shard->info().content_hash, written.content_hash);
    EXPECT_EQ(shard->info().file_bytes, static_cast<int64_t>(std::filesystem::file_size(path)));
    expect_equal(read_shard(*shard), documents, row.mask);
    expect_equal(read_shard(*shard, 3), documents, row.mask);
    const auto status = shard->verify();
    EXPECT_TRUE(status) << (status ? "" : status.error().message());
    EXPECT_EQ(folder.num_files(), 1U);
  }
}

TEST(Shard, TheTableKnowsHashesAndTargets) {
  const io::TemporaryFolder folder;
  const auto documents = random_documents(1300, 30, 70'000, 3);
  write_shard(folder.path("a"), documents, {70'000, 1, true}, 1);
  write_shard(folder.path("b"), documents, {70'000, 1, true}, 3);
  EXPECT_EQ(io::read_all(folder.path("a")), io::read_all(folder.path("b"))) << "pieces do not show";
  const auto shard = Shard::open(folder.path("a"));
  ASSERT_TRUE(shard);
  std::vector<std::byte> scratch(static_cast<size_t>(Shard::kDocumentScratchBytes));
  std::vector<ShardDocument> all(documents.size());
  ASSERT_TRUE(shard->read_documents(0, all, scratch));
  int64_t begin = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].begin, begin);
    begin = all[i].end;
    EXPECT_EQ(all[i].num_tokens(), static_cast<int64_t>(documents[i].ids.size()));
    EXPECT_EQ(all[i].hash, io::checksum(std::as_bytes(std::span(documents[i].ids))));
    const auto& bits = documents[i].in_loss;
    EXPECT_EQ(all[i].num_targets, std::count(bits.begin() + 1, bits.end(), 1));
  }
  for (const int64_t first : {1, 511, 512, 513, 1024, 1299}) {
    ShardDocument one;
    ASSERT_TRUE(shard->read_documents(first, {&one, 1}, scratch));
    EXPECT_EQ(one.begin, all[static_cast<size_t>(first)].begin);
    EXPECT_EQ(one.end, all[static_cast<size_t>(first)].end);
  }
}

TEST(Shard, AnyStretchCanBeRead) {
  const io::TemporaryFolder folder;
  const auto documents = random_documents(1, 1, 50'000, 1);
  std::vector<Document> one(1);
  for (int32_t i = 0; i < 20'000; ++i) {
    one[0].ids.push_back(i);
    one[0].in_loss.push_back(i % 7 == 0 ? 1 : 0);
  }
  write_shard(folder.path("a"), one, {50'000, 1, true});
  const auto shard = Shard::open(folder.path("a"));
  ASSERT_TRUE(shard);
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const auto begin = static_cast<size_t>(random() % 20'000);
    const auto size = static_cast<size_t>(random() % (20'000 - begin)) + 1;
    std::vector<int32_t> ids(size);
    std::vector<uint8_t> bits(round % 2 == 0 ? size : 0);
    std::vector<std::byte> scratch(static_cast<size_t>(shard->block_bytes()) * (1 + random() % 4) +
                                   random() % 100);
    ASSERT_TRUE(shard->read(static_cast<int64_t>(begin), ids, bits, scratch));
    ASSERT_TRUE(std::equal(ids.begin(), ids.end(), one[0].ids.begin() + static_cast<std::ptrdiff_t>(begin)));
    ASSERT_TRUE(
        std::equal(bits.begin(), bits.end(), one[0].in_loss.begin() + static_cast<std::ptrdiff_t>(begin)));
  }
}

TEST(Shard, WhatWasCheckedIsRememberedAndReadInParts) {
  const io::TemporaryFolder folder;
  for (const bool mask : {false, true}) {
    std::vector<Document> documents(1);
    for (int32_t i = 0; i < 20'000; ++i) {
      documents[0].ids.push_back(i % 299);
      documents[0].in_loss.push_back(i % 7 == 0 ? 1 : 0);
    }
    write_shard(folder.path("a"), documents, {300, 1, mask});
    auto shard = Shard::open(folder.path("a"));
    ASSERT_TRUE(shard);
    EXPECT_EQ(shard->remember_checked(1 << 10), 8) << "five blocks";
    const int64_t size = 20'000;
    std::vector<std::byte> scratch(static_cast<size_t>(shard->block_bytes()));
    std::vector<int32_t> ids(200);
    ASSERT_TRUE(shard->read(100, ids, {}, scratch));
    // What is damaged since is told where the block is new, and goes by where it was checked.
    std::fstream file(folder.path("a"), std::ios::in | std::ios::out | std::ios::binary);
    for (const int64_t at : {int64_t{0}, shard->block_bytes()}) {  // the sums themselves
      const int was = file.seekg(shard::kHeaderBytes + at).get();
      file.seekp(shard::kHeaderBytes + at).put(static_cast<char>(was ^ 1)).flush();
    }
    EXPECT_FALSE(shard->read(5000, ids, {}, scratch));
    std::mt19937 random(7);
    const auto read_some = [&](int64_t begin, int64_t end) {
      ids.assign(static_cast<size_t>(end - begin), -1);
      std::vector<uint8_t> bits(ids.size());
      ASSERT_TRUE(shard->read(begin, ids, bits, scratch)) << begin << " to " << end;
      for (size_t i = 0; i < ids.size(); ++i) {
        ASSERT_EQ(ids[i], documents[0].ids[static_cast<size_t>(begin) + i]);
        ASSERT_EQ(bits[i], mask ? documents[0].in_loss[static_cast<size_t>(begin) + i] : 1)
            << begin << " " << i;
      }
    };
    for (int round = 0; round < 300; ++round) {
      const bool is_first = round % 2 == 0;
      const int64_t from = is_first ? 0 : 2 * 4096, to = is_first ? 4096 : size;
      const int64_t begin = from + static_cast<int64_t>(random()) % (to - from);
      read_some(begin, begin + 1 + static_cast<int64_t>(random()) % (to - begin));
    }
  }
}

TEST(Shard, EmptyDocumentsAreNone) {
  const io::TemporaryFolder folder;
  auto writer = ShardWriter::create(folder.path("a"), {.vocab_size = 10});
  ASSERT_TRUE(writer);
  const std::vector<int32_t> ids = {1, 2};
  ASSERT_TRUE(writer->add({}, {}));
  ASSERT_TRUE(writer->add({}, {}, true));
  ASSERT_TRUE(writer->add(ids, {}, true));
  ASSERT_TRUE(writer->add({}, {}, true));
  ASSERT_TRUE(writer->add({}, {}));
  ASSERT_TRUE(writer->add(ids, {}, true));  // left open
  const auto info = writer->finish();
  ASSERT_TRUE(info);
  EXPECT_EQ(info->num_documents, 2);
  EXPECT_EQ(info->num_targets, 2);
  ASSERT_TRUE(Shard::open(folder.path("a")));
  EXPECT_TRUE(Shard::open(folder.path("a"))->verify());

  auto nothing = ShardWriter::create(folder.path("b"), {.vocab_size = 10, .with_mask = true});
  ASSERT_TRUE(nothing && nothing->finish());
  const auto shard = Shard::open(folder.path("b"));
  ASSERT_TRUE(shard);
  EXPECT_EQ(shard->info().num_tokens, 0);
  EXPECT_TRUE(shard->verify());
}

TEST(Shard, RefusesIdsOfAnotherVocabulary) {
  const io::TemporaryFolder folder;
  for (const int32_t id : {10, -1}) {
    auto writer = ShardWriter::create(folder.path("a"), {.vocab_size = 10});
    ASSERT_TRUE(writer);
    const std::vector<int32_t> ids = {1, 2, id};
    const auto status = writer->add(ids, {});
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message(), HasSubstr("id " + std::to_string(id) + " of document 0"));
  }
  EXPECT_EQ(folder.num_files(), 0U) << "nothing is left of a shard that was not finished";
}

/// The header's checksum, set right again after a change.
std::string with_checksum(std::string bytes) {
  const uint64_t value = io::checksum(std::string_view(bytes).substr(0, 120));
  std::memcpy(bytes.data() + 120, &value, sizeof(value));
  return bytes;
}

/// What is wrong with a file, found on opening, by verification or by a read.
std::string fault(const std::string& path) {
  const auto shard = Shard::open(path);
  if (!shard) {
    EXPECT_EQ(shard.error().code, ErrorCode::kBadData);
    EXPECT_THAT(shard.error().where, HasSubstr(path));
    return shard.error().what;
  }
  const auto status = shard->verify();
  return status ? "" : status.error().what;
}

TEST(Shard, EveryCutAndEveryFlipIsFound) {
  const io::TemporaryFolder folder;
  const MemoryFile file;
  for (const bool mask : {false, true}) {
    write_shard(folder.path("a"), random_documents(9, 12, 300, 2), {300, 5, mask});
    const std::string whole = io::read_all(folder.path("a"));
    ASSERT_EQ(fault(folder.path("a")), "");
    for (size_t size = 0; size < whole.size(); ++size)
      EXPECT_NE(fault(file.holding(whole.substr(0, size))), "") << size;
    EXPECT_THAT(fault(file.holding(whole + "x")), HasSubstr("cut or continued"));
    for (size_t byte = 0; byte < whole.size(); ++byte) {
      std::string flipped = whole;
      flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << (byte % 8)));
      EXPECT_NE(fault(file.holding(flipped)), "") << byte;
    }
  }
}

TEST(Shard, AHeaderThatLiesIsFoundWhateverItsChecksum) {
  const io::TemporaryFolder folder;
  const MemoryFile file;
  write_shard(folder.path("a"), random_documents(9, 12, 300, 2), {300, 5, true});
  const std::string whole = io::read_all(folder.path("a"));
  for (size_t byte = 8; byte < 120; ++byte)
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << bit));
      const std::string what = fault(file.holding(with_checksum(flipped)));
      // A larger vocabulary of ids as wide, and another tokenizer's hash, are as good.
      if (byte < 24 || byte >= 40) {
        EXPECT_NE(what, "") << byte;
      }
    }
}

TEST(Shard, AReadNamesTheDamagedBlock) {
  const io::TemporaryFolder folder;
  write_shard(folder.path("a"), random_documents(100, 300, 300, 2), {300, 5, false});
  std::string bytes = io::read_all(folder.path("a"));
  bytes[static_cast<size_t>(shard::kHeaderBytes + 8 + 8192 + 8 + 100)] ^= 1;  // in the second block
  const auto shard = Shard::open(folder.write("b", bytes));
  ASSERT_TRUE(shard);
  std::vector<int32_t> ids(100);
  std::vector<std::byte> scratch(static_cast<size_t>(shard->block_bytes()));
  EXPECT_TRUE(shard->read(0, ids, {}, scratch));
  const auto status = shard->read(4090, ids, {}, scratch);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kBadData);
  EXPECT_THAT(status.error().what, HasSubstr("block 1 (tokens 4096 to 8191)"));
}

TEST(Shard, IdsBeyondTheVocabularyAreNamedByPosition) {
  const io::TemporaryFolder folder;
  write_shard(folder.path("a"), {{{5, 6, 299}, {}}}, {300, 5, false});
  std::string bytes = io::read_all(folder.path("a"));
  const int64_t smaller = 299;
  std::memcpy(bytes.data() + 24, &smaller, sizeof(smaller));
  const auto shard = Shard::open(folder.write("b", with_checksum(bytes)));
  ASSERT_TRUE(shard);
  std::vector<int32_t> ids(3);
  std::vector<std::byte> scratch(static_cast<size_t>(shard->block_bytes()));
  const auto status = shard->read(0, ids, {}, scratch);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what, HasSubstr("id 299 of token 2 is not in the vocabulary of 299"));
}

TEST(Shard, ErrorsOfOpening) {
  const io::TemporaryFolder folder;
  EXPECT_THAT(Shard::open(folder.path("none")).error().what, HasSubstr("no such file"));
  EXPECT_THAT(Shard::open(folder.write("t", std::string(500, 'x'))).error().what,
              HasSubstr("no token shard"));
  EXPECT_FALSE(is_shard(folder.path("t")));
  write_shard(folder.path("a"), {{{5}, {}}}, {300, 5, false});
  EXPECT_TRUE(is_shard(folder.path("a")));
  std::string bytes = io::read_all(folder.path("a"));
  bytes[8] = 2;
  EXPECT_THAT(Shard::open(folder.write("b", bytes)).error().what, HasSubstr("version 2"));
}

/// Files cannot grow beyond `bytes` while one of these lives: the nearest that a test comes to a full disk.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit now = {bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_ = {};
};

TEST(Shard, AFullDiskIsSaidAndNothingIsLeft) {
  const io::TemporaryFolder folder;
  // Too small for the tokens, for the documents beside them, for both together at the end.
  const std::pair<int, int> rows[] = {{300, 20'000}, {20'000, 2}, {100, 2'000}};
  for (const auto& [count, longest] : rows) {
    const auto documents = random_documents(count, longest, 300, 2);
    const SmallDisk disk(100'000);
    auto writer = ShardWriter::create(folder.path("a"), {.vocab_size = 300});
    ASSERT_TRUE(writer);
    Status status = Ok{};
    for (const Document& d : documents) {
      status = writer->add(d.ids, {});
      if (!status) break;
    }
    if (status) {
      const auto info = writer->finish();
      ASSERT_FALSE(info);
      status = info.error();
    }
    EXPECT_EQ(status.error().code, ErrorCode::kIo);
    EXPECT_THAT(status.error().where, HasSubstr(folder.path("a")));
  }
  EXPECT_EQ(folder.num_files(), 0U);
}

}  // namespace
}  // namespace plimsoll::datasets
