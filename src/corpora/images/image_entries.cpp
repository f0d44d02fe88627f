#include "corpora/images/image_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "corpora/column_stream.h"
#include "corpora/images/class_folders.h"
#include "corpora/images/image_columns.h"
#include "corpora/images/image_pack.h"
#include "corpora/images/image_table.h"
#include "corpora/saved_dataset.h"
#include "io/file.h"

namespace plimsoll::corpora {
namespace {

bool is_whole_number(const std::string& name) {
  return !name.empty() && name.size() < 16 && (name == "0" || name[0] != '0') &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Status add_image_file(const std::string& path, const ImageCollection& how, ImageEntries& entries) {
  if (has_columns_by_name(path)) return add_image_columns(path, how, entries);
  if (is_image_pack(path)) return add_image_pack(path, path, how, entries);
  return add_image_table(path, how, entries);
}

}  // namespace

uint32_t ImageEntries::name_index(const std::string& name) {
  const auto [at, is_new] = indices_.emplace(name, static_cast<uint32_t>(names.size()));
  if (is_new) names.push_back(name);
  return at->second;
}

RawLabel ImageEntries::label_of(const ImageEntry& image) const {
  RawLabel label{.kind = image.kind};
  if (image.kind == RawLabelKind::kName) label.name = names[static_cast<size_t>(image.value)];
  if (image.kind == RawLabelKind::kInteger) label.values.push_back(image.value);
  return label;
}

std::string ImageEntries::place_of(const ImageEntry& image) const {
  return corpora::place_of(places[image.place], image.line);
}

Status add_images(const std::string& entry, const ImageCollection& how, ImageEntries& entries) {
  PLIMSOLL_ASSIGN(const bool is_folder, io::is_folder(entry));
  if (!is_folder) return add_image_file(entry, how, entries);
  for (const char* table : {"metadata.csv", "metadata.jsonl"})
    if (const std::string path = entry + "/" + table; io::is_file(path))
      return add_image_table(path, how, entries);
  if (io::is_file(entry + "/state.json")) {
    PLIMSOLL_ASSIGN(const std::vector<std::string> files, expand_data(entry));
    for (const std::string& file : files) PLIMSOLL_TRY(add_image_file(file, how, entries));
    return Ok{};
  }
  return add_folder(entry, how.with_labels, entries);
}

std::vector<std::string> names_of_ids(const ImageEntries& entries) {
  const std::vector<std::string>* names = nullptr;
  std::optional<uint32_t> looked_at;  // images of a place follow each other
  for (const ImageEntry& image : entries.images) {
    if (image.kind != RawLabelKind::kInteger || looked_at == image.place) continue;
    looked_at = image.place;
    const auto own = entries.id_names.find(image.place);
    if (own == entries.id_names.end() || (names != nullptr && *names != own->second)) return {};
    names = &own->second;
  }
  return names == nullptr ? std::vector<std::string>() : *names;
}

Status name_ids(ImageEntries& entries) {
  for (ImageEntry& image : entries.images) {
    const auto names = entries.id_names.find(image.place);
    if (image.kind != RawLabelKind::kInteger || names == entries.id_names.end()) continue;
    const auto id = static_cast<int64_t>(image.value);
    if (id < 0 || id >= std::ssize(names->second))
      return Error{
          ErrorCode::kBadData,
          fmt::format("label {} is none of the {} classes that the file names", id, names->second.size()),
          entries.place_of(image), "leave out rows without a class"};
    image.value = static_cast<float>(entries.name_index(names->second[static_cast<size_t>(id)]));
    image.kind = RawLabelKind::kName;
  }
  return Ok{};
}

void summarize(const ImageEntries& entries, LabelSummary& found) {
  for (const ImageEntry& image : entries.images) found.add(image.kind, {&image.value, 1});
  found.all_names.insert(entries.names.begin(), entries.names.end());
}

void sort_class_names(std::vector<std::string>& names) {
  const bool by_value = std::all_of(names.begin(), names.end(), is_whole_number);
  std::sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return by_value && a.size() != b.size() ? a.size() < b.size() : a < b;
  });
}

}  // namespace plimsoll::corpora
