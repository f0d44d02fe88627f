// The .npy header: a Python dictionary literal of three known keys, read by a small scanner that accepts no
// more.
//   \x93NUMPY | major minor | header bytes (u16, from version 2 u32) | {'descr': '<i4', 'fortran_order':
//   False, …}
// Source: NumPy's "NPY format" (numpy.lib.format).
#include "io/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

namespace plimsoll::io {
namespace {

constexpr int64_t kMaxPrefixBytes = 64 * 1024;
constexpr std::string_view kMagic = "\x93NUMPY";

Error broken_npy(std::string what) {
  return {ErrorCode::kBadData, "npy: " + std::move(what), {}, "write it with numpy.save"};
}

/// The dictionary's scanner: each call skips blanks and consumes what it names, or says that it is not there.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool take(char c) {
    skip();
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool word(std::string_view w) {
    skip();
    if (!text_.starts_with(w)) return false;
    text_.remove_prefix(w.size());
    return true;
  }
  bool quoted(std::string_view& value) {
    skip();
    if (text_.empty() || (text_.front() != '\'' && text_.front() != '"')) return false;
    const size_t end = text_.find(text_.front(), 1);
    if (end == std::string_view::npos) return false;
    value = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return true;
  }
  bool integer(int64_t& value) {
    skip();
    size_t n = 0;
    value = 0;
    while (n < text_.size() && text_[n] >= '0' && text_[n] <= '9') {
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[n] - '0', &value))
        return false;
      ++n;
    }
    text_.remove_prefix(n);
    if (n > 0) word("L");  // Python 2 wrote 3L
    return n > 0;
  }
  bool at_end() {
    skip();
    return text_.empty();
  }

 private:
  void skip() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n' || text_.front() == '\t'))
      text_.remove_prefix(1);
  }
  std::string_view text_;
};

struct Fields {
  std::string_view descr = {};
  int fortran_order = -1;  // -1: not seen
  std::vector<int64_t> shape = {};
  bool has_shape = false;
};

bool read_shape(Scanner& scan, Fields& fields) {
  if (fields.has_shape || !scan.take('(')) return false;
  fields.has_shape = true;
  while (!scan.take(')')) {
    int64_t extent = 0;
    if (fields.shape.size() >= 32 || !scan.integer(extent)) return false;
    fields.shape.push_back(extent);
    if (!scan.take(',')) return scan.take(')');
  }
  return true;
}

bool read_value(Scanner& scan, std::string_view key, Fields& fields) {
  if (key == "descr") return fields.descr.empty() && scan.quoted(fields.descr);
  if (key == "shape") return read_shape(scan, fields);
  if (key != "fortran_order" || fields.fortran_order >= 0) return false;
  fields.fortran_order = scan.word("True") ? 1 : scan.word("False") ? 0 : -1;
  return fields.fortran_order >= 0;
}

Result<Fields> read_fields(std::string_view text) {
  Scanner scan(text);
  Fields fields;
  if (!scan.take('{')) return broken_npy("the header is no dictionary");
  while (!scan.take('}')) {
    std::string_view key;
    if (!scan.quoted(key) || !scan.take(':') || !read_value(scan, key, fields))
      return broken_npy("the header is not one of a plain array");
    if (!scan.take(',')) {
      if (!scan.take('}')) return broken_npy("the header's dictionary does not end");
      break;
    }
  }
  if (!scan.at_end()) return broken_npy("something follows the header's dictionary");
  if (fields.descr.empty() || fields.fortran_order < 0 || !fields.has_shape)
    return broken_npy("the header lacks descr, fortran_order or shape");
  return fields;
}

Status set_element(std::string_view descr, NpyHeader& header) {
  const auto refused = [&] {
    return Error{ErrorCode::kBadData,
                 fmt::format("npy: elements of type '{}' are no token ids", descr.substr(0, 20)),
                 {},
                 "convert the array to an integer type, for example uint16 or int32"};
  };
  if (descr.size() != 3 || (descr[1] != 'i' && descr[1] != 'u')) return refused();
  if (descr[0] != '<' && descr[0] != '>' && descr[0] != '|' && descr[0] != '=') return refused();
  header.element_bytes = descr[2] - '0';
  if (header.element_bytes != 1 && header.element_bytes != 2 && header.element_bytes != 4 &&
      header.element_bytes != 8)
    return refused();
  if (descr[0] == '|' && header.element_bytes != 1) return refused();
  header.is_signed = descr[1] == 'i';
  header.big_endian = descr[0] == '>';
  return Ok{};
}

}  // namespace

Result<NpyHeader> parse_npy_header(std::span<const std::byte> prefix, int64_t file_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(prefix.data()), prefix.size());
  if (text.size() < 10 || !text.starts_with(kMagic)) return broken_npy("this is no .npy file");
  const auto byte = [&](size_t i) { return static_cast<int64_t>(static_cast<unsigned char>(text[i])); };
  const int64_t major = byte(6);
  if (major < 1 || major > 3) return broken_npy(fmt::format("version {} of the format is not known", major));
  const size_t lead = major == 1 ? 10 : 12;
  if (text.size() < lead) return broken_npy("the file breaks off in its header");
  int64_t header_bytes = byte(8) | byte(9) << 8;
  if (major > 1) header_bytes |= byte(10) << 16 | byte(11) << 24;
  if (header_bytes > static_cast<int64_t>(text.size() - lead))
    return broken_npy(header_bytes > kMaxPrefixBytes - 12 ? "the header is too large"
                                                          : "the file breaks off in its header");
  PLIMSOLL_ASSIGN(const Fields fields, read_fields(text.substr(lead, static_cast<size_t>(header_bytes))));

  NpyHeader header;
  header.data_offset = static_cast<int64_t>(lead) + header_bytes;
  PLIMSOLL_TRY(set_element(fields.descr, header));
  if (fields.fortran_order == 1)
    return broken_npy("the array is in Fortran order; save numpy.ascontiguousarray of it");
  if (fields.shape.size() != 1 && fields.shape.size() != 2)
    return broken_npy(fmt::format("the array has {} dimensions, tokens have 1 or 2", fields.shape.size()));
  header.rank = static_cast<int>(fields.shape.size());
  header.rows = header.rank == 2 ? fields.shape[0] : 1;
  header.columns = fields.shape.back();
  int64_t bytes = 0;
  if (__builtin_mul_overflow(header.rows, header.columns, &bytes) ||
      __builtin_mul_overflow(bytes, header.element_bytes, &bytes) || bytes > file_bytes - header.data_offset)
    return broken_npy(fmt::format("the file holds {} bytes of data, fewer than its header says",
                                  file_bytes - header.data_offset));
  return header;
}

Result<NpyHeader> read_npy_header(const ReadFile& file) {
  std::vector<std::byte> prefix(static_cast<size_t>(std::min(file.size_bytes(), kMaxPrefixBytes)));
  PLIMSOLL_TRY(file.read_at(0, prefix));
  auto header = parse_npy_header(prefix, file.size_bytes());
  if (!header) return std::move(header).error().at(file.path());
  return header;
}

}  // namespace plimsoll::io
