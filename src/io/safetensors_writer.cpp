// Lays out and streams a safetensors file. Format: https://github.com/huggingface/safetensors, "Format".
#include "io/safetensors_writer.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "base/units.h"
#include "io/safetensors_reader.h"
#include "io/tree.h"

namespace plimsoll::io {
namespace {

Result<int64_t> tensor_bytes(const SafetensorsEntry& entry) {
  int64_t bytes = safetensors_dtype_bytes(entry.dtype);
  if (bytes == 0)
    return Error{ErrorCode::kInvalidArgument, "safetensors has no dtype '" + entry.dtype + "'", entry.name};
  for (const int64_t extent : entry.shape)
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes))
      return Error{ErrorCode::kInvalidArgument, "safetensors: a negative or too large shape", entry.name};
  return bytes;
}

Tree header_entry(const SafetensorsEntry& entry, int64_t begin, int64_t end) {
  std::vector<Tree> shape;
  for (const int64_t extent : entry.shape) shape.push_back(Tree::of(extent));
  return Tree::map({{"dtype", Tree::of(entry.dtype)},
                    {"shape", Tree::list(std::move(shape))},
                    {"data_offsets", Tree::list({Tree::of(begin), Tree::of(end)})}});
}

}  // namespace

int64_t safetensors_dtype_bytes(std::string_view dtype) {
  const int bits = safetensors_dtype_bits(dtype);
  return bits % 8 == 0 ? bits / 8 : 0;
}

Result<SafetensorsLayout> SafetensorsLayout::create(
    const std::vector<SafetensorsEntry>& entries,
    const std::vector<std::pair<std::string, std::string>>& metadata) {
  Tree header = Tree::map();
  if (!metadata.empty()) {
    Tree values = Tree::map();
    for (const auto& [key, value] : metadata) values.members.emplace_back(key, Tree::of(value));
    header.members.emplace_back("__metadata__", std::move(values));
  }
  SafetensorsLayout layout{{}, {0}};
  std::set<std::string_view> names = {"__metadata__"};
  for (const SafetensorsEntry& entry : entries) {
    if (!names.insert(entry.name).second)
      return Error{ErrorCode::kInvalidArgument, "safetensors: a tensor's name stands twice", entry.name};
    PLIMSOLL_ASSIGN(const int64_t bytes, tensor_bytes(entry));
    int64_t end = 0;
    if (__builtin_add_overflow(layout.ends.back(), bytes, &end))
      return Error{ErrorCode::kInvalidArgument, "safetensors: the file would be too large", entry.name};
    header.members.emplace_back(entry.name, header_entry(entry, layout.ends.back(), end));
    layout.ends.push_back(end);
  }
  std::string text = to_json(header);
  text.resize(static_cast<size_t>(round_up(static_cast<int64_t>(text.size()), 8)), ' ');
  if (static_cast<int64_t>(text.size()) > kMaxSafetensorsHeader)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("safetensors: a header of {} bytes is too large", text.size())};
  for (size_t i = 0; i < 8; ++i) layout.header += static_cast<char>(text.size() >> (8 * i));
  layout.header += text;
  return layout;
}

Result<SafetensorsWriter> SafetensorsWriter::create(
    const std::string& path, std::vector<SafetensorsEntry> entries,
    std::vector<std::pair<std::string, std::string>> metadata) {
  auto layout = SafetensorsLayout::create(entries, metadata);
  if (!layout) return std::move(layout).error().at(path);
  PLIMSOLL_ASSIGN(AtomicFile file, AtomicFile::create(path));
  PLIMSOLL_TRY(file.reserve(layout->file_bytes()));
  PLIMSOLL_TRY(file.write_at(0, std::as_bytes(std::span(layout->header))));
  return SafetensorsWriter(std::move(file), layout->header_bytes(), std::move(layout->ends));
}

Status SafetensorsWriter::write(size_t index, std::span<const std::byte> bytes, int64_t offset) {
  PLIMSOLL_CHECK(index + 1 < ends_.size() && offset >= 0, "safetensors: no such tensor");
  const auto size = static_cast<int64_t>(bytes.size());
  PLIMSOLL_CHECK(size <= payload_bytes(index) - offset, "safetensors: a write beyond its tensor");
  PLIMSOLL_TRY(file_.write_at(header_bytes_ + ends_[index] + offset, bytes));
  written_bytes_ += size;
  return Ok{};
}

Status SafetensorsWriter::finish() {
  PLIMSOLL_CHECK(written_bytes_ == ends_.back(), "safetensors: the payload is not written whole");
  return file_.commit();
}

}  // namespace plimsoll::io
