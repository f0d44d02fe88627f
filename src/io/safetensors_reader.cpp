// A header is hostile until checked: syntax first (JsonCursor), then each tensor by itself, then all together
// - unique names, payloads that tile the rest of the file.
#include "io/safetensors_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

#include "base/check.h"
#include "io/foreign_format.h"
#include "io/json_cursor.h"

namespace plimsoll::io {
namespace {

constexpr int64_t kLengthBytes = 8;
/// Bounds of what costs more memory than its text does; files have a handful of each.
constexpr size_t kMaxRank = 64;
constexpr size_t kMaxMetadata = 65'536;
/// No tensor's entry is shorter; what members there are more than that are none.
constexpr size_t kLeastEntryBytes = 48;
constexpr size_t kShownName = 80;
/// As much of a file's start as tells what else it might be.
constexpr int64_t kPrefixBytes = 256;

constexpr const char* kDamaged = "the file is damaged or was cut: download or write it again";

Error broken(std::string what, const char* hint = kDamaged) {
  return {ErrorCode::kBadData, "safetensors: " + std::move(what), {}, hint};
}

std::string shown(std::string_view name) { return fmt::format("'{}'", shown_name(name)); }

Error broken_tensor(const SafetensorsTensor& tensor, const std::string& what) {
  return broken(fmt::format("tensor {}: {}", shown(tensor.name), what));
}

/// Members of the object at the cursor, whose syntax is checked on the way.
bool count_members(JsonCursor& json, size_t& count) {
  std::string ignored;
  count = 0;
  if (!json.expect('{')) return false;
  if (json.take('}')) return true;
  do {
    if (!json.string(ignored) || !json.expect(':') || !json.skip()) return false;
    ++count;
  } while (json.take(','));
  return json.expect('}');
}

/// What is read of one tensor's entry before it is checked.
struct Entry {
  std::string dtype;
  std::array<int64_t, kMaxRank> extents = {};
  std::array<int64_t, 2> offsets = {};
  size_t rank = 0, num_offsets = 0;
  bool has_dtype = false, has_shape = false, has_offsets = false;
};

/// A list of integers of at most `values.size()`.
bool read_integers(JsonCursor& json, std::span<int64_t> values, size_t& count) {
  count = 0;
  if (!json.expect('[')) return false;
  if (json.take(']')) return true;
  do {
    if (count == values.size())
      return json.fail(fmt::format("a list of more than {} numbers", values.size()));
    if (!json.integer(values[count])) return false;
    ++count;
  } while (json.take(','));
  return json.expect(']');
}

bool read_field(JsonCursor& json, std::string_view field, Entry& entry) {
  const auto once = [&](bool& seen) {
    if (seen) return json.fail(fmt::format("'{}' stands twice", field));
    return seen = true;
  };
  if (field == "dtype") return once(entry.has_dtype) && json.string(entry.dtype);
  if (field == "shape") return once(entry.has_shape) && read_integers(json, entry.extents, entry.rank);
  if (field == "data_offsets")
    return once(entry.has_offsets) && read_integers(json, entry.offsets, entry.num_offsets);
  return json.fail(fmt::format("unknown field {}", shown(field)));
}

bool read_entry(JsonCursor& json, Entry& entry) {
  std::string field;
  if (!json.expect('{')) return false;
  do {
    if (!json.string(field) || !json.expect(':') || !read_field(json, field, entry)) return false;
  } while (json.take(','));
  if (!json.expect('}')) return false;
  if (!entry.has_dtype || !entry.has_shape || entry.num_offsets != 2)
    return json.fail("a tensor needs dtype, shape and two data_offsets");
  return true;
}

/// One tensor by itself. `payload_offset`: where the payload starts in the file.
Status check_entry(const Entry& entry, int64_t payload_offset, int64_t file_bytes,
                   SafetensorsTensor& tensor) {
  const int bits = safetensors_dtype_bits(entry.dtype);
  if (bits == 0) return broken_tensor(tensor, fmt::format("unknown dtype {}", shown(entry.dtype)));
  int64_t size = bits;
  for (size_t i = 0; i < entry.rank; ++i) {
    const int64_t extent = entry.extents[i];
    if (extent < 0) return broken_tensor(tensor, fmt::format("a negative extent, {}", extent));
    if (__builtin_mul_overflow(size, extent, &size))
      return broken_tensor(tensor, "the product of its shape overflows");
  }
  if (size % 8 != 0) return broken_tensor(tensor, "its elements do not fill whole bytes");
  const auto [begin, end] = entry.offsets;
  if (begin < 0 || end < 0)
    return broken_tensor(tensor, fmt::format("negative data_offsets [{}, {}]", begin, end));
  if (begin > end) return broken_tensor(tensor, fmt::format("reversed data_offsets [{}, {}]", begin, end));
  if (end > file_bytes - payload_offset)
    return broken_tensor(tensor, fmt::format("it ends at byte {} of the payload, which has {}", end,
                                             file_bytes - payload_offset));
  if (end - begin != size / 8)
    return broken_tensor(tensor, fmt::format("its data_offsets span {} bytes, its dtype and shape take {}",
                                             end - begin, size / 8));
  tensor.dtype = entry.dtype;
  tensor.shape.assign(entry.extents.begin(), entry.extents.begin() + entry.rank);
  tensor.offset = payload_offset + begin;
  tensor.bytes = end - begin;
  return Ok{};
}

Error syntax_error(const JsonCursor& json) { return broken("the header: " + json.error()); }

Status read_metadata(JsonCursor& json, SafetensorsHeader& header) {
  if (!json.expect('{')) return syntax_error(json);
  if (json.take('}')) return Ok{};
  do {
    std::string key, value;
    if (header.metadata.size() == kMaxMetadata) json.fail("too many entries in __metadata__");
    if (!json.error().empty() || !json.string(key) || !json.expect(':') || !json.string(value))
      return syntax_error(json);
    header.metadata.emplace_back(std::move(key), std::move(value));
  } while (json.take(','));
  if (!json.expect('}')) return syntax_error(json);
  std::vector<std::string_view> keys;
  for (const auto& [key, value] : header.metadata) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice != keys.end())
    return broken(fmt::format("the key {} stands twice in __metadata__", shown(*twice)));
  return Ok{};
}

/// The header's members; syntax was checked by count_members, kinds of values were not.
Status read_members(std::string_view text, int64_t file_bytes, SafetensorsHeader& header) {
  const int64_t payload_offset = kLengthBytes + static_cast<int64_t>(text.size());
  JsonCursor json(text);
  bool has_metadata = false;
  if (!json.expect('{')) return syntax_error(json);
  if (json.take('}')) return Ok{};
  do {
    SafetensorsTensor tensor;
    if (!json.string(tensor.name) || !json.expect(':')) return syntax_error(json);
    if (tensor.name == "__metadata__") {
      if (std::exchange(has_metadata, true)) return broken("__metadata__ stands twice");
      PLIMSOLL_TRY(read_metadata(json, header));
      continue;
    }
    Entry entry;
    if (!read_entry(json, entry)) return broken_tensor(tensor, json.error());
    PLIMSOLL_TRY(check_entry(entry, payload_offset, file_bytes, tensor));
    header.tensors.push_back(std::move(tensor));
  } while (json.take(','));
  return Ok{};
}

Status index_names(SafetensorsHeader& header) {
  const auto name = [&](uint32_t i) -> const std::string& { return header.tensors[i].name; };
  header.by_name.resize(header.tensors.size());
  std::iota(header.by_name.begin(), header.by_name.end(), 0U);
  std::sort(header.by_name.begin(), header.by_name.end(),
            [&](uint32_t a, uint32_t b) { return name(a) < name(b); });
  for (size_t i = 1; i < header.by_name.size(); ++i)
    if (name(header.by_name[i]) == name(header.by_name[i - 1]))
      return broken(fmt::format("the name {} stands twice", shown(name(header.by_name[i]))));
  return Ok{};
}

/// Payloads must follow each other from the payload's first byte to the file's last.
Status check_coverage(const SafetensorsHeader& header, int64_t payload_offset, int64_t file_bytes) {
  int64_t at = payload_offset;
  for (const SafetensorsTensor& t : header.tensors) {
    if (t.offset < at) return broken_tensor(t, "its payload overlaps another's");
    if (t.offset > at)
      return broken_tensor(t, fmt::format("a hole of {} bytes before its payload", t.offset - at));
    at += t.bytes;
  }
  if (at == file_bytes) return Ok{};
  return broken(fmt::format("{} bytes at the end belong to no tensor", file_bytes - at));
}

/// The length field, with a better word where the file is of another kind.
Result<int64_t> read_header_bytes(const ReadFile& file) {
  std::array<std::byte, kPrefixBytes> buffer = {};
  const auto size = static_cast<size_t>(std::min(file.size_bytes(), kPrefixBytes));
  const std::span<std::byte> prefix(buffer.data(), size);
  PLIMSOLL_TRY(file.read_at(0, prefix));
  auto bytes = safetensors_header_bytes(prefix, file.size_bytes());
  if (bytes && *bytes > 0 && size > kLengthBytes && prefix[kLengthBytes] == std::byte{'{'}) return bytes;
  const std::string_view text(reinterpret_cast<const char*>(buffer.data()), size);
  if (const auto format = recognise_format(text)) return broken(format->what, format->hint);
  return bytes;
}

}  // namespace

