// safetensors files: a header is accepted exactly when a slow reading of the same rules accepts it, with the
// same tensors; what is accepted opens as a file and its payloads are the input's bytes; no allocation
// follows what a header merely claims.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "allocation_bound.h"
#include "base/check.h"
#include "io/foreign_format.h"
#include "io/json.h"
#include "io/safetensors_reader.h"

namespace {

using plimsoll::io::Tree;

/// A tensor as the slow reading sees it; offsets within the payload.
struct Expected {
  std::string dtype;
  std::vector<int64_t> shape;
  int64_t begin = 0, end = 0;
};
using ExpectedTensors = std::map<std::string, Expected>;

bool read_integers(const Tree* list, std::vector<int64_t>& values) {
  if (!list || list->kind != Tree::Kind::kList || list->items.size() > 64) return false;
  for (const Tree& item : list->items) {
    if (item.kind != Tree::Kind::kInteger || item.integer < 0) return false;
    values.push_back(item.integer);
  }
  return true;
}

/// Whether the elements take `bytes` exactly; the product overflows where any product of the first extents
/// does.
bool takes(int bits, const std::vector<int64_t>& shape, int64_t bytes) {
  __int128 total = bits;
  for (const int64_t extent : shape) {
    total *= extent;
    if (total > std::numeric_limits<int64_t>::max()) return false;
  }
  return total == static_cast<__int128>(bytes) * 8;
}

std::optional<Expected> read_tensor(const Tree& entry, int64_t payload_bytes) {
  if (entry.kind != Tree::Kind::kMap || entry.members.size() != 3) return std::nullopt;
  Expected tensor;
  std::vector<int64_t> offsets;
  const Tree* dtype = entry.find("dtype");
  if (!dtype || dtype->kind != Tree::Kind::kString || !read_integers(entry.find("shape"), tensor.shape) ||
      !read_integers(entry.find("data_offsets"), offsets) || offsets.size() != 2)
    return std::nullopt;
  tensor.dtype = dtype->text;
  tensor.begin = offsets[0];
  tensor.end = offsets[1];
  const int bits = plimsoll::io::safetensors_dtype_bits(tensor.dtype);
  if (bits == 0 || tensor.begin > tensor.end || tensor.end > payload_bytes ||
      !takes(bits, tensor.shape, tensor.end - tensor.begin))
    return std::nullopt;
  return tensor;
}

bool is_metadata(const Tree& tree) {
  return tree.kind == Tree::Kind::kMap &&
         std::all_of(tree.members.begin(), tree.members.end(),
                     [](const auto& member) { return member.second.kind == Tree::Kind::kString; });
}

/// The payload's bytes, each owned once.
bool covers(const ExpectedTensors& tensors, int64_t payload_bytes) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (const auto& [name, tensor] : tensors) ranges.emplace_back(tensor.begin, tensor.end);
  std::sort(ranges.begin(), ranges.end());
  int64_t at = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != at) return false;
    at = end;
  }
  return at == payload_bytes;
}

std::optional<ExpectedTensors> read_slowly(std::string_view json, int64_t payload_bytes) {
  if (!json.starts_with('{')) return std::nullopt;
  // The JSON reader takes a zero byte for the end of the text.
  if (json.find('\0') != std::string_view::npos) return std::nullopt;
  const auto tree = plimsoll::io::parse_json(json);
  if (!tree) return std::nullopt;
  ExpectedTensors tensors;
  for (const auto& [name, entry] : tree->members) {
    if (name == "__metadata__") {
      if (!is_metadata(entry)) return std::nullopt;
      continue;
    }
    auto tensor = read_tensor(entry, payload_bytes);
    if (!tensor) return std::nullopt;
    tensors[name] = std::move(*tensor);
  }
  if (!covers(tensors, payload_bytes)) return std::nullopt;
  return tensors;
}

void open_as_file(const uint8_t* data, size_t size, size_t num_tensors) {
  const auto file = plimsoll::io::SafetensorsFile::open(
      plimsoll::io::ReadFile::of_bytes("model.safetensors", std::as_bytes(std::span(data, size))));
  PLIMSOLL_CHECK(file.ok(), "a header that is accepted in a file that is not");
  PLIMSOLL_CHECK(file->tensors().size() == num_tensors);
  std::vector<std::byte> payload;
  for (const auto& tensor : file->tensors()) {
    PLIMSOLL_CHECK(file->find(tensor.name) == &tensor, "a tensor that is not found by its name");
    payload.resize(static_cast<size_t>(tensor.bytes));
    PLIMSOLL_CHECK(file->read(tensor, 0, payload).ok());
    PLIMSOLL_CHECK(tensor.bytes == 0 ||
                   std::memcmp(payload.data(), data + tensor.offset, payload.size()) == 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file_bytes = static_cast<int64_t>(size);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)plimsoll::io::recognise_format(text.substr(0, 256));
  const auto length =
      plimsoll::io::safetensors_header_bytes(bytes.first(std::min<size_t>(size, 8)), file_bytes);
  if (!length) return 0;
  const std::string_view json = text.substr(8, static_cast<size_t>(*length));
  const AllocationBound bound;
  const auto header = plimsoll::io::parse_safetensors_header(json, file_bytes);
  // An entry of the metadata takes 64 bytes, however short; a list of them grows by doubling.
  const auto entries = static_cast<size_t>(std::count(json.begin(), json.end(), ':'));
  bound.check(json.size(), json.find("__metadata__") != std::string_view::npos ? 128 * entries : 0);
  const auto expected = read_slowly(json, file_bytes - 8 - *length);
  PLIMSOLL_CHECK(header.ok() == expected.has_value(), header.ok() ? "accepted" : header.error().message());
  if (!header) {
    PLIMSOLL_CHECK(!header.error().what.empty() && !header.error().hint.empty(),
                   "an error that says nothing");
    return 0;
  }
  PLIMSOLL_CHECK(header->tensors.size() == expected->size());
  for (const auto& tensor : header->tensors) {
    const Expected& e = expected->at(tensor.name);
    PLIMSOLL_CHECK(tensor.dtype == e.dtype && tensor.shape == e.shape &&
                   tensor.offset == 8 + *length + e.begin && tensor.bytes == e.end - e.begin);
  }
  open_as_file(data, size, header->tensors.size());
  return 0;
}
