#include "corpora/images/image_pack.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/units.h"
#include "corpora/images/image_table.h"
#include "corpora/json_members.h"
#include "corpora/json_scan.h"
#include "corpora/reasons.h"
#include "datasets/shard_table.h"
#include "io/checksum.h"

namespace plimsoll::corpora {
namespace {

constexpr std::string_view kPackMagic = "plmipack";
constexpr uint64_t kPackVersion = 1;
constexpr int64_t kPackHeaderBytes = 64, kAlignment = 64;
constexpr std::string_view kIndexKeys[] = {"image", "offset", "bytes", "label", "classes"};

struct PackHeader {
  uint64_t version = 0, images = 0, index = 0, file_bytes = 0, index_checksum = 0;
};

std::array<std::byte, kPackHeaderBytes> header_text(const PackHeader& header) {
  std::array<std::byte, kPackHeaderBytes> text{};
  std::memcpy(text.data(), kPackMagic.data(), kPackMagic.size());
  size_t at = kPackMagic.size();
  for (const uint64_t value :
       {header.version, header.images, header.index, header.file_bytes, header.index_checksum, uint64_t{0}})
    datasets::shard::store_u64(text.data() + std::exchange(at, at + 8), value);
  datasets::shard::store_u64(text.data() + at, io::checksum(std::span(text).first(at)));
  return text;
}

Error damaged_pack(const std::string& path, std::string_view what) {
  return {ErrorCode::kBadData, fmt::format("the pack of images is damaged: {}", what), path,
          "pack the images again: plimsoll data pack"};
}

Result<PackHeader> read_header(const io::ReadFile& file) {
  std::array<std::byte, kPackHeaderBytes> text{};
  if (file.size_bytes() < kPackHeaderBytes) return damaged_pack(file.path(), "it ends within its header");
  PLIMSOLL_TRY(file.read_at(0, text));
  const auto word = [&](size_t i) { return datasets::shard::load_u64(text.data() + 8 * i); };
  const PackHeader header{word(1), word(2), word(3), word(4), word(5)};
  if (std::memcmp(text.data(), kPackMagic.data(), kPackMagic.size()) != 0 || header.version != kPackVersion)
    return damaged_pack(file.path(), "it is not a pack, or has another version");
  if (io::checksum(std::span(text).first(kPackHeaderBytes - 8)) != word(7))
    return damaged_pack(file.path(), "its header does not match its checksum");
  if (header.file_bytes != static_cast<uint64_t>(file.size_bytes()) || header.index > header.file_bytes)
    return damaged_pack(file.path(), "it is not as long as its header says");
  return header;
}

Result<std::string> read_index(const io::ReadFile& file, const PackHeader& header) {
  std::string index(header.file_bytes - header.index, '\0');
  PLIMSOLL_TRY(file.read_at(static_cast<int64_t>(header.index), std::as_writable_bytes(std::span(index))));
  if (io::checksum(std::as_bytes(std::span(index))) != header.index_checksum)
    return damaged_pack(file.path(), "its index does not match its checksum");
  return index;
}

std::vector<std::string> texts_of(std::string_view list) {
  std::vector<std::string> texts;
  ListItems items(list);
  for (std::string_view item; items.next(item);)
    if (is_string(item)) texts.push_back(unescaped(item));
  return texts;
}

int64_t whole_number(std::string_view json) {
  int64_t value = -1;
  const auto [end, code] = std::from_chars(json.data(), json.data() + json.size(), value);
  return code == std::errc() && end == json.data() + json.size() ? value : -1;
}

}  // namespace

Result<ImagePackWriter> ImagePackWriter::create(const std::string& path) {
  PLIMSOLL_ASSIGN(io::AtomicFile file, io::AtomicFile::create(path));
  ImagePackWriter writer(std::move(file));
  writer.end_ = kPackHeaderBytes;
  return writer;
}

int64_t ImagePackWriter::place(int64_t bytes) {
  return std::exchange(end_, end_ + round_up(bytes, kAlignment));
}

void ImagePackWriter::name_ids(const std::vector<std::string>& names) {
  index_ = "{\"classes\": [";
  for (const std::string& name : names) {
    if (&name != &names.front()) index_ += ", ";
    append_quoted(name, index_);
  }
  index_ += "]}\n";
}

void ImagePackWriter::add(std::string_view name, int64_t offset, int64_t bytes, std::string_view label) {
  index_ += "{\"image\": ";
  append_quoted(name, index_);
  index_ += fmt::format(", \"offset\": {}, \"bytes\": {}", offset, bytes);
  if (!label.empty()) index_ += fmt::format(", \"label\": {}", label);
  index_ += "}\n";
  ++num_images_;
}

Status ImagePackWriter::finish() {
  PLIMSOLL_TRY(file_.write_at(end_, std::as_bytes(std::span(index_))));
  const PackHeader header{kPackVersion, static_cast<uint64_t>(num_images_), static_cast<uint64_t>(end_),
                          static_cast<uint64_t>(end_) + index_.size(),
                          io::checksum(std::as_bytes(std::span(index_)))};
  PLIMSOLL_TRY(file_.write_at(0, header_text(header)));
  return file_.commit();
}

bool is_image_pack(const std::string& path) {
  if (!io::is_file(path)) return false;
  const auto file = io::ReadFile::open(path);
  std::array<char, kPackMagic.size()> magic{};
  return file && file->size_bytes() >= kPackHeaderBytes &&
         file->read_at(0, std::as_writable_bytes(std::span(magic))) &&
         std::string_view(magic.data(), magic.size()) == kPackMagic;
}

bool is_whole_image_pack(const std::string& path) {
  if (!io::is_file(path)) return false;
  const auto file = io::ReadFile::open(path);
  return file && read_header(*file).ok();
}

Status add_image_pack(const std::string& path, const std::string& shown, const ImageCollection& how,
                      ImageEntries& entries) {
  PLIMSOLL_ASSIGN(const io::ReadFile file, io::ReadFile::open(path));
  PLIMSOLL_ASSIGN(const PackHeader header, read_header(file));
  PLIMSOLL_ASSIGN(const std::string index, read_index(file, header));
  const auto place = static_cast<uint32_t>(entries.places.size());
  entries.places.push_back(shown);
  int64_t row = 0;
  for (std::string_view rest = index; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const Members members = members_of(line, kIndexKeys);
    if (const std::string_view classes = find(members, "classes"); row == 0 && is_list(classes)) {
      entries.id_names[place] = texts_of(classes);
      continue;
    }
    ImageEntry image{.path = path, .place = place, .line = ++row};
    const std::string_view name = find(members, "image");
    if (is_string(name)) image.name = unescaped(name);
    image.offset = whole_number(find(members, "offset"));
    image.bytes = whole_number(find(members, "bytes"));
    const auto end = static_cast<int64_t>(header.index);
    if (image.name.empty() || image.bytes <= 0 || image.offset < kPackHeaderBytes || image.offset > end ||
        image.bytes > end - image.offset)
      return damaged_pack(path, fmt::format("line {} of its index", row));
    if (auto wrong = how.with_labels ? parse_image_label(members, entries.place_of(image), entries, image)
                                     : std::nullopt) {
      if (how.on_error == OnError::kFail) return std::move(wrong->error);
      entries.skipped.add(wrong->reason);
      continue;
    }
    entries.images.push_back(std::move(image));
  }
  if (static_cast<uint64_t>(row) != header.images) return damaged_pack(path, "its index has another length");
  return Ok{};
}

}  // namespace plimsoll::corpora
