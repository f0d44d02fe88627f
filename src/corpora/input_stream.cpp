// zlib and libzstd behind one call. Both are fed from a buffer of fixed size and checked to have ended where
// the file does.
#include "corpora/input_stream.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <new>
#include <string_view>

#include "tokenizers/unicode.h"

namespace plimsoll::corpora {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;
constexpr size_t kStartBytes = 512;
constexpr int kMostWindowLog = 27;  // 128 MiB: what zstd itself takes without being told to

class PlainStream final : public InputStream {
 public:
  explicit PlainStream(io::ReadFile file) : InputStream(std::move(file)) {}
  Result<size_t> read(std::span<char> out) override { return read_file(out); }
};

/// What the two packed formats share: the buffer and the errors.
class PackedStream : public InputStream {
 public:
  PackedStream(io::ReadFile file, std::string_view format)
      : InputStream(std::move(file)),
        format_(format),
        buffer_(std::make_unique_for_overwrite<char[]>(kBufferBytes)) {}

 protected:
  [[nodiscard]] std::string_view unread() const { return {buffer_.get() + at_, size_ - at_}; }
  void consume(size_t count) { at_ += count; }
  /// Reads on where all is used up; false at the file's end.
  Result<bool> refill() {
    if (at_ < size_) return true;
    at_ = size_ = 0;
    if (at_file_end()) return false;
    PLIMSOLL_ASSIGN(size_, read_file({buffer_.get(), kBufferBytes}));
    return size_ > 0;
  }
  /// The byte of the file that comes next.
  [[nodiscard]] int64_t position() const { return bytes_read() - static_cast<int64_t>(size_ - at_); }
  [[nodiscard]] Error broken(std::string_view why) const {
    return Error{
        ErrorCode::kBadData,
        fmt::format("the {} data is damaged at byte {} of {}: {}", format_, position(), size_bytes(), why),
        path(), "make or download the file again"};
  }
  [[nodiscard]] Error cut_off() const {
    return Error{ErrorCode::kBadData,
                 fmt::format("the {} data is cut off at byte {}, where the file ends", format_, position()),
                 path(), "make or download the file again"};
  }

 private:
  std::string_view format_;
  std::unique_ptr<char[]> buffer_;
  size_t at_ = 0, size_ = 0;
};

class GzipStream final : public PackedStream {
 public:
  explicit GzipStream(io::ReadFile file) : PackedStream(std::move(file), "gzip") {
    if (::inflateInit2(&z_, 16 + MAX_WBITS) != Z_OK)
      throw std::bad_alloc();  // as `new` where memory is refused
  }
  ~GzipStream() override { ::inflateEnd(&z_); }

  Result<size_t> read(std::span<char> out) override {
    for (;;) {
      PLIMSOLL_ASSIGN(const bool more, refill());
      if (!more) {
        if (inside_) return cut_off();
        return size_t{0};
      }
      if (!inside_) {
        PLIMSOLL_TRY(begin_member());
        if (!inside_) continue;
      }
      PLIMSOLL_ASSIGN(const size_t written, inflate_into(out));
      if (written > 0) return written;
    }
  }

 private:
  /// A file may end with zeros (tapes did); anything else is another member.
  Status begin_member() {
    const std::string_view rest = unread();
    if (after_member_ && rest[0] == '\0') {
      consume(std::min(rest.find_first_not_of('\0'), rest.size()));
      padding_ = true;
      return Ok{};
    }
    if (padding_ || static_cast<unsigned char>(rest[0]) != 0x1f)
      return broken("what follows the end is no gzip data");
    ::inflateReset(&z_);
    inside_ = true;
    return Ok{};
  }

  Result<size_t> inflate_into(std::span<char> out) {
    const std::string_view in = unread();
    // zlib's interface has no const.
    z_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data()));
    z_.avail_in = static_cast<uInt>(in.size());
    z_.next_out = reinterpret_cast<Bytef*>(out.data());
    z_.avail_out = static_cast<uInt>(std::min(out.size(), size_t{1} << 30));
    const uInt before = z_.avail_out;
    const int code = ::inflate(&z_, Z_NO_FLUSH);
    consume(in.size() - z_.avail_in);
    if (code == Z_STREAM_END) {
      inside_ = false;
      after_member_ = true;
    } else if (code == Z_MEM_ERROR) {
      return Error{ErrorCode::kIo, "there is no memory for unpacking", path(), "close other programs"};
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      return broken(z_.msg ? z_.msg : "unknown");
    }
    return size_t{before - z_.avail_out};
  }

  z_stream z_ = {};
  bool inside_ = false;
  bool after_member_ = false;
  bool padding_ = false;
};

class ZstdStream final : public PackedStream {
 public:
  explicit ZstdStream(io::ReadFile file)
      : PackedStream(std::move(file), "Zstandard"), d_(::ZSTD_createDCtx()) {
    if (d_ == nullptr) throw std::bad_alloc();
    ::ZSTD_DCtx_setParameter(d_, ZSTD_d_windowLogMax, kMostWindowLog);
  }
  ~ZstdStream() override { ::ZSTD_freeDCtx(d_); }

