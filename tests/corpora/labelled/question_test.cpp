// Questions from lines and from SQuAD's files, their windows, and where answers lie in them. The tokenizer
// has a token for each letter and for the space, and "ab" as one.
#include "corpora/labelled/question.h"

#include <gmock/gmock.h>

#include "corpora/labelled/labelled_files.h"
#include "corpora/record_reader.h"

namespace plimsoll::corpora {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<Question> parsed(const std::string& json, bool with_answers = true) {
  std::vector<Question> questions;
  const auto wrong = parse_questions(json, "q.jsonl: line 1", with_answers, questions);
  EXPECT_FALSE(wrong) << wrong->error.message();
  return questions;
}
std::string refused(const std::string& json, bool with_answers = true) {
  std::vector<Question> questions;
  const auto wrong = parse_questions(json, "q.jsonl: line 1", with_answers, questions);
  return wrong ? wrong->error.message() : "accepted";
}

TEST(Question, ALineOfDatasets) {
  const auto found = parsed(
      R"({"id": "7", "question": " who?", "context": "né à Paris", "answers": {"text": ["à", "Paris"], "answer_start": [3, 5]}})");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].id, "7");
  EXPECT_EQ(found[0].question, " who?");
  ASSERT_EQ(found[0].answers.size(), 2U);
  EXPECT_EQ(found[0].answers[0].begin, 4U);  // é is two bytes
  EXPECT_EQ(found[0].answers[1].text, "Paris");
  EXPECT_EQ(found[0].answers[1].begin, 7U);
}

TEST(Question, AnswersMayBeAListOrNone) {
  EXPECT_EQ(parsed(R"({"question": "q", "context": "abc", "answers": [{"text": "b", "answer_start": 1}]})")[0]
                .answers[0]
                .begin,
            1U);
  const auto none =
      parsed(R"({"question": "q", "context": "abc", "answers": {"text": [], "answer_start": []}})");
  EXPECT_TRUE(none[0].has_answers);
  EXPECT_THAT(none[0].answers, IsEmpty());
  EXPECT_FALSE(parsed(R"({"question": "q", "context": "abc"})", false)[0].has_answers);
  EXPECT_THAT(refused(R"({"question": "q", "context": "abc"})"), HasSubstr("has no \"answers\""));
}

TEST(Question, WhatIsNullIsNotThere) {
  const auto found = parsed(R"({"id": null, "question": "q", "context": "abc", "answers": null})", false);
  EXPECT_EQ(found[0].id, "");
  EXPECT_FALSE(found[0].has_answers);
  EXPECT_EQ(parsed(R"({"id": 12, "question": "", "context": "", "answers": []})")[0].id, "12");
  EXPECT_THAT(refused(R"({"question": null, "context": "abc"})", false), HasSubstr("has no \"question\""));
}

/// answer_start counts code points, half of a surrogate pair as one.
TEST(Question, CharactersAreNotBytes) {
  const auto begin = [](const std::string& context, const std::string& answer, int start) {
    return parsed(R"({"question": "q", "context": ")" + context + R"(", "answers": {"text": [")" + answer +
                  R"("], "answer_start": [)" + std::to_string(start) + "]}}")[0]
        .answers[0]
        .begin;
  };
  EXPECT_EQ(begin(R"(\ud83d\ude00b)", "b", 1), 4U);
  EXPECT_EQ(begin(R"(\ud800b)", "b", 1), 3U) << "U+FFFD";
  EXPECT_EQ(begin(R"(\u0000b)", "b", 1), 1U);
  EXPECT_EQ(begin(R"(e\u0301b)", R"(\u0301)", 1), 1U) << "an accent of its own";
  EXPECT_EQ(begin("abc", "abc", 0), 0U);
}

