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

/// WordPiece's tokens within a word.
bool is_joined(std::string_view token) { return token.starts_with("##"); }

std::string kinds_of(const tokenizers::Tokenizer& tokenizer) {
  std::string kinds(static_cast<size_t>(tokenizer.vocab_size()), TokenKinds::kSpecial);
  // Either may stand in the other's vocabularies as a few tokens of its own.
  int64_t marked = 0, joined = 0;
  for (size_t id = 0; id < kinds.size(); ++id) {
    const std::string_view token = tokenizer.token(static_cast<int32_t>(id));
    marked += begins_with_mark(token) ? 1 : 0;
    joined += is_joined(token) ? 1 : 0;
  }
  const bool marks_words = marked > joined;
  for (size_t id = 0; id < kinds.size(); ++id) {
    const std::string_view token = tokenizer.token(static_cast<int32_t>(id));
    if (token.empty() || tokenizer.is_special(static_cast<int32_t>(id))) continue;
    const bool continues = marks_words ? !begins_with_mark(token) : is_joined(token);
    kinds[id] = continues ? TokenKinds::kContinues : TokenKinds::kWordStart;
  }
  return kinds;
}

/// Of a model's ids, or of bytes.
Result<std::string> kinds_without_tokenizer(const settings::RunConfig& config, int64_t vocab_size) {
  for (const auto* patterns : {&config.data.train, &config.data.eval.files})
    if (std::ranges::any_of(files_of(*patterns),
                            [](const std::string& file) { return file.ends_with(".txt"); }))
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
  if (!config.mlm.mask_token && files == nullptr)
    return Error{ErrorCode::kInvalidArgument, "without a tokenizer nothing says which token masks others",
                 "mlm.mask_token", "give its id, or name a tokenizer: data.tokenizer"};
  Result<int32_t> token = static_cast<int32_t>(config.mlm.mask_token.value_or(0));
  if (!config.mlm.mask_token) token = files->mask_token();
  if (!token || *token < vocab_size || vocab_size == 0) return token;
  const std::string_view whose = config.mlm.mask_token ? "mlm.mask_token" : "the tokenizer's mask token";
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} is {}, and the model has {} tokens", whose, *token, vocab_size),
               "mlm.mask_token", "name an id of the model's vocabulary"};
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
