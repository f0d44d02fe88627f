#include "corpora/pad_token.h"

#include <algorithm>
#include <string>
#include <vector>

#include "io/label_fields.h"
#include "tokenizers/config_files.h"

namespace plimsoll::corpora {
namespace {

/// What the tokenizer puts behind a text.
std::optional<int32_t> appended_token(const tokenizers::Tokenizer& tokenizer) {
  constexpr const char* kText = "a";
  std::vector<int32_t> plain, special;
  if (!tokenizer.encode(kText, false, plain) || !tokenizer.encode(kText, true, special)) return {};
  if (special.empty() || (!plain.empty() && special.back() == plain.back())) return {};
  return special.back();
}

/// Errors: kIo where the disk does not give a file; one that is no JSON names nothing.
Result<std::optional<int32_t>> named_token(const EncoderFiles& files, const char* field) {
  for (const char* name : {"/tokenizer_config.json", "/special_tokens_map.json"}) {
    auto config = tokenizers::read_config_object_if_there(files.folder + name);
    if (!config && config.error().code == ErrorCode::kIo) return std::move(config).error();
    const std::string* text = config ? tokenizers::token_text(config->find(field)) : nullptr;
    if (text == nullptr || text->empty()) continue;
    if (const auto id = files.tokenizer->id_of(*text)) return std::optional(*id);
  }
  return std::optional<int32_t>();
}

}  // namespace

Result<std::optional<int64_t>> pad_token_for(const EncoderFiles& files, const io::ConfigJson& config,
                                             std::span<const int32_t> row_ends) {
  const std::optional<int32_t> appended = appended_token(*files.tokenizer);
  const auto vocab_size = config.integer("vocab_size", {1});
  const auto fits = [&](std::optional<int32_t> id) {
    return id && id != appended && (!vocab_size || *id < *vocab_size) &&
           std::ranges::find(row_ends, *id) == row_ends.end();
  };
  PLIMSOLL_ASSIGN(const auto pad, named_token(files, "pad_token"));
  if (fits(pad)) return std::optional<int64_t>(*pad);
  if (const auto end = files.end_token(); end && fits(*end)) return std::optional<int64_t>(*end);
  if (const auto ends = config.integers("eos_token_id", {-1, INT32_MAX}))
    for (const int64_t id : *ends)
      if (id >= 0 && id < files.tokenizer->vocab_size() && fits(static_cast<int32_t>(id)))
        return std::optional(id);
  for (const char* field : {"unk_token", "bos_token"}) {
    PLIMSOLL_ASSIGN(const auto id, named_token(files, field));
    if (fits(id)) return std::optional<int64_t>(*id);
  }
  return std::optional<int64_t>();
}

bool lacks_pad_token(const io::ConfigJson& config) {
  return io::is_sequence_classifier(config) && !config.has("pad_token_id");
}

}  // namespace plimsoll::corpora
