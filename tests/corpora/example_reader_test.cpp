// Files to examples: kinds of lines, kinds of files, what is wrong with them.
#include "corpora/example_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corpora/packed.h"
#include "corpora/parse_example.h"
#include "io/json.h"
#include "io/temporary_folder.h"

namespace plimsoll::corpora {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

struct Read {
  std::vector<Example> examples;
  SkipCounts skipped;
  std::optional<Error> error;
};

Read read(std::vector<std::string> paths, ReaderOptions options = {}) {
  Read result;
  auto reader = ExampleReader::open(paths, std::move(options));
  if (!reader) return result.error = reader.error(), result;
  for (Example example;;) {
    auto more = (*reader)->next(example);
    result.skipped = (*reader)->skipped();
    if (!more) return result.error = more.error(), result;
    if (!*more) break;
    result.examples.push_back(example);
  }
  EXPECT_EQ((*reader)->bytes_read(), (*reader)->total_bytes());
  return result;
}

class ExampleReaderTest : public testing::Test {
 protected:
  Example line(const std::string& json) {
    const Read result = read({folder_.write("line.jsonl", json + "\n")});
    EXPECT_FALSE(result.error) << result.error->message();
    EXPECT_EQ(result.examples.size(), 1U);
    return result.examples.empty() ? Example{} : result.examples[0];
  }
  /// A file of the line between two good ones: the error, and what skipping counts.
  void expect_bad(const std::string& bad, const std::string& what, const std::string& reason) {
    const std::string good = R"({"text": "good"})";
    const std::string path = folder_.write("bad.jsonl", good + "\n" + bad + "\n" + good + "\n");
    const Read failed = read({path});
    ASSERT_TRUE(failed.error) << bad;
    EXPECT_EQ(failed.error->code, ErrorCode::kBadData);
    EXPECT_THAT(failed.error->what, HasSubstr(what)) << bad;
    EXPECT_THAT(failed.error->where, HasSubstr("bad.jsonl: line 2"));
    EXPECT_FALSE(failed.error->hint.empty());
    const Read passed = read({path}, {.on_error = OnError::kSkip});
    EXPECT_FALSE(passed.error);
    EXPECT_EQ(passed.examples.size(), 2U);
    EXPECT_THAT(passed.skipped.by_reason, ElementsAre(Pair(reason, 1))) << bad;
  }
  io::TemporaryFolder folder_;
};

/// A file is read in blocks; how many records it has is estimated by those that were looked at.
TEST_F(ExampleReaderTest, TellsWhatTheRecordsSoFarTake) {
  std::string lines;
  for (int i = 0; i < 1000; ++i)
    lines += R"({"text": "a line of forty-eight bytes, all alike"})"
             "\n";
  const auto reader = ExampleReader::open(std::vector{folder_.write("lines.jsonl", lines)}, {});
  ASSERT_TRUE(reader);
  Example example;
  for (int i = 0; i < 250; ++i) ASSERT_TRUE((*reader)->next(example));
  EXPECT_EQ((*reader)->records().bytes_of_records() * 4, (*reader)->total_bytes());
  EXPECT_EQ((*reader)->bytes_read(), (*reader)->total_bytes());
}

TEST_F(ExampleReaderTest, TellsKindsByTheirMembers) {
  Example e = line(R"({"id": 7, "text": "a\u00e9\n\"b\"", "meta": {"x": [1, null]}})");
  EXPECT_EQ(e.kind, ExampleKind::kText);
  EXPECT_EQ(e.text, "a\u00e9\n\"b\"");
  EXPECT_EQ(e.line, 1);
  e = line(R"( {"prompt": "2+2=", "completion": " 4", "text": "no"} )");
  EXPECT_EQ(e.kind, ExampleKind::kCompletion);
  EXPECT_EQ(e.text, "2+2=");
  EXPECT_EQ(e.completion, " 4");
  e = line(R"({"messages": [{"role": "user", "content": "hi"}], "tools": [], "text": null, "score": NaN})");
  EXPECT_EQ(e.kind, ExampleKind::kMessages);
  EXPECT_EQ(e.record, R"({"messages": [{"role": "user", "content": "hi"}], "tools": []})")
      << "what a template sees, and no more";
  e = line(R"({"text": ""})");
  EXPECT_EQ(e.text, "");
}

