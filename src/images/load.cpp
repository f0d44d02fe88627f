#include "images/load.h"

#include <algorithm>
#include <cstring>

#include "images/apply.h"
#include "images/decode.h"
#include "images/geometry.h"
#include "images/load_times.h"

namespace plimsoll::images {
namespace {

// EXIF's orientations by what they do to the rows that come out of a decoder.
struct Turn {
  bool transposed;          // a stored row is a column of the picture
  bool mirror_x, mirror_y;  // the picture's left (top) is the end of what runs along it
};

Turn turn_of(const ImageInfo& info, const Processor& processor) {
  constexpr Turn kTurns[8] = {{false, false, false}, {false, true, false}, {false, true, true},
                              {false, false, true},  {true, false, false}, {true, true, false},
                              {true, true, true},    {true, false, true}};
  return kTurns[processor.orientation == Orientation::kExif ? info.orientation - 1 : 0];
}

struct Size {
  int64_t width, height;
};

Size oriented(const ImageInfo& info, const Turn& turn) {
  if (turn.transposed) return {info.height, info.width};
  return {info.width, info.height};
}

struct Span {
  int64_t begin, end;
};
// Where elements of a side lie on the stored one.
Span stored(Span picture, int64_t size, bool mirrored) {
  return mirrored ? Span{size - picture.end, size - picture.begin} : picture;
}

const Augmentation* random_crop(const Augmentations* augmentations) {
  if (augmentations == nullptr || augmentations->empty()) return nullptr;
  const Augmentation& first = augmentations->front();
  return first.kind == Augmentation::Kind::kRandomResizedCrop ? &first : nullptr;
}

// The rows of a box, resized along x as they come.
class ResizedRows : public RowSink {
 public:
  ResizedRows(const Geometry& geometry, const AxisWeights& x, const AxisWeights& y, Size size, Turn turn,
              Arena& arena)
      : geometry_(geometry),
        x_(x),
        size_(size),
        turn_(turn),
        first_(geometry.y.box_begin + y.first_input()),
        end_(geometry.y.box_begin + y.end_input()),
        stride_(3 * geometry.x.range.count),
        rows_(arena.take<uint8_t>((end_ - first_) * stride_)) {}

  [[nodiscard]] Needed needed(const ImageInfo& /*info*/) const override {
    const int64_t begin = geometry_.x.box_begin;
    const Span rows = stored({first_, end_}, size_.height, turn_.mirror_y),
               pixels =
                   stored({begin + x_.first_input(), begin + x_.end_input()}, size_.width, turn_.mirror_x);
    return {rows.begin, rows.end, pixels.begin, pixels.end};
  }
  bool row(int64_t stored_y, uint8_t* rgb) override {
    const int64_t y = turn_.mirror_y ? size_.height - 1 - stored_y : stored_y;
    if (y >= first_ && y < end_) {
      if (turn_.mirror_x) mirror_row(rgb, size_.width);
      resample_row(x_, rgb + 3 * geometry_.x.box_begin, rows_.data() + (y - first_) * stride_);
    }
    return turn_.mirror_y ? y > first_ : y + 1 < end_;
  }
  [[nodiscard]] const uint8_t* rows() const { return rows_.data(); }
  [[nodiscard]] int64_t stride() const { return stride_; }

 private:
  const Geometry& geometry_;
  const AxisWeights& x_;
  Size size_;
  Turn turn_;
  int64_t first_, end_, stride_;
  std::span<uint8_t> rows_;
};

// A box of the oriented picture as it is.
class StoredBox : public RowSink {
 public:
  StoredBox(const Geometry& geometry, Size size, Turn turn, Arena& arena)
      : x_(geometry.x.box_begin),
        y_(geometry.y.box_begin),
        width_(geometry.x.range.input),
        height_(geometry.y.range.input),
        size_(size),
        turn_(turn),
        pixels_(arena.take<uint8_t>(3 * width_ * height_ + kRowSlack)) {}

