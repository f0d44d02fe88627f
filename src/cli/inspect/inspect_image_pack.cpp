#include "cli/inspect/inspect_image_pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/numbers.h"
#include "base/units.h"
#include "cli/table.h"
#include "corpora/images/image_pack.h"
#include "images/image_info.h"
#include "io/file.h"
#include "io/read_part.h"

namespace plimsoll::cli {
namespace {

/// Classes that are shown to people; JSON has all.
constexpr size_t kShownClasses = 12;

std::string_view format_name(images::Format format) {
  switch (format) {
    case images::Format::kJpeg:
      return "JPEG";
    case images::Format::kPng:
      return "PNG";
    case images::Format::kWebp:
      return "WebP";
    case images::Format::kStored:
      return "decoded pixels";
  }
  return "";
}

/// What the headers of the images say.
struct Headers {
  std::map<std::string_view, int64_t> formats;
  images::ImageInfo largest = {};  ///< by its pixels
  int64_t image_bytes = 0, num_ready = 0, num_damaged = 0;
  std::optional<Error> first_damage = {};
};

Status read_headers(const corpora::ImageEntries& entries, Headers& headers) {
  std::vector<std::byte> bytes;
  for (const corpora::ImageEntry& image : entries.images) {
    bytes.resize(static_cast<size_t>(image.bytes));
    PLIMSOLL_TRY(io::read_part(image.path.c_str(), image.offset, bytes));
    headers.image_bytes += image.bytes;
    auto info = images::probe(bytes);
    if (!info) {
      ++headers.num_damaged;
      if (!headers.first_damage) {
        headers.first_damage = std::move(info).error().at(entries.place_of(image));
        headers.first_damage->hint =
            "pack the images again: plimsoll data pack --on-error skip leaves it out";
      }
      continue;
    }
    ++headers.formats[format_name(info->format)];
    headers.num_ready += info->ready ? 1 : 0;
    if (info->width * info->height > headers.largest.width * headers.largest.height) headers.largest = *info;
  }
  return Ok{};
}

/// Images by label: names, or as text ids without one.
std::map<std::string, int64_t> count_labels(const corpora::ImageEntries& entries) {
  std::map<std::string, int64_t> counts;
  for (const corpora::ImageEntry& image : entries.images) {
    const bool is_name = image.kind == corpora::RawLabelKind::kName;
    ++counts[is_name ? entries.names[static_cast<size_t>(image.value)]
                     : std::to_string(static_cast<int64_t>(image.value))];
  }
  return counts;
}

void add_classes(Facts& facts, const std::map<std::string, int64_t>& counts, int64_t unlabelled) {
  std::vector<std::string> names;
  for (const auto& [name, count] : counts) names.push_back(name);
  corpora::sort_class_names(names);
  io::Tree classes = io::Tree::map();
  for (const std::string& name : names) classes.set(name, io::Tree::of(counts.at(name)));
  facts.add("classes", std::move(classes), "classes", grouped(static_cast<int64_t>(names.size())));
  for (size_t i = 0; i < std::min(names.size(), kShownClasses); ++i)
    facts.line("", fmt::format("{}: {}", names[i], counted(counts.at(names[i]), "image")));
  if (names.size() > kShownClasses)
    facts.line("", fmt::format("and {} more, which --json shows", names.size() - kShownClasses));
  facts.add("unlabelled", io::Tree::of(unlabelled));
  if (unlabelled > 0) facts.line("", fmt::format("{} without a label", counted(unlabelled, "image")));
}

void add_headers(Facts& facts, const Headers& headers) {
  io::Tree formats = io::Tree::map();
  std::string text;
  for (const auto& [name, count] : headers.formats) {
    formats.set(name, io::Tree::of(count));
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", name, grouped(count));
  }
  if (headers.num_ready > 0)
    text += fmt::format("; {} resized and cropped for a model's input", grouped(headers.num_ready));
  facts.add("formats", std::move(formats), "formats", text);
  facts.add("ready", io::Tree::of(headers.num_ready));
  facts.add("largest",
            io::Tree::map({{"width", io::Tree::of(headers.largest.width)},
                           {"height", io::Tree::of(headers.largest.height)}}),
            "largest", fmt::format("{} x {} pixels", headers.largest.width, headers.largest.height));
  facts.add("damaged", io::Tree::of(headers.num_damaged), "checked",
            headers.num_damaged == 0
                ? "the index and the header of each image"
                : fmt::format("{} damaged, see below", counted(headers.num_damaged, "image")));
}

}  // namespace

Status inspect_image_pack(const InspectArguments& arguments) {
  const std::string& path = arguments.path;
  corpora::ImageEntries all, labelled;
  PLIMSOLL_TRY(corpora::add_image_pack(path, path, {.with_labels = false}, all));
  PLIMSOLL_TRY(corpora::add_image_pack(path, path, {.on_error = corpora::OnError::kSkip}, labelled));
  PLIMSOLL_TRY(corpora::name_ids(labelled));
  PLIMSOLL_ASSIGN(const io::ReadFile file, io::ReadFile::open(path));
  Headers headers;
  PLIMSOLL_TRY(read_headers(all, headers));
  Facts facts("image_pack");
  facts.add("path", io::Tree::of(path), "pack of images", path);
  facts.add("bytes", io::Tree::of(file.size_bytes()), "size", to_string(Bytes(file.size_bytes())));
  const auto num_images = static_cast<int64_t>(all.images.size());
  facts.add("images", io::Tree::of(num_images), "images",
            fmt::format("{}, {}", grouped(num_images), to_string(Bytes(headers.image_bytes))));
  facts.add("image_bytes", io::Tree::of(headers.image_bytes));
  add_headers(facts, headers);
  add_classes(facts, count_labels(labelled), num_images - static_cast<int64_t>(labelled.images.size()));
  facts.print(arguments.json);
  return headers.first_damage ? Status(std::move(*headers.first_damage)) : Status(Ok{});
}

}  // namespace plimsoll::cli
