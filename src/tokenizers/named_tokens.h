// Tokens that the files beside a tokenizer.json name: tokenizer_config.json (added_tokens_decoder,
// extra_special_tokens and additional_special_tokens, bos_token and the like), special_tokens_map.json,
// added_tokens.json. transformers adds them to those of tokenizer.json, and so does Tokenizer::open.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/tree.h"
#include "tokenizers/added_tokens.h"
#include "tokenizers/document.h"

namespace plimsoll::tokenizers {

/// The files beside a tokenizer.json; null where one is not there.
struct ConfigFiles {
  std::string folder = {};
  io::Tree config = {};              ///< tokenizer_config.json
  io::Tree special_tokens_map = {};  ///< special_tokens_map.json
  io::Tree added_tokens = {};        ///< added_tokens.json
  io::Tree model = {};               ///< the model's config.json; null too where it is no JSON object
  /// Of a sentencepiece model: a list of the control and user-defined pieces. They stand in place of
  /// additional_special_tokens.
  std::optional<io::Tree> pieces = {};
  /// A list of the extra tokens that a class has where neither the files nor the pieces name any.
  std::optional<io::Tree> class_tokens = {};
  /// They come behind the others too, unless one of those has this in it (T5's "<extra_id_").
  std::string class_tokens_mark = {};

  /// Errors: as read_config_object.
  static Result<ConfigFiles> read(const std::string& folder);
  /// A member of tokenizer_config.json, where it is true or false.
  [[nodiscard]] bool flag(std::string_view name, bool if_absent) const;
};

/// The text of a special token by its field's name (cls_token, …); null where no file names one.
/// special_tokens_map.json goes before tokenizer_config.json where that one lists no tokens by id.
const std::string* special_text(const ConfigFiles& files, const char* name);

/// The tokens that the files name and `listed` (the added_tokens of tokenizer.json, may be null) does not
/// have with the same rules, in the order in which transformers adds them.
/// Source: transformers 5.23, PreTrainedTokenizerBase._from_pretrained and TokenizersBackend.__init__.
/// Errors: kBadData for a mistyped field, with the file.
Result<std::vector<NamedToken>> named_tokens(const ConfigFiles& files, const io::Tree* listed);

/// The id that a token will have in the tokenizer of the document and these tokens.
std::optional<int64_t> id_of_token(std::string_view token, const std::vector<NamedToken>& named,
                                   const Document& document);

}  // namespace plimsoll::tokenizers
