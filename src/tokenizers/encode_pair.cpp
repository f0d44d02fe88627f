// Two texts as one row of ids: each encoded by itself, special tokens where the post-processor has them.
#include "tokenizers/parts.h"
#include "tokenizers/tokenizer.h"

namespace plimsoll::tokenizers {

Status Tokenizer::encode_pair(std::string_view text, std::string_view pair, bool add_special_tokens,
                              std::vector<int32_t>& ids) const {
  const size_t before = ids.size();
  const auto encode_both = [&]() -> Status {
    const PostProcessor& post_processor = parts_->post_processor;
    if (!post_processor.takes_pairs())
      return Error{ErrorCode::kBadData, "post_processor.pair has no place for two texts", parts_->source,
                   "text pairs need a tokenizer whose post-processor has one"};
    if (post_processor.pair_pieces().empty()) {
      PLIMSOLL_TRY(encode(text, false, ids));
      return encode(pair, false, ids);
    }
    for (const PostProcessor::Piece& piece : post_processor.pair_pieces()) {
      if (piece.is_text)
        PLIMSOLL_TRY(encode(piece.is_second ? pair : text, false, ids));
      else if (add_special_tokens)
        ids.insert(ids.end(), piece.ids.begin(), piece.ids.end());
    }
    return Ok{};
  };
  Status encoded = encode_both();
  if (!encoded) ids.resize(before);
  return encoded;
}

}  // namespace plimsoll::tokenizers
