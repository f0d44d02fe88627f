// Labelled examples made up for tests: lines of JSON, tokenized.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "corpora/labelled/label_file.h"
#include "corpora/labelled/tokenize_labelled.h"
#include "io/temporary_folder.h"

namespace plimsoll::corpora {

/// Letters and the space are tokens 1 to 27; "ab" is 28. <s> (29) goes before each text.
inline std::unique_ptr<tokenizers::Tokenizer> letters_tokenizer() {
  std::string vocab;
  for (int i = 0; i < 26; ++i)
    vocab += "\"" + std::string(1, static_cast<char>('a' + i)) + "\": " + std::to_string(i + 1) + ", ";
  const auto token = [](const char* name) {
    return std::string("{\"SpecialToken\": {\"id\": \"") + name + "\", \"type_id\": 0}}";
  };
  const auto text = [](const char* name) {
    return std::string("{\"Sequence\": {\"id\": \"") + name + "\", \"type_id\": 0}}";
  };
  const std::string json =
      R"({"version": "1.0", "model": {"type": "BPE", "vocab": {"?": 0, )" + vocab +
      R"(" ": 27, "ab": 28}, "merges": ["a b"]}, "added_tokens": [{"id": 29, "content": "<s>", "single_word": false,
          "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
          "post_processor": {"type": "TemplateProcessing", "single": [)" +
      token("<s>") + ", " + text("A") + "], \"pair\": [" + token("<s>") + ", " + text("A") + ", " +
      token("<s>") + ", " + text("B") +
      R"(], "special_tokens": {"<s>": {"id": "<s>", "ids": [29], "tokens": ["<s>"]}}}})";
  auto tokenizer = tokenizers::Tokenizer::parse(json, "tokenizer.json");
  EXPECT_TRUE(tokenizer) << (tokenizer ? "" : tokenizer.error().message());
  return std::move(tokenizer).value();
}

/// The shard that `lines` become in the folder; labels beside it.
inline std::string labelled_shard(const io::TemporaryFolder& folder, const std::string& name,
                                  const std::string& lines, LabelledOptions options = {}) {
  options.format.vocab_size = 100;
  const std::vector<std::string> files = {folder.write(name + ".jsonl", lines)};
  const auto counts = tokenize_labelled(files, options, folder.path(name + ".shard"), {});
  EXPECT_TRUE(counts) << (counts ? "" : counts.error().message());
  return folder.path(name + ".shard");
}

/// A line of one token for each label's JSON.
inline std::string lines_of(const std::vector<std::string>& labels) {
  std::string lines;
  for (const std::string& label : labels) lines += "{\"input_ids\": [1], \"label\": " + label + "}\n";
  return lines;
}

inline LabelFile labels_of(const io::TemporaryFolder& folder, const std::vector<std::string>& labels,
                           const std::string& name = "x") {
  auto file = LabelFile::open(labels_beside(labelled_shard(folder, name, lines_of(labels))));
  EXPECT_TRUE(file) << (file ? "" : file.error().message());
  return std::move(file).value();
}

}  // namespace plimsoll::corpora
