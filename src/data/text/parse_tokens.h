// A line of tokens, as tokenizing with datasets leaves it:
//
//   input_ids                          the tokens
//   labels                             the same, −100 where a token is no target
//   completion_mask, assistant_masks   1 where it is one (TRL)
//   attention_mask                     0: padding, which is left away
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::text {

/// The values of the members, as they were scanned; empty: absent.
struct TokenMembers {
  std::string_view input_ids = {}, labels = {}, completion_mask = {}, assistant_masks = {},
                   attention_mask = {};
};

/// Into `ids` and `in_loss` (empty: all are targets). What is wrong with it, if anything.
std::optional<std::string> parse_tokens(const TokenMembers& members, std::vector<int32_t>& ids,
                                        std::vector<uint8_t>& in_loss);

}  // namespace plimsoll::text
