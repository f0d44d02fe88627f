// A CSV reader for cases: plain commas, no quoting, so that a message can name line and column exactly.
#include "memory/cases.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <unordered_set>

namespace plimsoll::memory {

namespace {

enum Column : size_t { kId, kLower, kUpper, kSize, kAlignment, kNumColumns };
constexpr std::array<std::string_view, kNumColumns> kNames{"id", "lower", "upper", "size", "alignment"};
constexpr size_t kAbsent = static_cast<size_t>(-1);

std::string_view trim(std::string_view s) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!s.empty() && blank(s.front())) s.remove_prefix(1);
  while (!s.empty() && blank(s.back())) s.remove_suffix(1);
  return s;
}

/// Splits a line at its commas into `cells`.
void split(std::string_view line, std::vector<std::string_view>& cells) {
  cells.clear();
  for (size_t at = 0;;) {
    const size_t comma = line.find(',', at);
    cells.push_back(trim(line.substr(at, comma - at)));
    if (comma == std::string_view::npos) return;
    at = comma + 1;
  }
}

class Parser {
 public:
  explicit Parser(std::string name) : name_(std::move(name)) {}

  Status header(std::string_view line) {
    if (line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
    split(line, cells_);
    at_.fill(kAbsent);
    for (size_t c = 0; c < cells_.size(); ++c)
      for (size_t k = 0; k < kNumColumns; ++k) {
        if (cells_[c] != kNames[k]) continue;
        if (at_[k] != kAbsent) return error(fmt::format("column '{}' appears twice", kNames[k]), k);
        at_[k] = c;
      }
    for (size_t k = 0; k < kAlignment; ++k)
      if (at_[k] == kAbsent) return error(fmt::format("column '{}' is missing", kNames[k]), k);
    width_ = cells_.size();
    return Ok{};
  }

  Status row(std::string_view line) {
    split(line, cells_);
    if (cells_.size() != width_)
      return error(fmt::format("{} cells where the header has {}", cells_.size(), width_), kNumColumns);
    Buffer b;
    PLIMSOLL_ASSIGN(b.lower, number(kLower));
    PLIMSOLL_ASSIGN(b.upper, number(kUpper));
    PLIMSOLL_ASSIGN(b.size, number(kSize));
    if (at_[kAlignment] != kAbsent) PLIMSOLL_TRY(alignment(b));
    if (b.lower >= b.upper)
      return error(fmt::format("lower {} is not below upper {}", b.lower, b.upper), kUpper);
    if (b.size > kMaxTotalBytes - total_ || b.alignment > kMaxTotalBytes - total_ - b.size)
      return error(fmt::format("sizes add up to more than {}", kMaxTotalBytes), kSize);
    total_ += b.size + b.alignment - 1;
    const std::string_view id = cells_[at_[kId]];
    if (id.empty()) return error("empty", kId);
    if (!seen_.emplace(id).second) return error(fmt::format("'{}' appears twice", id), kId);
    result.ids.emplace_back(id);
    result.buffers.push_back(b);
    return Ok{};
  }

  void next_line() { ++line_; }

  OffsetCase result;

 private:
  Error error(std::string what, size_t column) const {
    std::string where = fmt::format("{}: line {}", name_, line_);
    if (column < kNumColumns) where += fmt::format(", column {}", kNames[column]);
    return Error{.code = ErrorCode::kBadData,
                 .what = std::move(what),
                 .where = std::move(where),
                 .hint = "a case is CSV with the columns id,lower,upper,size"};
  }

  Result<int64_t> number(size_t column) const {
    const std::string_view cell = cells_[at_[column]];
    int64_t value = 0;
    const auto [end, code] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (code == std::errc::result_out_of_range)
      return error(fmt::format("'{}' is out of range", cell), column);
    if (code != std::errc{} || end != cell.data() + cell.size())
      return error(fmt::format("'{}' is not an integer", cell), column);
    if (value < 0) return error(fmt::format("{} is negative", value), column);
    return value;
  }

  Status alignment(Buffer& b) {
    PLIMSOLL_ASSIGN(b.alignment, number(kAlignment));
    if (b.alignment == 0) return error("0 is not an alignment", kAlignment);
    return Ok{};
  }

  std::string name_;
  int64_t line_ = 0;
  size_t width_ = 0;
  int64_t total_ = 0;
  std::array<size_t, kNumColumns> at_{};
  std::vector<std::string_view> cells_;
  std::unordered_set<std::string_view> seen_;  // views into the text
};

/// N of a name "….N.csv".
std::optional<int64_t> capacity_of(std::string_view name) {
  if (!name.ends_with(".csv")) return std::nullopt;
  name.remove_suffix(4);
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view digits = name.substr(dot + 1);
  int64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc{} || end != digits.data() + digits.size() || value < 0) return std::nullopt;
  return value;
}

constexpr uintmax_t kMaxCaseBytes = uintmax_t{256} << 20;

/// A case is read whole; pipes, devices and what is far too large for one are refused before.
Result<std::string> read_text(const std::string& path) {
  const auto failed = [&] {
    return Error{.code = ErrorCode::kIo,
                 .what = std::string("cannot read: ") + std::strerror(errno),
                 .where = path,
                 .hint = "check the path and its permissions"};
  };
  const auto no_case = [&](const std::string& what) {
    return Error{ErrorCode::kBadData, what, path, "a case is CSV with the columns id,lower,upper,size"};
  };
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    return no_case("not a regular file");
  if (const uintmax_t bytes = std::filesystem::file_size(path, error); !error && bytes > kMaxCaseBytes)
    return no_case("the file has " + std::to_string(bytes) + " bytes, more than the " +
                   std::to_string(kMaxCaseBytes) + " allowed");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) return failed();
  std::string text;
  std::array<char, 65536> chunk;
  while (const size_t got = std::fread(chunk.data(), 1, chunk.size(), file.get()))
    text.append(chunk.data(), got);
  if (std::ferror(file.get())) return failed();
  return text;
}

}  // namespace

Result<OffsetCase> parse_case(std::string_view text, const std::string& name) {
  Parser parser(name);
  bool has_header = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    parser.next_line();
    if (trim(line).empty()) continue;
    PLIMSOLL_TRY(has_header ? parser.row(line) : parser.header(line));
    has_header = true;
  }
  if (!has_header)
    return Error{.code = ErrorCode::kBadData,
                 .what = "empty, a header line was expected",
                 .where = name + ": line 1",
                 .hint = "a case is CSV with the columns id,lower,upper,size"};
  parser.result.capacity = capacity_of(name);
  return std::move(parser.result);
}

Result<OffsetCase> read_case(const std::string& path) {
  PLIMSOLL_ASSIGN(const std::string text, read_text(path));
  return parse_case(text, path);
}

OffsetOptions case_options() { return {.max_nodes = 2'500'000, .num_threads = 2}; }

Result<CaseReport> run_case(const std::string& path, OffsetOptions options) {
  PLIMSOLL_ASSIGN(const OffsetCase input, read_case(path));
  if (!options.capacity) options.capacity = input.capacity;
  const auto start = std::chrono::steady_clock::now();
  const Placement placement = assign_offsets(input.buffers, options);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return CaseReport{.file = path,
                    .buffers = static_cast<int64_t>(input.buffers.size()),
                    .lower_bound = placement.lower_bound,
                    .height = placement.height,
                    .seconds = elapsed.count(),
                    .optimal = placement.optimal,
                    .capacity = options.capacity,
                    .method = placement.method};
}

}  // namespace plimsoll::memory