  [[nodiscard]] Needed needed(const ImageInfo& /*info*/) const override {
    const Span x = stored({x_, x_ + width_}, size_.width, turn_.mirror_x),
               y = stored({y_, y_ + height_}, size_.height, turn_.mirror_y);
    if (turn_.transposed) return {x.begin, x.end, y.begin, y.end};
    return {y.begin, y.end, x.begin, x.end};
  }
  bool row(int64_t stored_y, uint8_t* rgb) override {
    if (turn_.transposed) return column(turn_.mirror_x ? size_.width - 1 - stored_y : stored_y, rgb), true;
    const int64_t y = (turn_.mirror_y ? size_.height - 1 - stored_y : stored_y) - y_;
    if (y < 0 || y >= height_) return true;
    if (!turn_.mirror_x) return std::memcpy(at(0, y), rgb + 3 * x_, plimsoll::at(3 * width_)), true;
    for (int64_t x = 0; x < width_; ++x) std::memcpy(at(x, y), rgb + 3 * (size_.width - 1 - (x_ + x)), 3);
    return true;
  }
  [[nodiscard]] const uint8_t* row_at(int64_t y) const { return pixels_.data() + 3 * width_ * y; }
  [[nodiscard]] int64_t stride() const { return 3 * width_; }

 private:
  uint8_t* at(int64_t x, int64_t y) { return pixels_.data() + 3 * (y * width_ + x); }
  void column(int64_t picture_x, const uint8_t* rgb) {
    const int64_t x = picture_x - x_;
    if (x < 0 || x >= width_) return;
    for (int64_t y = 0; y < height_; ++y)
      std::memcpy(at(x, y), rgb + 3 * (turn_.mirror_y ? size_.height - 1 - (y_ + y) : y_ + y), 3);
  }

  int64_t x_, y_, width_, height_;
  Size size_;
  Turn turn_;
  std::span<uint8_t> pixels_;
};

// Decodes a picture by a geometry into the output.
class Loader {
 public:
  Loader(Bytes file, const ImageInfo& info, const Processor& processor, Arena& arena)
      : file_(file),
        info_(info),
        processor_(processor),
        turn_(turn_of(info, processor)),
        size_(oriented(info, turn_)),
        arena_(arena) {}

  Status to(const Geometry& geometry, std::span<uint8_t> pixels) {
    const AxisWeights x = weights(geometry.x.range), y = weights(geometry.y.range);
    if (geometry.x.range.count != processor_.width || geometry.y.range.count != processor_.height)
      std::ranges::fill(pixels, uint8_t{0});
    uint8_t* out = pixels.data() + 3 * (geometry.y.pad * processor_.width + geometry.x.pad);
    if (!turn_.transposed && !geometry.vertical_first) {
      ResizedRows rows(geometry, x, y, size_, turn_, arena_);
      PLIMSOLL_TRY(decode(rows));
      return columns(geometry, y, rows.rows(), rows.stride(), out), Ok{};
    }
    StoredBox box(geometry, size_, turn_, arena_);
    PLIMSOLL_TRY(decode(box));
    if (geometry.vertical_first) return vertical_first(geometry, x, y, box, out), Ok{};
    const int64_t first = y.first_input(), stride = 3 * geometry.x.range.count;
    const std::span<uint8_t> rows = arena_.take<uint8_t>((y.end_input() - first) * stride);
    for (int64_t i = first; i < y.end_input(); ++i)
      resample_row(x, box.row_at(i), rows.data() + (i - first) * stride);
    return columns(geometry, y, rows.data(), stride, out), Ok{};
  }

