#include "corpora/images/pack_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/caught.h"
#include "base/units.h"
#include "corpora/images/image_pack.h"
#include "corpora/json_scan.h"
#include "corpora/reasons.h"
#include "corpora/record_reader.h"
#include "images/load.h"
#include "images/stored_pixels.h"
#include "io/parallel.h"
#include "io/read_part.h"

namespace plimsoll::corpora {
namespace {

constexpr size_t kPackedAtOnce = 16;

/// `spells_ids`: an id becomes the name that its place gives it.
std::string label_json(const ImageEntries& entries, const ImageEntry& image, bool spells_ids) {
  std::string text;
  if (image.kind == RawLabelKind::kName) append_quoted(entries.names[static_cast<size_t>(image.value)], text);
  if (image.kind != RawLabelKind::kInteger) return text;
  const auto id = static_cast<int64_t>(image.value);
  const auto names = entries.id_names.find(image.place);
  const bool has_name = names != entries.id_names.end() && id >= 0 && id < std::ssize(names->second);
  if (!spells_ids || !has_name) return std::to_string(id);
  append_quoted(names->second[static_cast<size_t>(id)], text);
  return text;
}

class Packing {
 public:
  Packing(ImagePackWriter& writer, const PackImages& how, const ImageEntries& entries,
          const ScannedImages& scanned)
      : writer_(writer),
        how_(how),
        entries_(entries),
        scanned_(scanned),
        damaged_(entries.images.size()),
        buffers_(static_cast<size_t>(std::max(how.num_threads, 1))) {}

  /// What becomes of image `index`.
  [[nodiscard]] images::Processor processor_of(size_t index) const {
    images::Processor p = how_.processor;
    if (how_.ready) return p;
    const images::ImageInfo& info = scanned_.infos[index];
    const bool turned = p.orientation == images::Orientation::kExif && info.orientation > 4;
    p.width = turned ? info.height : info.width;
    p.height = turned ? info.width : info.height;
    const int64_t shorter = std::min(p.width, p.height);
    p.resize = images::Resize::kNone;
    p.crop = images::Crop::kNone;
    if (how_.shortest == 0 || how_.shortest >= shorter) return p;
    p.width = std::max<int64_t>(1, p.width * how_.shortest / shorter);
    p.height = std::max<int64_t>(1, p.height * how_.shortest / shorter);
    p.resize = images::Resize::kExact;
    p.resize_width = p.width;
    p.resize_height = p.height;
    return p;
  }
  [[nodiscard]] int64_t bytes_of(size_t index) const {
    if (!how_.decoded) return scanned_.facts[index].bytes;
    const images::Processor p = processor_of(index);
    return images::stored_bytes(p.width, p.height);
  }

  /// Whether image `index` could not be decoded; known once images are written.
  [[nodiscard]] bool is_damaged(size_t index) const { return damaged_[index] != 0; }

  Status operator()(const std::vector<int64_t>& places) {
    const size_t count = places.size();
    const auto pieces = static_cast<size_t>(ceil_div(static_cast<int64_t>(count), int64_t{kPackedAtOnce}));
    return io::in_parallel(pieces, how_.num_threads, [&](size_t piece, size_t thread) -> Status {
      const size_t begin = piece * kPackedAtOnce;
      if (thread == 0) {  // the caller's
        if (is_asked(how_.stop)) return interrupted();
        if (how_.progress) how_.progress(static_cast<int64_t>(begin), static_cast<int64_t>(count));
      }
      for (size_t i = begin; i < std::min(count, begin + kPackedAtOnce); ++i)
        PLIMSOLL_TRY(caught([&] { return write(i, places[i], buffers_[thread]); }));
      return Ok{};
    });
  }

 private:
  struct Buffers {
    std::vector<std::byte> file = {}, scratch = {}, stored = {};
  };

