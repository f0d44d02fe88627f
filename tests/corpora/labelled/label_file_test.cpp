// Label files: what is written comes back, over blocks too, and damage is found.
#include "corpora/labelled/label_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "labelled_files.h"

namespace plimsoll::corpora {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

RawLabel number(float value) { return {RawLabelKind::kNumber, {value}, {}}; }
RawLabel named(std::string name) { return {RawLabelKind::kName, {}, std::move(name)}; }
RawLabel list(std::vector<float> values) { return {RawLabelKind::kList, std::move(values), {}}; }

TEST(LabelFile, HoldsManyEntries) {
  const io::TemporaryFolder folder;
  const std::string path = folder.path("a.labels");
  constexpr int64_t kCount = 5000;
  {
    auto writer = LabelFileWriter::create(path, {"one.jsonl", "two.jsonl"});
    ASSERT_TRUE(writer);
    for (int64_t i = 0; i < kCount; ++i)
      ASSERT_TRUE(writer->add(i % 3 == 0 ? named("n" + std::to_string(i % 7)) : number(static_cast<float>(i)),
                              static_cast<uint32_t>(i % 2), i + 1));
    EXPECT_FALSE(std::filesystem::exists(path)) << "nothing is there before the end";
    ASSERT_TRUE(writer->finish(77));
  }
  const auto file = LabelFile::open(path);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->size(), kCount);
  EXPECT_EQ(file->width(), 1);
  EXPECT_EQ(file->shard_hash(), 77U);
  EXPECT_THAT(file->names(), ElementsAre("n0", "n3", "n6", "n2", "n5", "n1", "n4"));
  std::vector<std::byte> scratch(static_cast<size_t>(file->scratch_bytes()));
  int64_t i = 0;
  const Status visited = file->visit([&](const LabelEntry& entry) -> Status {
    const auto again = file->read(i, scratch);
    EXPECT_TRUE(again && again->line == entry.line && again->values[0] == entry.values[0]);
    EXPECT_EQ(entry.line, i + 1);
    EXPECT_EQ(entry.kind, i % 3 == 0 ? RawLabelKind::kName : RawLabelKind::kNumber);
    EXPECT_EQ(file->place(entry),
              (i % 2 == 0 ? "one" : "two") + std::string(".jsonl: line ") + std::to_string(i + 1));
    ++i;
    return Ok{};
  });
  EXPECT_TRUE(visited);
  EXPECT_EQ(i, kCount);
}

TEST(LabelFile, PathsNeedNotBeUtf8) {
  const io::TemporaryFolder folder;
  auto writer = LabelFileWriter::create(folder.path("a.labels"), {"class \xff\xfe"});
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->add(named("n"), 0, 1));
  ASSERT_TRUE(writer->finish(7));
  const auto file = LabelFile::open(folder.path("a.labels"));
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_TRUE(file->visit([&](const LabelEntry& entry) -> Status {
    EXPECT_EQ(file->place(entry), "class \xEF\xBF\xBD\xEF\xBF\xBD: line 1");
    return Ok{};
  }));
}

TEST(LabelFile, AllLabelsAreAsLongAsTheFirst) {
  const io::TemporaryFolder folder;
  auto writer = LabelFileWriter::create(folder.path("a.labels"), {"x.jsonl"});
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->add(list({0, 1, 1}), 0, 1));
  const auto refusal = [&](const RawLabel& label) {
    const Status status = writer->add(label, 0, 9);
    return status ? std::string("accepted") : status.error().message();
  };
  EXPECT_EQ(refusal(list({0, 1})), "label is a list of 2, the first one a list of 3: x.jsonl: line 9");
  EXPECT_EQ(refusal(number(1)), "label is a single value, the first one a list of 3: x.jsonl: line 9");
  ASSERT_TRUE(writer->add(list({1, 0, 0}), 0, 2));
  ASSERT_TRUE(writer->finish(1));
  const auto file = LabelFile::open(folder.path("a.labels"));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->size(), 2);
  EXPECT_EQ(file->width(), 3);
}

TEST(LabelFile, WideLabelsHaveBlocksOfAFew) {
  const io::TemporaryFolder folder;
  auto writer = LabelFileWriter::create(folder.path("a.labels"), {"x.jsonl"});
  ASSERT_TRUE(writer);
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(writer->add(list(std::vector<float>(9000, static_cast<float>(i))), 0, i));
  ASSERT_TRUE(writer->finish(1));
  const auto file = LabelFile::open(folder.path("a.labels"));
  ASSERT_TRUE(file);
  std::vector<std::byte> scratch(static_cast<size_t>(file->scratch_bytes()));
  EXPECT_LT(scratch.size(), 40000U);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(file->read(i, scratch)->values[8999], static_cast<float>(i));
}

TEST(LabelFile, EveryDamagedByteIsFound) {
  const io::TemporaryFolder folder;
  const LabelFile intact = labels_of(folder, {"\"a\"", "\"b\"", "2"});
  const std::string bytes = io::read_all(intact.path());
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x20);
    const auto file = LabelFile::open(folder.write("damaged.labels", changed));
    if (!file) {
      EXPECT_EQ(file.error().code, ErrorCode::kBadData);
      continue;
    }
    const bool same_text = file->names() == intact.names() && file->files() == intact.files();
    const Status read = file->visit([](const LabelEntry&) -> Status { return Ok{}; });
    EXPECT_TRUE(!read || !same_text) << "byte " << at;
  }
  for (const size_t size : {size_t{0}, size_t{55}, bytes.size() - 1})
    EXPECT_FALSE(LabelFile::open(folder.write("short.labels", bytes.substr(0, size))));
  EXPECT_THAT(LabelFile::open(folder.write("longer.labels", bytes + "x")).error().message(),
              HasSubstr("it is not as long as its header says"));
}

}  // namespace
}  // namespace plimsoll::corpora
