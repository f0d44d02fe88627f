#include "corpora/images/image_table.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "corpora/images/class_folders.h"
#include "corpora/json_members.h"
#include "corpora/reasons.h"
#include "corpora/record_reader.h"
#include "io/file.h"
#include "io/missing_file.h"

namespace plimsoll::corpora {
namespace {

constexpr std::string_view kKeys[] = {"image", "file_name", "label", "labels"};

/// One row as an image.
class Row {
 public:
  Row(const std::string& table, const ImageCollection& how, int64_t line)
      : table_(table), how_(how), line_(line) {}

  std::optional<BadExample> parse(std::string_view json, ImageEntries& entries, ImageEntry& image) const {
    JsonScanner scanner(json);
    Members members;
    if (!scan_object(scanner, kKeys, members) || !scanner.expect_end())
      return bad(reason::kNotJson, fmt::format("the line is no JSON object: {}", scanner.error()));
    if (auto wrong = parse_path(members, image)) return wrong;
    return how_.with_labels ? parse_image_label(members, place_of(table_, line_), entries, image)
                            : std::nullopt;
  }

 private:
  [[nodiscard]] BadExample bad(std::string_view reason, std::string what) const {
    return {reason, {ErrorCode::kBadData, std::move(what), place_of(table_, line_), kSkipHint}};
  }

  std::optional<BadExample> parse_path(const Members& members, ImageEntry& image) const {
    std::string_view value = find(members, "image");
    if (value.empty()) value = find(members, "file_name");
    if (value.empty()) return bad(reason::kMissingField, R"(the line has no "image")");
    if (!is_string(value))
      return bad(reason::kWrongType, fmt::format("image is {}, expected a path", type_name(value)));
    image.name = unescaped(value);
    if (image.name.empty()) return bad(reason::kMissingField, "image is an empty path");
    const std::filesystem::path path = image.name;
    image.path = path.is_absolute() ? image.name : io::folder_of(table_) + "/" + image.name;
    return std::nullopt;
  }

  const std::string& table_;
  const ImageCollection& how_;
  const int64_t line_;
};

Status add_single(const std::string& path, ImageEntries& entries) {
  PLIMSOLL_ASSIGN(const io::ReadFile file, io::ReadFile::open(path));
  ImageEntry image{.path = path, .name = path, .place = static_cast<uint32_t>(entries.places.size())};
  entries.places.push_back(path);
  entries.images.push_back(std::move(image));
  return Ok{};
}

}  // namespace

std::optional<BadExample> parse_image_label(const Members& members, const std::string& where,
                                            ImageEntries& entries, ImageEntry& image) {
  const auto bad = [&](std::string what) {
    return BadExample{reason::kBadLabel, {ErrorCode::kBadData, std::move(what), where, kSkipHint}};
  };
  std::string_view value = find(members, "label");
  if (value.empty()) value = find(members, "labels");
  if (value.empty()) return bad(R"(the line has no "label")");
  RawLabel label;
  if (auto wrong = parse_raw_label(value, label)) return bad(std::move(*wrong));
  if (label.kind == RawLabelKind::kNumber || label.kind == RawLabelKind::kList)
    return bad(fmt::format("label is {}, expected the name of a class or its id", value.substr(0, 40)));
  image.kind = label.kind;
  image.value = label.kind == RawLabelKind::kName ? static_cast<float>(entries.name_index(label.name))
                                                  : label.values[0];
  return std::nullopt;
}

Status add_image_table(const std::string& path, const ImageCollection& how, ImageEntries& entries) {
  if (!how.with_labels && is_image_name(path)) return add_single(path, entries);
  if (!has_rows_by_name(path) && !io::is_file(path))
    return Error{ErrorCode::kBadData, "there is no such file or folder", path, io::missing_hint(path)};
  if (!has_rows_by_name(path))
    return Error{ErrorCode::kInvalidArgument, "this file names no images with labels", path,
                 "name a folder of class folders, a .csv, .jsonl, .parquet or .arrow file with \"image\" and "
                 "\"label\", or a pack: plimsoll data pack"};
  ReaderOptions reading;
  reading.on_error = how.on_error;
  const std::vector<std::string> paths = {path};
  PLIMSOLL_ASSIGN(const auto reader, RecordReader::open(paths, reading));
  const auto place = static_cast<uint32_t>(entries.places.size());
  entries.places.push_back(path);
  std::string bytes;
  for (Record record;;) {
    bytes.clear();
    PLIMSOLL_ASSIGN(const bool more, reader->next(bytes, record));
    if (!more) break;
    ImageEntry image{.place = place, .line = record.line};
    if (auto wrong = Row(path, how, record.line).parse(bytes, entries, image)) {
      if (how.on_error == OnError::kFail) return std::move(wrong->error);
      entries.skipped.add(wrong->reason);
      continue;
    }
    entries.images.push_back(std::move(image));
  }
  entries.skipped.add(reader->take_skipped());
  return Ok{};
}

}  // namespace plimsoll::corpora
