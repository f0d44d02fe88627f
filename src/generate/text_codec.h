// Text to ids and back, as the model's folder says: its tokenizer.json, or bytes as training on .txt files
// uses them; a model with neither takes and gives ids.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace plimsoll::tokenizers {
class DecodeStream;
class Tokenizer;
}  // namespace plimsoll::tokenizers

namespace plimsoll::generate {

class TextCodec {
 public:
  /// Errors: kBadData for a tokenizer.json that is broken or not supported, or that has ids beyond the
  /// model's vocabulary where it uses them.
  static Result<TextCodec> open(const std::string& folder, int64_t vocab_size);
  TextCodec(TextCodec&&) noexcept;
  ~TextCodec();

  [[nodiscard]] bool has_text() const { return tokenizer_ != nullptr || bytes_; }
  /// Appends the ids of `text`, the tokenizer's special tokens (a first <s>) included. Errors:
  /// kInvalidArgument where the model has no text; kBadData where an id is beyond the model's vocabulary.
  Status encode(std::string_view text, std::vector<int32_t>& ids) const { return encode(text, true, ids); }
  /// The same of what a chat template has rendered, which holds its special tokens as text.
  Status encode_rendered(std::string_view text, std::vector<int32_t>& ids) const {
    return encode(text, false, ids);
  }
  /// The special token of that name, as "<|im_end|>".
  [[nodiscard]] std::optional<int32_t> special_token(std::string_view name) const;
  [[nodiscard]] bool is_special(int32_t id) const;
  /// Special tokens are left out; empty where the model has no text.
  [[nodiscard]] std::string decode(std::span<const int32_t> ids) const;

  /// What ids add to the text, in whole characters, one id at a time. Ids where the model has no text.
  class Stream {
   public:
    explicit Stream(const TextCodec& codec);
    Stream(Stream&&) noexcept;
    ~Stream();
    std::string push(int32_t id);
    std::string finish();

   private:
    const TextCodec& codec_;
    std::unique_ptr<tokenizers::DecodeStream> decoder_;
    std::string pending_;  ///< bytes of an unfinished character
    bool first_ = true;
  };

 private:
  TextCodec(std::string folder, int64_t vocab_size);
  Status encode(std::string_view text, bool add_special_tokens, std::vector<int32_t>& ids) const;
  std::string folder_;
  int64_t vocab_size_ = 0;
  std::unique_ptr<tokenizers::Tokenizer> tokenizer_;
  bool bytes_ = false;
};

}  // namespace plimsoll::generate