TEST(Question, SquadsOwnFile) {
  const auto found = parsed(
      R"({"version": "2", "data": [{"title": "t", "paragraphs": [{"context": "abc", "qas": [
        {"id": "1", "question": "p", "answers": [{"text": "c", "answer_start": 2}]},
        {"id": "2", "question": "q", "is_impossible": true, "answers": [], "plausible_answers": [{"text": "x", "answer_start": 0}]}]},
        {"context": "de", "qas": [{"id": "3", "question": "r", "answers": []}]}]}]})");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].answers[0].begin, 2U);
  EXPECT_TRUE(found[1].has_answers);
  EXPECT_THAT(found[1].answers, IsEmpty());
  EXPECT_EQ(found[2].context, "de");
}

/// Each article of SQuAD's file is a record, however the file is laid out and whatever stands around them.
TEST(Question, SquadsFileIsReadArticleByArticle) {
  const io::TemporaryFolder folder;
  const auto records = [&](const std::string& text) -> Result<std::vector<std::string>> {
    const std::vector<std::string> files = {folder.write("a.json", text)};
    ReaderOptions options;
    options.list_member = kArticles;
    PLIMSOLL_ASSIGN(const auto reader, RecordReader::open(files, options));
    std::vector<std::string> found;
    for (;;) {
      std::string bytes;
      Record record;
      PLIMSOLL_ASSIGN(const bool more, reader->next(bytes, record));
      if (!more) return found;
      found.push_back(bytes.substr(record.begin, record.size));
    }
  };
  const std::string article = R"({"paragraphs": []})";
  EXPECT_THAT(*records(R"({"version": "v, \"]\"", "x": [1, {"data": 2}], "data": [)" + article + ", " +
                       article + R"(], "end": {"a": "}"}})"),
              ElementsAre(article, article));
  EXPECT_THAT(*records("{\n  \"data\":\n  [\n    " + article + "\n  ]\n}\n"), ElementsAre(article));
  // Without that list, an object is a record as before.
  EXPECT_THAT(*records(R"({"question": "data"})"), ElementsAre(R"({"question": "data"})"));
  EXPECT_THAT(*records(R"({"data": {"a": 1}})"), ElementsAre(R"({"data": {"a": 1}})"));
  for (const auto& [text, what] :
       {std::pair<std::string, std::string>{R"({"data": [)" + article, "ends before its"},
        {R"({"data": [)" + article + "]", "the file ends before its object does"},
        {R"({"data": [)" + article + "]} {}", "something follows the end of the object"}}) {
    const auto broken = records(text);
    ASSERT_FALSE(broken) << text;
    EXPECT_THAT(broken.error().what, HasSubstr(what));
  }
}

TEST(Question, OneThatIsWrongMayBeLeftOut) {
  std::vector<Question> questions;
  std::vector<BadExample> passed_over;
  const std::string article =
      R"({"paragraphs": [{"context": "abc", "qas": [
        {"id": "7", "question": "p", "answers": [{"text": "x", "answer_start": 2}]},
        {"id": "8", "question": "q", "answers": [{"text": "c", "answer_start": 2}]}]}]})";
  EXPECT_FALSE(parse_questions(article, "a.json: line 1", true, questions, &passed_over));
  ASSERT_EQ(questions.size(), 1U);
  EXPECT_EQ(questions[0].id, "8");
  ASSERT_EQ(passed_over.size(), 1U);
  EXPECT_THAT(passed_over[0].error.message(), HasSubstr("a.json: line 1, question '7'"));
  EXPECT_TRUE(parse_questions(article, "a.json: line 1", true, questions));
}