 private:
  AxisWeights weights(const AxisRange& range) {
    return axis_weights(range, processor_.interpolation, processor_.backend, arena_);
  }
  Status decode(RowSink& sink) {
    switch (info_.format) {
      case Format::kJpeg:
        return decode_jpeg(file_, info_, sink, arena_);
      case Format::kPng:
        return decode_png(file_, info_, processor_.alpha, sink, arena_);
      case Format::kWebp:
        return decode_webp(file_, info_, processor_.alpha, sink, arena_);
      case Format::kStored:
        return decode_stored(file_, info_, sink, arena_);
    }
    __builtin_unreachable();
  }
  // `rows` begins with the first input that y needs.
  void columns(const Geometry& geometry, const AxisWeights& y, const uint8_t* rows, int64_t stride,
               uint8_t* out) const {
    for (int64_t i = 0; i < geometry.y.range.count; ++i) {
      const int64_t first = y.windows[plimsoll::at(i)].first - y.first_input();
      resample_column(y, i, rows + first * stride, stride, out + 3 * processor_.width * i);
    }
  }
  void vertical_first(const Geometry& geometry, const AxisWeights& x, const AxisWeights& y,
                      const StoredBox& box, uint8_t* out) {
    const std::span<uint8_t> row = arena_.take<uint8_t>(box.stride() + kRowSlack);
    for (int64_t i = 0; i < geometry.y.range.count; ++i) {
      const uint8_t* first = box.row_at(y.windows[plimsoll::at(i)].first);
      resample_column(y, i, first, box.stride(), row.data());
      resample_row(x, row.data(), out + 3 * processor_.width * i);
    }
  }

  Bytes file_;
  const ImageInfo& info_;
  const Processor& processor_;
  Turn turn_;
  Size size_;
  Arena& arena_;
};

Status copy_ready(Bytes file, const ImageInfo& info, std::span<uint8_t> pixels) {
  const Bytes rows = stored_rows(file, info);
  if (rows.size() != pixels.size()) return bad_picture("the stored pixels are cut off");
  std::memcpy(pixels.data(), rows.data(), rows.size());
  return Ok{};
}

}  // namespace

int64_t scratch_bytes(const ImageInfo& info, const Processor& processor, const Augmentations* augmentations) {
  const Turn turn = turn_of(info, processor);
  const Size size = oriented(info, turn);
  const Augmentation* crop = random_crop(augmentations);
  const int64_t augment = augmentations == nullptr ? 0 : apply_bytes(*augmentations, processor);
  if (info.ready && crop == nullptr) return kArenaAlignment + augment;
  const int64_t resize = crop != nullptr
                             ? most_crop_bytes(size.width, size.height, processor, *crop, turn.transposed)
                             : resize_bytes(geometry(size.width, size.height, processor),
                                            processor.interpolation, turn.transposed);
  return kArenaAlignment + std::max(info.decode_bytes + resize, augment);
}

Status load(std::span<const std::byte> file, const Processor& processor, const Draw* draw,
            std::span<uint8_t> pixels, std::span<std::byte> scratch) {
  PLIMSOLL_CHECK(static_cast<int64_t>(pixels.size()) == processor.height * processor.width * 3);
  PLIMSOLL_ASSIGN(const ImageInfo info, probe(file));
  PLIMSOLL_TRY(check_picture(info, processor));
  const Augmentations* augmentations = draw == nullptr ? nullptr : draw->augmentations;
  if (static_cast<int64_t>(scratch.size()) < scratch_bytes(info, processor, augmentations))
    return bad_picture("the file has changed since its header was read: it needs more memory now");
  Arena arena(scratch);
  const Size size = oriented(info, turn_of(info, processor));
  const Augmentation* crop = random_crop(augmentations);
  {
    const LoadTimer timer(LoadPart::kDecoding);
    if (info.ready && crop == nullptr) {
      PLIMSOLL_TRY(copy_ready(file, info, pixels));
    } else {
      const Geometry how = crop != nullptr
                               ? geometry(draw_crop(*draw, *crop, size.width, size.height), processor)
                               : geometry(size.width, size.height, processor);
      PLIMSOLL_TRY(Loader(file, info, processor, arena).to(how, pixels));
      arena.rewind(0);
    }
  }
  if (augmentations == nullptr) return Ok{};
  const LoadTimer timer(LoadPart::kAugmenting);
  apply(*draw, processor, pixels, arena);
  return Ok{};
}

}  // namespace plimsoll::images
