// Files of examples. The first byte says under which name the rest is read: lines, a list, text in pieces.
// What is passed over in one mode is an error in the other, with the same examples before it; texts are those
// that the project's other JSON reader sees; conversations are handed on as valid JSON.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "corpora/example_reader.h"
#include "corpora/json_scan.h"
#include "corpora/labelled/labelled_example.h"
#include "corpora/parse_example.h"
#include "io/json.h"
#include "io/json_cursor.h"
#include "tokenizers/unicode.h"

namespace {

using plimsoll::corpora::Example;
using plimsoll::corpora::ExampleKind;

struct Outcome {
  std::vector<Example> examples;
  int64_t skipped = 0;
  bool failed = false;
};

std::string file_of(std::string_view name, std::string_view content) {
  static const std::string folder = [] {
    const std::string shared = "/dev/shm";
    const std::string base =
        std::filesystem::exists(shared) ? shared : std::filesystem::temp_directory_path().string();
    const std::string path = base + "/plimsoll-fuzz-" + std::to_string(::getpid());
    std::filesystem::create_directories(path);
    return path;
  }();
  const std::string path = folder + "/" + std::string(name);
  std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
  return path;
}

Outcome read(const std::string& path, plimsoll::corpora::OnError on_error) {
  plimsoll::corpora::ReaderOptions options;
  options.on_error = on_error;
  options.max_record_bytes = 300;
  options.piece_bytes = 40;
  options.cut = [](std::string_view text) {
    const size_t at = text.rfind(' ');
    return at == text.npos ? 0 : at;
  };
  Outcome outcome;
  auto reader = plimsoll::corpora::ExampleReader::open(std::vector{path}, options);
  PLIMSOLL_CHECK(reader.ok() || on_error == plimsoll::corpora::OnError::kFail,
                 "a file that is there is refused");
  outcome.failed = !reader.ok();
  for (Example example; !outcome.failed;) {
    const auto more = (*reader)->next(example);
    outcome.skipped = (*reader)->skipped().total();
    outcome.failed = !more.ok();
    if (!more)
      PLIMSOLL_CHECK(!more.error().where.empty() && !more.error().hint.empty(), "an error without a place");
    if (!more || !*more) break;
    outcome.examples.push_back(example);
  }
  return outcome;
}

void check_record(const std::string& record) {
  if (record.empty()) return;
  PLIMSOLL_CHECK(plimsoll::io::utf8_error_at(record) == -1, "a conversation that is no UTF-8");
  plimsoll::corpora::JsonScanner scanner(record);
  std::string_view value;
  PLIMSOLL_CHECK(scanner.value(value) && scanner.expect_end() && scanner.lone_surrogates().empty(), record);
}

void check_example(const Example& example, bool is_json) {
  check_record(example.record);
  check_record(example.prompt_record);
  PLIMSOLL_CHECK((example.kind == ExampleKind::kMessages) == !example.record.empty());
  PLIMSOLL_CHECK((example.line > 0) == is_json, "a line's number");
  PLIMSOLL_CHECK(!is_json || (example.first && !example.continues));
}

/// A line by the slow reader, where it reads the line at all. That one passes over a byte order mark, which
/// here belongs to the start of a file and to no line.
void compare(std::string_view line) {
  Example example;
  const auto bad = plimsoll::corpora::parse_example(line, "text", example);
  if (line.find('\0') != line.npos || plimsoll::tokenizers::valid_utf8_prefix(line) != line.size()) return;
  if (line.starts_with("\xEF\xBB\xBF")) return;
  const auto tree = plimsoll::io::parse_json(line);
  if (!tree || tree->kind != plimsoll::io::Tree::Kind::kMap) return;
  const plimsoll::io::Tree* text = tree->find("text");
  const bool expected = text && text->kind == plimsoll::io::Tree::Kind::kString;
  PLIMSOLL_CHECK(bad.has_value() == !expected, bad ? bad->error.message() : "accepted");
  if (expected) PLIMSOLL_CHECK(example.text == text->text, "another text");
}

/// The same line as one with a label.
void check_labelled(std::string_view line) {
  constexpr int64_t kVocabulary = 1000;
  plimsoll::corpora::LabelledExample example;
  const auto bad = plimsoll::corpora::parse_labelled_example(line, {.vocab_size = kVocabulary}, example);
  if (bad) {
    PLIMSOLL_CHECK(!bad->error.what.empty() && !bad->error.hint.empty(), "an error without words");
    return;
  }
  PLIMSOLL_CHECK(example.label.kind != plimsoll::corpora::RawLabelKind::kAbsent,
                 "an example without a label");
  for (const float value : example.label.values) PLIMSOLL_CHECK(std::isfinite(value), "a label beyond f32");
  PLIMSOLL_CHECK(plimsoll::io::utf8_error_at(example.label.name) == -1, "a name that is no UTF-8");
  for (const int32_t id : example.ids)
    PLIMSOLL_CHECK(example.has_ids && id >= 0 && id < kVocabulary, "an id beyond the vocabulary");
}

void check_lines(std::string_view content) {
  Example example;
  example.line = 1;
  for (size_t begin = 0; begin <= content.size();) {
    const size_t end = std::min(content.find('\n', begin), content.size());
    const std::string_view line = content.substr(begin, end - begin);
    compare(line);
    check_labelled(line);
    if (!plimsoll::corpora::parse_example(line, "", example)) check_example(example, true);
    begin = end + 1;
  }
}

void check_file(std::string_view name, std::string_view content) {
  // A frame of Zstandard may ask for a window of 128 MiB, more than a run here is allowed.
  const bool is_zstd = content.size() >= 4 &&
                       (content.starts_with("\x28\xB5\x2F\xFD") || content.substr(1, 3) == "\x2A\x4D\x18");
  if (is_zstd) return;
  const std::string path = file_of(name, content);
  const Outcome strict = read(path, plimsoll::corpora::OnError::kFail);
  const Outcome lenient = read(path, plimsoll::corpora::OnError::kSkip);
  PLIMSOLL_CHECK(!lenient.failed && strict.failed == (lenient.skipped > 0), "the two modes differ");
  PLIMSOLL_CHECK(strict.failed || strict.examples.size() == lenient.examples.size());
  for (const Example& example : lenient.examples) check_example(example, name != "a.txt");
  for (size_t i = 0; i < strict.examples.size(); ++i)
    PLIMSOLL_CHECK(strict.examples[i].text == lenient.examples[i].text &&
                   strict.examples[i].record == lenient.examples[i].record);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static constexpr std::string_view kNames[] = {"a.jsonl", "a.json", "a.txt", "a.json.gz", "a.csv"};
  const std::string_view content(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] < 32)
    check_file(kNames[data[0] % 5], content);
  else
    check_lines(content);
  return 0;
}