TEST_F(ExampleReaderTest, WritesAlpacasPrompts) {
  Example e = line(R"({"instruction": "Add.", "input": "1, 2", "output": "3"})");
  EXPECT_EQ(e.kind, ExampleKind::kCompletion);
  EXPECT_THAT(e.text,
              testing::StartsWith("Below is an instruction that describes a task, paired with an input"));
  EXPECT_THAT(e.text, testing::EndsWith("### Instruction:\nAdd.\n\n### Input:\n1, 2\n\n### Response:\n"));
  EXPECT_EQ(e.completion, "3");
  for (const char* rest : {"", R"("input": "", )", R"("input": null, )"}) {
    e = line(std::string(R"({"instruction": "Add.", )") + rest + R"("output": "3"})");
    EXPECT_THAT(e.text, testing::StartsWith("Below is an instruction that describes a task. Write"));
    EXPECT_THAT(e.text, testing::EndsWith("request.\n\n### Instruction:\nAdd.\n\n### Response:\n"));
  }
}

TEST_F(ExampleReaderTest, TurnsOtherConversationsIntoMessages) {
  Example e =
      line(R"({"id": 1, "system": "Be \"kind\".", "conversations": [{"from": "human", "value": "a\nb"}, )"
           R"({"from": "gpt", "value": "c"}], "tools": [1]})");
  EXPECT_EQ(e.kind, ExampleKind::kMessages);
  auto record = io::parse_json(e.record);
  ASSERT_TRUE(record) << e.record;
  EXPECT_EQ(io::to_json(*record->find("messages")),
            R"([{"role": "system", "content": "Be \"kind\"."}, {"role": "user", "content": "a\nb"}, )"
            R"({"role": "assistant", "content": "c"}])");
  EXPECT_NE(record->find("tools"), nullptr);
  e = line(
      R"({"prompt": [{"role": "user", "content": "a"}], "completion": [{"role": "assistant", "content": "b"}], "documents": [1], "k": NaN})");
  EXPECT_EQ(
      e.record,
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "documents": [1]})");
  EXPECT_EQ(e.prompt_record, R"({"messages": [{"role": "user", "content": "a"}], "documents": [1]})");
  e = line(R"({"conversations": [{"role": "user", "content": "a"}]})");
  EXPECT_EQ(e.record, R"({"messages": [{"role": "user", "content": "a"}]})");
}

TEST_F(ExampleReaderTest, RepairsTextForTemplates) {
  const Example e = line("{\"messages\": [{\"role\": \"user\", \"content\": \"\\ud83dx\xff\"}]}");
  EXPECT_EQ(e.record, "{\"messages\": [{\"role\": \"user\", \"content\": \"\\ufffdx\xEF\xBF\xBD\"}]}");
}

TEST_F(ExampleReaderTest, TokensWithTheirMasks) {
  const Example plain = line(R"({"input_ids": [5, 0, 7]})");
  EXPECT_EQ(plain.kind, ExampleKind::kTokens);
  EXPECT_THAT(plain.ids, ElementsAre(5, 0, 7));
  EXPECT_TRUE(plain.in_loss.empty());
  const Example labels =
      line(R"({"input_ids": [5, 0, 7], "labels": [-100, 0, 7], "attention_mask": [1, 1, 0]})");
  EXPECT_THAT(labels.ids, ElementsAre(5, 0)) << "padding is left away";
  EXPECT_THAT(labels.in_loss, ElementsAre(0, 1));
  EXPECT_THAT(line(R"({"input_ids": [5, 6], "completion_mask": [0, 1], "assistant_masks": [1, 1]})").in_loss,
              ElementsAre(0, 1));
  const Example both = line(R"({"text": "a", "input_ids": [5]})");
  EXPECT_EQ(both.kind, ExampleKind::kTokens) << "as in TRL";
  EXPECT_TRUE(both.has_text_beside);
  EXPECT_FALSE(plain.has_text_beside);
  Example words;
  ASSERT_FALSE(parse_example(R"({"text": "a", "input_ids": [5]})", "", words, Prefers::kText));
  EXPECT_EQ(words.kind, ExampleKind::kText) << "for who looks for words";
  EXPECT_TRUE(line(R"({"text": "a", "labels": [5]})").has_idle_labels);
}

