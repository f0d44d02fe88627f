// Short words come from the cache or go through the merge loop; long ones are first cut where no merge can
// cross.
#include "tokenizers/bpe_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "tokenizers/byte_alphabet.h"
#include "tokenizers/unicode.h"

namespace plimsoll::tokenizers {
Result<BpeModel> BpeModel::build(const Document& document, const Field& model, bool byte_level,
                                 const Vocabulary& vocabulary) {
  BpeModel bpe(document.merges.size(), document.merges.size() / 4);
  bpe.byte_level_ = byte_level;
  PLIMSOLL_TRY(bpe.read_settings(model, vocabulary));
  bpe.index_characters(vocabulary);
  PLIMSOLL_TRY(bpe.add_merges(document, model, vocabulary));
  return bpe;
}

Status BpeModel::read_settings(const Field& model, const Vocabulary& vocabulary) {
  PLIMSOLL_ASSIGN(ignore_merges_, model.member("ignore_merges").boolean_or(false));
  whole_words_differ_ = ignore_merges_;
  PLIMSOLL_ASSIGN(byte_fallback_, model.member("byte_fallback").boolean_or(false));
  PLIMSOLL_ASSIGN(fuse_unknown_, model.member("fuse_unk").boolean_or(false));
  for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const Field affix = model.member(name);
    if (affix.absent()) continue;
    PLIMSOLL_ASSIGN(const std::string text, affix.string());
    if (!text.empty()) return affix.error(fmt::format("is '{}', which is not supported", text.substr(0, 60)));
  }
  const Field dropout = model.member("dropout");
  const bool is_number = !dropout.absent() && (dropout.tree->kind == io::Tree::Kind::kNumber ||
                                               dropout.tree->kind == io::Tree::Kind::kInteger);
  if (!dropout.absent() && !(is_number && dropout.tree->number == 0))
    return dropout.expected("null or 0: ids that change from call to call are not supported");
  if (const Field unknown = model.member("unk_token"); !unknown.absent()) {
    PLIMSOLL_ASSIGN(unknown_token_, unknown.string());
    has_unknown_ = true;
    unknown_id_ = vocabulary.find(unknown_token_).value_or(-1);
  }
  return Ok{};
}

void BpeModel::index_characters(const Vocabulary& vocabulary) {
  for (int32_t id = 0; id < vocabulary.end_id(); ++id) {
    const std::string_view token = vocabulary.token(id);
    if (token.empty()) continue;
    const CodePoint c = decode(token.data());
    if (static_cast<size_t>(c.length) != token.size()) continue;
    if (c.value >= char_ids_.size()) char_ids_.resize(c.value + 1, -1);
    char_ids_[c.value] = id;
  }
  fallback_ids_.assign(256, -1);
  if (!byte_fallback_) return;
  for (unsigned byte = 0; byte < 256; ++byte)
    fallback_ids_[byte] = vocabulary.find(fmt::format("<0x{:02X}>", byte)).value_or(-1);
}

Status BpeModel::add_merges(const Document& document, const Field& model, const Vocabulary& vocabulary) {
  std::vector<bool> is_byte(static_cast<size_t>(vocabulary.end_id()));
  for (const int32_t id : fallback_ids_)
    if (id >= 0) is_byte[static_cast<size_t>(id)] = true;
  const Field list = model.member("merges");
  for (size_t rank = 0; rank < document.merges.size(); ++rank) {
    const auto& [left, right] = document.merges[rank];
    const auto unknown = [&](std::string_view token) {
      return list.item(rank).error(
          fmt::format("names '{}', which is not in model.vocab", token.substr(0, 60)));
    };
    if (left.empty() || right.empty()) return list.item(rank).error("has an empty token");
    const auto left_id = vocabulary.find(left);
    if (!left_id) return unknown(left);
    const auto right_id = vocabulary.find(right);
    if (!right_id) return unknown(right);
    const auto merged = vocabulary.find(left + right);
    if (!merged) return unknown(left + right);
    merges_.set(*left_id, *right_id, static_cast<uint32_t>(rank), *merged);
    junctions_.add(decode_before(left.data() + left.size()).value, decode(right.data()).value);
    if (is_byte[static_cast<size_t>(*left_id)] || is_byte[static_cast<size_t>(*right_id)])
      bytes_merge_ = true;
  }
  return Ok{};
}

BpeModel::Next BpeModel::next(const char* p) const {
  if (byte_level_) return {kByteChars[static_cast<unsigned char>(*p)], 1};
  const CodePoint c = decode(p);
  return {c.value, c.length};
}

bool BpeModel::has_bytes(uint32_t code_point) const {
  if (!byte_fallback_) return false;
  std::string bytes;
  append_utf8(code_point, bytes);
  return std::all_of(bytes.begin(), bytes.end(),
                     [this](char byte) { return fallback_ids_[static_cast<unsigned char>(byte)] >= 0; });
}

