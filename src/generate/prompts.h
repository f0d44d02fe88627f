// The prompts of a request: texts, conversations, lists of ids, files of all these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "generate/chat_format.h"
#include "generate/request.h"
#include "generate/text_codec.h"

namespace plimsoll::generate {

struct Prompt {
  std::string text = {};   ///< as given; of messages, as the template rendered them; empty: ids were given
  std::string title = {};  ///< of messages: what the last one says; else the text
  std::vector<int32_t> ids = {};  ///< never empty
};

/// What prompts are read by.
struct PromptReading {
  const TextCodec& codec;
  const ChatFormat& format;
  std::optional<int32_t> bos_id;
  int64_t vocab_size = 0;
};

/// All prompts in the order --prompt, --prompt-ids, --prompt-file, --prompts, --messages. Blank lines of
/// files are passed over. Texts are a user's message where the format applies; an empty text is the beginning
/// of a sequence where the model has a token for that. Errors: kInvalidArgument where there is none, for an
/// empty one, for ids that are none of the vocabulary's on the command line; kBadData for files and for what
/// a template refuses; kIo.
Result<std::vector<Prompt>> read_prompts(const Request& request, const PromptReading& reading);

/// All of standard input. Errors: kBadData beyond 64 MiB; kIo.
Result<std::string> read_standard_input();

}  // namespace plimsoll::generate
