// A line of JSON as an example, by the members that it has:
//
//   input_ids, labels?, …                   tokens (parse_tokens.h), whatever text is beside them, as for TRL
//   messages                                a conversation, handed on as it is ("tools" and all)
//   conversations                           ShareGPT's: from and value become role and content
//   prompt, completion                      two strings, or two lists of messages
//   text                                    a document
//   instruction, input?, output, history?   alpaca's two prompts, then the output
//
// The first of these rows decides; a member that is null counts as absent. "system" is the first message of a
// conversation, and begins an alpaca prompt. Members that are lists or objects may be texts that hold them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "corpora/example.h"
#include "corpora/record_reader.h"

namespace plimsoll::corpora {

/// The members that an example may have; what decides on its kind first, then what comes with tokens, then
/// what a chat template sees beside the messages.
inline constexpr std::string_view kExampleMembers[] = {
    "text",         "messages",    "conversations",   "prompt",          "completion",
    "instruction",  "input",       "output",          "chosen",          "rejected",
    "input_ids",    "labels",      "completion_mask", "assistant_masks", "attention_mask",
    "position_ids", "seq_lengths", "cu_seqlens",      "cu_seq_lens_q",   "seq_idx",
    "system",       "history",     "tools",           "documents",       "chat_template_kwargs"};

/// Which of a text and tokens a line is that has both: tokens, but for who looks for words.
enum class Prefers : uint8_t { kTokens, kText };

/// `text_key`: the only member that is looked at, a document; empty: as above. `file` and `line` of `example`
/// are set already and named in errors; the rest is overwritten.
std::optional<BadExample> parse_example(std::string_view json, std::string_view text_key, Example& example,
                                        Prefers prefers = Prefers::kTokens);

/// A record of any kind as an example; `bytes` holds it.
std::optional<BadExample> to_example(std::string_view bytes, const Record& record,
                                     const std::vector<std::string>& files, std::string_view text_key,
                                     Example& example, Prefers prefers = Prefers::kTokens);

}  // namespace plimsoll::corpora
