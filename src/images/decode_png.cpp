// PNG through libspng, which sees the chunks that decide about pixels and no others, and allocates from the
// picture's arena alone.
#include <fmt/format.h>
#include <spng.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "images/arena_heap.h"
#include "images/decode.h"
#include "images/on_white.h"
#include "images/png_chunks.h"
#include "images/resample.h"

namespace plimsoll::images {
namespace {

// The signature and the chunks that pixels depend on, as a stream.
class PixelChunks {
 public:
  explicit PixelChunks(Bytes file) : chunks_(file), current_(file.first(8)) {}

  bool read(std::byte* to, size_t count) {
    while (count > 0) {
      if (current_.empty() && !advance()) return false;
      const size_t part = std::min(count, current_.size());
      std::memcpy(to, current_.data(), part);
      current_ = current_.subspan(part);
      to += part;
      count -= part;
    }
    return true;
  }

 private:
  bool advance() {
    while (const auto chunk = chunks_.next()) {
      for (const std::string_view kept : {"IHDR", "PLTE", "tRNS", "IDAT", "IEND"}) {
        if (chunk->type != kept) continue;
        current_ = chunk->whole;
        return true;
      }
    }
    return false;
  }

  PngChunks chunks_;
  Bytes current_;
};

int read_stream(spng_ctx* /*context*/, void* stream, void* to, size_t count) {
  return static_cast<PixelChunks*>(stream)->read(static_cast<std::byte*>(to), count) ? 0 : SPNG_IO_EOF;
}

Error png_error(int code) {
  if (code == SPNG_IO_EOF || code == SPNG_EOF || code == SPNG_EIDAT_TOO_SHORT)
    return bad_picture("the PNG ends before its picture does");
  return bad_picture(fmt::format("the PNG is damaged: {}", spng_strerror(code)));
}

Status decode_rows(spng_ctx* context, const ImageInfo& info, bool white, RowSink& sink, Arena& arena) {
  const int format = white ? SPNG_FMT_RGBA8 : SPNG_FMT_RGB8;
  const int64_t row_bytes = info.width * (white ? 4 : 3);
  const int flags = (white ? SPNG_DECODE_TRNS : 0) | (info.interlaced ? 0 : SPNG_DECODE_PROGRESSIVE);
  const std::span<uint8_t> rows =
      arena.take<uint8_t>(row_bytes * (info.interlaced ? info.height : 1) + kRowSlack);
  const int begun = spng_decode_image(context, info.interlaced ? rows.data() : nullptr,
                                      info.interlaced ? rows.size() - kRowSlack : 0, format, flags);
  if (begun != 0) return png_error(begun);
  for (int64_t y = 0; y < info.height; ++y) {
    uint8_t* row = rows.data() + (info.interlaced ? y * row_bytes : 0);
    const int code = info.interlaced ? 0 : spng_decode_row(context, row, at(row_bytes));
    const bool last = y + 1 == info.height;
    if (code != 0 && !(last && code == SPNG_EOI)) return png_error(code);
    if (white) put_on_white(row, info.width);
    sink.row(y, row);  // to the end: a file that is damaged further down is damaged for every crop
  }
  return Ok{};
}

}  // namespace

Status decode_png(Bytes file, const ImageInfo& info, Alpha alpha, RowSink& sink, Arena& arena) {
  const int64_t used = arena.used();
  const ArenaHeap heap(arena);
  spng_alloc alloc = {.malloc_fn = plimsoll_arena_malloc,
                      .realloc_fn = plimsoll_arena_realloc,
                      .calloc_fn = plimsoll_arena_calloc,
                      .free_fn = plimsoll_arena_free};
  const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> context(spng_ctx_new2(&alloc, 0), spng_ctx_free);
  PixelChunks stream(file);
  Status status = Ok{};
  if (context == nullptr || spng_set_png_stream(context.get(), read_stream, &stream) != 0) {
    status = bad_picture("libspng could not start: out of memory");
  } else {
    status = decode_rows(context.get(), info, alpha == Alpha::kWhite && info.has_alpha, sink, arena);
  }
  arena.rewind(used);
  return status;
}

}  // namespace plimsoll::images
