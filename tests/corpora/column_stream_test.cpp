// Parquet and Arrow files as examples, where the module that reads them was built; folders of datasets'
// always.
#include "corpora/column_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "corpora/example_reader.h"
#include "corpora/saved_dataset.h"
#include "io/file.h"
#include "io/temporary_folder.h"

namespace plimsoll::corpora {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kColumnFolder = std::string(PLIMSOLL_TEST_DIR) + "/corpora/columns";

struct ColumnRead {
  std::vector<Example> examples;
  std::string error;
  SkipCounts skipped;
  int64_t bytes_read = 0, total_bytes = 0;
};

ColumnRead read_columns(const std::string& path, ReaderOptions options = {}) {
  ColumnRead result;
  auto reader = ExampleReader::open(std::vector{path}, std::move(options));
  if (!reader) return result.error = reader.error().message(), result;
  for (Example example;;) {
    const auto more = (*reader)->next(example);
    if (!more) result.error = more.error().message();
    if (!more || !*more) break;
    result.examples.push_back(example);
  }
  result.skipped = (*reader)->skipped();
  result.bytes_read = (*reader)->bytes_read();
  result.total_bytes = (*reader)->total_bytes();
  return result;
}

/// With the module for columns; visibly skipped where it was not built.
class ColumnStreamTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!open_columns(kColumnFolder + "/chats.parquet", ""))
      GTEST_SKIP() << "built without Arrow (tools/columns-env)";
  }
};

TEST_F(ColumnStreamTest, ConversationsOfParquet) {
  const ColumnRead chats = read_columns(kColumnFolder + "/chats.parquet");
  EXPECT_EQ(chats.error, "");
  ASSERT_EQ(chats.examples.size(), 2U);
  EXPECT_EQ(chats.examples[0].record,
            R"({"messages": [{"role": "user", "content": "hello", "weight": null}, )"
            R"({"role": "assistant", "content": "w \"q\"\u000a", "weight": null}]})")
      << "pictures and scores are not read";
  EXPECT_THAT(chats.examples[1].record, HasSubstr("\"\xc3\xa9\""));
  EXPECT_EQ(chats.examples[1].line, 2) << "the row";
  EXPECT_EQ(chats.bytes_read, chats.total_bytes);
}

TEST_F(ColumnStreamTest, RowGroupsInTheirOrder) {
  const ColumnRead many = read_columns(kColumnFolder + "/many.parquet", {.on_error = OnError::kSkip});
  EXPECT_EQ(many.error, "");
  ASSERT_EQ(many.examples.size(), 720U);
  EXPECT_EQ(many.skipped.by_reason.at("missing field"), 180) << "texts that are null";
  EXPECT_EQ(many.examples[0].text, "line 1 1");
  EXPECT_EQ(many.examples[719].text, "line 3 899");
  EXPECT_EQ(many.examples[719].line, 900);
  EXPECT_THAT(read_columns(kColumnFolder + "/many.parquet").error,
              HasSubstr("it has only \"text\", \"label\""));
  EXPECT_EQ(read_columns(kColumnFolder + "/many.parquet", {.on_error = OnError::kSkip, .text_key = "text"})
                .examples.size(),
            720U);
}

TEST_F(ColumnStreamTest, ArrowAsStreamFileAndFolder) {
  for (const char* name : {"/saved", "/file.arrow"}) {
    const ColumnRead rows = read_columns(kColumnFolder + name);
    EXPECT_EQ(rows.error, "");
    ASSERT_GE(rows.examples.size(), 3U);
    EXPECT_EQ(rows.examples[0].text, "say ");
    EXPECT_EQ(rows.examples[0].completion, "hello");
    EXPECT_EQ(rows.examples[2].completion, "d");
  }
  EXPECT_EQ(read_columns(kColumnFolder + "/saved").examples.size(), 4U) << "of both files";
  EXPECT_EQ(read_columns(kColumnFolder + "/saved", {.text_key = "kind"}).examples[1].text, "y")
      << "of a dictionary";
}

