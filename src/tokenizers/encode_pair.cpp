// A text, or two, as one row of ids: each encoded by itself, special tokens where the post-processor has
// them.
#include <fmt/format.h>

#include <algorithm>

#include "tokenizers/parts.h"
#include "tokenizers/tokenizer.h"

namespace plimsoll::tokenizers {
namespace {

using Piece = PostProcessor::Piece;

/// The texts alone, where a post-processor has no pieces.
const std::vector<Piece> kPlain[] = {{{.is_text = true}},
                                     {{.is_text = true}, {.is_text = true, .is_second = true, .type_id = 1}}};

const std::vector<Piece>& pieces_of(const PostProcessor& post_processor, bool is_pair) {
  const auto& pieces = is_pair ? post_processor.pair_pieces() : post_processor.pieces();
  return pieces.empty() ? kPlain[is_pair] : pieces;
}

Status check_pair(const TokenizerParts& parts) {
  if (parts.post_processor.takes_pairs()) return Ok{};
  return Error{ErrorCode::kBadData, "post_processor.pair has no place for two texts", parts.source,
               "text pairs need a tokenizer whose post-processor has one"};
}

void append_piece(std::span<const int32_t> ids, int32_t type_id, std::vector<int32_t>& to,
                  std::vector<int32_t>* type_ids) {
  to.insert(to.end(), ids.begin(), ids.end());
  if (type_ids != nullptr) type_ids->insert(type_ids->end(), ids.size(), type_id);
}

void append_pieces(const std::vector<Piece>& pieces, bool with_special, std::span<const int32_t> text,
                   std::span<const int32_t> pair, std::vector<int32_t>& ids, std::vector<int32_t>* type_ids) {
  for (const Piece& piece : pieces) {
    if (piece.is_text)
      append_piece(piece.is_second ? pair : text, piece.type_id, ids, type_ids);
    else if (with_special)
      append_piece(piece.ids, piece.type_id, ids, type_ids);
  }
}

/// The lengths of a text and its pair that together are `room` at most.
/// Source: tokenizers 0.23.3, truncate_encodings, "longest_first".
std::pair<size_t, size_t> cut_lengths(size_t text, size_t pair, size_t room) {
  if (text + pair <= room) return {text, pair};
  const size_t shorter = std::min(text, pair);
  const size_t kept = std::min(shorter, room / 2);
  return text > pair ? std::pair(room - kept, kept) : std::pair(kept, room - kept);
}

}  // namespace

size_t Tokenizer::num_special_tokens(bool is_pair) const {
  size_t count = 0;
  for (const Piece& piece : pieces_of(parts_->post_processor, is_pair)) count += piece.ids.size();
  return count;
}

Status Tokenizer::join(std::span<const int32_t> text, std::optional<std::span<const int32_t>> pair,
                       std::vector<int32_t>& ids, std::vector<int32_t>* type_ids) const {
  if (pair) PLIMSOLL_TRY(check_pair(*parts_));
  append_pieces(pieces_of(parts_->post_processor, pair.has_value()), true, text,
                pair.value_or(std::span<const int32_t>()), ids, type_ids);
  return Ok{};
}

Status Tokenizer::encode_pair(std::string_view text, std::string_view pair, bool add_special_tokens,
                              std::vector<int32_t>& ids, std::vector<int32_t>* type_ids) const {
  PLIMSOLL_TRY(check_pair(*parts_));
  std::vector<int32_t> of_text, of_pair;
  PLIMSOLL_TRY(encode(text, false, of_text));
  PLIMSOLL_TRY(encode(pair, false, of_pair));
  append_pieces(pieces_of(parts_->post_processor, true), add_special_tokens, of_text, of_pair, ids, type_ids);
  return Ok{};
}

Status Tokenizer::encode_within(std::string_view text, std::optional<std::string_view> pair,
                                size_t max_tokens, std::vector<int32_t>& ids,
                                std::vector<int32_t>* type_ids) const {
  if (pair) PLIMSOLL_TRY(check_pair(*parts_));
  const size_t num_special = num_special_tokens(pair.has_value());
  if (max_tokens < num_special)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} tokens are fewer than the {} special ones of a {}", max_tokens, num_special,
                             pair ? "pair" : "text"),
                 parts_->source,
                 {}};
  std::vector<int32_t> of_text, of_pair;
  PLIMSOLL_TRY(encode(text, false, of_text));
  if (pair) PLIMSOLL_TRY(encode(*pair, false, of_pair));
  const auto [num_text, num_pair] = cut_lengths(of_text.size(), of_pair.size(), max_tokens - num_special);
  const std::span kept_text = std::span<const int32_t>(of_text).first(num_text);
  if (!pair) return join(kept_text, std::nullopt, ids, type_ids);
  return join(kept_text, std::span<const int32_t>(of_pair).first(num_pair), ids, type_ids);
}

}  // namespace plimsoll::tokenizers
