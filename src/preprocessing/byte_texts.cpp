// Texts read as bytes for want of a tokenizer: right for models of bytes, and for nothing else.
#include <fmt/format.h>

#include "base/numbers.h"
#include "datasets/token_source.h"
#include "preprocessing/data_files.h"
#include "preprocessing/run_data.h"
#include "tokenizers/tokenizer_source.h"

namespace plimsoll::preprocessing {

Error UnaskedBytes::error(const std::string& text) const {
  return {ErrorCode::kInvalidArgument, what, text,
          "put tokenizer.json into the model's folder (hf download fetches it, transformers' "
          "AutoTokenizer(...).save_pretrained writes it), name another tokenizer with data.tokenizer, or ask "
          "for bytes: data.tokenizer: bytes"};
}

Result<UnaskedBytes> unasked_bytes(const settings::RunConfig& config, const std::string& tokenizer) {
  UnaskedBytes unasked;
  if (tokenizer != "bytes" || config.data.tokenizer != "auto") return unasked;
  PLIMSOLL_ASSIGN(const io::ConfigJson model, settings::load_model_config(config.model));
  PLIMSOLL_ASSIGN(const int64_t size, model.integer("vocab_size", {1}));
  PLIMSOLL_ASSIGN(const std::string folder, settings::model_directory(config.model));
  const bool has_files = !folder.empty() && tokenizers::has_tokenizer_files(folder);
  if (!has_files && size < datasets::ByteVocabulary::kEnd) return unasked;
  unasked.refused = settings::starts_pretrained(config.model);
  unasked.what = fmt::format(
      "{}, so text {} read as bytes, ids 0 to 255 of the model's {}{}",
      has_files ? "the model's folder has no tokenizer that can be read" : "the model has no tokenizer",
      unasked.refused ? "would be" : "is", grouped(size),
      unasked.refused ? "" : "; data.tokenizer names a tokenizer, or asks for bytes");
  return unasked;
}

std::string unasked_bytes_note(const settings::RunConfig& config) {
  const auto tokenizer = tokenizer_path(config);
  if (!tokenizer) return {};
  const auto unasked = unasked_bytes(config, *tokenizer);
  if (!unasked || unasked->what.empty()) return {};
  for (const auto* patterns : {&config.data.train, &config.data.eval.files})
    for (const std::string& file : files_of(*patterns))
      if (kind_of(file) == FileKind::kText)
        return fmt::format("{}: {}{}", file, unasked->what,
                           unasked->refused
                               ? "; training is refused unless data.tokenizer names a tokenizer or is bytes"
                               : "");
  return {};
}

}  // namespace plimsoll::preprocessing