TEST_F(ColumnStreamTest, TypesAreSpelledAsPythonDoes) {
  for (const char* name : {"/types.parquet", "/types.arrow"}) {
    const ColumnRead rows = read_columns(kColumnFolder + name);
    EXPECT_EQ(rows.error, "") << name;
    ASSERT_EQ(rows.examples.size(), 1U);
    EXPECT_EQ(
        rows.examples[0].record,
        R"({"messages": [{"role": "assistant", "content": "ok", "whole": 3.0, "large": 1e+16, )"
        R"("single": 0.10000000149011612, "half": 1.5, "small": 1e-07, "none": null, "money": 1.50, )"
        R"("bytes": "a\"b", "map": {"x": 1.0, "y": null}, "view": [1, 2], "day": "2024-01-02", )"
        R"("time": "03:04:05", "at": "2024-01-02 03:04:05.000060", "utc": "1969-12-31 23:59:59+00:00", )"
        R"("uuid": "00000000-0000-0000-0000-000000000005", "bool8": true, )"
        R"("json": {"a":  3.0, "b": [null, "\n"]}}], "tools": [{"name": "f"}]})")
        << name;
  }
}

TEST_F(ColumnStreamTest, TypesThatAreNotReadAreNamed) {
  const ColumnRead rows = read_columns(kColumnFolder + "/unread.arrow");
  EXPECT_THAT(rows.error, HasSubstr("it has the column tools[].a, of type duration[us], which is not read"));
  EXPECT_THAT(rows.error, HasSubstr("unread.arrow"));
  EXPECT_EQ(read_columns(kColumnFolder + "/unread.arrow", {.text_key = "text"}).examples.size(), 1U)
      << "what nobody wants may have any type";
}

TEST_F(ColumnStreamTest, JsonThatIsNoneIsItsRowsError) {
  EXPECT_THAT(read_columns(kColumnFolder + "/broken_json.arrow").error, HasSubstr("line 2"));
  const ColumnRead rows = read_columns(kColumnFolder + "/broken_json.arrow", {.on_error = OnError::kSkip});
  EXPECT_EQ(rows.error, "");
  ASSERT_EQ(rows.examples.size(), 2U);
  EXPECT_EQ(rows.examples[1].text, "c");
  EXPECT_EQ(rows.skipped.by_reason.at("not JSON"), 1);
}

TEST_F(ColumnStreamTest, DamageIsAnErrorOfTheFile) {
  const io::TemporaryFolder folder;
  for (const char* name : {"/many.parquet", "/file.arrow", "/saved/data-00000-of-00002.arrow"}) {
    const auto content = io::read_small_file(kColumnFolder + name, 1 << 20);
    ASSERT_TRUE(content);
    const std::string ending = std::filesystem::path(name).extension();
    size_t failures = 0;
    for (size_t at = 0; at < content->size(); at += 61) {
      std::string broken = *content;
      broken[at] = static_cast<char>(broken[at] ^ 0x55);
      const ColumnRead result = read_columns(folder.write("x" + ending, broken));
      failures += !result.error.empty();
      for (const Example& example : result.examples) EXPECT_LT(example.text.size(), 1000U);
    }
    EXPECT_GT(failures, 0U) << name;
    for (const size_t size : {size_t{0}, size_t{5}, content->size() / 2}) {
      const ColumnRead cut = read_columns(folder.write("x" + ending, content->substr(0, size)));
      EXPECT_THAT(cut.error, HasSubstr("x" + ending)) << size;
    }
  }
}

TEST(SavedDataset, ListsItsFiles) {
  EXPECT_THAT(expand_data(kColumnFolder + "/saved/").value(),
              ElementsAre(kColumnFolder + "/saved/data-00000-of-00002.arrow",
                          kColumnFolder + "/saved/data-00001-of-00002.arrow"));
  EXPECT_THAT(expand_data(kColumnFolder + "/chats.parquet").value(),
              ElementsAre(kColumnFolder + "/chats.parquet"));
  const auto splits = expand_data(kColumnFolder + "/splits");
  ASSERT_FALSE(splits);
  EXPECT_THAT(splits.error().message(), HasSubstr("holds the splits train, test"));
  EXPECT_THAT(splits.error().hint, HasSubstr("/splits/train"));
  const auto other = expand_data(kColumnFolder);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message(), HasSubstr("this is a folder"));
}

TEST(SavedDataset, BelievesNoForeignNames) {
  const io::TemporaryFolder folder;
  for (const char* state :
       {R"({"_data_files": [{"filename": "../x.arrow"}]})",
        R"({"_data_files": [{"filename": "/etc/x.arrow"}]})", R"({"_data_files": [{"filename": "a.txt"}]})",
        R"({"_data_files": []})", R"({})", R"([)"}) {
    folder.write("state.json", state);
    const auto files = expand_data(folder.path());
    ASSERT_FALSE(files) << state;
    EXPECT_EQ(files.error().code, ErrorCode::kBadData);
    EXPECT_THAT(files.error().where, HasSubstr("state.json"));
  }
}

}  // namespace
}  // namespace plimsoll::corpora