TEST_F(ExampleReaderTest, RowsThatArePackedAreDocuments) {
  for (const char* said : {R"("seq_lengths": [2, 1])", R"("position_ids": [0, 1, 0])",
                           R"("cu_seqlens": [0, 2, 3])", R"("attention_mask": [1, 1, 2])",
                           R"("seq_idx": [4, 4, 9], "seq_lengths": [2, 1], "cu_seq_lens_q": [0, 2, 3])"})
    EXPECT_THAT(line(std::string(R"({"input_ids": [5, 6, 7], )") + said + "}").ends, ElementsAre(2, 3))
        << said;
  const Example padded = line(
      R"({"input_ids": [0, 5, 6, 7, 0], "attention_mask": [0, 1, 1, 1, 0], "position_ids": [1, 0, 1, 0, 1]})");
  EXPECT_THAT(padded.ids, ElementsAre(5, 6, 7));
  EXPECT_THAT(padded.ends, ElementsAre(2, 3)) << "counted among what is kept";
  for (const char* one : {R"("seq_lengths": [3])", R"("position_ids": [0, 1, 2])", R"("seq_idx": [0, 0, 0])"})
    EXPECT_TRUE(line(std::string(R"({"input_ids": [5, 6, 7], )") + one + "}").ends.empty()) << one;
  const auto bad = [this](const std::string& said, const std::string& what) {
    expect_bad(R"({"input_ids": [5, 6, 7], )" + said + "}", what, "wrong type");
  };
  bad(R"("seq_lengths": [2, 2])", "\"seq_lengths\" adds up to 4, and \"input_ids\" has 3 values");
  bad(R"("seq_lengths": [2, 1], "position_ids": [0, 0, 1])",
      "\"seq_lengths\" and \"position_ids\" disagree about where documents begin (token 2)");
  bad(R"("position_ids": [0, 1])", "\"position_ids\" has 2 values, \"input_ids\" 3");
}

TEST_F(ExampleReaderTest, SystemIsTheFirstMessage) {
  const std::string rest = R"("messages": [{"role": "user", "content": "a"}]})";
  EXPECT_EQ(line(R"({"system": "S", )" + rest).record,
            R"({"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "a"}]})");
  for (const char* none : {R"("system": "", )", R"("system": null, )"})
    EXPECT_EQ(line("{" + std::string(none) + rest).record,
              R"({"messages": [{"role": "user", "content": "a"}]})");
  const std::string own = R"("messages": [{"role": "system", "content": "S"}]})";
  EXPECT_EQ(line(R"({"system": "S", )" + own).record,
            R"({"messages": [{"role": "system", "content": "S"}]})");
  expect_bad(R"({"system": "T", )" + own, "\"system\" is not what the conversation's own system message says",
             "bad conversation");
  expect_bad(R"({"system": [1], )" + rest, "\"system\" is a list, expected a string", "wrong type");
  const Example asked = line(
      R"({"system": "S", "prompt": [{"role": "user", "content": "a"}], "completion": [{"role": "assistant", "content": "b"}]})");
  EXPECT_EQ(asked.prompt_record,
            R"({"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "a"}]})");
  EXPECT_TRUE(line(R"({"system": "S", "prompt": "a", "completion": "b"})").has_idle_system);
}

TEST_F(ExampleReaderTest, AlpacaWithSystemAndHistory) {
  const Example e =
      line(R"({"instruction": "c", "output": "d", "system": "S", "history": [["a", "b\n"]], "input": ""})");
  EXPECT_EQ(e.text,
            "S\n\n### Instruction:\na\n\n### Response:\nb\n\n\n### Instruction:\nc\n\n### Response:\n");
  EXPECT_EQ(e.completion, "d");
  EXPECT_THAT(line(R"({"instruction": "c", "output": "d", "system": "", "history": []})").text,
              testing::EndsWith("request.\n\n### Instruction:\nc\n\n### Response:\n"));
  expect_bad(R"({"instruction": "c", "output": "d", "history": [["a"]]})",
             "history[0] is a list of 1, expected pairs of two texts", "bad conversation");
  expect_bad(R"({"instruction": "c", "output": "d", "history": "x"})", "\"history\" is a string",
             "bad conversation");
}

