#include "gguf/gguf_file.h"

#include <bit>

#include "base/check.h"
#include "base/units.h"

namespace plimsoll::gguf {
namespace {

constexpr uint32_t kVersion = 3;
/// The kinds of values, by the format's numbers.
enum ValueType : uint32_t { kU32 = 4, kI32 = 5, kF32 = 6, kBool = 7, kText = 8, kArray = 9 };

template <typename T>
void put(std::string& out, T value) {
  const auto bits = static_cast<uint64_t>(value);
  for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(bits >> (8 * i));
}

void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<uint64_t>(text.size()));
  out += text;
}

void put_float(std::string& out, float value) { put(out, std::bit_cast<uint32_t>(value)); }

}  // namespace

std::string_view name(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return "f32";
    case TensorType::kF16:
      return "f16";
    case TensorType::kQ8_0:
      return "q8_0";
    case TensorType::kBf16:
      return "bf16";
  }
  return "";
}

int64_t block_elements(TensorType type) { return type == TensorType::kQ8_0 ? 32 : 1; }

int64_t tensor_bytes(TensorType type, int64_t elements) {
  constexpr int64_t kBlockBytes = 34;  // of q8_0: a scale of 16 bits and 32 numbers of 8
  PLIMSOLL_CHECK(elements % block_elements(type) == 0, "a block that is not full");
  if (type == TensorType::kQ8_0) return elements / 32 * kBlockBytes;
  return elements * (type == TensorType::kF32 ? 4 : 2);
}

void Metadata::begin(std::string_view key, uint32_t type) {
  put_text(bytes_, key);
  put(bytes_, type);
  ++count_;
}

void Metadata::add_u32(std::string_view key, int64_t value) {
  begin(key, kU32);
  put(bytes_, static_cast<uint32_t>(value));
}

void Metadata::add_i32(std::string_view key, int64_t value) {
  begin(key, kI32);
  put(bytes_, static_cast<uint32_t>(value));
}

void Metadata::add_f32(std::string_view key, double value) {
  begin(key, kF32);
  put_float(bytes_, static_cast<float>(value));
}

void Metadata::add_bool(std::string_view key, bool value) {
  begin(key, kBool);
  bytes_ += static_cast<char>(value ? 1 : 0);
}

void Metadata::add_text(std::string_view key, std::string_view value) {
  begin(key, kText);
  put_text(bytes_, value);
}

void Metadata::add_texts(std::string_view key, const std::vector<std::string>& values) {
  begin(key, kArray);
  put(bytes_, uint32_t{kText});
  put(bytes_, static_cast<uint64_t>(values.size()));
  for (const std::string& value : values) put_text(bytes_, value);
}

void Metadata::add_i32s(std::string_view key, const std::vector<int32_t>& values) {
  begin(key, kArray);
  put(bytes_, uint32_t{kI32});
  put(bytes_, static_cast<uint64_t>(values.size()));
  for (const int32_t value : values) put(bytes_, static_cast<uint32_t>(value));
}

void Metadata::add_f32s(std::string_view key, const std::vector<float>& values) {
  begin(key, kArray);
  put(bytes_, uint32_t{kF32});
  put(bytes_, static_cast<uint64_t>(values.size()));
  for (const float value : values) put_float(bytes_, value);
}

int64_t TensorInfo::elements() const {
  int64_t n = 1;
  for (const int64_t extent : shape) n *= extent;
  return n;
}

Layout lay_out(const Metadata& metadata, std::span<const TensorInfo> tensors) {
  Layout layout{"GGUF", {}, 0};
  put(layout.header, kVersion);
  put(layout.header, static_cast<uint64_t>(tensors.size()));
  put(layout.header, static_cast<uint64_t>(metadata.size()));
  layout.header += metadata.bytes();
  int64_t at = 0;
  for (const TensorInfo& t : tensors) {
    put_text(layout.header, t.name);
    put(layout.header, static_cast<uint32_t>(t.shape.size()));
    for (auto extent = t.shape.rbegin(); extent != t.shape.rend(); ++extent)
      put(layout.header, static_cast<uint64_t>(*extent));
    put(layout.header, static_cast<uint32_t>(t.type));
    put(layout.header, static_cast<uint64_t>(at));
    layout.offsets.push_back(at);
    at += round_up(t.bytes(), kAlignment);
  }
  const auto begin = round_up(static_cast<int64_t>(layout.header.size()), kAlignment);
  layout.header.resize(static_cast<size_t>(begin), '\0');
  for (int64_t& offset : layout.offsets) offset += begin;
  layout.file_bytes = begin + at;
  return layout;
}

}  // namespace plimsoll::gguf
