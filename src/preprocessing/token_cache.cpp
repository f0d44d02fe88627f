#include "preprocessing/token_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "corpora/text_input.h"
#include "io/checksum.h"
#include "io/file.h"
#include "preprocessing/cache_key.h"
#include "preprocessing/template_date.h"

namespace plimsoll::preprocessing {
namespace {

/// Part of every cached file's name: raised when the same files and settings would give other tokens.
constexpr std::string_view kCacheVersion = "3";

/// A damaged one is made again.
bool is_intact(const std::string& path) {
  if (!datasets::is_shard(path)) return false;
  const auto shard = datasets::Shard::open(path);
  return shard && shard->verify();
}

}  // namespace

Error too_large(const tokenizers::Tokenizer& tokenizer, int64_t vocab_size, const std::string& path) {
  int64_t id = vocab_size;
  while (tokenizer.token(static_cast<int32_t>(id)).empty() && id + 1 < tokenizer.vocab_size()) ++id;
  return {ErrorCode::kInvalidArgument,
          fmt::format("the tokenizer has {} ids, the model {}: '{}' is {}", tokenizer.vocab_size(),
                      vocab_size, tokenizer.token(static_cast<int32_t>(id)).substr(0, 60), id),
          path,
          "set data.tokenizer to the model's own, or give the model rows for its tokens: plimsoll add-tokens "
          "--model DIR --tokenizer DIR2 --output DIR3"};
}

corpora::TextOptions text_options(const settings::DataSettings& data, bool masks) {
  return {.loss = *corpora::parse_loss_scope(data.loss),
          .add_special_tokens = data.add_special_tokens.value_or(masks),
          .append_end = *corpora::parse_append_end(data.append_eos),
          .on_error = data.on_error == "skip" ? corpora::OnError::kSkip : corpora::OnError::kFail,
          .text_key = data.text_key};
}

Result<const corpora::EncoderFiles*> TokenCache::encoder_files() {
  if (!files_) {
    PLIMSOLL_ASSIGN(
        corpora::EncoderFiles opened,
        corpora::EncoderFiles::open(tokenizer_, config_.data.chat_template, template_now(config_.data)));
    files_.emplace(std::move(opened));
  }
  return &*files_;
}

Result<std::string> TokenCache::tokenized(const std::vector<std::string>& texts, int64_t max_documents) {
  PLIMSOLL_ASSIGN(std::string path, path_of(texts, max_documents));
  PLIMSOLL_TRY(check_size(*files_->tokenizer));
  if (is_intact(path)) return path;
  PLIMSOLL_TRY(io::create_writable_directory(folder()));
  PLIMSOLL_TRY(tokenize(texts, *files_, path, max_documents));
  return path;
}

Result<std::optional<std::string>> TokenCache::find(const std::vector<std::string>& texts,
                                                    int64_t max_documents) {
  PLIMSOLL_ASSIGN(std::string path, path_of(texts, max_documents));
  return datasets::is_shard(path) ? std::optional(std::move(path)) : std::nullopt;
}

/// The name says what the shard was made from.
Result<std::string> TokenCache::path_of(const std::vector<std::string>& texts, int64_t max_documents) {
  PLIMSOLL_ASSIGN(const corpora::EncoderFiles* files, encoder_files());
  CacheKey key;
  const settings::DataSettings& data = config_.data;
  key.add(kCacheVersion);
  key.add_tokenizer(*files->tokenizer, tokenizer_, files->folder);
  for (const std::string& part : {data.loss, data.text_key, data.on_error, data.append_eos}) key.add(part);
  if (data.add_special_tokens.value_or(masks_)) key.add("special");
  if (max_documents > 0) key.add(std::to_string(max_documents));
  for (const std::string& name : {data.chat_template, files->folder + "/chat_template.jinja"})
    key.add(content_of(name));
  // A run that fixed no day has the name that it had before there was one.
  if (data.template_date != "auto" && files->chat_template && files->chat_template->asks_for_date())
    key.add("template_date " + data.template_date);
  key.add_files(texts);
  return fmt::format("{}/tokens-{}.shard", folder(), key.text());
}

/// Before hours of work, not after.
Status TokenCache::check_size(const tokenizers::Tokenizer& tokenizer) const {
  if (options_.vocab_size == 0 || tokenizer.vocab_size() <= options_.vocab_size) return Ok{};
  return too_large(tokenizer, options_.vocab_size, tokenizer_);
}

Status TokenCache::tokenize(const std::vector<std::string>& texts, const corpora::EncoderFiles& files,
                            const std::string& path, int64_t max_documents) const {
  PLIMSOLL_ASSIGN(corpora::TextInput input,
                  corpora::TextInput::open(files, texts, text_options(config_.data, masks_)));
  PLIMSOLL_ASSIGN(corpora::TokenOutput output, corpora::TokenOutput::create(path, input.shard));
  corpora::TokenizeOptions options{.max_documents = max_documents,
                                   .num_threads = options_.num_threads,
                                   .budget_bytes = options_.budget_bytes};
  options.stop = [this] { return is_asked(options_.stop); };
  if (options_.progress)
    options.progress = [&](const corpora::TokenizeCounts& counts) {
      options_.progress(static_cast<double>(counts.bytes_read) /
                            static_cast<double>(std::max<int64_t>(1, counts.total_bytes)),
                        fmt::format("tokenizing, {} tokens", counts.num_tokens));
    };
  PLIMSOLL_ASSIGN(const corpora::TokenizeCounts counts, corpora::write_tokens(input, output, options));
  tell(counts);
  return Ok{};
}

void TokenCache::tell(const corpora::TokenizeCounts& counts) const {
  if (options_.progress) options_.progress(1, {});
  if (!options_.note) return;
  options_.note(fmt::format("tokenized {} document{}, {} tokens, from {}", counts.num_documents,
                            counts.num_documents == 1 ? "" : "s", counts.num_tokens,
                            to_string(Bytes(counts.text_bytes))));
  for (const auto& [reason, count] : counts.skipped.by_reason)
    options_.note(fmt::format("skipped {} example{}: {}", count, count == 1 ? "" : "s", reason));
  for (const std::string& line : corpora::remark_lines(counts.remarks)) options_.note(line);
}

}  // namespace plimsoll::preprocessing
