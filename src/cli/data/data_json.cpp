#include "cli/data/data_json.h"

#include <string>
#include <utility>

#include "tokenizers/unicode.h"

namespace plimsoll::cli {

io::Tree json_text(std::string_view text) {
  std::string repaired;
  tokenizers::append_repaired(text, repaired);
  return io::Tree::of(std::move(repaired));
}

}  // namespace plimsoll::cli
