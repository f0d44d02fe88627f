// PNG through libspng, which sees the chunks that decide about pixels and no others, and allocates from the
// picture's arena alone.
#include <fmt/format.h>
#include <spng.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "images/decode.h"
#include "images/png_chunks.h"
#include "images/resample.h"

namespace plimsoll::images {
namespace {

// libspng's allocator has no argument to find an arena by.
thread_local Arena* current_arena = nullptr;

// Before each piece stands its size, for realloc.
constexpr int64_t kSizeBytes = kArenaAlignment;

void* arena_malloc(size_t bytes) {
  if (current_arena == nullptr || bytes > size_t{1} << 40) return nullptr;
  auto* piece = static_cast<std::byte*>(current_arena->try_take(static_cast<int64_t>(bytes) + kSizeBytes));
  if (piece == nullptr) return nullptr;
  std::memcpy(piece, &bytes, sizeof bytes);
  return piece + kSizeBytes;
}
void arena_free(void* /*piece*/) {}
void* arena_calloc(size_t count, size_t size) {
  if (size != 0 && count > (size_t{1} << 40) / size) return nullptr;
  void* piece = arena_malloc(count * size);
  if (piece != nullptr) std::memset(piece, 0, count * size);
  return piece;
}
void* arena_realloc(void* piece, size_t bytes) {
  void* grown = arena_malloc(bytes);
  if (piece == nullptr || grown == nullptr) return grown;
  size_t before = 0;
  std::memcpy(&before, static_cast<std::byte*>(piece) - kSizeBytes, sizeof before);
  std::memcpy(grown, piece, std::min(before, bytes));
  return grown;
}

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

// On white, rounded to the nearest, as Pillow's paste with a mask does.
void onto_white(uint8_t* row, int64_t width) {
  for (int64_t x = 0; x < width; ++x) {
    const int alpha = row[4 * x + 3];
    for (int c = 0; c < 3; ++c) {
      const int sum = 255 * (255 - alpha) + row[4 * x + c] * alpha + 128;
      row[3 * x + c] = static_cast<uint8_t>(((sum >> 8) + sum) >> 8);
    }
  }
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
    if (white) onto_white(row, info.width);
    sink.row(y, row);  // to the end: a file that is damaged further down is damaged for every crop
  }
  return Ok{};
}

}  // namespace

Status decode_png(Bytes file, const ImageInfo& info, Alpha alpha, RowSink& sink, Arena& arena) {
  const int64_t used = arena.used();
  current_arena = &arena;
  spng_alloc alloc = {.malloc_fn = arena_malloc,
                      .realloc_fn = arena_realloc,
                      .calloc_fn = arena_calloc,
                      .free_fn = arena_free};
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
