// Normalizers: what is done to a text before it is cut into words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "data/tokenizer/document.h"

namespace plimsoll::tokenizer {

class Normalizer {
 public:
  /// `field` may be absent or null: nothing is done. Errors: kBadData for a kind that is not supported, by
  /// its name.
  static Result<Normalizer> build(const Field& field);

  /// The normalized text: `text` itself where nothing changes, else a view of `out`, which is overwritten.
  /// `first` turns false where the text's first characters are taken away.
  std::string_view apply(std::string_view text, std::string& out, bool& first) const;

 private:
  enum class Kind : uint8_t {
    kNfc,
    kNfd,
    kNfkc,
    kNfkd,
    kLowercase,
    kStrip,
    kStripAccents,
    kPrepend,
    kReplace
  };
  struct Step {
    Kind kind;
    std::string pattern = {};
    std::string content = {};  // kPrepend, kReplace
    bool left = false;         // kStrip
    bool right = false;
  };
  Status add(const Field& field, int depth);
  Status add_replace(const Field& field);
  static bool step(const Step& how, std::string_view text, std::string& out, bool& first);

  std::vector<Step> steps_;
};

}  // namespace plimsoll::tokenizer
