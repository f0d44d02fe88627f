// A line of tokens, as tokenizing with datasets leaves it, packed or not:
//
//   input_ids                          the tokens
//   labels                             the same, −100 where a token is no target
//   completion_mask, assistant_masks   1 where it is one (TRL)
//   attention_mask                     0: padding, which is left away; above 1: the document's number
//   (axolotl) position_ids                       0 where a document begins, one more with each token
//   seq_lengths                        tokens of each document (TRL's pack_dataset)
//   cu_seqlens, cu_seq_lens_q          where each begins, and where the last one ends (transformers)
//   seq_idx                            the document's number
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::corpora {

/// The values of the members, as they were scanned; empty: absent.
struct TokenMembers {
  std::string_view input_ids = {}, labels = {}, completion_mask = {}, assistant_masks = {},
                   attention_mask = {};
  std::string_view position_ids = {}, seq_lengths = {}, cu_seqlens = {}, cu_seq_lens_q = {}, seq_idx = {};
};

struct ParsedTokens {
  std::vector<int32_t>& ids;
  std::vector<uint8_t>& in_loss;  ///< empty: all are targets
  std::vector<size_t>& ends;      ///< of the documents; empty: they are one
};

/// Into `out`. What is wrong with it, if anything; members that disagree about where documents begin are.
std::optional<std::string> parse_tokens(const TokenMembers& members, const ParsedTokens& out);

}  // namespace plimsoll::corpora