TEST_F(ExampleReaderTest, ListsMayStandInTexts) {
  const Example e = line(
      R"({"messages": "[{\"role\": \"user\", \"content\": \"\\ud83d\"}]", "tools": "[{\"name\": \"f\"}]"})");
  EXPECT_EQ(e.record, R"({"messages": [{"role": "user", "content": "\ufffd"}], "tools": [{"name": "f"}]})");
  EXPECT_EQ(line(R"({"messages": [{"role": "user", "content": "a"}], "tools": ""})").record,
            R"({"messages": [{"role": "user", "content": "a"}], "tools": null})");
}

TEST_F(ExampleReaderTest, NamesWhatIsWrongWithALine) {
  expect_bad("{\"text\": \"a", "no JSON: a string breaks off (byte 12)", "not JSON");
  expect_bad("{\"text\": \"a\"} x", "something follows the end", "not JSON");
  expect_bad("hello", "no JSON: expected a value (byte 1)", "not JSON");
  expect_bad("[1, 2]", "the line is a list, expected an object", "not an object");
  expect_bad("\"text\"", "the line is a string, expected an object", "not an object");
  expect_bad("{}", "it has no members", "missing field");
  expect_bad(R"({"content": "a", "id": 1})", R"(only "content", "id")", "missing field");
  expect_bad(R"({"text": null})", "only \"text\"", "missing field");
  expect_bad(R"({"text": 5})", "\"text\" is a number, expected a string", "wrong type");
  expect_bad(R"({"text": ["a"]})", "\"text\" is a list, expected a string", "wrong type");
  expect_bad(R"({"text": "a", "text": "b"})", "\"text\" twice", "a key twice");
  expect_bad(R"({"prompt": "a"})", "no \"completion\"", "missing field");
  for (const char* pair : {R"({"prompt": "a", "chosen": "b", "rejected": "c"})",
                           R"({"chosen": [{"role": "user", "content": "a"}], "rejected": []})"})
    expect_bad(pair, "preference pair (chosen, rejected), for which there is no task", "preference pair");
  expect_bad(R"({"input_ids": 3})", "\"input_ids\" is a number, expected a list", "wrong type");
  expect_bad(R"({"input_ids": [1, -2]})", "holds -2, expected ids from 0 on", "wrong type");
  expect_bad(R"({"input_ids": [1, 2.5]})", "holds 2.5, expected integers", "wrong type");
  expect_bad(R"({"input_ids": [99999999999]})", "holds 99999999999, expected integers", "wrong type");
  expect_bad(R"({"input_ids": [1, 2], "labels": [1]})", "\"labels\" has 1 values, \"input_ids\" 2",
             "wrong type");
  expect_bad(R"({"input_ids": [1, 2], "labels": [-100, 3]})", "holds 3 where \"input_ids\" holds 2",
             "wrong type");
  expect_bad(R"({"prompt": [], "completion": "b"})", "\"prompt\" is empty", "bad conversation");
  expect_bad(R"({"prompt": [{"role": "user"}], "completion": "b"})",
             "\"completion\" is a string, expected a list", "wrong type");
  expect_bad(R"({"instruction": "a"})", "no \"output\"", "missing field");
  expect_bad(R"({"messages": "a"})", "\"messages\" is a string, expected a list", "wrong type");
  expect_bad(R"({"messages": []})", "\"messages\" is empty", "bad conversation");
  expect_bad(R"({"messages": [3]})", "messages[0] is a number, expected an object", "bad conversation");
  expect_bad(R"({"messages": [{"content": "a"}]})", "messages[0] has no \"role\"", "bad conversation");
  expect_bad(R"({"conversations": [{"from": "alien", "value": "a"}]})", "is from 'alien'",
             "bad conversation");
  expect_bad(R"({"conversations": [{"from": "human"}]})", "no \"from\" and \"value\"", "bad conversation");
}

TEST_F(ExampleReaderTest, ReadsLinesAsPeopleWriteThem) {
  const std::string path = folder_.write(
      "a.jsonl", "\xEF\xBB\xBF{\"text\": \"a\"}\r\n\r\n  \n\t{\"text\": \"b\"}\n\n{\"text\": \"c\"}");
  const Read result = read({path});
  ASSERT_FALSE(result.error) << result.error->message();
  ASSERT_EQ(result.examples.size(), 3U);
  EXPECT_EQ(result.examples[0].text, "a");
  EXPECT_EQ(result.examples[1].line, 4);
  EXPECT_EQ(result.examples[2].line, 6);
  const Read utf16 = read({folder_.write("b.jsonl", std::string("\xFF\xFE{\0", 4))});
  ASSERT_TRUE(utf16.error);
  EXPECT_THAT(utf16.error->hint, HasSubstr("iconv"));
}

TEST_F(ExampleReaderTest, ReadsListsOfObjects) {
  const std::string content = "[\n  {\"text\": \"a]}\\\"\"},\n  {\"text\":\n \"b\"}\n , 5 ]\n";
  const std::string path = folder_.write("a.json", content);
  const Read result = read({path}, {.on_error = OnError::kSkip});
  ASSERT_FALSE(result.error) << result.error->message();
  ASSERT_EQ(result.examples.size(), 2U);
  EXPECT_EQ(result.examples[0].text, "a]}\"");
  EXPECT_EQ(result.examples[1].text, "b");
  EXPECT_EQ(result.examples[1].line, 3);
  EXPECT_THAT(result.skipped.by_reason, ElementsAre(Pair("not an object", 1)));
  for (size_t size = 1; size + 2 < content.size(); ++size) {
    const Read cut = read({folder_.write("cut.json", content.substr(0, size))});
    EXPECT_TRUE(cut.error) << content.substr(0, size);
  }
  EXPECT_TRUE(read({folder_.write("c.json", "[{\"text\": \"a\"} {\"text\": \"b\"}]")}).error);
  EXPECT_EQ(read({folder_.write("d.json", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n")}).examples.size(), 2U);
}

TEST_F(ExampleReaderTest, LineNumbersAndLimits) {
  std::string content;
  for (int i = 0; i < 5000; ++i)
    content += "{\"text\": \"" + std::string(static_cast<size_t>(i % 300), 'x') + "\"}\n";
  content += "{\"text\": \"" + std::string(500'000, 'y') + "\"}\n{\"text\": \"end\"}\n";
  const std::string path = folder_.write("a.jsonl.gz", gzip(content));
  EXPECT_EQ(read({path}).examples.size(), 5002U);
  const Read failed = read({path}, {.max_record_bytes = 1000});
  ASSERT_TRUE(failed.error);
  EXPECT_THAT(failed.error->message(), HasSubstr("the line is longer than 1000 B"));
  EXPECT_THAT(failed.error->where, HasSubstr("line 5001"));
  const Read passed = read({path}, {.on_error = OnError::kSkip, .max_record_bytes = 1000});
  EXPECT_EQ(passed.examples.size(), 5001U);
  EXPECT_EQ(passed.examples.back().text, "end");
  EXPECT_THAT(passed.skipped.by_reason, ElementsAre(Pair("too long", 1)));
}

TEST_F(ExampleReaderTest, TextIsADocumentAFile) {
  const std::string first = folder_.write("a.txt", "{\"text\": 1}\r\nline\n");
  const std::string second = folder_.write("b.md", "\xff second");
  folder_.write("c1.py", "x = 1\n");
  folder_.write("c2.py.zst", zstd("y = 2\n"));
  const Read result = read({second, first, folder_.path("c*")});
  ASSERT_FALSE(result.error);
  ASSERT_EQ(result.examples.size(), 4U);
  EXPECT_EQ(result.examples[0].text, "\xff second");
  EXPECT_EQ(result.examples[1].text, "{\"text\": 1}\r\nline\n");
  EXPECT_EQ(result.examples[1].line, 0);
  EXPECT_EQ(result.examples[3].text, "y = 2\n");
  EXPECT_TRUE(result.examples[3].first);
  EXPECT_FALSE(result.examples[3].continues);
}

TEST_F(ExampleReaderTest, LongTextComesInPieces) {
  const std::string content = some_text(100'000);
  const std::string path = folder_.write("a.txt", content);
  const auto behind_line = [](std::string_view t) { return t.rfind('\n') == t.npos ? 0 : t.rfind('\n') + 1; };
  const Read result = read({path, path}, {.piece_bytes = 3000, .cut = behind_line});
  std::string all;
  int documents = 0;
  for (const Example& piece : result.examples) {
    EXPECT_EQ(piece.first, all.empty());
    EXPECT_TRUE(!piece.continues || piece.text.back() == '\n');
    all += piece.text;
    if (piece.continues) continue;
    EXPECT_TRUE(all == content);
    all.clear();
    ++documents;
  }
  EXPECT_EQ(documents, 2);
  EXPECT_GT(result.examples.size(), 60U);
}

TEST_F(ExampleReaderTest, TextWithoutACutIsBounded) {
  const std::string path = folder_.write("a.txt", std::string(1'000'000, 'x'));
  const auto never = [](std::string_view) -> size_t { return 0; };
  EXPECT_EQ(read({path}, {.piece_bytes = 1000, .cut = never}).examples.size(), 1U);
  const Read failed = read({path}, {.max_record_bytes = 600'000, .piece_bytes = 1000, .cut = never});
  ASSERT_TRUE(failed.error);
  EXPECT_THAT(failed.error->what, HasSubstr("no place to cut"));
  const Read passed =
      read({path, folder_.write("b.txt", "b")},
           {.on_error = OnError::kSkip, .max_record_bytes = 600'000, .piece_bytes = 1000, .cut = never});
  ASSERT_EQ(passed.examples.size(), 1U);
  EXPECT_THAT(passed.skipped.by_reason, ElementsAre(Pair("too long", 1)));
}

TEST_F(ExampleReaderTest, DamagedAndEmptyFiles) {
  std::string packed = gzip("{\"text\": \"" + some_text(10'000).substr(0, 5) + "\"}\n");
  const std::string good = folder_.write("good.jsonl", "{\"text\": \"good\"}");
  packed.resize(packed.size() - 3);
  const std::string damaged = folder_.write("damaged.jsonl.gz", packed);
  const std::string empty = folder_.write("empty.txt", "");
  const std::string blank = folder_.write("blank.jsonl", "\n\n");
  for (const auto& [path, what] :
       {std::pair(damaged, "cut off"), {empty, "is empty"}, {blank, "no content"}}) {
    const Read failed = read({good, path});
    ASSERT_TRUE(failed.error);
    EXPECT_EQ(failed.error->code, ErrorCode::kBadData);
    EXPECT_THAT(failed.error->what, HasSubstr(what));
    EXPECT_THAT(failed.error->where, HasSubstr(path));
  }
  const Read passed = read({empty, damaged, good, blank}, {.on_error = OnError::kSkip});
  EXPECT_THAT(passed.skipped.by_reason, ElementsAre(Pair("damaged file", 1), Pair("empty file", 2)));
  EXPECT_GE(passed.examples.size(), 1U);
  EXPECT_EQ(passed.examples.back().text, "good");
  EXPECT_EQ(read({folder_.path("absent.txt")}, {.on_error = OnError::kSkip}).error->code,
            ErrorCode::kBadData);
  EXPECT_EQ(read({folder_.path("*.none")}).error->code, ErrorCode::kBadData);
}

TEST_F(ExampleReaderTest, ADamagedTextEndsItsDocument) {
  std::string packed = gzip(some_text(3'000'000));
  packed.resize(packed.size() / 2);
  const std::string path = folder_.write("a.txt.gz", packed);
  const Read passed =
      read({path}, {.on_error = OnError::kSkip, .piece_bytes = 1000, .cut = [](std::string_view t) {
                      return t.size() - 1;
                    }});
  ASSERT_GT(passed.examples.size(), 1U);
  EXPECT_FALSE(passed.examples.back().continues);
  EXPECT_FALSE(passed.examples.back().first);
  EXPECT_THAT(passed.skipped.by_reason, ElementsAre(Pair("damaged file", 1)));
}

TEST_F(ExampleReaderTest, OneNamedMember) {
  const std::string path = folder_.write("a.jsonl", R"({"text": "no", "content": "yes", "messages": 3})");
  const Read result = read({path}, {.text_key = "content"});
  ASSERT_EQ(result.examples.size(), 1U);
  EXPECT_EQ(result.examples[0].text, "yes");
}

}  // namespace
}  // namespace plimsoll::corpora
