#include "generate/text_codec.h"

#include <fmt/format.h>

#include "datasets/token_source.h"
#include "tokenizers/tokenizer.h"
#include "tokenizers/tokenizer_source.h"
#include "tokenizers/unicode.h"

namespace plimsoll::generate {
namespace {

bool is_byte(int32_t id) { return id >= 0 && id < datasets::ByteVocabulary::kLeastSize; }

/// Length of `text` without a character at its end that is begun and not finished.
size_t finished_bytes(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const bool begins = byte >= 0xC2 && byte <= 0xF4;  // no other byte begins a character of several
    const size_t length = !begins ? 1 : byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    return length > back ? text.size() - back : text.size();
  }
  return text.size();
}

}  // namespace

TextCodec::TextCodec(std::string folder, int64_t vocab_size)
    : folder_(std::move(folder)), vocab_size_(vocab_size) {}
TextCodec::TextCodec(TextCodec&&) noexcept = default;
TextCodec::~TextCodec() = default;

Result<TextCodec> TextCodec::open(const std::string& folder, int64_t vocab_size) {
  TextCodec codec(folder, vocab_size);
  if (!tokenizers::tokenizer_file(folder).empty()) {
    PLIMSOLL_ASSIGN(codec.tokenizer_, tokenizers::Tokenizer::open(folder));
    return codec;
  }
  codec.bytes_ = !tokenizers::has_tokenizer_files(folder) &&
                 vocab_size >= datasets::ByteVocabulary::kLeastSize &&
                 vocab_size < datasets::ByteVocabulary::kEnd;
  return codec;
}

Status TextCodec::encode(std::string_view text, bool add_special_tokens, std::vector<int32_t>& ids) const {
  if (bytes_) {
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return Ok{};
  }
  if (tokenizer_ == nullptr)
    return Error{ErrorCode::kInvalidArgument, "the model has no tokenizer.json, so it takes ids and no text",
                 folder_,
                 "give --prompt-ids, or put tokenizer.json into the folder (transformers' "
                 "AutoTokenizer(...).save_pretrained writes it)"};
  const size_t before = ids.size();
  PLIMSOLL_TRY(tokenizer_->encode(text, add_special_tokens, ids));
  for (size_t i = before; i < ids.size(); ++i)
    if (ids[i] < 0 || ids[i] >= vocab_size_)
      return Error{ErrorCode::kBadData,
                   fmt::format("the tokenizer gives the id {} ('{}'), and the model's vocab_size is {}",
                               ids[i], tokenizer_->token(ids[i]).substr(0, 60), vocab_size_),
                   folder_, "do tokenizer.json, tokenizer_config.json and config.json belong together?"};
  return Ok{};
}

std::optional<int32_t> TextCodec::special_token(std::string_view name) const {
  if (tokenizer_ == nullptr) return std::nullopt;
  const auto id = tokenizer_->id_of(name);
  return id && *id < vocab_size_ && tokenizer_->is_special(*id) ? id : std::nullopt;
}

bool TextCodec::is_special(int32_t id) const {
  return bytes_ ? !is_byte(id) : tokenizer_ != nullptr && tokenizer_->is_special(id);
}

std::string TextCodec::decode(std::span<const int32_t> ids) const {
  if (tokenizer_ != nullptr) return tokenizer_->decode(ids, true);
  std::string bytes, text;
  if (!bytes_) return text;
  for (const int32_t id : ids)
    if (is_byte(id)) bytes += static_cast<char>(id);
  tokenizers::append_repaired(bytes, text);
  return text;
}

TextCodec::Stream::Stream(const TextCodec& codec) : codec_(codec) {
  if (codec.tokenizer_ != nullptr)
    decoder_ = std::make_unique<tokenizers::DecodeStream>(*codec.tokenizer_, true);
}
TextCodec::Stream::Stream(Stream&&) noexcept = default;
TextCodec::Stream::~Stream() = default;

std::string TextCodec::Stream::push(int32_t id) {
  if (decoder_ != nullptr) return decoder_->push(id);
  if (!codec_.bytes_) return fmt::format("{}{}", std::exchange(first_, false) ? "" : " ", id);
  if (is_byte(id)) pending_ += static_cast<char>(id);
  std::string text;
  const size_t finished = finished_bytes(pending_);
  tokenizers::append_repaired(std::string_view(pending_).substr(0, finished), text);
  pending_.erase(0, finished);
  return text;
}

std::string TextCodec::Stream::finish() {
  if (decoder_ != nullptr) return decoder_->finish();
  std::string text;
  tokenizers::append_repaired(pending_, text);
  pending_.clear();
  return text;
}

}  // namespace plimsoll::generate
