// CSV by RFC 4180: what it allows is read, in pieces of any size, what it does not is refused.
#include "corpora/csv_row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corpora/example_reader.h"
#include "io/temporary_folder.h"

namespace plimsoll::corpora {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// The rows of a file that comes in pieces of `step` bytes; the error behind them where there is one.
std::vector<std::vector<std::string>> csv_rows_of(std::string_view file, size_t step) {
  std::vector<std::vector<std::string>> rows;
  CsvRow row(',');
  int64_t lines = 0;
  const auto add = [&] {
    auto& fields = rows.emplace_back();
    for (size_t i = 0; i < row.size(); ++i) fields.emplace_back(row.field(i));
    row.reset();
  };
  bool inside = false;
  for (size_t at = 0; at < file.size();) {
    bool ended = false;
    at += row.advance(file.substr(at, step), ended, lines);
    inside = !ended;
    if (!row.error().empty()) return rows.push_back({std::string(row.error())}), rows;
    if (ended) add();
  }
  if (inside && !row.finish())
    rows.push_back({std::string(row.error())});
  else if (inside)
    add();
  return rows;
}

TEST(CsvRow, ReadsWhatTheRfcAllows) {
  const std::string_view file = "a,b\r\n\"x, \"\"y\"\"\nz\",\r\n,\"\"\n\"1\",2";
  for (const size_t step : {size_t{1}, size_t{2}, size_t{5}, size_t{100}})
    EXPECT_THAT(csv_rows_of(file, step), ElementsAre(ElementsAre("a", "b"), ElementsAre("x, \"y\"\nz", ""),
                                                     ElementsAre("", ""), ElementsAre("1", "2")))
        << step;
}

TEST(CsvRow, RefusesTheRest) {
  for (const size_t step : {size_t{1}, size_t{100}}) {
    EXPECT_THAT(csv_rows_of("a\"b\n", step),
                ElementsAre(ElementsAre("a quote stands in a field that is not quoted")));
    EXPECT_THAT(csv_rows_of("\"a\"b\n", step), ElementsAre(ElementsAre("something follows a closing quote")));
    EXPECT_THAT(csv_rows_of("a\rb\n", step), ElementsAre(ElementsAre("a carriage return stands alone")));
    EXPECT_THAT(csv_rows_of("a\r", step), ElementsAre(ElementsAre("a carriage return stands alone")));
    EXPECT_THAT(csv_rows_of("a\n\"b\n", step),
                ElementsAre(ElementsAre("a"), ElementsAre("the file ends within quotes")));
  }
}

TEST(CsvRow, BecomesAnObject) {
  const auto object = [](const std::vector<std::string>& names, std::string_view line) {
    CsvRow row(',');
    bool ended = false;
    int64_t lines = 0;
    row.advance(line, ended, lines);
    std::string out;
    append_object(names, row, out);
    return out;
  };
  EXPECT_EQ(object({"text", "label"}, "\"a \"\"b\"\"\nc\",3\n"), R"({"text": "a \"b\"\u000ac", "label": 3})");
  EXPECT_EQ(object({"text", "label"}, "5,pos\n"), R"({"text": "5", "label": "pos"})");
  EXPECT_EQ(object({"text", "label"}, ",\"[0, 1]\"\n"), R"({"text": "", "label": [0, 1]})");
  EXPECT_EQ(object({"messages", "text_pair", "x"}, ",,\n"), R"({"x": ""})");
  EXPECT_EQ(object({"messages"}, "\"[{\"\"role\"\": \"\"user\"\"}]\"\n"),
            R"({"messages": [{"role": "user"}]})");
  EXPECT_EQ(object({"messages"}, "[{'role': 'user'}]\n"), R"({"messages": "[{'role': 'user'}]"})")
      << "Python's spelling is no JSON, which whoever reads it says";
}

struct CsvRead {
  std::vector<Example> examples;
  std::string error;
  SkipCounts skipped;
};

CsvRead read_csv(const std::string& path, OnError on_error = OnError::kFail) {
  CsvRead result;
  auto reader = ExampleReader::open(std::vector{path}, {.on_error = on_error, .max_record_bytes = 2000});
  EXPECT_TRUE(reader) << reader.error().message();
  for (Example example; reader;) {
    const auto more = (*reader)->next(example);
    result.skipped = (*reader)->skipped();
    if (!more) result.error = more.error().message();
    if (!more || !*more) break;
    result.examples.push_back(example);
  }
  return result;
}

TEST(CsvRow, OfAFileAreExamples) {
  const io::TemporaryFolder folder;
  const CsvRead rows = read_csv(folder.write(
      "a.csv", "\xEF\xBB\xBFprompt,completion,id\r\n\r\n\"two\nlines\",done,1\r\nq,\"a, b\",2\r\n"));
  EXPECT_EQ(rows.error, "");
  ASSERT_EQ(rows.examples.size(), 2U);
  EXPECT_EQ(rows.examples[0].text, "two\nlines");
  EXPECT_EQ(rows.examples[0].line, 3);
  EXPECT_EQ(rows.examples[1].completion, "a, b");
  EXPECT_EQ(rows.examples[1].line, 5);
  EXPECT_EQ(read_csv(folder.write("a.tsv", "text\tid\nx, y\t1\n")).examples[0].text, "x, y");
}

TEST(CsvRow, ErrorsNameTheLine) {
  const io::TemporaryFolder folder;
  const std::string few = folder.write("a.csv", "text,id\na,1\nb\nc,3\n");
  EXPECT_THAT(read_csv(few).error, HasSubstr("the row has 1 fields, the first row 2: " + few + ": line 3"));
  const CsvRead lenient = read_csv(few, OnError::kSkip);
  EXPECT_EQ(lenient.examples.size(), 2U);
  EXPECT_EQ(lenient.skipped.by_reason.at("not CSV"), 1);
  const auto refused = [&](const std::string& content, const char* what) {
    EXPECT_THAT(read_csv(folder.write("b.csv", content)).error, HasSubstr(what)) << content;
  };
  refused("text,text\na,b\n", "has \"text\" twice");
  refused("text,\na,b\n", "column 2 has no name");
  refused("text\n\"a\n", "ends within quotes");
  refused("text\na\"b\n", "the file is no CSV: a quote stands in a field");
  refused("body\na\n", "it has only \"body\"");
  refused("text\n\"" + std::string(5000, 'x') + "\"\n", "the row is longer than");
  refused("", "the file is empty");
  refused("text\n", "the file has no content");
}

}  // namespace
}  // namespace plimsoll::corpora
