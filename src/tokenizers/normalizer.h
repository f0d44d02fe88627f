// Normalizers: what is done to a text before it is cut into words.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizers/bert_normalizer.h"
#include "tokenizers/charsmap.h"
#include "tokenizers/document.h"
#include "tokenizers/span.h"

namespace plimsoll::tokenizers {

class Normalizer {
 public:
  /// `field` may be absent or null: nothing is done. Errors: kBadData for a kind that is not supported, by
  /// its name.
  static Result<Normalizer> build(const Field& field);

  /// The normalized text: `text` itself where nothing changes, else a view of `out`, which is overwritten.
  /// `first` turns false where the text's first characters are taken away. `continues`: the text is the rest
  /// of one that was cut, so nothing is put before it.
  std::string_view apply(std::string_view text, std::string& out, bool& first, bool continues = false) const;
  /// The same, and for each byte of the normalized text in `spans` what it was made from in `text` (empty
  /// where nothing changed); slower.
  std::string_view apply_aligned(std::string_view text, std::string& out, bool& first,
                                 std::vector<Span>& spans) const;
  /// Normalizes two stretches of a text that lie side by side, for text behind its start, in place. False
  /// where together they might become something else, or one of them nothing.
  bool apply_apart(std::string& left, std::string& right) const;
  /// Whether a form leaves alone what lies before the character, whatever that is.
  [[nodiscard]] bool parts_before(uint32_t code_point) const;

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
    kReplace,
    kReplaceBlanks,
    kBert,
    kPrecompiled,
    kNmt
  };
  struct Step {
    Kind kind;
    std::string pattern = {};
    std::string content = {};  // kPrepend, kReplace, kReplaceBlanks
    bool left = false;         // kStrip
    bool right = false;
    BertNormalizer bert = {};
    std::shared_ptr<const Charsmap> charsmap = {};
  };
  Status add(const Field& field, int depth);
  Status add_replace(const Field& field);
  [[nodiscard]] static bool parts_before(const Step& how, uint32_t code_point);
  static bool step(const Step& how, std::string_view text, std::string& out, bool& first);
  static void align(const Step& how, std::string_view text, std::string_view changed,
                    std::vector<Span>& spans);

  std::vector<Step> steps_;
};

}  // namespace plimsoll::tokenizers