TEST(Question, WhatIsWrongIsNamedWithItsPlace) {
  const std::string place = "q.jsonl: line 1";
  EXPECT_THAT(refused("[1]"), HasSubstr("the line is a list, expected an object: " + place));
  EXPECT_THAT(refused(R"({"question": 3, "context": "c", "answers": []})"), HasSubstr("\"question\" is"));
  EXPECT_THAT(refused(R"({"question": "q", "answers": []})"), HasSubstr("has no \"context\""));
  EXPECT_THAT(
      refused(R"({"question": "q", "context": "abc", "answers": {"text": ["c"], "answer_start": [1]}})"),
      HasSubstr("the answer 'c' does not stand at character 1 of the context"));
  EXPECT_THAT(
      refused(R"({"question": "q", "context": "abc", "answers": {"text": ["c"], "answer_start": [900]}})"),
      HasSubstr("does not stand at character 900"));
  EXPECT_THAT(
      refused(R"({"question": "q", "context": "abc", "answers": {"text": ["c"], "answer_start": []}})"),
      HasSubstr("are not as long"));
  EXPECT_THAT(refused(R"({"question": "q", "context": "abc", "answers": [{"text": "", "answer_start": 0}]})"),
              HasSubstr("an empty text"));
  for (const char* start : {"-1", "1.5", "\"1\"", "null", "99999999999999999999"})
    EXPECT_THAT(
        refused(R"({"question": "q", "context": "abc", "answers": {"text": ["b"], "answer_start": [)" +
                std::string(start) + "]}}"),
        HasSubstr("an \"answer_start\" from 0 on"))
        << start;
  EXPECT_THAT(refused(R"({"question": "q", "context": "abc", "answers": ["b"]})"),
              HasSubstr("an answer needs"));
  EXPECT_THAT(refused(R"({"question": "q", "context": "abc", "answers": "b"})"),
              HasSubstr("\"answers\" is a string"));
  EXPECT_THAT(refused(R"({"question": "q", "context": "abc")"), HasSubstr("the line is no JSON"));
  EXPECT_THAT(
      refused(
          R"({"data": [{"paragraphs": [{"context": "ab", "qas": [{"question": "q", "answers": [{"text": "b", "answer_start": 0}]}]}]}]})"),
      HasSubstr("does not stand at character 0"));
  EXPECT_THAT(refused(R"({"data": [{"paragraphs": [{"context": "ab", "qas": [3]}]}]})"),
              HasSubstr("a question is no object"));
  EXPECT_THAT(refused(R"({"data": [{"paragraphs": [{"qas": []}]}]})"), HasSubstr("no \"context\""));
  EXPECT_THAT(refused(R"({"data": [{"paragraphs": 3}]})"), HasSubstr("no list \"paragraphs\""));
  EXPECT_THAT(refused(R"({"data": [{"paragraphs": [{"context": "a"}]}]})"), HasSubstr("no list \"qas\""));
}

struct Cut {
  std::unique_ptr<tokenizers::Tokenizer> tokenizer = pairs_tokenizer();
  Result<std::vector<Window>> operator()(const std::string& question, const std::string& context,
                                         int64_t most, int64_t stride) const {
    const auto cutter = WindowCutter::make(
        {.tokenizer = tokenizer.get(), .max_tokens = most, .doc_stride = stride, .has_types = true});
    EXPECT_TRUE(cutter);
    Question asked;
    asked.question = question;
    asked.context = context;
    return cutter->cut(asked);
  }
};

TEST(WindowCutter, AContextThatFitsIsOneWindow) {
  const auto windows = Cut()("  q", "cd e", 20, 5);
  ASSERT_TRUE(windows);
  ASSERT_EQ(windows->size(), 1U);
  const Window& window = windows->front();
  EXPECT_THAT(window.ids, ElementsAre(29, 17, 30, 3, 4, 27, 5, 30));  // <s> q </s> c d _ e </s>
  EXPECT_THAT(window.types, ElementsAre(0, 0, 0, 1, 1, 1, 1, 1));
  EXPECT_EQ(window.first, 3U);
  ASSERT_EQ(window.spans.size(), 4U);
  EXPECT_EQ(window.spans[1], (tokenizers::Span{1, 2}));
  EXPECT_EQ(window.spans[2], (tokenizers::Span{3, 3}));  // a space has no text of its own
  EXPECT_EQ(window.spans[3], (tokenizers::Span{3, 4}));
}

