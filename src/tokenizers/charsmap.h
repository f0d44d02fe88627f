// The Precompiled normalizer: a sentencepiece model's table of what becomes of characters (nmt_nfkc and its
// like). The table is a double array of the library darts-clone, a trie over bytes whose entries tell where
// in a text of zero-terminated strings their replacement starts.
//
//   u32 size of the array in bytes │ its units, u32 each, little-endian │ the strings
//
//   unit of a node  31: no label (a value)  10…30: offset to its children  9: the offset in 256ths
//                    8: the bytes up to here are an entry  0…7: the byte that leads here
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizers/document.h"
#include "tokenizers/span.h"

namespace plimsoll::tokenizers {

class Charsmap {
 public:
  /// `field`: the member precompiled_charsmap, a base64 string. Errors: kBadData for what is none, for an
  /// array that is cut off or points outside of itself, for strings that are no UTF-8 or longer than
  /// kMostReplacement.
  static Result<Charsmap> read(const Field& field);
  /// The same from the bytes themselves.
  static Result<Charsmap> parse(std::string_view bytes, const Field& field);

  /// Bounds what a character of a text can grow to.
  static constexpr size_t kMostReplacement = 1000;

  /// Writes the normalized text to `out`. False where nothing is replaced. As in the package (crate
  /// spm_precompiled 0.1.4): a grapheme cluster of less than six bytes becomes what the shortest entry that
  /// it starts with says, whatever else is in it; of another cluster each character by itself.
  bool apply(std::string_view text, std::string& out) const;
  /// Appends for each byte that `apply` writes which characters of the text it was made from: the first
  /// character of a replacement from the first of the cluster, and so on; the last one takes what is left.
  void align(std::string_view text, std::vector<Span>& spans) const;
  /// Whether the character leaves alone what lies before it, whatever that is.
  [[nodiscard]] bool parts_before(uint32_t code_point) const;

 private:
  Charsmap() = default;
  Status check(const Field& field) const;
  Status check_entry(uint32_t value_at, const Field& field) const;
  [[nodiscard]] std::string_view string_at(uint32_t value_at) const;
  [[nodiscard]] std::optional<std::string_view> find(std::string_view text) const;
  [[nodiscard]] bool has_prefix(std::string_view text) const;
  void index();
  template <typename Keep, typename Replace>
  size_t each_ascii(std::string_view text, size_t at, const Keep& keep, const Replace& replace) const;
  template <typename Keep, typename Replace>
  void each_part(std::string_view text, const Keep& keep, const Replace& replace) const;
  template <typename Keep, typename Replace>
  void each_part_of_cluster(std::string_view text, Span cluster, const Keep& keep,
                            const Replace& replace) const;

  std::vector<uint32_t> units_;
  std::string strings_;
  /// What becomes of an ASCII character that is a cluster by itself.
  struct Ascii {
    bool changes = false;
    uint16_t size = 0;
    size_t start = 0;  // in strings_
  };
  Ascii ascii_[128] = {};
  bool changes_behind_ = false;  // entries start with a character that prepends itself to others
};

/// Decodes strict base64, with padding; nothing where it is none.
std::optional<std::string> decode_base64(std::string_view text);
std::string encode_base64(std::string_view bytes);

}  // namespace plimsoll::tokenizers
