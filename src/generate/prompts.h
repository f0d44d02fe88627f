// The prompts of a request: texts, lists of ids, files of either.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "generate/request.h"
#include "generate/text_codec.h"

namespace plimsoll::generate {

struct Prompt {
  std::string text = {};          ///< empty where ids were given
  std::vector<int32_t> ids = {};  ///< never empty
};

/// All prompts in the order --prompt, --prompt-ids, --prompts. Blank lines of files are passed over. An empty
/// text is the beginning of a sequence where the model has a token for that.
/// Errors: kInvalidArgument where there is none, for an empty one, for ids that are none of the vocabulary's
/// on the command line; kBadData for files; kIo.
Result<std::vector<Prompt>> read_prompts(const Request& request, const TextCodec& codec,
                                         const Resolved& resolved, int64_t vocab_size);

}  // namespace plimsoll::generate