BpeModel::Unit BpeModel::rare_unit(uint32_t code_point) const {
  if (has_bytes(code_point)) return Unit::kBytes;
  return has_unknown_ ? Unit::kUnknown : Unit::kDropped;
}

// An unknown token waits for the next known character; bytes overtake it. That is what the package does.
void BpeModel::append_other(uint32_t code_point, bool& pending, ModelState& state) const {
  if (has_bytes(code_point)) {
    std::string bytes;
    append_utf8(code_point, bytes);
    for (const char byte : bytes) state.symbols.push_back(fallback_ids_[static_cast<unsigned char>(byte)]);
  } else if (has_unknown_) {
    if (unknown_id_ < 0) {
      state.unknown_failed = true;
      return;
    }
    if (pending && !fuse_unknown_) state.symbols.push_back(unknown_id_);
    pending = true;
  }
}

void BpeModel::append_symbols(std::string_view word, ModelState& state) const {
  bool pending = false;
  const char* p = word.data();
  const char* const end = p + word.size();
  while (p < end) {
    const Next c = next(p);
    p += c.length;
    if (const int32_t id = char_id(c.code_point); id >= 0) {
      if (pending) state.symbols.push_back(unknown_id_);
      pending = false;
      state.symbols.push_back(id);
    } else {
      append_other(c.code_point, pending, state);
    }
  }
  if (pending) state.symbols.push_back(unknown_id_);
}

bool BpeModel::whole_token(std::string_view word, const Vocabulary& vocabulary, ModelState& state) const {
  if (word.size() > vocabulary.max_token_bytes()) return false;
  if (byte_level_) {
    state.mapped.resize(2 * word.size());
    char* out = state.mapped.data();
    for (const char byte : word) {
      const uint32_t c = kByteChars[static_cast<unsigned char>(byte)];  // below U+0800
      if (c >= 0x80) *out++ = static_cast<char>(0xC0 | c >> 6);
      *out++ = static_cast<char>(c < 0x80 ? c : 0x80 | (c & 0x3F));
    }
    word = std::string_view(state.mapped.data(), static_cast<size_t>(out - state.mapped.data()));
  }
  const auto id = vocabulary.find_in_model(word);
  if (id) state.symbols.assign(1, *id);
  return id.has_value();
}

/// Leaves the ids in state.symbols.
void BpeModel::encode_anew(std::string_view part, bool whole, const Vocabulary& vocabulary,
                           ModelState& state) const {
  state.symbols.clear();
  if (part.size() > kLargeWord) state.symbols.reserve(part.size());  // doubling would take twice as much
  if (whole && ignore_merges_ && whole_token(part, vocabulary, state)) return;
  append_symbols(part, state);
  merge_symbols(merges_, state.symbols, state.merging);
}

// A cut lies between two known characters that no merge joins, or beside a character that falls back to bytes
// where bytes take no part in merges; never where an unknown token is waiting or characters vanish.
void BpeModel::encode_long(std::string_view word, const char* readable_end, const Vocabulary& vocabulary,
                           ModelState& state, std::vector<int32_t>& ids) const {
  const char* start = word.data();
  const char* const end = start + word.size();
  Unit left = Unit::kDropped;
  uint32_t left_char = 0;
  bool pending = false;
  for (const char* p = start; p < end;) {
    const Next c = next(p);
    const Unit right = unit(c.code_point);
    bool cut = false;
    if (left == Unit::kKnown && right == Unit::kKnown)
      cut = !junctions_.has(left_char, c.code_point);
    else if (left <= Unit::kBytes && right <= Unit::kBytes)
      cut = !bytes_merge_ && !pending;
    if (cut) {
      take_part({start, p}, readable_end, false, vocabulary, state, ids);
      start = p;
    }
    pending = right == Unit::kUnknown || (pending && right != Unit::kKnown);
    left = right;
    left_char = c.code_point;
    p += c.length;
  }
  take_part({start, end}, readable_end, false, vocabulary, state, ids);
}

void BpeModel::encode_word(std::string_view word, const char* readable_end, const Vocabulary& vocabulary,
                           ModelState& state, std::vector<int32_t>& ids) const {
  if (word.size() <= WordCache::kMaxBytes) return take_part(word, readable_end, true, vocabulary, state, ids);
  finish(vocabulary, state, ids);
  LongWordCache::Entry* const entry =
      word.size() <= LongWordCache::kMaxBytes ? &state.long_cache.entry(word) : nullptr;
  if (entry && entry->word == word) {
    ids.insert(ids.end(), entry->ids.begin(), entry->ids.end());
    return;
  }
  const size_t before = ids.size();
  if (ignore_merges_ && whole_token(word, vocabulary, state)) {
    ids.push_back(state.symbols[0]);
  } else {
    encode_long(word, readable_end, vocabulary, state, ids);
    finish(vocabulary, state, ids);
  }
  if (!entry || state.unknown_failed) return;
  entry->word = word;
  entry->ids.assign(ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end());
}

}  // namespace plimsoll::tokenizers
