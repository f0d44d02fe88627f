// Matrices that bitsandbytes quantised: the first bytes bend the parts of a nested 4-bit matrix and of one of
// 8 bits - what is there, its type, its size - the rest is the first's quant state; whatever is accepted has
// as many codes and scales as its shape asks for, and scales that are numbers.
#include "checkpoints/quantized_tensors.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/units.h"
#include "numerics/bitsandbytes.h"
#include "numerics/dynamic_map.h"

namespace {

namespace bnb = plimsoll::numerics::bitsandbytes;
using namespace plimsoll::checkpoints;
using plimsoll::ceil_div;

constexpr const char* kSoundState =
    R"({"quant_type": "nf4", "blocksize": 64, "dtype": "float32", "shape": [2, 70], "nested_blocksize": 256, )"
    R"("nested_dtype": "float32", "nested_offset": 0.5})";

struct FuzzedPart {
  std::string_view name, dtype;
  int64_t elements;
  std::string_view bytes;  ///< empty: filled with the fuzzer's
};

template <typename Values>
std::string bytes_of(const Values& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0])};
}

const std::string& map_bytes(bool is_fp4) {
  static const std::string kNf4 = bytes_of(bnb::values_of(bnb::FourBit::kNf4)),
                           kFp4 = bytes_of(bnb::values_of(bnb::FourBit::kFp4));
  return is_fp4 ? kFp4 : kNf4;
}

/// Sound, before they are bent.
std::vector<FuzzedPart> sound_parts(std::string_view state, bool is_fp4) {
  static const std::string kNested = bytes_of(plimsoll::numerics::signed_dynamic_map().values);
  static const std::string kZero(1, '\0');
  const auto size = static_cast<int64_t>(state.size());
  return {{"a.weight", "U8", 70, {}},
          {"a.weight.absmax", "U8", 3, {}},
          {"a.weight.quant_map", "F32", 16, map_bytes(is_fp4)},
          {"a.weight.nested_absmax", "F32", 1, {}},
          {"a.weight.nested_quant_map", "F32", 256, kNested},
          {is_fp4 ? "a.weight.quant_state.bitsandbytes__fp4" : "a.weight.quant_state.bitsandbytes__nf4", "U8",
           size, state},
          {"b.weight", "I8", 6, {}},
          {"b.SCB", "F32", 2, {}},
          {"b.weight_format", "U8", 1, kZero}};
}

/// A file of the parts: what its header says, which fuzz_safetensors reads from text, and its payloads.
struct FuzzedFile {
  plimsoll::io::SafetensorsHeader header;
  std::string payload;
};

/// Low bits of `how`: 0 as it is, 1 left out, 2 another type, 3 a value more, 4 one less, 5 its bytes are the
/// fuzzer's. b.weight is a matrix of as many rows as `how` / 8 says.
FuzzedFile file_of(const std::vector<FuzzedPart>& parts, const uint8_t* how, std::string_view fill) {
  FuzzedFile file;
  for (size_t i = 0; i < parts.size(); ++i) {
    FuzzedPart part = parts[i];
    const int kind = how[i] % 8;
    if (kind == 1) continue;
    if (kind == 2) part.dtype = part.dtype == "F32" ? "I32" : part.dtype == "U8" ? "I8" : "U8";
    if (kind == 3) ++part.elements;
    if (kind == 4 && part.elements > 0) --part.elements;
    const auto size =
        static_cast<size_t>(part.elements) * (part.dtype == "F32" || part.dtype == "I32" ? 4 : 1);
    const auto offset = file.payload.size();
    if (kind != 5) file.payload += part.bytes.substr(0, size);
    while (file.payload.size() < offset + size)
      file.payload +=
          fill.empty() ? std::string_view("\x01") : fill.substr(0, offset + size - file.payload.size());
    const int64_t rows = how[i] / 8;
    plimsoll::io::SafetensorsTensor tensor{std::string(part.name),
                                           std::string(part.dtype),
                                           {part.elements},
                                           static_cast<int64_t>(offset),
                                           static_cast<int64_t>(size)};
    if (part.name == "b.weight" && rows > 0 && part.elements % rows == 0)
      tensor.shape = {rows, part.elements / rows};
    file.header.tensors.push_back(std::move(tensor));
  }
  return file;
}

void check_found(const QuantizedTensor& tensor) {
  const int64_t n = tensor.shape.at(0) * tensor.shape.at(1);
  const bool is_rows = tensor.format == QuantizedFormat::kInt8Rows;
  PLIMSOLL_CHECK(tensor.shape.size() == 2 && n > 0);
  PLIMSOLL_CHECK(tensor.weight.tensor->bytes == (is_rows ? n : ceil_div(n, 2)));
  PLIMSOLL_CHECK(plimsoll::ir::is_block(block_type(tensor)) && !tensor.parts.empty());
  const auto scales = read_scales(tensor);
  if (!scales) {
    PLIMSOLL_CHECK(!scales.error().what.empty() && !scales.error().hint.empty(),
                   "an error that says nothing");
    return;
  }
  const int64_t expected = is_rows ? tensor.shape[0] : ceil_div(n, bnb::kBlock);
  PLIMSOLL_CHECK(static_cast<int64_t>(scales->size()) == expected);
  for (const float scale : *scales) PLIMSOLL_CHECK(std::isfinite(scale));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kHow = 10;
  if (size < kHow) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data + kHow), size - kHow);
  (void)parse_quant_state(rest);
  const bool is_fp4 = data[9] % 2 == 1;
  const std::string_view state = rest.starts_with('{') ? rest : std::string_view(kSoundState);
  FuzzedFile made = file_of(sound_parts(state, is_fp4), data, rest);
  const auto file = plimsoll::io::SafetensorsFile::of_header(
      plimsoll::io::ReadFile::of_bytes("model.safetensors", std::as_bytes(std::span(made.payload))),
      std::move(made.header));
  std::vector<plimsoll::io::WeightRef> refs;
  for (const auto& tensor : file.tensors()) refs.push_back({&file, &tensor});
  const auto found = find_quantized(refs);
  if (!found) {
    PLIMSOLL_CHECK(!found.error().what.empty() && !found.error().hint.empty(), "an error that says nothing");
    return 0;
  }
  for (const auto& [name, tensor] : *found) check_found(tensor);
  return 0;
}
