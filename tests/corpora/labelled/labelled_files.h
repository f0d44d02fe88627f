// Labelled examples made up for tests: lines of JSON, tokenized.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "corpora/labelled/label_file.h"
#include "corpora/labelled/tokenize_labelled.h"
#include "io/temporary_folder.h"

namespace plimsoll::corpora {

/// A tokenizer with letters and the space as tokens 1 to 27, "ab" as 28, <s> as 29 and </s> as 30. The pieces
/// of its templates are "A", "B", "<s>" and "</s>", each with its type.
inline std::unique_ptr<tokenizers::Tokenizer> template_tokenizer(
    const std::vector<std::pair<std::string, int>>& single,
    const std::vector<std::pair<std::string, int>>& pair) {
  std::string vocab;
  for (int i = 0; i < 26; ++i)
    vocab += "\"" + std::string(1, static_cast<char>('a' + i)) + "\": " + std::to_string(i + 1) + ", ";
  const auto pieces = [](const std::vector<std::pair<std::string, int>>& all) {
    std::string text;
    for (const auto& [id, type] : all)
      text += std::string(text.empty() ? "" : ", ") + "{\"" + (id[0] == '<' ? "SpecialToken" : "Sequence") +
              "\": {\"id\": \"" + id + "\", \"type_id\": " + std::to_string(type) + "}}";
    return text;
  };
  const auto added = [](const char* name, int id) {
    return "{\"id\": " + std::to_string(id) + ", \"content\": \"" + name +
           R"(", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true})";
  };
  const std::string json = R"({"version": "1.0", "model": {"type": "BPE", "vocab": {"?": 0, )" + vocab +
                           R"(" ": 27, "ab": 28}, "merges": ["a b"]}, "added_tokens": [)" + added("<s>", 29) +
                           ", " + added("</s>", 30) +
                           R"(], "post_processor": {"type": "TemplateProcessing", "single": [)" +
                           pieces(single) + R"(], "pair": [)" + pieces(pair) +
                           R"(], "special_tokens": {"<s>": {"id": "<s>", "ids": [29], "tokens": ["<s>"]},
          "</s>": {"id": "</s>", "ids": [30], "tokens": ["</s>"]}}}})";
  auto tokenizer = tokenizers::Tokenizer::parse(json, "tokenizer.json");
  EXPECT_TRUE(tokenizer) << (tokenizer ? "" : tokenizer.error().message());
  return std::move(tokenizer).value();
}

/// <s> goes before each text.
inline std::unique_ptr<tokenizers::Tokenizer> letters_tokenizer() {
  return template_tokenizer({{"<s>", 0}, {"A", 0}}, {{"<s>", 0}, {"A", 0}, {"<s>", 0}, {"B", 0}});
}

/// As BERT's: <s> A </s> B </s>, the second text and what follows it of type 1.
inline std::unique_ptr<tokenizers::Tokenizer> pairs_tokenizer() {
  return template_tokenizer({{"<s>", 0}, {"A", 0}, {"</s>", 0}},
                            {{"<s>", 0}, {"A", 0}, {"</s>", 0}, {"B", 1}, {"</s>", 1}});
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
