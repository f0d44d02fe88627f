// A byte-level tokenizer with a few merges and ChatML's special tokens, for tests of what stands around one.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tokenizers/byte_alphabet.h"
#include "tokenizers/tokenizer.h"
#include "tokenizers/unicode.h"

namespace plimsoll::corpora {

/// Ids: 0 to 255 the bytes, then "he", "ll", "hell", "lo", " w", then <|endoftext|>, <|im_start|>,
/// <|im_end|>.
inline std::string tiny_tokenizer_json() {
  const auto quoted = [](const std::string& token) {
    return token == "\"" || token == "\\" ? "\"\\" + token + "\"" : "\"" + token + "\"";
  };
  std::string vocab;
  for (int byte = 0; byte < 256; ++byte) {
    std::string token;
    tokenizers::append_utf8(tokenizers::kByteChars[byte], token);
    vocab += fmt::format("{}: {}, ", quoted(token), byte);
  }
  vocab += R"("he": 256, "ll": 257, "hell": 258, "lo": 259, "Ġw": 260)";
  std::string added;
  int id = 261;
  for (const char* token : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"})
    added += fmt::format(R"({}{{"id": {}, "content": "{}", "single_word": false, "lstrip": false,
      "rstrip": false, "normalized": false, "special": true}})",
                         added.empty() ? "" : ", ", id++, token);
  return R"({"version": "1.0", "added_tokens": [)" + added +
         R"(], "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
         "use_regex": true}, "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true},
         "post_processor": null, "model": {"type": "BPE", "vocab": {)" +
         vocab + R"(}, "merges": ["h e", "l l", "he ll", "l o", "Ġ w"]}})";
}

constexpr int32_t kTinyEnd = 261;

inline std::unique_ptr<tokenizers::Tokenizer> tiny_tokenizer() {
  auto tokenizer = tokenizers::Tokenizer::parse(tiny_tokenizer_json(), "tiny.json");
  EXPECT_TRUE(tokenizer) << tokenizer.error().message();
  return tokenizer ? std::move(tokenizer).value() : nullptr;
}

}  // namespace plimsoll::corpora
