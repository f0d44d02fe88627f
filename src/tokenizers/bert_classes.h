// The classes of code points of BERT's normalizer and pre-tokenizer, as the `tokenizers` package sees them
// (bert_tables.cpp).
#pragma once

#include <cstdint>
#include <span>

namespace plimsoll::tokenizers {

enum BertClass : uint8_t {
  kBertControl = 0x01,      ///< clean_text removes it
  kBertSpace = 0x02,        ///< clean_text makes it a space; words end there
  kBertPunctuation = 0x04,  ///< a word of its own
  kBertHan = 0x08,          ///< handle_chinese_chars puts spaces around it
  kBertMark = 0x10,         ///< strip_accents removes it
  kBertDecomposes = 0x20,   ///< NFD changes it
  kBertOrdered = 0x40,      ///< leaves a mark that strip_accents keeps and NFD may move
  kBertUpper = 0x80         ///< lower case changes it
};

/// start << 8 | classes, ascending by start; the generated table.
std::span<const uint32_t> bert_runs();
/// One byte of classes for each code point, spread out at the first call.
const uint8_t* bert_classes();

}  // namespace plimsoll::tokenizers
