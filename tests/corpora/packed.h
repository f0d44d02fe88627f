// Packs strings as files come packed.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <string>
#include <string_view>

namespace plimsoll::corpora {

inline std::string gzip(std::string_view text) {
  z_stream z = {};
  EXPECT_EQ(::deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(::deflateBound(&z, text.size()), '\0');
  z.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  ::deflateEnd(&z);
  return out;
}

inline std::string zstd(std::string_view text) {
  ZSTD_CCtx* const context = ::ZSTD_createCCtx();
  ::ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::string out(::ZSTD_compressBound(text.size()), '\0');
  const size_t size = ::ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size());
  EXPECT_FALSE(::ZSTD_isError(size));
  out.resize(size);
  ::ZSTD_freeCCtx(context);
  return out;
}

/// Does not compress to nothing: numbers from a small generator, with repeats.
inline std::string some_text(size_t size) {
  std::string text;
  for (uint32_t x = 1; text.size() < size; x = x * 1664525 + 1013904223)
    text += std::to_string(x >> 20) + " words\n";
  text.resize(size);
  return text;
}

}  // namespace plimsoll::corpora