  Status write(size_t index, int64_t place, Buffers& buffers) {
    const ImageEntry& image = entries_.images[index];
    const int64_t bytes = image.bytes > 0 ? image.bytes : scanned_.facts[index].bytes;
    buffers.file.resize(static_cast<size_t>(bytes));
    PLIMSOLL_ASSIGN(const int64_t size, io::read_part(image.path.c_str(), image.offset, buffers.file));
    if (image.bytes == 0 ? size != bytes : size < image.offset + bytes)
      return Error{ErrorCode::kBadData, "the image has changed since it was listed", image.path, "run again"};
    if (!how_.decoded) return writer_.write(place, buffers.file);
    PLIMSOLL_ASSIGN(const bool decoded, decode(index, buffers));
    damaged_[index] = decoded ? 0 : 1;
    return writer_.write(place, buffers.stored);
  }

  /// False where the image is damaged and may be.
  Result<bool> decode(size_t index, Buffers& buffers) const {
    const images::Processor p = processor_of(index);
    images::StoredPixels header{.width = p.width, .height = p.height, .ready = how_.ready};
    buffers.stored.resize(static_cast<size_t>(images::stored_bytes(p.width, p.height)));
    buffers.scratch.resize(static_cast<size_t>(images::scratch_bytes(scanned_.infos[index], p)));
    const std::span<std::byte> pixels =
        std::span(buffers.stored).subspan(static_cast<size_t>(images::kStoredHeaderBytes));
    Status loaded = images::load(buffers.file, p, nullptr,
                                 {reinterpret_cast<uint8_t*>(pixels.data()), pixels.size()}, buffers.scratch);
    if (!loaded && how_.on_error == OnError::kFail) {
      Error error = std::move(loaded).error();
      error.where = entries_.images[index].path;
      error.hint = kSkipHint;
      return error;
    }
    header.damaged = !loaded.ok();
    if (header.damaged) std::ranges::fill(pixels, std::byte{0});
    std::ranges::copy(images::stored_header(header), buffers.stored.begin());
    return !header.damaged;
  }

  ImagePackWriter& writer_;
  const PackImages& how_;
  const ImageEntries& entries_;
  const ScannedImages& scanned_;
  std::vector<uint8_t> damaged_;  ///< by image; bytes, which threads write side by side
  std::vector<Buffers> buffers_;  ///< one for each thread
};

}  // namespace

Result<int64_t> pack_images(const std::string& path, const PackImages& how,
                            const images::Augmentations* augmentations, ImageEntries& entries,
                            ScannedImages& scanned) {
  PLIMSOLL_ASSIGN(ImagePackWriter writer, ImagePackWriter::create(path));
  const std::vector<std::string> names = names_of_ids(entries);
  if (!names.empty()) writer.name_ids(names);
  Packing packing(writer, how, entries, scanned);
  std::vector<int64_t> places;
  for (size_t i = 0; i < entries.images.size(); ++i) places.push_back(writer.place(packing.bytes_of(i)));
  PLIMSOLL_TRY(writer.reserve());
  PLIMSOLL_TRY(packing(places));
  int64_t indexed = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    if (packing.is_damaged(i)) {
      scanned.skipped.add(reason::kDamaged);
      continue;
    }
    writer.add(entries.images[i].name, places[i], packing.bytes_of(i),
               label_json(entries, entries.images[i], names.empty()));
    ++indexed;
  }
  PLIMSOLL_TRY(writer.finish());
  int64_t reading = 0;
  for (size_t i = 0; i < places.size(); ++i) {
    ImageEntry& image = entries.images[i];
    image.path = path;
    image.offset = places[i];
    image.bytes = packing.bytes_of(i);
    images::ImageInfo info = scanned.infos[i];
    if (how.decoded) {
      const images::Processor p = packing.processor_of(i);
      const auto header = images::stored_header({.width = p.width, .height = p.height, .ready = how.ready});
      PLIMSOLL_ASSIGN(info, images::probe(header));
    }
    reading = std::max(reading, image.bytes + images::scratch_bytes(info, how.processor, augmentations));
  }
  scanned.summary.reading_bytes = reading;
  return indexed;
}

}  // namespace plimsoll::corpora
