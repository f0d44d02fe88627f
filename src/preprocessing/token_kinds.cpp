#include "preprocessing/token_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "datasets/token_source.h"
#include "preprocessing/data_files.h"
#include "settings/settings.h"

namespace plimsoll::preprocessing {
namespace {

using datasets::TokenKinds;

constexpr std::string_view kWordMarks[] = {"Ġ", "▁"};

bool begins_with_mark(std::string_view token) {
  return std::ranges::any_of(kWordMarks, [&](std::string_view mark) { return token.starts_with(mark); });
}

std::string kinds_of(const tokenizers::Tokenizer& tokenizer) {
  std::string kinds(static_cast<size_t>(tokenizer.vocab_size()), TokenKinds::kSpecial);
  bool marks_words = false;
  for (size_t id = 0; id < kinds.size(); ++id)
    marks_words = marks_words || begins_with_mark(tokenizer.token(static_cast<int32_t>(id)));
  for (size_t id = 0; id < kinds.size(); ++id) {
    const std::string_view token = tokenizer.token(static_cast<int32_t>(id));
    if (token.empty() || tokenizer.is_special(static_cast<int32_t>(id))) continue;
    const bool continues = marks_words ? !begins_with_mark(token) : token.starts_with("##");
    kinds[id] = continues ? TokenKinds::kContinues : TokenKinds::kWordStart;
  }
  return kinds;
}

/// Of a model's ids, or of bytes.
Result<std::string> kinds_without_tokenizer(const settings::RunConfig& config, int64_t vocab_size) {
  const std::vector<std::string> files = files_of(config.data.train);
  if (std::ranges::any_of(files, [](const std::string& file) { return file.ends_with(".txt"); }))
    return std::string(datasets::ByteVocabulary::kLeastSize, TokenKinds::kWordStart);
  std::string kinds(static_cast<size_t>(vocab_size), TokenKinds::kWordStart);
  PLIMSOLL_ASSIGN(const io::ConfigJson model, settings::load_model_config(config.model));
  for (const char* field : {"pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"}) {
    PLIMSOLL_ASSIGN(const auto id, model.optional_integer(field, {-(int64_t{1} << 24), int64_t{1} << 24}));
    if (id && *id >= 0 && *id < vocab_size) kinds[static_cast<size_t>(*id)] = TokenKinds::kSpecial;
  }
  return kinds;
}

Result<int32_t> mask_token(const settings::RunConfig& config, const corpora::EncoderFiles* files,
                           int64_t vocab_size) {
  if (!config.mlm.mask_token && files != nullptr) return files->mask_token();
  if (!config.mlm.mask_token)
    return Error{ErrorCode::kInvalidArgument, "without a tokenizer nothing says which token masks others",
                 "mlm.mask_token", "give its id, or name a tokenizer: data.tokenizer"};
  if (*config.mlm.mask_token >= vocab_size)
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("mlm.mask_token is {}, and the model has {} tokens", *config.mlm.mask_token, vocab_size),
        "mlm.mask_token", "name an id of the model's vocabulary"};
  return static_cast<int32_t>(*config.mlm.mask_token);
}

}  // namespace

Result<TokenKinds> token_kinds(const settings::RunConfig& config, const corpora::EncoderFiles* files,
                               int64_t vocab_size) {
  TokenKinds found;
  PLIMSOLL_ASSIGN(found.mask_token, mask_token(config, files, vocab_size));
  if (files != nullptr) {
    found.kinds = kinds_of(*files->tokenizer);
  } else {
    PLIMSOLL_ASSIGN(found.kinds, kinds_without_tokenizer(config, vocab_size));
  }
  // A model may have fewer rows than its tokenizer has tokens.
  if (vocab_size > 0 && found.kinds.size() > static_cast<size_t>(vocab_size))
    found.kinds.resize(static_cast<size_t>(vocab_size));
  if (static_cast<size_t>(found.mask_token) < found.kinds.size())
    found.kinds[static_cast<size_t>(found.mask_token)] = TokenKinds::kSpecial;
  return found;
}

}  // namespace plimsoll::preprocessing
