// tokenizer.json, then, behind a NUL, text: what is accepted encodes any text to ids that have tokens, the
// same from its caches, tokens that lie in the text, rows within their length, and decodes to valid UTF-8, at
// once and streaming.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "tokenizers/tokenizer.h"
#include "tokenizers/unicode.h"

namespace {

void check_utf8(const std::string& text) {
  PLIMSOLL_CHECK(plimsoll::tokenizers::valid_utf8_prefix(text) == text.size(), "broken UTF-8 decoded");
}

void check_text(const plimsoll::tokenizers::Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids;
  std::vector<int32_t> again;
  const bool encoded = tokenizer.encode(text, true, ids).ok();
  PLIMSOLL_CHECK(tokenizer.encode(text, true, again).ok() == encoded && ids == again,
                 "the cache changes ids");
  PLIMSOLL_CHECK(encoded || ids.empty());
  for (const int32_t id : ids)
    PLIMSOLL_CHECK(id >= 0 && id < tokenizer.vocab_size(), "an id beyond the vocabulary");
  std::vector<plimsoll::tokenizers::Span> spans;
  again.clear();
  if (encoded) {
    PLIMSOLL_CHECK(tokenizer.encode_with_spans(text, true, again, spans).ok() && ids == again,
                   "spans change ids");
    PLIMSOLL_CHECK(spans.size() == ids.size());
    for (const auto& span : spans)
      PLIMSOLL_CHECK(span.begin <= span.end && span.end <= text.size(), "a token beyond the text");
  }
  std::vector<int32_t> row, types;
  const size_t most = std::max(ids.size() / 2, tokenizer.num_special_tokens(true));
  if (tokenizer.encode_within(text, text.substr(0, text.size() / 2), most, row, &types).ok())
    PLIMSOLL_CHECK(row.size() <= most && types.size() == row.size(), "a row beyond its length");
  check_utf8(tokenizer.decode(ids, false));
  check_utf8(tokenizer.decode(ids, true));
  plimsoll::tokenizers::DecodeStream stream(tokenizer, false);
  for (size_t i = 0; i < ids.size() && i < 200; ++i) check_utf8(stream.push(ids[i]));
  check_utf8(stream.finish());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\0'), input.size());
  const auto tokenizer = plimsoll::tokenizers::Tokenizer::parse(input.substr(0, end), "tokenizer.json");
  if (!tokenizer) return 0;
  check_text(**tokenizer, input.substr(std::min(end + 1, input.size())));
  check_text(**tokenizer, input);
  check_text(**tokenizer, "It's  1234 caf\u00e9\u0301 \u4f60\u597d <s>\n\n \xE4\xBD\xFF ab\u2581 ");
  return 0;
}