int64_t SafetensorsTensor::num_elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

int safetensors_dtype_bits(std::string_view dtype) {
  struct Row {
    std::string_view name;
    int bits;
  };
  static constexpr std::array<Row, 22> kTable = {
      {{"F32", 32},    {"BF16", 16},   {"F16", 16},    {"F64", 64},    {"I64", 64},        {"I32", 32},
       {"I16", 16},    {"I8", 8},      {"U8", 8},      {"U16", 16},    {"U32", 32},        {"U64", 64},
       {"BOOL", 8},    {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8},
       {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4},      {"C64", 64}}};
  for (const Row& row : kTable)
    if (row.name == dtype) return row.bits;
  return 0;
}

std::string shown_name(std::string_view name) {
  size_t length = std::min(name.size(), kShownName);
  // UTF-8's inner bytes start with the bits 10.
  while (length < name.size() && length > 0 && (static_cast<unsigned char>(name[length]) & 0xc0) == 0x80)
    --length;
  return std::string(name.substr(0, length)) + (length < name.size() ? "…" : "");
}

std::string to_string(const SafetensorsTensor& tensor) {
  std::string text = tensor.dtype + " [";
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(tensor.shape[i]);
  return text + "]";
}

Result<int64_t> safetensors_header_bytes(std::span<const std::byte> prefix, int64_t file_bytes) {
  if (file_bytes == 0) return broken("the file is empty");
  if (static_cast<int64_t>(prefix.size()) < kLengthBytes)
    return broken(fmt::format("a file of {} bytes cannot hold a header", file_bytes));
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length |= std::to_integer<uint64_t>(prefix[i]) << (8 * i);
  if (length > kMaxSafetensorsHeader)
    return broken(
        fmt::format("the file is of another kind or damaged: a header of {} bytes, more than the {} allowed",
                    length, kMaxSafetensorsHeader));
  const auto bytes = static_cast<int64_t>(length);
  if (bytes > file_bytes - kLengthBytes)
    return broken(fmt::format("the header has {} bytes, the file ends after {} of them", bytes,
                              file_bytes - kLengthBytes));
  return bytes;
}

Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, int64_t file_bytes) {
  if (!json.starts_with('{')) return broken("the header does not start with '{'");
  if (const int64_t at = utf8_error_at(json); at >= 0)
    return broken(fmt::format("the header is not valid UTF-8 (byte {})", at));
  JsonCursor syntax(json);
  size_t num_members = 0;
  if (!count_members(syntax, num_members)) return syntax_error(syntax);
  if (!syntax.at_end()) return broken("something follows the header's object");
  SafetensorsHeader header;
  header.tensors.reserve(std::min(num_members, json.size() / kLeastEntryBytes));
  PLIMSOLL_TRY(read_members(json, file_bytes, header));
  std::sort(header.tensors.begin(), header.tensors.end(), [](const auto& a, const auto& b) {
    return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
  });
  PLIMSOLL_TRY(index_names(header));
  PLIMSOLL_TRY(check_coverage(header, kLengthBytes + static_cast<int64_t>(json.size()), file_bytes));
  return header;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  PLIMSOLL_ASSIGN(ReadFile file, ReadFile::open(path));
  return open(std::move(file));
}

