// JPEG through libjpeg-turbo, with the settings whose pixels are Pillow's: the accurate integer DCT and fancy
// upsampling. libjpeg reports errors by calling back and expects not to be returned to, so the calls into it
// stand in one function that a longjmp leaves, with nothing in it that has a destructor.
#include <fmt/format.h>

#include <algorithm>
#include <csetjmp>

#include "images/decode.h"
#include "images/jpeg_memory.h"
#include "images/resample.h"

namespace plimsoll::images {
namespace {

// Progressive pictures have about 10 scans. Each costs a pass over the whole picture, so thousands in a small
// file are an attack.
constexpr int kMostScans = 100;

// Pixels beside the needed ones that are decoded too: fancy upsampling looks at the neighbours of a pixel,
// which at the edge of what is decoded are not there. More than a block at the largest sampling factor.
constexpr int64_t kNeighbours = 32;

constexpr const char* kCutOff = "the JPEG ends before its picture does";

// Whether the marker of a picture's end stands anywhere; in whole files it is the last thing or nearly so.
bool has_end(Bytes data) {
  for (size_t i = data.size(); i >= 2; --i)
    if (data[i - 1] == std::byte{0xD9} && data[i - 2] == std::byte{0xFF}) return true;
  return false;
}

// A thread's decompressor, made at its first picture. What it allocates when it is made, a few kilobytes,
// comes from the heap; all that a picture takes comes from the picture's arena.
class Decompressor {
 public:
  Decompressor() {
    info_.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr info) { longjmp(of(info).leave_, 1); };
    errors_.emit_message = [](j_common_ptr, int) {};  // warnings, as Pillow
    info_.client_data = this;
    if (setjmp(leave_) != 0) return;
    jpeg_create_decompress(&info_);
    own_memory_ = install(memory_, info_);
    source_ = {.next_input_byte = nullptr,
               .bytes_in_buffer = 0,
               .init_source = [](j_decompress_ptr) {},
               .fill_input_buffer = cut_off,
               .skip_input_data = skip,
               .resync_to_restart = jpeg_resync_to_restart,
               .term_source = [](j_decompress_ptr) {}};
    info_.src = &source_;
    progress_.progress_monitor = [](j_common_ptr info) {
      Decompressor& self = of(info);
      if (self.info_.input_scan_number > kMostScans) self.fail("the JPEG has more than 100 scans");
    };
    info_.progress = &progress_;
  }
  ~Decompressor() {
    if (own_memory_ == nullptr) return;
    info_.mem = own_memory_;
    jpeg_destroy_decompress(&info_);
  }
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  Status decode(Bytes file, const ImageInfo& expected, RowSink& sink, Arena& arena) {
    if (own_memory_ == nullptr) return bad_picture("libjpeg could not start: out of memory");
    const int64_t used = arena.used();
    memory_.arena = &arena;
    source_.next_input_byte = reinterpret_cast<const JOCTET*>(file.data());
    source_.bytes_in_buffer = file.size();
    why_ = nullptr;
    const bool done = rows_to(sink, expected);
    Status status = done ? Status(Ok{}) : Status(error());
    reset();
    arena.rewind(used);
    return status;
  }

 private:
  static Decompressor& of(j_common_ptr info) { return *static_cast<Decompressor*>(info->client_data); }

  [[noreturn]] void fail(const char* why) {
    why_ = why;
    longjmp(leave_, 1);
  }
  [[noreturn]] static boolean cut_off(j_decompress_ptr info) {
    of(reinterpret_cast<j_common_ptr>(info)).fail(kCutOff);
  }
  static void skip(j_decompress_ptr info, long count) {
    if (count <= 0) return;
    if (static_cast<size_t>(count) > info->src->bytes_in_buffer) cut_off(info);
    info->src->next_input_byte += count;
    info->src->bytes_in_buffer -= static_cast<size_t>(count);
  }

  // Whether scans leave some of the lowest coefficients out or imprecise. libjpeg estimates these from blocks
  // two away, more than kNeighbours in pictures whose colours are sampled coarsely.
  [[nodiscard]] bool is_estimated() const {
    constexpr int kEstimated = 10;
    for (int c = 0; info_.coef_bits != nullptr && c < info_.num_components; ++c)
      for (int i = 1; i < kEstimated; ++i)
        if (info_.coef_bits[c][i] != 0) return true;
    return false;
  }

