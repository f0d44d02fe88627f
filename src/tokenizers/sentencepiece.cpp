#include "tokenizers/sentencepiece.h"

#include <bit>
#include <optional>

namespace plimsoll::tokenizers {
namespace {

/// One field of a message: what its wire type says. Nothing at the end; `broken` where it ends too early.
struct WireField {
  uint64_t number = 0;
  uint64_t value = 0;          ///< of a varint, or the bits of a fixed one
  std::string_view text = {};  ///< of a field with a length
};

class Message {
 public:
  explicit Message(std::string_view bytes) : rest_(bytes) {}
  [[nodiscard]] bool broken() const { return broken_; }

  std::optional<WireField> next() {
    if (rest_.empty() || broken_) return std::nullopt;
    const uint64_t key = varint();
    WireField field{.number = key >> 3};
    switch (key & 7) {
      case 0:
        field.value = varint();
        break;
      case 1:
        field.value = fixed(8);
        break;
      case 2:
        field.text = take(varint());
        break;
      case 5:
        field.value = fixed(4);
        break;
      default:
        broken_ = true;
    }
    if (broken_) return std::nullopt;
    return field;
  }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::string_view byte = take(1);
      if (broken_) return 0;
      const auto bits = static_cast<unsigned char>(byte[0]);
      value |= static_cast<uint64_t>(bits & 0x7F) << shift;
      if (bits < 0x80) return value;
    }
    broken_ = true;
    return 0;
  }
  uint64_t fixed(size_t count) {
    uint64_t value = 0;
    const std::string_view bytes = take(count);
    for (size_t i = 0; i < bytes.size(); ++i)
      value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
    return value;
  }
  std::string_view take(uint64_t count) {
    if (count > rest_.size()) {
      broken_ = true;
      return {};
    }
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  std::string_view rest_;
  bool broken_ = false;
};

bool read_piece(std::string_view bytes, Piece& piece) {
  Message message(bytes);
  while (const auto field = message.next()) {
    if (field->number == 1) piece.text = std::string(field->text);
    if (field->number == 2) piece.score = std::bit_cast<float>(static_cast<uint32_t>(field->value));
    if (field->number == 3) piece.kind = static_cast<int32_t>(field->value);
  }
  return !message.broken();
}

bool read_trainer(std::string_view bytes, SentencePieceModel& model) {
  Message message(bytes);
  while (const auto field = message.next()) {
    if (field->number == 3) model.model_type = static_cast<int32_t>(field->value);
    if (field->number == 24) model.treats_whitespace_as_suffix = field->value != 0;
    if (field->number == 35) model.byte_fallback = field->value != 0;
  }
  return !message.broken();
}

bool read_normalizer(std::string_view bytes, SentencePieceModel& model) {
  Message message(bytes);
  while (const auto field = message.next()) {
    if (field->number == 2) model.charsmap = std::string(field->text);
    if (field->number == 3) model.adds_dummy_prefix = field->value != 0;
    if (field->number == 4) model.removes_extra_whitespaces = field->value != 0;
  }
  return !message.broken();
}

}  // namespace

Result<SentencePieceModel> parse_sentencepiece(std::string_view bytes) {
  SentencePieceModel model;
  Message message(bytes);
  bool sound = true;
  while (const auto field = message.next()) {
    if (field->number == 1) sound = read_piece(field->text, model.pieces.emplace_back()) && sound;
    if (field->number == 2) sound = read_trainer(field->text, model) && sound;
    if (field->number == 3) sound = read_normalizer(field->text, model) && sound;
  }
  if (!sound || message.broken() || model.pieces.empty())
    return Error{ErrorCode::kBadData, "no sentencepiece model", {}, "take the file from the model's source"};
  return model;
}

}  // namespace plimsoll::tokenizers
