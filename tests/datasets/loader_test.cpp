// The ring: the batches of any number of threads and any depth are those that reading in order gives.
#include "datasets/loader.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/process.h"
#include "base/thread.h"
#include "datasets/shard_documents.h"
#include "io/temporary_folder.h"
#include "sanitizer.h"

namespace plimsoll::datasets {
namespace {

constexpr int64_t kLength = 16;

/// 1 to 30 tokens each, every second token out of the loss.
std::vector<Document> documents(int count, int32_t base) {
  std::vector<Document> all;
  for (int d = 0; d < count; ++d) {
    Document document;
    document.ids.resize(static_cast<size_t>(2 + d * 7 % 29));
    std::iota(document.ids.begin(), document.ids.end(), base + d);
    for (size_t i = 0; i < document.ids.size(); ++i) document.in_loss.push_back(i % 2 == 1);
    all.push_back(std::move(document));
  }
  return all;
}

class LoaderTest : public testing::Test {
 protected:
  void SetUp() override {
    write_shard(folder_.path("a"), documents(60, 10), {500, 9, true});
    write_shard(folder_.path("b"), documents(23, 200), {500, 9, true});
  }
  TrainingData open(const std::vector<DataFiles>& files, bool shuffle = true,
                    const std::vector<int64_t>& buckets = {}) {
    TrainingDataOptions options;
    if (!buckets.empty()) options.pack.mode = PackMode::kPad;
    options.buckets = buckets;
    options.global_batch_size = 3;
    options.pack.sequence_length = kLength;
    options.vocab_size = 500;
    options.seed = 3;
    options.shuffle = shuffle;
    options.cache_folder = folder_.path("cache");
    auto data = TrainingData::open(files, options);
    EXPECT_TRUE(data) << (data ? "" : data.error().message());
    return std::move(*data);
  }
  const io::TemporaryFolder folder_;
};

struct Batch {
  std::vector<int32_t> values;
  int64_t length = 0, tokens = 0, targets = 0;
  bool operator==(const Batch&) const = default;
};

std::vector<Batch> load(const TrainingData& data, LoaderOptions options, int64_t first, int count) {
  options.batch_size = 3;
  options.tensors = causal_tensors(/*documents=*/true);
  const auto loader = Loader::start(data, options, first);
  EXPECT_TRUE(loader);
  std::vector<Batch> batches;
  for (int i = 0; i < count; ++i) {
    const auto loaded = (*loader)->next();
    EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().message());
    Batch& batch = batches.emplace_back();
    for (const auto& tensor : loaded->tensors) {
      const auto part = row_as<int32_t>(tensor);
      batch.values.insert(batch.values.end(), part.begin(), part.end());
    }
    batch.length = loaded->length;
    batch.tokens = loaded->counts.units;
    batch.targets = loaded->counts.targets;
  }
  return batches;
}

TEST_F(LoaderTest, GivesTheSameBatchesHoweverItReads) {
  const TrainingData data = open({{{folder_.path("a")}}});
  const std::vector<Batch> expected = load(data, {.prefetch = 0}, 0, 40);
  for (const LoaderOptions& options : {LoaderOptions{.prefetch = 1}, LoaderOptions{.num_threads = 0},
                                       LoaderOptions{.prefetch = 5, .num_threads = 3},
                                       LoaderOptions{.prefetch = 2, .num_threads = 4, .grows = true}})
    EXPECT_EQ(load(data, options, 0, 40), expected) << options.prefetch << " ahead";
  // A resume begins in the middle.
  const std::vector<Batch> rest(expected.begin() + 7, expected.end());
  EXPECT_EQ(load(data, {.num_threads = 2}, 21, 33), rest);
}

TEST_F(LoaderTest, CountsWhatTheRowsHold) {
  const TrainingData data = open({{{folder_.path("a")}}});
  for (const Batch& batch : load(data, {}, 0, 5)) {
    const size_t third = batch.values.size() / 3;
    const auto targets = std::span(batch.values).subspan(third, third);
    EXPECT_EQ(batch.targets, std::count_if(targets.begin(), targets.end(), [](int32_t t) { return t >= 0; }));
    EXPECT_LE(batch.tokens, 3 * kLength);
    EXPECT_GT(batch.targets, 0);
  }
}

TEST_F(LoaderTest, StopsWhileBuffersAreFull) {
  const TrainingData data = open({{{folder_.path("a")}}});
  const auto unused =
      Loader::start(data, {.batch_size = 2, .tensors = causal_tensors(false), .num_threads = 2},
                    0);  // its destructor must return
}

TEST_F(LoaderTest, ARefusedThreadIsAnErrorAndTheOthersEnd) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer's own memory needs the room that is taken away here";
  const TrainingData data = open({{{folder_.path("a")}}});
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const rlimit tight = {static_cast<rlim_t>(virtual_bytes() + (64 << 20)), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &tight), 0);  // no room for the stacks of all threads
  const auto refused = Loader::start(
      data, {.batch_size = 2, .tensors = causal_tensors(false), .num_threads = 60, .scratch_bytes = 1 << 18},
      0);
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kIo);
  EXPECT_EQ(Thread::num_running(), 0);
}

