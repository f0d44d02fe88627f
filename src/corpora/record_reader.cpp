// A block of the file at a time. What a record needs is appended to the caller's bytes, so that a batch of
// them is one piece of memory.
#include "corpora/record_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "base/units.h"
#include "corpora/column_stream.h"
#include "corpora/reasons.h"
#include "corpora/saved_dataset.h"

namespace plimsoll::corpora {
namespace {

constexpr size_t kBlockBytes = size_t{256} << 10;
constexpr size_t kGrowBytes = size_t{8} << 20;

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// The name without what says how the file is packed, in lower case.
std::string unpacked_name(const std::string& path) {
  std::string name = lower_case(path);
  for (const std::string_view suffix : {".gz", ".gzip", ".zst", ".zstd"})
    if (name.ends_with(suffix)) return name.substr(0, name.size() - suffix.size());
  return name;
}

/// `name` without what packs it.
bool is_csv(std::string_view name) { return name.ends_with(".csv") || name.ends_with(".tsv"); }

Result<std::unique_ptr<InputStream>> open_stream(const std::string& path, const std::string& text_key) {
  return has_columns_by_name(path) ? open_columns(path, text_key) : InputStream::open(path);
}

}  // namespace

bool has_rows_by_name(const std::string& path) {
  const std::string name = unpacked_name(path);
  return is_csv(name) || has_columns_by_name(path) || name.ends_with(".jsonl") || name.ends_with(".ndjson") ||
         name.ends_with(".json");
}

Error interrupted() {
  return {ErrorCode::kInterrupted, "stopped by a signal, nothing was written", {}, "run it again"};
}

RecordReader::RecordReader(std::vector<std::string> files, int64_t total_bytes, const ReaderOptions& options)
    : files_(std::move(files)),
      total_bytes_(total_bytes),
      options_(options),
      block_(std::make_unique_for_overwrite<char[]>(kBlockBytes)) {}

RecordReader::~RecordReader() = default;

Result<std::unique_ptr<RecordReader>> RecordReader::open(std::span<const std::string> paths,
                                                         const ReaderOptions& options) {
  std::vector<std::string> files;
  int64_t total_bytes = 0;
  for (const std::string& path : paths) {
    PLIMSOLL_ASSIGN(const std::vector<std::string> expanded, expand_data(path));
    for (const std::string& file : expanded) {
      PLIMSOLL_ASSIGN(const io::ReadFile probe, io::ReadFile::open(file));
      total_bytes += probe.size_bytes();
      if (options.on_error == OnError::kFail) PLIMSOLL_TRY(open_stream(file, options.text_key));
      files.push_back(file);
    }
  }
  if (files.empty())
    return Error{ErrorCode::kInvalidArgument, "no input file is given", {}, "name at least one"};
  return std::unique_ptr<RecordReader>(new RecordReader(std::move(files), total_bytes, options));
}

std::string RecordReader::where(int64_t line) const { return place_of(files_[next_file_ - 1], line); }

Error RecordReader::bad(std::string_view reason, std::string what) {
  reason_ = reason;
  return Error{ErrorCode::kBadData, std::move(what), where(line_), kSkipHint};
}

Error RecordReader::too_long(std::string_view what) {
  return bad(reason::kTooLong, fmt::format("{} than {}", what, to_string(Bytes(options_.max_record_bytes))));
}

/// Ok where the failure may be passed over; it is then counted.
Status RecordReader::pass_over(Error error, std::string_view reason) {
  if (options_.on_error == OnError::kFail || error.code != ErrorCode::kBadData) return error;
  skipped_.add(reason);
  return Ok{};
}

Status RecordReader::begin_file() {
  const std::string& path = files_[next_file_++];
  line_ = num_records_ = text_bytes_ = 0;
  unpacked_bytes_ = 0;
  at_ = end_ = 0;
  is_open_text_ = false;
  carry_.clear();
  reason_ = reason::kDamaged;
  PLIMSOLL_ASSIGN(stream_, open_stream(path, options_.text_key));
  const std::string name = unpacked_name(path);
  mode_ = is_csv(name) ? Mode::kCsv : has_rows_by_name(path) ? Mode::kLines : Mode::kText;
  if (mode_ == Mode::kText) return Ok{};
  is_member_ = false;
  const size_t least = options_.list_member.empty() ? 3 : kListMemberWithin;
  for (size_t count = 1; count > 0 && end_ < least; end_ += count) {
    PLIMSOLL_ASSIGN(count, stream_->read({block_.get() + end_, kBlockBytes - end_}));
  }
  note_read(end_);
  if (unread().starts_with("\xEF\xBB\xBF")) at_ = 3;
  if (unread().starts_with("\xFF\xFE") || unread().starts_with("\xFE\xFF")) {
    const bool is_json = mode_ == Mode::kLines;
    Error error = bad(is_json ? reason::kNotJson : reason::kNotCsv,
                      fmt::format("the file is in UTF-16, {} UTF-8", is_json ? "JSON lines are" : "CSV is"));
    error.hint = "convert it: iconv -f UTF-16 -t UTF-8";
    return error;
  }
  if (mode_ == Mode::kCsv) {
    csv_.emplace(name.ends_with(".tsv") ? '\t' : ',');
    columns_.clear();
    line_ = 1;
  }
  if (!name.ends_with(".json")) return Ok{};
  PLIMSOLL_ASSIGN(const bool more, skip_blanks());
  if (more && block_[at_] == '[') {
    mode_ = Mode::kList;
    ++at_;
    line_ = std::max<int64_t>(line_, 1);
  } else if (more && !options_.list_member.empty() && begin_list_member()) {
    mode_ = Mode::kList;
    is_member_ = true;
  }
  return Ok{};
}

void RecordReader::end_file() {
  if (stream_) bytes_of_files_done_ += stream_->size_bytes();
  bytes_read_.store(bytes_of_files_done_, std::memory_order_relaxed);
  stream_.reset();
}

/// Whether there is an unread byte.
Result<bool> RecordReader::fill() {
  if (at_ < end_) return true;
  if (stop_ && stop_()) return interrupted();
  at_ = end_ = 0;
  PLIMSOLL_ASSIGN(end_, stream_->read({block_.get(), kBlockBytes}));
  note_read(end_);
  return end_ > 0;
}

void RecordReader::note_read(size_t unpacked) {
  unpacked_bytes_ += static_cast<int64_t>(unpacked);
  bytes_read_.store(bytes_of_files_done_ + stream_->bytes_read(), std::memory_order_relaxed);
}

int64_t RecordReader::bytes_of_records() const {
  if (!stream_ || unpacked_bytes_ == 0) return bytes_read();
  const double share = 1 - static_cast<double>(unread().size()) / static_cast<double>(unpacked_bytes_);
  return bytes_of_files_done_ + static_cast<int64_t>(share * static_cast<double>(stream_->bytes_read()));
}

Result<bool> RecordReader::next(std::string& bytes, Record& record) {
  for (;;) {
    if (!stream_ && next_file_ == files_.size()) return false;
    const size_t begin = bytes.size();
    Result<Step> stepped = Step::kAgain;
    if (stream_)
      stepped = step(bytes, record);
    else if (Status begun = begin_file(); !begun)
      stepped = std::move(begun).error();
    if (stepped && *stepped == Step::kAgain) continue;
    if (stepped && *stepped == Step::kRecord) {
      record.begin = begin;
      record.size = bytes.size() - begin;
      record.is_json = mode_ != Mode::kText;
      record.file = static_cast<uint32_t>(next_file_ - 1);
      record.byte = mode_ == Mode::kText ? text_bytes_ + 1 : mode_ == Mode::kLines ? 1 : 0;
      text_bytes_ += static_cast<int64_t>(record.size);
      ++num_records_;
      return true;
    }
    bytes.resize(begin);
    if (!stepped) PLIMSOLL_TRY(pass_over(std::move(stepped).error(), reason_));
    end_file();
    if (!is_open_text_) continue;
    // A text of which pieces are out already ends here.
    record = {.begin = begin, .first = false, .file = static_cast<uint32_t>(next_file_ - 1)};
    is_open_text_ = false;
    return true;
  }
}

Result<RecordReader::Step> RecordReader::step(std::string& bytes, Record& record) {
  reason_ = reason::kDamaged;
  switch (mode_) {
    case Mode::kText:
      return next_piece(bytes, record);
    case Mode::kLines:
      return next_line(bytes, record);
    case Mode::kList:
      return next_element(bytes, record);
    case Mode::kCsv:
      return next_row(bytes, record);
  }
  return Step::kEnd;
}

Result<RecordReader::Step> RecordReader::end_of_records() {
  if (num_records_ > 0) return Step::kEnd;
  line_ = 0;
  return bad(reason::kEmptyFile,
             stream_->size_bytes() == 0 ? "the file is empty" : "the file has no content");
}

/// False, and nothing of the record is kept, where it would become too long.
bool RecordReader::append_within_limit(std::string& bytes, size_t begin, std::string_view more) const {
  const size_t size = bytes.size() + more.size();
  if (size - begin > static_cast<size_t>(options_.max_record_bytes)) {
    bytes.resize(begin);
    return false;
  }
  // Doubling a large string would take three times its size while it is copied.
  if (size > bytes.capacity() && size > kGrowBytes) bytes.reserve(size + kGrowBytes);
  bytes.append(more);
  return true;
}

Result<RecordReader::Step> RecordReader::next_line(std::string& bytes, Record& record) {
  const size_t begin = bytes.size();
  bool any = false;
  bool fits = true;
  ++line_;
  for (bool ended = false; !ended;) {
    PLIMSOLL_ASSIGN(const bool more, fill());
    if (!more) break;
    any = true;
    const std::string_view rest = unread();
    const size_t found = rest.find('\n');
    ended = found != rest.npos;
    const size_t count = ended ? found : rest.size();
    fits = fits && append_within_limit(bytes, begin, rest.substr(0, count));
    if (!fits && options_.on_error == OnError::kFail) break;
    at_ += count + (ended ? 1 : 0);
  }
  if (!any) return end_of_records();
  record.line = line_;
  if (!fits) {
    ++num_records_;
    PLIMSOLL_TRY(pass_over(too_long("the line is longer"), reason::kTooLong));
    return Step::kAgain;
  }
  while (bytes.size() > begin && is_blank(bytes.back())) bytes.pop_back();
  return bytes.size() > begin ? Step::kRecord : Step::kAgain;
}

Result<RecordReader::Step> RecordReader::next_piece(std::string& bytes, Record& record) {
  const size_t begin = bytes.size();
  const auto most = static_cast<size_t>(options_.max_record_bytes);
  size_t target = options_.cut ? std::min(static_cast<size_t>(options_.piece_bytes), most) : most;
  bytes.append(carry_);
  carry_.clear();
  record.line = 0;
  record.first = !is_open_text_;
  record.continues = false;
  for (;; target = std::min(2 * target, most)) {
    while (bytes.size() - begin <= target) {
      PLIMSOLL_ASSIGN(const bool more, fill());
      if (!more) {
        if (bytes.size() == begin && !is_open_text_) return end_of_records();
        is_open_text_ = false;
        return Step::kRecord;
      }
      const std::string_view part = unread().substr(0, target + 1 - (bytes.size() - begin));
      if (!append_within_limit(bytes, begin, part))
        return too_long("the text has no place to cut it and is longer");
      at_ += part.size();
    }
    const size_t cut = options_.cut ? options_.cut(std::string_view(bytes).substr(begin)) : 0;
    if (cut == 0) continue;
    PLIMSOLL_CHECK(cut <= bytes.size() - begin, "a cut beyond the text");
    carry_.assign(bytes, begin + cut);
    bytes.resize(begin + cut);
    record.continues = is_open_text_ = true;
    return Step::kRecord;
  }
}

}  // namespace plimsoll::corpora
