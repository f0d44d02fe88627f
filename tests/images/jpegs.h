// JPEGs of every kind, as libjpeg writes them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

// jpeglib.h wants size_t and FILE.
#include <jpeglib.h>

namespace plimsoll::images {

enum class Scans { kOne, kProgressive, kOneOfEachComponent, kImprecise };

struct JpegKind {
  std::string name;
  std::vector<std::array<int, 2>> sampling = {{1, 1}, {1, 1}, {1, 1}};  ///< of each component
  Scans scans = Scans::kOne;
  J_COLOR_SPACE stored = JCS_YCbCr;
  unsigned restart_blocks = 0;
  int width = 211, height = 173;
};

/// Scans that libjpeg has no function for.
inline std::vector<jpeg_scan_info> script_of(const JpegKind& kind) {
  std::vector<jpeg_scan_info> script;
  const auto components = static_cast<int>(kind.sampling.size());
  if (kind.scans == Scans::kOneOfEachComponent)
    for (int c = 0; c < components; ++c) script.push_back({1, {c}, 0, 63, 0, 0});
  if (kind.scans == Scans::kImprecise)  // all means, and of the first component five coefficients
    script = {{components, {0, 1, 2}, 0, 0, 0, 1}, {1, {0}, 1, 5, 0, 2}};
  return script;
}

inline J_COLOR_SPACE given_as(J_COLOR_SPACE stored) {
  if (stored == JCS_GRAYSCALE) return stored;
  return stored == JCS_CMYK || stored == JCS_YCCK ? JCS_CMYK : JCS_RGB;
}

/// A file of noise on waves.
inline std::vector<std::byte> encoded(const JpegKind& kind) {
  std::mt19937 random(5);
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = static_cast<JDIMENSION>(kind.width);
  info.image_height = static_cast<JDIMENSION>(kind.height);
  info.input_components = static_cast<int>(kind.sampling.size());
  info.in_color_space = given_as(kind.stored);
  jpeg_set_defaults(&info);
  jpeg_set_colorspace(&info, kind.stored);
  for (size_t c = 0; c < kind.sampling.size(); ++c) {
    info.comp_info[c].h_samp_factor = kind.sampling[c][0];
    info.comp_info[c].v_samp_factor = kind.sampling[c][1];
  }
  const std::vector<jpeg_scan_info> script = script_of(kind);
  if (kind.scans == Scans::kProgressive) jpeg_simple_progression(&info);
  if (!script.empty()) info.scan_info = script.data();
  if (!script.empty()) info.num_scans = static_cast<int>(script.size());
  info.restart_interval = kind.restart_blocks;
  jpeg_start_compress(&info, TRUE);
  std::vector<JSAMPLE> row(static_cast<size_t>(kind.width * info.input_components));
  for (int y = 0; y < kind.height; ++y) {
    for (size_t i = 0; i < row.size(); ++i)
      row[i] = static_cast<JSAMPLE>(((i * 7 + static_cast<size_t>(y) * 3) % 192 + random() % 64));
    JSAMPLE* rows = row.data();
    jpeg_write_scanlines(&info, &rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  const auto* begin = reinterpret_cast<const std::byte*>(bytes);
  std::vector<std::byte> file(begin, begin + size);
  std::free(bytes);  // jpeg_mem_dest took it from malloc
  return file;
}

}  // namespace plimsoll::images
