// Decoders: a file's bytes to rows of RGB, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "images/arena.h"
#include "images/byte_reader.h"
#include "images/image_info.h"

namespace plimsoll::images {

/// The rows of a picture as it is stored, and the pixels of each, that are needed.
struct Needed {
  int64_t first_row = 0, end_row = 0, first_pixel = 0, end_pixel = 0;
};

/// Takes the rows of a picture as they are decoded, top to bottom.
class RowSink {
 public:
  virtual ~RowSink() = default;
  /// Decoders may leave other rows out, and other pixels of a row may hold anything.
  [[nodiscard]] virtual Needed needed(const ImageInfo& info) const {
    return {.end_row = info.height, .end_pixel = info.width};
  }
  /// Row `y`: 3 bytes a pixel, `width` pixels, kRowSlack bytes behind them (resample.h); the memory may be
  /// written to. False: no further row is needed.
  virtual bool row(int64_t y, uint8_t* rgb) = 0;
};

/// Read the headers that `probe` dispatches on, and fill everything but the pixel limit. Errors: as probe.
Result<ImageInfo> probe_jpeg(Bytes file);
Result<ImageInfo> probe_png(Bytes file);
Result<ImageInfo> probe_webp(Bytes file);
Result<ImageInfo> probe_stored(Bytes file);

/// Decode the file to `sink`, with at most the decode_bytes of `arena` that probing it gave (`info`). Rows
/// have info.width pixels. Errors: kBadData.
Status decode_jpeg(Bytes file, const ImageInfo& info, RowSink& sink, Arena& arena);
Status decode_png(Bytes file, const ImageInfo& info, Alpha alpha, RowSink& sink, Arena& arena);
Status decode_webp(Bytes file, const ImageInfo& info, Alpha alpha, RowSink& sink, Arena& arena);
Status decode_stored(Bytes file, const ImageInfo& info, RowSink& sink, Arena& arena);
/// The pixels of stored ones as they lie there; empty where the file is cut off.
Bytes stored_rows(Bytes file, const ImageInfo& info);

/// "what" as the error of a damaged or unsupported picture.
Error bad_picture(std::string what, std::string hint = {});

}  // namespace plimsoll::images
