#include "cli/data_json.h"

#include <string>
#include <utility>

#include "data/tokenizer/unicode.h"

namespace plimsoll::cli {

Tree json_text(std::string_view text) {
  std::string repaired;
  tokenizer::append_repaired(text, repaired);
  return Tree::of(std::move(repaired));
}

}  // namespace plimsoll::cli