TEST_F(LoaderTest, TellsOfAFailureWhenItsTurnComes) {
  const TrainingData data = open({{{folder_.path("a")}}}, /*shuffle=*/false);
  {
    // Damage behind the open file's back: bytes of the first block.
    std::FILE* file = std::fopen(folder_.path("a").c_str(), "r+b");
    std::fseek(file, 128 + 40, SEEK_SET);
    std::fputs("damage damage damage", file);
    std::fclose(file);
  }
  const auto loader = Loader::start(data, {.batch_size = 1, .tensors = causal_tensors(false)}, 0);
  ASSERT_TRUE(loader);
  const auto loaded = (*loader)->next();
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kBadData);
}

TEST_F(LoaderTest, AMixtureKeepsItsShares) {
  const TrainingData data = open({{{folder_.path("a")}, 3}, {{folder_.path("b")}, 1}});
  int64_t of_b = 0;
  const int64_t count = 4096;  // whole blocks
  std::vector<int32_t> tokens(kLength), targets(kLength), starts(kLength);
  const std::span<std::byte> row[] = {std::as_writable_bytes(std::span(tokens)),
                                      std::as_writable_bytes(std::span(targets)),
                                      std::as_writable_bytes(std::span(starts))};
  std::vector<std::byte> scratch(static_cast<size_t>(data.scratch_bytes()));
  for (int64_t p = 0; p < count; ++p) {
    int64_t at = 0;
    ASSERT_TRUE(data.look_up(p, std::span(&at, 1), scratch));
    ASSERT_TRUE(data.read_at(at, row, scratch));
    of_b += tokens[0] >= 200;
  }
  EXPECT_EQ(of_b, count / 4);
  EXPECT_EQ(load(data, {.num_threads = 2}, 0, 20), load(data, {.prefetch = 1}, 0, 20));
}

TEST_F(LoaderTest, BucketsGiveTheSameSequencesInShorterRows) {
  const std::vector<int64_t> lengths = {4, 9, kLength};
  for (const std::vector<DataFiles>& files :
       {std::vector<DataFiles>{{{folder_.path("a")}}},
        std::vector<DataFiles>{{{folder_.path("a")}, 3}, {{folder_.path("b")}, 1}}}) {
    const TrainingData data = open(files, true, lengths), plain = open(files, true, {kLength});
    ASSERT_EQ(data.num_examples(), plain.num_examples());
    const int count = static_cast<int>(data.num_examples() / 3);
    const std::vector<Batch> expected = load(data, {.prefetch = 0}, 0, count);
    EXPECT_EQ(load(data, {.prefetch = 5, .num_threads = 3}, 0, count), expected);
    EXPECT_EQ(load(data, {.num_threads = 2}, 9, count - 3),
              std::vector<Batch>(expected.begin() + 3, expected.end()));
    // Each sequence of an epoch once, whole, in rows that are no longer than its batch needs.
    std::vector<int64_t> lengths_seen(lengths.size());
    std::multiset<std::vector<int32_t>> seen, all;
    const auto add = [](const Batch& batch, std::multiset<std::vector<int32_t>>& to) {
      for (int64_t r = 0; r < 3; ++r) {
        std::vector<int32_t> row(batch.values.begin() + r * batch.length,
                                 batch.values.begin() + (r + 1) * batch.length);
        while (!row.empty() && row.back() == 0) row.pop_back();
        to.insert(std::move(row));
      }
    };
    for (const Batch& batch : expected) {
      ASSERT_EQ(batch.values.size(), static_cast<size_t>(3 * 3 * batch.length));
      ++lengths_seen[static_cast<size_t>(std::find(lengths.begin(), lengths.end(), batch.length) -
                                         lengths.begin())];
      add(batch, seen);
    }
    for (const int64_t n : lengths_seen) EXPECT_GT(n, 0);
    if (files.size() > 1 || data.num_examples() % 3 != 0) continue;
    for (const Batch& batch : load(plain, {}, 0, count)) add(batch, all);
    EXPECT_EQ(seen, all);
  }
}

TEST_F(LoaderTest, BucketsAreInTheFingerprint) {
  std::vector<std::byte> scratch(1 << 16);
  const std::vector<DataFiles> files = {{{folder_.path("a")}}};
  const auto a = open(files, true, {4, kLength}).fingerprint(scratch),
             b = open(files, true, {5, kLength}).fingerprint(scratch);
  ASSERT_TRUE(a && b);
  EXPECT_NE(*a, *b);
}

TEST_F(LoaderTest, RefusesKindsThatDoNotJoin) {
  TrainingDataOptions options;
  options.pack.sequence_length = kLength;
  options.vocab_size = 500;
  options.cache_folder = folder_.path("cache");
  std::FILE* file = std::fopen(folder_.path("t.txt").c_str(), "wb");
  std::fputs("some text that is long enough for a sequence or two", file);
  std::fclose(file);
  const std::vector<DataFiles> both = {{{folder_.path("a"), folder_.path("t.txt")}}};
  const auto data = TrainingData::open(both, options);
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(data.error().where, folder_.path("t.txt"));
}

}  // namespace
}  // namespace plimsoll::datasets
