// A decoder may look at neighbours (a run of byte tokens, the first token's space), so the stream decodes the
// new ids behind those of the text before and gives out what that adds; ids whose characters are unfinished
// wait.
#include "tokenizers/tokenizer.h"

namespace plimsoll::tokenizers {
namespace {

constexpr std::string_view kUnfinished = "\xEF\xBF\xBD";

}  // namespace

/// What `text`, that of all ids, has beyond the context's. Bytes may spoil the context's decoding after the
/// fact (a run of byte tokens decodes as a whole); then the new ids speak for themselves.
std::string DecodeStream::beyond_context(const std::string& text) const {
  if (text.starts_with(prefix_)) return text.substr(prefix_.size());
  return tokenizer_.decode(std::span(ids_).subspan(prefix_index_), skip_special_tokens_);
}

std::string DecodeStream::push(int32_t id) {
  if (prefix_.empty() && !ids_.empty()) {
    std::string text = tokenizer_.decode(ids_, skip_special_tokens_);
    if (!text.ends_with(kUnfinished)) {
      prefix_ = std::move(text);
      prefix_index_ = ids_.size();
    }
  }
  ids_.push_back(id);
  const std::string text = tokenizer_.decode(ids_, skip_special_tokens_);
  if (text.size() <= prefix_.size() || text.ends_with(kUnfinished)) return {};
  std::string fresh = beyond_context(text);
  const size_t context = ids_.size() - prefix_index_;
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(prefix_index_));
  prefix_ = tokenizer_.decode(ids_, skip_special_tokens_);
  prefix_index_ = context;
  return fresh;
}

std::string DecodeStream::finish() {
  std::string rest = beyond_context(tokenizer_.decode(ids_, skip_special_tokens_));
  ids_.clear();
  prefix_.clear();
  prefix_index_ = 0;
  return rest;
}

}  // namespace plimsoll::tokenizers