/// Three specials and the question leave 4 of 8; windows share 1, so each begins 3 behind the one before.
TEST(WindowCutter, LongerOnesOverlapByTheStride) {
  const auto windows = Cut()("q", "cdefghijkl", 8, 1);
  ASSERT_TRUE(windows);
  std::vector<std::string> texts;
  for (const Window& window : *windows) {
    EXPECT_LE(window.ids.size(), 8U);
    std::string text;
    for (size_t i = 0; i < window.spans.size(); ++i)
      text += static_cast<char>('a' + window.ids[window.first + i] - 1);
    texts.push_back(text);
    EXPECT_EQ(window.spans.front().begin, static_cast<size_t>(text[0] - 'c'));
  }
  EXPECT_THAT(texts, ElementsAre("cdef", "fghi", "ijkl"));
}

/// Each part of the context is in a window, neighbours share as many tokens as they should, and none could
/// hold more.
TEST(WindowCutter, WindowsOfEverySizeCoverTheContext) {
  const std::string letters = "cdefghijklmnopqrstuvwxyz";
  for (size_t length = 1; length <= letters.size(); ++length)
    for (int64_t most = 5; most <= 12; ++most)
      for (int64_t stride = 0; stride < most - 4; ++stride) {
        const auto windows = Cut()("q", letters.substr(0, length), most, stride);
        ASSERT_TRUE(windows) << length << " " << most << " " << stride;
        size_t end = 0;
        for (size_t w = 0; w < windows->size(); ++w) {
          const Window& window = (*windows)[w];
          const bool is_last = w + 1 == windows->size();
          ASSERT_EQ(window.spans.front().begin, w == 0 ? 0 : end - static_cast<size_t>(stride));
          end = window.spans.back().end;
          EXPECT_TRUE(is_last || static_cast<int64_t>(window.ids.size()) == most);
          EXPECT_EQ(window.ids.size(), window.types.size());
          EXPECT_EQ(window.ids.size(), window.first + window.spans.size() + 1);
        }
        ASSERT_EQ(end, length);
      }
}

/// As Python's lstrip() of the question; spaces of the context stay.
TEST(WindowCutter, OfTheQuestionLeadingSpacesAreLeftOut) {
  for (const char* asked : {"q", "  q", "\t\n q", "\xC2\xA0q", "\xE3\x80\x80 q", "\x1Fq"})
    EXPECT_THAT(Cut()(asked, "c", 20, 5)->front().ids, ElementsAre(29, 17, 30, 3, 30)) << asked;
  EXPECT_THAT(Cut()("q ", "c", 20, 5)->front().ids, ElementsAre(29, 17, 27, 30, 3, 30));
  EXPECT_THAT(Cut()(" \n", " c", 20, 5)->front().ids, ElementsAre(29, 30, 27, 3, 30))
      << "of spaces none is left";
}

/// What stands before the context in the template, wherever that is.
TEST(WindowCutter, GoesByTheTokenizersTemplate) {
  const auto first = [](const std::vector<std::pair<std::string, int>>& pair) {
    const auto tokenizer = template_tokenizer({{"A", 0}}, pair);
    const auto cutter = WindowCutter::make({.tokenizer = tokenizer.get(), .max_tokens = 20, .doc_stride = 1});
    EXPECT_TRUE(cutter);
    Question asked;
    asked.question = "qr", asked.context = "cde";
    const auto windows = cutter->cut(asked);
    EXPECT_TRUE(windows);
    const Window& window = windows->front();
    EXPECT_EQ(window.ids[window.first], 3) << "c";
    EXPECT_EQ(window.ids[window.first + 2], 5) << "e";
    EXPECT_TRUE(window.types.empty());
    return window.first;
  };
  EXPECT_EQ(first({{"<s>", 0}, {"A", 0}, {"</s>", 0}, {"</s>", 0}, {"B", 0}, {"</s>", 0}}), 5U) << "RoBERTa";
  EXPECT_EQ(first({{"A", 0}, {"B", 1}}), 2U);
  EXPECT_EQ(first({{"<s>", 0}, {"B", 1}, {"</s>", 0}, {"A", 0}}), 1U);
}

