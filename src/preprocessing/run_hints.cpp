#include "preprocessing/run_hints.h"

#include <string_view>
#include <utility>

namespace plimsoll::preprocessing {

Error in_words_of_runs(Error error) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"--on-error skip", "data.on_error=skip"}, {"--loss all", "data.loss=all"},
      {"--text-key", "data.text_key"},           {"--chat-template", "data.chat_template"},
      {", or name it: --eos-token", ""},         {"--tokenizer", "data.tokenizer"}};
  for (const auto& [option, setting] : kWords) {
    const size_t at = error.hint.find(option);
    if (at != error.hint.npos) error.hint.replace(at, option.size(), setting);
  }
  return error;
}

}  // namespace plimsoll::preprocessing
