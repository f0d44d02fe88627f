#include "reports/pictures.h"

#include <fmt/format.h>

#include <cmath>

#include "images/thumbnail.h"
#include "io/file.h"

namespace plimsoll::reports {
namespace {

constexpr size_t kMostPictures = 32;
constexpr int64_t kSide = 72;
constexpr int64_t kMostFileBytes = int64_t{64} << 20;

std::string text_of(const io::Tree& example, std::string_view key) {
  const io::Tree* value = example.find(key);
  return value != nullptr && value->kind == io::Tree::Kind::kString ? value->text : "";
}

Result<std::string> small_copy(const std::string& path) {
  PLIMSOLL_ASSIGN(const std::string file, io::read_small_file(path, kMostFileBytes));
  return images::thumbnail_png(std::as_bytes(std::span(file)), kSide);
}

}  // namespace

std::vector<ReportedPicture> read_pictures(const io::Tree& eval, std::vector<std::string>& notes) {
  std::vector<ReportedPicture> pictures;
  size_t absent = 0;
  const io::Tree* examples = eval.find("examples");
  if (examples == nullptr) return pictures;
  for (const io::Tree& example : examples->items) {
    if (pictures.size() == kMostPictures) break;
    const io::Tree* score = example.find("score");
    const bool has_score = score != nullptr && (score->kind == io::Tree::Kind::kNumber ||
                                                score->kind == io::Tree::Kind::kInteger);
    ReportedPicture picture{text_of(example, "name"), text_of(example, "label"),
                            text_of(example, "predicted"), has_score ? score->number : std::nan("")};
    if (picture.label.empty() && picture.predicted.empty()) continue;
    if (auto png = io::is_file(picture.name) ? small_copy(picture.name) : Result<std::string>(std::string()))
      picture.png = std::move(*png);
    absent += picture.png.empty() ? 1 : 0;
    pictures.push_back(std::move(picture));
  }
  if (absent > 0)
    notes.push_back(fmt::format(
        "{} of {} images of the last evaluation are not shown: their files cannot be read from this folder",
        absent, pictures.size()));
  return pictures;
}

}  // namespace plimsoll::reports
