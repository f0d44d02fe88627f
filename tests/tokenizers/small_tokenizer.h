// Small tokenizers written out as JSON, for tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizers/tokenizer.h"

namespace plimsoll::tokenizers {

/// Letters a to d and what they merge to, in the order of the merges.
inline const std::string kGpt2Model =
    R"({"type": "BPE", "unk_token": null, "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "ab": 4, "bc": 5,
  "abc": 6, " ": 7, "aa": 8, "aaaa": 9}, "merges": ["b c", ["a", "b"], "a bc", "ab c", "a a", "aa aa"]})";
inline const std::string kAdded =
    R"([{"id": 10, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false,
  "normalized": false, "special": true}])";

/// A document of JSON texts by member.
inline std::string tokenizer_json(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string text = R"({"version": "1.0")";
  for (const auto& [key, value] : members) text += ", \"" + key + "\": " + value;
  return text + "}";
}
inline std::string with(const std::string& key, const std::string& value) {
  return tokenizer_json({{"model", kGpt2Model}, {key, value}});
}
inline std::string with_model(const std::string& fields) {
  return tokenizer_json({{"model", "{\"type\": \"BPE\", " + fields + "}"}});
}

inline std::unique_ptr<Tokenizer> tokenizer_of(const std::string& json) {
  auto tokenizer = Tokenizer::parse(json, "t.json");
  EXPECT_TRUE(tokenizer) << tokenizer.error().message();
  return tokenizer ? std::move(tokenizer).value() : nullptr;
}

inline std::vector<int32_t> encode(const Tokenizer& tokenizer, std::string_view text, bool special = false) {
  std::vector<int32_t> ids;
  EXPECT_TRUE(tokenizer.encode(text, special, ids));
  return ids;
}

inline std::string tokenizer_refusal(const std::string& json) {
  const auto tokenizer = Tokenizer::parse(json, "t.json");
  if (tokenizer) return "accepted: " + json;
  EXPECT_EQ(tokenizer.error().code, ErrorCode::kBadData);
  return tokenizer.error().message();
}

}  // namespace plimsoll::tokenizers
