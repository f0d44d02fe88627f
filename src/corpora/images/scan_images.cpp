#include "corpora/images/scan_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/caught.h"
#include "base/units.h"
#include "corpora/reasons.h"
#include "corpora/record_reader.h"
#include "images/load.h"
#include "io/checksum.h"
#include "io/file.h"
#include "io/parallel.h"

namespace plimsoll::corpora {
namespace {

/// Headers are at the beginning; where metadata pushes them further back, more of the file is read.
constexpr int64_t kHeadBytes = int64_t{64} << 10;
constexpr int64_t kMostHeadBytes = int64_t{64} << 20;
constexpr size_t kImagesAtOnce = 16;

/// What one file is, or what is wrong with it.
struct Look {
  ImageFacts facts = {};
  images::ImageInfo info = {};
  std::optional<Error> error = {};
};

/// `bytes` of the file from `offset` on are the image.
Result<images::ImageInfo> probe_part(const io::ReadFile& file, int64_t offset, int64_t bytes,
                                     std::vector<std::byte>& buffer, uint64_t& head_checksum) {
  const int64_t head = std::min(bytes, kHeadBytes);
  buffer.resize(static_cast<size_t>(head));
  PLIMSOLL_TRY(file.read_at(offset, buffer));
  head_checksum = io::checksum(std::span<const std::byte>(buffer));
  auto info = images::probe(buffer);
  if (info || head == bytes || !images::is_picture(buffer)) return info;
  buffer.resize(static_cast<size_t>(std::min(bytes, kMostHeadBytes)));
  PLIMSOLL_TRY(file.read_at(offset, buffer));
  info = images::probe(buffer);
  buffer.resize(static_cast<size_t>(kHeadBytes));
  buffer.shrink_to_fit();
  return info;
}

class Scan {
 public:
  Scan(ImageEntries& entries, const ScanImages& how)
      : entries_(entries),
        how_(how),
        looks_(entries.images.size()),
        buffers_(static_cast<size_t>(std::max(how.num_threads, 1))) {}

  Result<ScannedImages> operator()() {
    const auto num_pieces =
        static_cast<size_t>(ceil_div(static_cast<int64_t>(looks_.size()), int64_t{kImagesAtOnce}));
    PLIMSOLL_TRY(io::in_parallel(num_pieces, how_.num_threads, [this](size_t piece, size_t thread) {
      return look_at_piece(piece, thread);
    }));
    return gather();
  }

 private:
  Status look_at_piece(size_t piece, size_t thread) {
    const size_t count = looks_.size(), begin = piece * kImagesAtOnce;
    if (thread == 0) {  // the caller's
      if (is_asked(how_.stop)) return interrupted();
      if (how_.progress) how_.progress(static_cast<int64_t>(begin), static_cast<int64_t>(count));
    }
    for (size_t i = begin; i < std::min(count, begin + kImagesAtOnce); ++i)
      PLIMSOLL_TRY(look_at(i, buffers_[thread]));
    return Ok{};
  }

  /// Errors: those that skip no image.
  Status look_at(size_t index, std::vector<std::byte>& buffer) {
    Look& look = looks_[index];
    look = look_into(entries_.images[index], buffer);
    if (look.error && (how_.on_error == OnError::kFail || look.error->code == ErrorCode::kIo))
      return std::move(*look.error);
    return Ok{};
  }

  [[nodiscard]] Look look_into(const ImageEntry& image, std::vector<std::byte>& buffer) const {
    Look look;
    auto info = caught([&]() -> Result<images::ImageInfo> {
      PLIMSOLL_ASSIGN(const io::ReadFile file, io::ReadFile::open(image.path));
      look.facts.bytes = image.bytes > 0 ? image.bytes : file.size_bytes();
      if (look.facts.bytes == 0) return Error{ErrorCode::kBadData, "the file is empty", {}, {}};
      PLIMSOLL_ASSIGN(const images::ImageInfo found,
                      probe_part(file, image.offset, look.facts.bytes, buffer, look.facts.head_checksum));
      PLIMSOLL_TRY(images::check_picture(found, how_.processor));
      return found;
    });
    if (info)
      look.info = *info;
    else
      look.error = named(std::move(info).error(), image);
    return look;
  }

  /// The error with the image's file, and the row that names it.
  [[nodiscard]] Error named(Error error, const ImageEntry& image) const {
    if (image.bytes > 0)
      error.where = fmt::format("{} ({})", image.name, entries_.place_of(image));
    else
      error.where =
          image.line > 0 ? fmt::format("{} ({})", image.path, entries_.place_of(image)) : image.path;
    if (error.code != ErrorCode::kIo) error.hint = kSkipHint;
    return error;
  }

  Result<ScannedImages> gather() {
    ScannedImages scanned;
    std::vector<ImageEntry> kept;
    for (size_t i = 0; i < looks_.size(); ++i) {
      const Look& look = looks_[i];
      if (look.error) {
        scanned.skipped.add(reason::kDamaged);
        continue;
      }
      add(look, scanned.summary);
      scanned.facts.push_back(look.facts);
      scanned.infos.push_back(look.info);
      kept.push_back(std::move(entries_.images[i]));
    }
    if (kept.empty())
      return Error{ErrorCode::kBadData, "no image is left that can be used",
                   entries_.places.empty() ? std::string() : entries_.places.front(), "correct the files"};
    entries_.images = std::move(kept);
    return scanned;
  }

  void add(const Look& look, ImageListSummary& summary) const {
    const int64_t reading =
        look.facts.bytes + images::scratch_bytes(look.info, how_.processor, how_.augmentations);
    summary.reading_bytes = std::max(summary.reading_bytes, reading);
    if (look.info.width * look.info.height > summary.width * summary.height) {
      summary.width = look.info.width;
      summary.height = look.info.height;
    }
    summary.num_animated += look.info.animated ? 1 : 0;
    summary.num_profiles += look.info.color_profile ? 1 : 0;
  }

  ImageEntries& entries_;
  const ScanImages& how_;
  std::vector<Look> looks_;
  std::vector<std::vector<std::byte>> buffers_;  ///< one for each thread
};

}  // namespace

Result<ScannedImages> scan_images(ImageEntries& entries, const ScanImages& how) {
  return Scan(entries, how)();
}

}  // namespace plimsoll::corpora
