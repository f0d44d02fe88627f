#include "corpora/encoder_files.h"

#include <fmt/format.h>

#include "io/file.h"
#include "io/hub_cache.h"
#include "io/json.h"
#include "tokenizers/config_files.h"

namespace plimsoll::corpora {
namespace {

constexpr int64_t kMaxConfigBytes = int64_t{64} << 20;
// Of models that come as a tokenizer.json alone. An end of text comes before an end of turn.
constexpr std::string_view kEndTokens[] = {"<|endoftext|>", "<|end_of_text|>", "</s>",
                                           "<eos>",         "[EOS]",           "<|im_end|>"};

constexpr std::string_view kMaskTokens[] = {"[MASK]", "<mask>"};

/// Such a field of a configuration file: a text, or an object with its content. Empty where it says nothing.
Result<std::string> configured_token(const std::string& path, const char* field) {
  PLIMSOLL_ASSIGN(const bool is_there, io::path_exists(path));
  if (!is_there) return std::string();
  PLIMSOLL_ASSIGN(const std::string json, io::read_small_file(path, kMaxConfigBytes));
  const io::TreeLimits limits{.max_bytes = kMaxConfigBytes, .max_nodes = 4'000'000};
  Result<io::Tree> tree = io::parse_json(json, limits);
  if (!tree) return std::move(tree).error().at(path);
  const std::string* token = tokenizers::token_text(tree->find(field));
  return token != nullptr ? *token : std::string();
}

}  // namespace

Result<EncoderFiles> EncoderFiles::open(const std::string& path, const std::string& template_file,
                                        std::optional<int64_t> now) {
  EncoderFiles files;
  std::string at = path;
  if (!io::is_file(path)) {
    PLIMSOLL_ASSIGN(at, io::find_model_folder(path));
  }
  PLIMSOLL_ASSIGN(const bool is_folder, io::is_folder(at));
  files.folder = is_folder ? at : io::folder_of(at);
  PLIMSOLL_ASSIGN(files.tokenizer, tokenizers::Tokenizer::open(at));
  auto chat = templates::ChatTemplate::open(files.folder, {.template_file = template_file, .now = now});
  if (chat)
    files.chat_template = std::move(chat).value();
  else if (!template_file.empty() || chat.error().code == ErrorCode::kIo)
    return std::move(chat).error();
  else
    files.template_error = std::move(chat).error();
  return files;
}

Result<int32_t> EncoderFiles::token_of(const Role& role) const {
  const auto missing = [&](std::string what, const std::string& where) {
    return Error{ErrorCode::kBadData, std::move(what), where, role.hint};
  };
  for (const char* file : {"/tokenizer_config.json", "/special_tokens_map.json"}) {
    PLIMSOLL_ASSIGN(const std::string token, configured_token(folder + file, role.field));
    if (token.empty()) continue;
    if (const auto id = tokenizer->id_of(token)) return *id;
    return missing(
        fmt::format("{} is '{}', which the tokenizer does not have", role.field, token.substr(0, 60)),
        folder + file);
  }
  for (const std::string_view token : role.usual)
    if (const auto id = tokenizer->id_of(token)) return *id;
  return missing(role.missing, folder);
}

Result<int32_t> EncoderFiles::end_token(const std::string& name) const {
  const Role role{"eos_token", kEndTokens, "nothing says which token ends a document",
                  "set eos_token in tokenizer_config.json, or name it: --eos-token"};
  if (name.empty()) return token_of(role);
  if (const auto id = tokenizer->id_of(name)) return *id;
  return Error{ErrorCode::kBadData, fmt::format("the tokenizer has no token '{}'", name.substr(0, 60)),
               folder, role.hint};
}

Result<int32_t> EncoderFiles::mask_token() const {
  return token_of({"mask_token", kMaskTokens, "nothing says which token masks others",
                   "set mask_token in tokenizer_config.json, or give its id: mlm.mask_token"});
}

}  // namespace plimsoll::corpora
