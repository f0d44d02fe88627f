// The files that a tokenizer is made from, read: tokenizer.json and what the files beside it add to it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "tokenizers/document.h"
#include "tokenizers/named_tokens.h"

namespace plimsoll::tokenizers {

struct TokenizerSource {
  Document document = {};
  std::string file = {};               ///< for messages
  std::vector<NamedToken> named = {};  ///< tokens that stand outside of the document
  bool splits_special_tokens = false;  ///< special tokens in a text are cut like any other text

  /// `path`: a tokenizer.json, with the files beside it, or the folder of one; without one the older files of
  /// the folder (older_files.h).
  /// Errors: as read_document, read_older_files, named_tokens; kIo.
  static Result<TokenizerSource> read(const std::string& path);
};

/// The file from which the tokenizer of a folder is read: tokenizer.json, else the older ones; empty where
/// the folder has none.
std::string tokenizer_file(const std::string& folder);
/// Whether a folder has files of a tokenizer, of whatever kind.
bool has_tokenizer_files(const std::string& folder);

}  // namespace plimsoll::tokenizers