TEST(WindowCutter, WhatMakesNoProgressIsRefused) {
  for (const auto& [most, stride] : {std::pair<int64_t, int64_t>{8, 4}, {8, 9}, {4, 0}, {3, 0}}) {
    const auto windows = Cut()("q", "cdefghijkl", most, stride);
    ASSERT_FALSE(windows) << most << " " << stride;
    EXPECT_THAT(windows.error().what, HasSubstr("the question has 1 tokens"));
    EXPECT_THAT(windows.error().hint, HasSubstr("qa.doc_stride"));
  }
  EXPECT_TRUE(Cut()("q", "cdef", 8, 100));  // which one window needs not
  const auto empty = Cut()("q", "", 8, 1);
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().what, "the context has no token");
}

TEST(FindAnswer, FirstAndLastTokenOrTheFirstPlace) {
  const Cut cut;
  const std::string context = "cab def";  // c, ab, _, d, e, f
  const Window window = (*cut("q", context, 30, 0)).front();
  const auto span = [&](const std::string& text) {
    const TokenSpan found = find_answer(window, {text, context.find(text)});
    return std::pair(found.first, found.last);
  };
  EXPECT_EQ(span("c"), std::pair(3, 3));
  EXPECT_EQ(span("ab"), std::pair(4, 4));
  EXPECT_EQ(span("b"), std::pair(4, 4));  // a part of a token
  EXPECT_EQ(span("b de"), std::pair(4, 7));
  EXPECT_EQ(span("f"), std::pair(8, 8));
  EXPECT_EQ(span("cab def"), std::pair(3, 8));
  const TokenSpan spaced = find_answer(window, {" def ", 3});
  EXPECT_EQ(std::pair(spaced.first, spaced.last), std::pair(6, 8)) << "without the spaces around it";
  // What is not wholly in the window stands on the first token.
  const auto windows = *cut("q", "cdefghij", 8, 0);
  EXPECT_EQ(find_answer(windows[0], {"fg", 3}).last, 0);
  EXPECT_EQ(find_answer(windows[1], {"fg", 3}).last, 0);
  EXPECT_EQ(find_answer(windows[1], {"gh", 4}).first, 3);
}

TEST(TokenizeLabelled, QuestionsBecomeWindowsWithTheirAnswers) {
  const io::TemporaryFolder folder;
  const auto tokenizer = pairs_tokenizer();
  LabelledOptions options{.tokenizer = tokenizer.get(), .max_tokens = 8, .questions = QuestionOptions{1}};
  options.format.num_token_types = 2;
  const std::string path = labelled_shard(
      folder, "q",
      R"({"question": "q", "context": "cdefghijkl", "answers": {"text": ["gh"], "answer_start": [4]}})"
      "\n"
      R"({"question": "r", "context": "cd", "answers": {"text": [], "answer_start": []}})"
      "\n",
      options);
  const auto labels = LabelFile::open(labels_beside(path));
  ASSERT_TRUE(labels);
  ASSERT_EQ(labels->size(), 4);
  std::vector<std::pair<float, float>> spans;
  ASSERT_TRUE(labels->visit([&](const LabelEntry& entry) -> Status {
    spans.emplace_back(entry.values[0], entry.values[1]);
    return Ok{};
  }));
  EXPECT_THAT(spans, ElementsAre(std::pair(0, 0), std::pair(4, 5), std::pair(0, 0), std::pair(0, 0)));
}

}  // namespace
}  // namespace plimsoll::corpora
