#include "corpora/images/image_columns.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "corpora/column_stream.h"
#include "corpora/images/image_pack.h"
#include "corpora/json_members.h"
#include "corpora/json_scan.h"
#include "corpora/reasons.h"
#include "corpora/record_reader.h"
#include "images/image_info.h"
#include "io/checksum.h"
#include "io/file.h"
#include "io/json.h"
#include "io/scratch_folder.h"

namespace plimsoll::corpora {
namespace {

constexpr std::string_view kColumnKeys[] = {"image", "label", "labels"};
constexpr std::string_view kFeatureKeys[] = {"bytes", "path"};
/// Of one image, escaped.
constexpr int64_t kMostRowBytes = int64_t{512} << 20;

/// The classes of datasets' ClassLabel feature, by id; none where labels have no such feature.
std::vector<std::string> label_names(const std::string& table) {
  const auto features = io::parse_json(column_features(table));
  const io::Tree* found = features ? features->find("info") : nullptr;
  found = found != nullptr ? found->find("features") : nullptr;
  if (found == nullptr) return {};
  const io::Tree* label = found->find("label");
  if (label == nullptr) label = found->find("labels");
  const io::Tree* names = label == nullptr ? nullptr : label->find("names");
  std::vector<std::string> texts;
  if (names != nullptr)
    for (const io::Tree& name : names->items) texts.push_back(name.text);
  std::set<std::string_view> different(texts.begin(), texts.end());
  return different.size() == texts.size() ? texts : std::vector<std::string>();
}

/// An image as a row holds it.
struct RowImage {
  std::string name = {}, bytes = {};
  std::string_view label = {};
};

class Extraction {
 public:
  Extraction(const std::string& table, const ImageCollection& how, ImageEntries& entries)
      : table_(table), how_(how), entries_(entries) {}

  Status to(const std::string& pack) {
    ReaderOptions reading{.on_error = how_.on_error, .text_key = "image", .max_record_bytes = kMostRowBytes};
    const std::vector<std::string> paths = {table_};
    PLIMSOLL_ASSIGN(const auto reader, RecordReader::open(paths, reading));
    PLIMSOLL_TRY(io::create_writable_directory(io::folder_of(pack)));
    PLIMSOLL_ASSIGN(ImagePackWriter writer, ImagePackWriter::create(pack));
    if (const std::vector<std::string> names = label_names(table_); !names.empty()) writer.name_ids(names);
    std::string row;
    for (Record record;;) {
      row.clear();
      PLIMSOLL_ASSIGN(const bool more, reader->next(row, record));
      if (!more) break;
      line_ = record.line;
      RowImage image;
      PLIMSOLL_ASSIGN(const bool taken, parse(row, image));
      if (!taken) continue;
      const int64_t offset = writer.place(static_cast<int64_t>(image.bytes.size()));
      PLIMSOLL_TRY(writer.write(offset, std::as_bytes(std::span(image.bytes))));
      writer.add(image.name, offset, static_cast<int64_t>(image.bytes.size()), image.label);
    }
    return writer.finish();
  }

 private:
  /// False where the row is skipped.
  Result<bool> refuse(std::string_view reason, std::string what) {
    if (how_.on_error == OnError::kFail)
      return Error{ErrorCode::kBadData, std::move(what), place_of(table_, line_), kSkipHint};
    entries_.skipped.add(reason);
    return false;
  }

  Result<bool> parse(std::string_view row, RowImage& image) {
    const Members members = members_of(row, kColumnKeys);
    std::string_view value = find(members, "image");
    if (value.empty()) return refuse(reason::kMissingField, R"(the row has no "image")");
    std::string path;
    if (value.starts_with('{')) {
      const Members feature = members_of(value, kFeatureKeys);
      if (const auto text = find(feature, "path"); is_string(text)) path = unescaped(text);
      value = find(feature, "bytes");
    }
    if (is_string(value)) image.bytes = unescaped(value);
    // A column of texts names files.
    const bool is_path = path.empty() && !image.bytes.empty() && image.bytes.size() < 4096 &&
                         !images::is_picture(std::as_bytes(std::span(image.bytes)));
    if (is_path) path = std::exchange(image.bytes, {});
    if (image.bytes.empty() && !path.empty()) PLIMSOLL_TRY(read_named(path, image.bytes));
    if (image.bytes.empty()) return refuse(reason::kMissingField, "image has no bytes and no path");
    image.name = path.empty() ? fmt::format("row {}", line_) : path;
    image.label = find(members, "label");
    if (image.label.empty()) image.label = find(members, "labels");
    return true;
  }

  Status read_named(const std::string& name, std::string& bytes) const {
    const bool absolute = std::filesystem::path(name).is_absolute();
    PLIMSOLL_ASSIGN(const io::ReadFile file,
                    io::ReadFile::open(absolute ? name : io::folder_of(table_) + "/" + name));
    bytes.resize(static_cast<size_t>(file.size_bytes()));
    return file.read_at(0, std::as_writable_bytes(std::span(bytes)));
  }

  const std::string& table_;
  const ImageCollection& how_;
  ImageEntries& entries_;
  int64_t line_ = 0;
};

/// A name that another state of the file does not have.
std::string pack_name(const std::string& path) {
  struct stat info {};
  (void)::stat(path.c_str(), &info);
  std::error_code code;
  const std::string absolute = std::filesystem::absolute(path, code).string();
  return fmt::format("images-{:016x}.pixels",
                     io::checksum(fmt::format("columns 2 {} {} {} {}", absolute, info.st_size,
                                              info.st_mtim.tv_sec, info.st_mtim.tv_nsec)));
}

}  // namespace

Status add_image_columns(const std::string& path, const ImageCollection& how, ImageEntries& entries) {
  const std::string pack = how.packs_folder + "/" + pack_name(path);
  const bool is_made = !how.packs_folder.empty() && is_whole_image_pack(pack);
  if (is_made) return add_image_pack(pack, path, how, entries);
  if (how.makes_packs && !how.packs_folder.empty()) {
    PLIMSOLL_TRY(Extraction(path, how, entries).to(pack));
    return add_image_pack(pack, path, how, entries);
  }
  PLIMSOLL_ASSIGN(const io::ScratchFolder folder, io::ScratchFolder::create("images"));
  const std::string passing = folder.path() + "/images.pixels";
  PLIMSOLL_TRY(Extraction(path, how, entries).to(passing));
  return add_image_pack(passing, path, how, entries);
}

}  // namespace plimsoll::corpora
