// The files of a model directory that encoding needs: the tokenizer, the chat template where there is one,
// the token that ends a document.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "templates/chat_template.h"
#include "tokenizers/tokenizer.h"

namespace plimsoll::corpora {

struct EncoderFiles {
  std::string folder = {};  ///< where the tokenizer lies
  std::unique_ptr<tokenizers::Tokenizer> tokenizer = {};
  /// Null where the folder has none that can be read; `template_error` then says why, for the first example
  /// that needs one.
  std::unique_ptr<templates::ChatTemplate> chat_template = {};
  std::optional<Error> template_error = {};

  /// `path`: a model's directory, a tokenizer.json, or a hub id of the local cache. `template_file`: read
  /// instead of the directory's template; empty: none. `now`: as ChatOptions::now. Errors: as
  /// Tokenizer::open; as ChatTemplate::open for `template_file` alone.
  static Result<EncoderFiles> open(const std::string& path, const std::string& template_file = {},
                                   std::optional<int64_t> now = {});

  /// The id of the token that ends a document: `name` where given, else eos_token of tokenizer_config.json or
  /// special_tokens_map.json, else the one of the public models' names that the vocabulary has.
  /// Errors: kBadData where there is none.
  [[nodiscard]] Result<int32_t> end_token(const std::string& name = {}) const;
  /// The id of the token that masks others: mask_token of the same files, else [MASK] or <mask>. Errors: as
  /// end_token.
  [[nodiscard]] Result<int32_t> mask_token() const;

 private:
  /// The id of what a field names, else of the first of `usual` that the vocabulary has. `missing`: the
  /// message where there is none, `hint` what to do.
  struct Role {
    const char* field;
    std::span<const std::string_view> usual;
    std::string missing, hint;
  };
  [[nodiscard]] Result<int32_t> token_of(const Role& role) const;
};

}  // namespace plimsoll::corpora