  // Has libjpeg pass over what no needed pixel depends on: it reads all of it, and transforms, upsamples and
  // converts only the rest. The first pixel that rows have from now on.
  int64_t leave_out(const Needed& needed, bool whole_rows) {
    JDIMENSION left = 0;
    if (is_estimated()) return left;
    const int64_t begin = std::max<int64_t>(0, needed.first_pixel - kNeighbours),
                  end = std::min<int64_t>(info_.output_width, needed.end_pixel + kNeighbours);
    if (!whole_rows && end - begin < info_.output_width) {
      left = static_cast<JDIMENSION>(begin);
      auto width = static_cast<JDIMENSION>(end - begin);
      jpeg_crop_scanline(&info_, &left, &width);
    }
    if (needed.first_row > kNeighbours)
      jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(needed.first_row - kNeighbours));
    return left;
  }

  // False where libjpeg or a callback gave up.
  bool rows_to(RowSink& sink, const ImageInfo& expected) {
    if (setjmp(leave_) != 0) return false;
    jpeg_read_header(&info_, TRUE);
    // Decoding stops behind the last row that is needed; a file that is cut off is bad whichever that is.
    // Before the first scan a thumbnail may have an end of its own.
    if (!has_end({reinterpret_cast<const std::byte*>(source_.next_input_byte), source_.bytes_in_buffer}))
      fail(kCutOff);
    // libjpeg passes over markers without a length and bytes between segments, and may so find another frame
    // header than probe_jpeg did. The sink's memory is for that one's rows.
    if (info_.image_width != expected.width || info_.image_height != expected.height)
      fail("the JPEG's header is damaged");
    const bool cmyk = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    info_.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    info_.dct_method = JDCT_ISLOW;
    info_.do_fancy_upsampling = TRUE;
    jpeg_start_decompress(&info_);
    auto* row = static_cast<JSAMPLE*>(
        memory_.arena->try_take(int64_t{info_.output_width} * info_.output_components + kRowSlack));
    if (row == nullptr) fail("the JPEG needs more memory than its header says");
    const Needed needed = sink.needed(expected);
    JSAMPLE* first = row + leave_out(needed, cmyk) * info_.output_components;
    while (info_.output_scanline < needed.end_row) {
      const int64_t y = info_.output_scanline;
      jpeg_read_scanlines(&info_, &first, 1);
      if (cmyk) cmyk_to_rgb(row, info_.output_width);
      if (!sink.row(y, row)) break;
    }
    return true;
  }

  // As Pillow: Adobe's files hold inverted CMYK, and every file counts as one of them.
  static void cmyk_to_rgb(uint8_t* row, int64_t width) {
    for (int64_t x = 0; x < width; ++x) {
      const uint8_t* in = row + 4 * x;
      const int black = in[3];
      uint8_t rgb[3];
      for (int c = 0; c < 3; ++c) {
        const int product = (255 - in[c]) * black + 128;
        rgb[c] = static_cast<uint8_t>(black - (((product >> 8) + product) >> 8));
      }
      for (int c = 0; c < 3; ++c) row[3 * x + c] = rgb[c];
    }
  }

  Error error() {
    if (why_ != nullptr) return bad_picture(why_);
    char text[JMSG_LENGTH_MAX];
    errors_.format_message(reinterpret_cast<j_common_ptr>(&info_), text);
    return bad_picture(fmt::format("the JPEG is damaged: {}", text));
  }

  // Nothing of one picture reaches the next: its tables lay in its arena.
  void reset() {
    jpeg_abort_decompress(&info_);
    for (JQUANT_TBL*& table : info_.quant_tbl_ptrs) table = nullptr;
    for (JHUFF_TBL*& table : info_.dc_huff_tbl_ptrs) table = nullptr;
    for (JHUFF_TBL*& table : info_.ac_huff_tbl_ptrs) table = nullptr;
    memory_.arena = nullptr;
  }

  jpeg_decompress_struct info_ = {};
  jpeg_error_mgr errors_ = {};
  jpeg_source_mgr source_ = {};
  jpeg_progress_mgr progress_ = {};
  JpegMemory memory_ = {};
  jpeg_memory_mgr* own_memory_ = nullptr;  ///< null: it could not be made
  std::jmp_buf leave_ = {};
  const char* why_ = nullptr;  ///< what a callback of ours found
};

}  // namespace

Status decode_jpeg(Bytes file, const ImageInfo& info, RowSink& sink, Arena& arena) {
  thread_local Decompressor decompressor;
  return decompressor.decode(file, info, sink, arena);
}

}  // namespace plimsoll::images