  Result<size_t> read(std::span<char> out) override {
    for (;;) {
      // What was unpacked may wait inside although all input is used up.
      if (!waiting_) {
        PLIMSOLL_ASSIGN(const bool more, refill());
        if (!more) {
          if (inside_) return cut_off();
          return size_t{0};
        }
      }
      const std::string_view in = unread();
      ZSTD_inBuffer input = {in.data(), in.size(), 0};
      ZSTD_outBuffer output = {out.data(), out.size(), 0};
      const size_t left = ::ZSTD_decompressStream(d_, &output, &input);
      consume(input.pos);
      if (::ZSTD_getErrorCode(left) == ZSTD_error_frameParameter_windowTooLarge) return window_too_large();
      if (::ZSTD_isError(left)) return broken(::ZSTD_getErrorName(left));
      inside_ = left != 0;
      waiting_ = inside_ && output.pos == output.size;
      if (output.pos > 0) return output.pos;
    }
  }

 private:
  [[nodiscard]] Error window_too_large() const {
    return Error{ErrorCode::kBadData,
                 "the Zstandard data needs a larger window than 128 MiB, windows up to that are read", path(),
                 "repack it without --long (or with --long=27): zstd -dc --long=31 FILE | zstd -o OTHER"};
  }

  ZSTD_DCtx* d_;
  bool inside_ = false;
  bool waiting_ = false;
};

struct Magic {
  std::string_view bytes;
  std::string_view name;
};
using namespace std::string_view_literals;
constexpr Magic kUnread[] = {
    {"\xFD"
     "7zXZ\0"sv,
     "xz"},
    {"PK\x03\x04"sv, "zip"},
    {"7z\xBC\xAF\x27\x1C"sv, "7z"},
    {"\x04\x22\x4D\x18"sv, "LZ4"},
    {"PAR1"sv, "Parquet"},
    {"\x93NUMPY"sv, ".npy"},
    {"ARROW1"sv, "Arrow"},
};

bool is_bzip2(std::string_view start) {
  return start.size() >= 10 && start.starts_with("BZh") && start.substr(4, 6) == "\x31\x41\x59\x26\x53\x59";
}

bool looks_like_text(std::string_view start) {
  const size_t valid = tokenizers::valid_utf8_prefix(start);
  const bool cut = start.size() == kStartBytes;  // perhaps within a character
  return start.find('\0') == start.npos && (valid == start.size() || (cut && valid + 4 > start.size()));
}

bool named_as_packed(std::string_view path) { return path.ends_with(".gz") || path.ends_with(".zst"); }

/// Of what begins as neither gzip nor Zstandard.
Status check_plain(std::string_view start, const std::string& path) {
  if (start.starts_with("version https://git-lfs"))
    return Error{ErrorCode::kBadData, "this is a Git-LFS pointer, not the file it stands for", path,
                 "fetch the content: git lfs pull"};
  std::string_view format = is_bzip2(start) ? "bzip2"sv : ""sv;
  for (const Magic& magic : kUnread)
    if (start.starts_with(magic.bytes)) format = magic.name;
  if (!format.empty())
    return Error{ErrorCode::kBadData, fmt::format("this is a {} file, which is not read as text", format),
                 path, "give text or JSON lines, plain or packed by gzip or zstd"};
  if (named_as_packed(path) && !looks_like_text(start))
    return Error{ErrorCode::kBadData, "the file is packed by its name, but does not begin as such data", path,
                 "make or download the file again"};
  return Ok{};
}

}  // namespace

Result<size_t> InputStream::read_file(std::span<char> out) {
  const int64_t offset = bytes_read();
  const auto count = std::min(static_cast<int64_t>(out.size()), file_.size_bytes() - offset);
  PLIMSOLL_TRY(file_.read_at(offset, std::as_writable_bytes(out.first(static_cast<size_t>(count)))));
  offset_ += count;
  return static_cast<size_t>(count);
}

Result<std::unique_ptr<InputStream>> InputStream::open(const std::string& path) {
  PLIMSOLL_ASSIGN(io::ReadFile file, io::ReadFile::open(path));
  char bytes[kStartBytes];
  const auto size = static_cast<size_t>(std::min<int64_t>(sizeof bytes, file.size_bytes()));
  PLIMSOLL_TRY(file.read_at(0, std::as_writable_bytes(std::span(bytes, size))));
  const std::string_view start(bytes, size);
  if (start.starts_with("\x1f\x8b\x08")) return std::unique_ptr<InputStream>(new GzipStream(std::move(file)));
  const bool skippable = size >= 4 && (bytes[0] & 0xf0) == 0x50 && start.substr(1, 3) == "\x2A\x4D\x18";
  if (start.starts_with("\x28\xB5\x2F\xFD") || skippable)
    return std::unique_ptr<InputStream>(new ZstdStream(std::move(file)));
  PLIMSOLL_TRY(check_plain(start, path));
  return std::unique_ptr<InputStream>(new PlainStream(std::move(file)));
}

}  // namespace plimsoll::corpora
