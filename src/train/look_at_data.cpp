#include "train/look_at_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/glob.h"
#include "base/numbers.h"
#include "base/units.h"
#include "data/text/saved_dataset.h"
#include "data/text/text_input.h"
#include "io/checksum.h"
#include "io/file.h"
#include "io/json.h"
#include "preprocessing/data_files.h"
#include "preprocessing/run_data.h"
#include "preprocessing/run_hints.h"
#include "preprocessing/template_date.h"
#include "preprocessing/token_cache.h"

namespace plimsoll::train {
namespace {

constexpr int64_t kMostExamples = 512;

/// The first line of a file of JSON lines; null where it is no object.
Tree first_line(const std::string& path) {
  const auto file = ReadFile::open(path);
  if (!file) return {};
  std::vector<std::byte> bytes(static_cast<size_t>(std::min<int64_t>(file->size_bytes(), 1 << 20)));
  if (!file->read_at(0, bytes)) return {};
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  text = text.substr(0, text.find('\n'));
  auto line = parse_json(text);
  return line && line->kind == Tree::Kind::kMap ? std::move(*line) : Tree{};
}

DataKind kind_of_example(ExampleKind kind) {
  switch (kind) {
    case ExampleKind::kCompletion:
      return DataKind::kCompletions;
    case ExampleKind::kMessages:
      return DataKind::kConversations;
    case ExampleKind::kTokens:
      return DataKind::kTokens;
    case ExampleKind::kText:
      break;
  }
  return DataKind::kTexts;
}

/// Reads and encodes the first examples.
Status read_examples(const RunConfig& config, const std::vector<std::string>& files, DataLook& look) {
  PLIMSOLL_ASSIGN(const std::string tokenizer, tokenizer_path(config));
  if (tokenizer == "bytes") {
    const auto json =
        std::ranges::find_if(files, [](const auto& f) { return kind_of(f) == FileKind::kJson; });
    PLIMSOLL_ASSIGN(const UnaskedBytes unasked, unasked_bytes(config, tokenizer));
    if (json == files.end()) return unasked.refused ? Status(unasked.error(files.front())) : Status(Ok{});
    return Error{ErrorCode::kBadData, "without a tokenizer only .txt files are read, as bytes", *json,
                 "name a model's folder that has one, or a tokenizer: --tokenizer"};
  }
  PLIMSOLL_ASSIGN(const EncoderFiles encoder,
                  EncoderFiles::open(tokenizer, config.data.chat_template, template_now(config.data)));
  PLIMSOLL_ASSIGN(TextInput input, TextInput::open(encoder, files, text_options(config.data)));
  Example example;
  EncodedExample encoded;
  ExampleEncoder::Scratch scratch;
  Checksum document;
  int64_t read = 0;
  bool more = true;
  while (read < kMostExamples) {
    PLIMSOLL_ASSIGN(more, input.reader->next(example));
    if (!more) break;
    if (auto bad = input.encoder.encode(example, scratch, encoded)) return std::move(bad->error);
    if (example.first || look.lengths.empty()) {
      look.lengths.push_back(0);
      look.hashes.push_back(0);
      document.reset();
    }
    size_t begin = 0;
    for (size_t i = 0; i + 1 < encoded.ends.size(); begin = encoded.ends[i++]) {
      document.add(std::as_bytes(std::span(encoded.ids).subspan(begin, encoded.ends[i] - begin)));
      look.lengths.back() = static_cast<int64_t>(encoded.ends[i] - begin);
      look.hashes.back() = document.value();
      look.lengths.push_back(0);
      look.hashes.push_back(0);
      document.reset();
    }
    document.add(std::as_bytes(std::span(encoded.ids).subspan(begin)));
    look.lengths.back() += static_cast<int64_t>(encoded.ids.size() - begin);
    look.hashes.back() = document.value();
    look.kind = kind_of_example(example.kind);
    read += example.continues ? 0 : 1;
  }
  look.is_estimate = more;
  const double share = static_cast<double>(input.reader->total_bytes()) /
                       static_cast<double>(std::max<int64_t>(1, input.reader->bytes_read()));
  look.examples = more ? static_cast<int64_t>(static_cast<double>(read) * std::max(1.0, share)) : read;
  std::ranges::sort(look.lengths);
  return Ok{};
}

}  // namespace

std::string DataLook::text() const {
  if (labelled)
    return fmt::format("{}{} examples with labels", is_estimate ? "about " : "", grouped(examples));
  constexpr std::array<const char*, 4> kNames = {"tokens", "documents", "prompts with completions",
                                                 "conversations"};
  if (kind == DataKind::kTokens || examples == 0) return kNames[static_cast<size_t>(kind)];
  return fmt::format("{}{} {}", is_estimate ? "about " : "", grouped(examples),
                     kNames[static_cast<size_t>(kind)]);
}

Result<DataLook> look_at_data(const RunConfig& config) {
  DataLook look;
  std::vector<std::string> files;
  for (const std::string& pattern : config.data.train) {
    PLIMSOLL_ASSIGN(const std::vector<std::string> found, expand_data(pattern));
    files.insert(files.end(), found.begin(), found.end());
  }
  const auto is_tokens = [](const std::string& path) {
    const FileKind kind = kind_of(path);
    return kind == FileKind::kTokens || kind == FileKind::kShard;
  };
  if (std::ranges::any_of(files, is_tokens)) {
    look.kind = DataKind::kTokens;
    return look;
  }
  if (kind_of(files.front()) == FileKind::kJson) {
    const Tree line = first_line(files.front());
    look.labelled = line.find("label") != nullptr;
    if (look.labelled && line.find("input_ids") != nullptr) return look;  // ids: nothing to tokenize
  }
  if (Status read = read_examples(config, files, look); !read)
    return in_words_of_runs(std::move(read).error());
  return look;
}

}  // namespace plimsoll::train
