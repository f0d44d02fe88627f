// Samples: decoded with the tokenizer, as bytes, or as ids, framed on the terminal or as JSON.
#include "cli/data/data_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include "base/numbers.h"
#include "cli/data/data_json.h"
#include "cli/data/masked_text.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "io/tree.h"
#include "tokenizers/tokenizer.h"

namespace plimsoll::cli {
namespace {

constexpr int64_t kSampleTokens = 256;

/// The text of a sample, part by part; ids where nothing can decode them.
class SampleDecoder {
 public:
  explicit SampleDecoder(const tokenizers::Tokenizer* tokenizer) : tokenizer_(tokenizer) {}

  void decode(const Sample& sample, bool bytes, const std::function<void(const std::string&, bool)>& add) {
    if (bytes) return add(std::string(sample.ids.begin(), sample.ids.end()), true);
    std::optional<tokenizers::DecodeStream> stream;
    if (tokenizer_ != nullptr) stream.emplace(*tokenizer_, /*skip_special_tokens=*/false);
    for (size_t i = 0; i < sample.ids.size(); ++i) {
      const bool in_loss = sample.in_loss[i] != 0;
      if (stream)
        add(stream->push(sample.ids[i]), in_loss);
      else
        add((i > 0 ? " " : "") + std::to_string(sample.ids[i]), in_loss);
    }
    if (stream && !sample.ids.empty()) add(stream->finish(), sample.in_loss.back() != 0);
  }

 private:
  const tokenizers::Tokenizer* tokenizer_;
};

io::Tree sample_tree(const Sample& sample, const std::string& path, const std::string& text, bool has_text) {
  io::Tree ids = io::Tree::list(), in_loss = io::Tree::list();
  for (const int32_t id : sample.ids) ids.items.push_back(io::Tree::of(int64_t{id}));
  for (const uint8_t bit : sample.in_loss) in_loss.items.push_back(io::Tree::of(int64_t{bit}));
  io::Tree tree = io::Tree::map({{"event", io::Tree::of(std::string("sample"))},
                                 {"path", json_text(path)},
                                 {"document", io::Tree::of(sample.document)},
                                 {"tokens", io::Tree::of(sample.num_tokens)},
                                 {"ids", std::move(ids)},
                                 {"in_loss", std::move(in_loss)}});
  if (has_text) tree.set("text", json_text(text));
  return tree;
}

void print_sample(const DataFile& file, const Sample& sample, const SampleOptions& options) {
  SampleDecoder decoder(options.tokenizer);
  if (options.json) {
    std::string text;
    decoder.decode(sample, file.is_text(), [&](const std::string& part, bool) { text += part; });
    fmt::print("{}\n", io::to_json(sample_tree(sample, file.path(), text,
                                               options.tokenizer != nullptr || file.is_text())));
    return;
  }
  const int width = std::min(stdout_width(), 120);
  MaskedText lines(stdout_mask_style(), width);
  decoder.decode(sample, file.is_text(),
                 [&](const std::string& part, bool in_loss) { lines.add(part, in_loss); });
  const auto shown = static_cast<int64_t>(sample.ids.size());
  print_text(fmt::format("\n  ┌ document {} of {}, {} ({})\n", grouped(sample.document + 1),
                         grouped(file.num_documents()), printable(file.path()),
                         counted(sample.num_tokens, "token")));
  fmt::print(
      "{}  └ {}\n", lines.finish(),
      shown < sample.num_tokens ? counted(sample.num_tokens - shown, "more token") : "end of the document");
}

}  // namespace

Status print_samples(const std::vector<DataFile>& files, const SampleOptions& options) {
  int64_t documents = 0;
  for (const DataFile& file : files) documents += file.num_documents();
  const int64_t count = std::min(options.count, documents);
  const bool masked = std::any_of(files.begin(), files.end(), [](const DataFile& file) {
    return file.shard() != nullptr && file.shard()->info().has_mask;
  });
  if (!options.json && count > 0) {
    const char* legend =
        stdout_mask_style() == MaskStyle::kDim ? ": dim is not in the loss" : ": [..] is not in the loss";
    fmt::print("\nsamples{}\n", masked ? legend : "");
  }
  for (int64_t i = 0; i < count; ++i) {
    auto at = static_cast<int64_t>((static_cast<double>(i) + 0.5) / static_cast<double>(count) *
                                   static_cast<double>(documents));
    size_t file = 0;
    while (at >= files[file].num_documents()) at -= files[file++].num_documents();
    PLIMSOLL_ASSIGN(const Sample sample, files[file].sample(at, kSampleTokens));
    print_sample(files[file], sample, options);
  }
  return Ok{};
}

}  // namespace plimsoll::cli