Result<SafetensorsFile> SafetensorsFile::open(ReadFile file) {
  auto bytes = read_header_bytes(file);
  if (!bytes) return std::move(bytes).error().at(file.path());
  std::string json(static_cast<size_t>(*bytes), '\0');
  PLIMSOLL_TRY(file.read_at(kLengthBytes, std::as_writable_bytes(std::span(json))));
  auto header = parse_safetensors_header(json, file.size_bytes());
  if (!header) return std::move(header).error().at(file.path());
  return SafetensorsFile(std::move(file), std::move(header).value());
}

const SafetensorsTensor* SafetensorsFile::find(std::string_view name) const {
  const auto less = [&](uint32_t i, std::string_view other) { return header_.tensors[i].name < other; };
  const auto it = std::lower_bound(header_.by_name.begin(), header_.by_name.end(), name, less);
  if (it == header_.by_name.end() || header_.tensors[*it].name != name) return nullptr;
  return &header_.tensors[*it];
}

Status SafetensorsFile::read(const SafetensorsTensor& tensor, int64_t offset,
                             std::span<std::byte> out) const {
  PLIMSOLL_CHECK(
      offset >= 0 && offset <= tensor.bytes && static_cast<int64_t>(out.size()) <= tensor.bytes - offset,
      "safetensors: a read beyond its tensor");
  return file_.read_at(tensor.offset + offset, out);
}

}  // namespace plimsoll::io
