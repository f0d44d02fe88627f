// BertNormalizer: control characters removed, spaces around Chinese characters, accents stripped, lower case.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tokenizers/document.h"

namespace plimsoll::tokenizers {

class BertNormalizer {
 public:
  /// All rules off.
  BertNormalizer() = default;
  /// clean_text, handle_chinese_chars, strip_accents (null: as lowercase), lowercase. Errors: kBadData for a
  /// rule that is missing or no boolean.
  static Result<BertNormalizer> build(const Field& field);

  /// Writes the normalized text to `out`. False where it is `text` as it was.
  bool apply(std::string_view text, std::string& out) const;
  /// Appends what becomes of one character of a text, whatever lies around it.
  void append(uint32_t code_point, std::string& out) const;
  /// Whether what lies before the character stays as it is, whatever that is.
  [[nodiscard]] static bool parts_before(uint32_t code_point);

 private:
  void append_stripped(uint32_t code_point, std::string& out) const;
  void append_cased(uint32_t code_point, std::string& out) const;
  bool append_run(std::string_view text, std::string& out) const;
  void apply_in_order(std::string_view text, std::string& out) const;
  void index();

  static constexpr char kRemoved = '\x80';
  bool strips_accents_ = false;
  bool lowercases_ = false;
  uint8_t mask_ = 0;      // of the classes that one of the rules changes
  char ascii_[128] = {};  // what becomes of an ASCII character; kRemoved where nothing does
};

}  // namespace plimsoll::tokenizers
