// The header has a fixed size, so that it can be written when all is known.
#include "corpora/images/image_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "corpora/labelled/label_file.h"
#include "io/checksum.h"

namespace plimsoll::corpora {
namespace {

using datasets::shard::load_u32;
using datasets::shard::load_u64;
using datasets::shard::store_u32;
using datasets::shard::store_u64;

constexpr std::string_view kListMagic = "plmimage";
constexpr uint64_t kListVersion = 2;
constexpr int64_t kListEntryBytes = 40, kListEntriesPerBlock = 512;

// Words of the header behind the magic.
enum class ListWord : size_t {
  kVersion,
  kEntries,
  kReading,
  kWidth,
  kHeight,
  kAnimated,
  kProfiles,
  kFileBytes,
  kContent,
  kChecksum,
  kEnd
};
constexpr size_t place_in_header(ListWord word) { return 8 + 8 * static_cast<size_t>(word); }
constexpr size_t kListHeaderBytes = place_in_header(ListWord::kEnd);

datasets::shard::TableLayout layout_of(int64_t entries) {
  return {.offset = static_cast<int64_t>(kListHeaderBytes),
          .num_entries = entries,
          .entry_bytes = kListEntryBytes,
          .entries_per_block = kListEntriesPerBlock};
}

Error damaged_list(const std::string& path, std::string_view what) {
  return {ErrorCode::kBadData, fmt::format("the list of images is damaged: {}", what), path,
          "remove the file: it is made again"};
}

std::array<std::byte, kListHeaderBytes> header_of(int64_t entries, int64_t file_bytes, uint64_t content,
                                                  const ImageListSummary& summary) {
  std::array<std::byte, kListHeaderBytes> header{};
  std::memcpy(header.data(), kListMagic.data(), kListMagic.size());
  using enum ListWord;
  const auto put = [&](ListWord word, auto value) {
    store_u64(header.data() + place_in_header(word), static_cast<uint64_t>(value));
  };
  put(kVersion, kListVersion);
  put(kEntries, entries);
  put(kReading, summary.reading_bytes);
  put(kWidth, summary.width);
  put(kHeight, summary.height);
  put(kAnimated, summary.num_animated);
  put(kProfiles, summary.num_profiles);
  put(kFileBytes, file_bytes);
  put(kContent, content);
  put(kChecksum, io::checksum(std::span(header).first(place_in_header(kChecksum))));
  return header;
}

Status write_entries(datasets::shard::SequentialFile& file, std::span<const ImageEntry> images,
                     std::span<const ImageFacts> facts) {
  datasets::shard::TableWriter table(kListEntryBytes, kListEntriesPerBlock);
  auto path_at = static_cast<uint64_t>(kListHeaderBytes) +
                 static_cast<uint64_t>(layout_of(static_cast<int64_t>(images.size())).size_bytes());
  for (size_t i = 0; i < images.size(); ++i) {
    if (table.full()) PLIMSOLL_TRY(file.append(table.take()));
    const ImageEntry& image = images[i];
    const bool is_part = image.bytes > 0;
    std::byte* const to = table.next();
    store_u64(to, path_at);
    store_u32(to + 8, static_cast<uint32_t>(image.path.size()));
    store_u32(to + 12, is_part ? static_cast<uint32_t>(image.name.size()) : 0);
    store_u64(to + 16, static_cast<uint64_t>(is_part ? image.bytes : facts[i].bytes));
    store_u64(to + 24, facts[i].head_checksum);
    store_u64(to + 32, static_cast<uint64_t>(image.offset));
    path_at += image.path.size() + (is_part ? image.name.size() : 0);
  }
  PLIMSOLL_TRY(file.append(table.take()));
  for (const ImageEntry& image : images) {
    PLIMSOLL_TRY(file.append(std::as_bytes(std::span(image.path))));
    if (image.bytes > 0) PLIMSOLL_TRY(file.append(std::as_bytes(std::span(image.name))));
  }
  return Ok{};
}

Status write_labels(const std::string& path, const ImageEntries& entries, uint64_t content) {
  PLIMSOLL_ASSIGN(LabelFileWriter labels, LabelFileWriter::create(path, entries.places));
  for (const ImageEntry& image : entries.images)
    PLIMSOLL_TRY(labels.add(entries.label_of(image), image.place, image.line));
  return labels.finish(content);
}

}  // namespace

std::string list_labels(const std::string& list_path) {
  return list_path.substr(0, list_path.rfind('.')) + ".labels";
}

Status write_image_list(const std::string& path, const ImageEntries& entries,
                        std::span<const ImageFacts> facts, const ImageListSummary& summary) {
  PLIMSOLL_CHECK(entries.images.size() == facts.size());
  io::Checksum content;
  for (size_t i = 0; i < facts.size(); ++i) {
    const ImageEntry& image = entries.images[i];
    if (std::max(image.path.size(), image.name.size()) > static_cast<size_t>(ImageList::kMaxPathBytes))
      return Error{ErrorCode::kBadData, "the path is too long", image.path, "shorten it"};
    content.add(image.name);
    content.add(std::as_bytes(std::span(&facts[i], 1)));
  }
  PLIMSOLL_ASSIGN(auto file,
                  datasets::shard::SequentialFile::create(path, static_cast<int64_t>(kListHeaderBytes)));
  PLIMSOLL_TRY(write_entries(file, entries.images, facts));
  PLIMSOLL_TRY(
      file.commit(header_of(static_cast<int64_t>(facts.size()), file.offset(), content.value(), summary)));
  return write_labels(list_labels(path), entries, content.value());
}

Result<ImageList> ImageList::open(const std::string& path) {
  PLIMSOLL_ASSIGN(io::ReadFile file, io::ReadFile::open(path));
  std::array<std::byte, kListHeaderBytes> header{};
  if (file.size_bytes() < static_cast<int64_t>(kListHeaderBytes))
    return damaged_list(path, "it is shorter than its header");
  PLIMSOLL_TRY(file.read_at(0, header));
  using enum ListWord;
  const auto word = [&](ListWord which) { return load_u64(header.data() + place_in_header(which)); };
  if (std::memcmp(header.data(), kListMagic.data(), kListMagic.size()) != 0 || word(kVersion) != kListVersion)
    return damaged_list(path, "it is not a list of images, or has another version");
  if (io::checksum(std::span(header).first(place_in_header(kChecksum))) != word(kChecksum))
    return damaged_list(path, "its header does not match its checksum");
  constexpr uint64_t kMost = uint64_t{1} << 40;
  if (word(kEntries) > kMost || word(kFileBytes) != static_cast<uint64_t>(file.size_bytes()))
    return damaged_list(path, "it is not as long as its header says");
  ImageList list(std::move(file), layout_of(static_cast<int64_t>(word(kEntries))));
  list.summary_ = {.reading_bytes = static_cast<int64_t>(word(kReading)),
                   .width = static_cast<int64_t>(word(kWidth)),
                   .height = static_cast<int64_t>(word(kHeight)),
                   .num_animated = static_cast<int64_t>(word(kAnimated)),
                   .num_profiles = static_cast<int64_t>(word(kProfiles))};
  list.content_hash_ = word(kContent);
  return list;
}

Result<ListedImage> ImageList::read(int64_t index, std::span<std::byte> scratch) const {
  PLIMSOLL_CHECK(index >= 0 && index < size(), "an image outside of its list");
  const auto for_block = static_cast<size_t>(table_.block_bytes());
  PLIMSOLL_ASSIGN(const auto block, datasets::shard::read_table_block(file_, table_, table_.block_of(index),
                                                                      "images", scratch.first(for_block)));
  const std::byte* const entry = block.data() + index % table_.entries_per_block * table_.entry_bytes;
  const size_t path_bytes = load_u32(entry + 8), name_bytes = load_u32(entry + 12);
  if (std::max(path_bytes, name_bytes) > static_cast<size_t>(kMaxPathBytes))
    return damaged_list(file_.path(), "an entry cannot be read");
  // The path ends with a zero, so the name lies behind that.
  const std::span<std::byte> texts = scratch.subspan(for_block);
  const auto path_at = static_cast<int64_t>(load_u64(entry));
  PLIMSOLL_TRY(file_.read_at(path_at, texts.first(path_bytes)));
  PLIMSOLL_TRY(
      file_.read_at(path_at + static_cast<int64_t>(path_bytes), texts.subspan(path_bytes + 1, name_bytes)));
  texts[path_bytes] = std::byte{0};
  const char* const path = reinterpret_cast<const char*>(texts.data());
  const bool is_part = name_bytes > 0;
  return ListedImage{.path = path,
                     .name = is_part ? std::string_view(path + path_bytes + 1, name_bytes)
                                     : std::string_view(path, path_bytes),
                     .is_part = is_part,
                     .offset = static_cast<int64_t>(load_u64(entry + 32)),
                     .bytes = static_cast<int64_t>(load_u64(entry + 16)),
                     .head_checksum = load_u64(entry + 24)};
}

}  // namespace plimsoll::corpora
