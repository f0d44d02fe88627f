// JPEG files; the last byte chooses the processor. A box of the picture has the pixels of the whole.
#include <algorithm>
#include <optional>

#include "image_file.h"
#include "images/decode.h"

namespace {

using namespace plimsoll::images;

class Box : public RowSink {
 public:
  explicit Box(const Needed& needed) : needed_(needed) {}
  Needed needed(const ImageInfo& /*info*/) const override { return needed_; }
  bool row(int64_t y, uint8_t* rgb) override {
    if (y >= needed_.first_row && y < needed_.end_row)
      pixels_.insert(pixels_.end(), rgb + 3 * needed_.first_pixel, rgb + 3 * needed_.end_pixel);
    return true;
  }
  const std::vector<uint8_t>& pixels() const { return pixels_; }

 private:
  Needed needed_;
  std::vector<uint8_t> pixels_;
};

std::optional<std::vector<uint8_t>> decoded(std::span<const std::byte> file, const ImageInfo& info,
                                            const Needed& needed) {
  std::vector<std::byte> memory(static_cast<size_t>(info.decode_bytes + kArenaAlignment));
  Arena arena(memory);
  Box box(needed);
  if (!decode_jpeg(file, info, box, arena)) return std::nullopt;
  return box.pixels();
}

void check_box(std::span<const std::byte> file, uint8_t choice) {
  const auto info = probe_jpeg(file);
  if (!info || !check_picture(*info, image_file::small_processor(0))) return;
  const auto whole = decoded(file, *info, {.end_row = info->height, .end_pixel = info->width});
  if (!whole) return;  // what is damaged may stand behind the box
  const int64_t row = info->height * (choice & 15) / 16, pixel = info->width * (choice >> 4) / 16;
  const Needed needed{row, std::min<int64_t>(info->height, row + 9), pixel,
                      std::min<int64_t>(info->width, pixel + 13)};
  const auto box = decoded(file, *info, needed);
  PLIMSOLL_CHECK(box.has_value(), "a box of a picture that is read is not");
  std::vector<uint8_t> cut;
  for (int64_t y = needed.first_row; y < needed.end_row; ++y) {
    const auto begin = whole->begin() + 3 * info->width * y;
    cut.insert(cut.end(), begin + 3 * needed.first_pixel, begin + 3 * needed.end_pixel);
  }
  PLIMSOLL_CHECK(cut == *box, "a box has other pixels than the whole");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto file = std::as_bytes(std::span(data, size - 1));
  image_file::check(file, data[size - 1]);
  check_box(file, data[size - 1]);
  return 0;
}
