// Sequences over a list of files. A stream's sequence may lie across files; a row never does.
#include "datasets/dataset.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/units.h"

namespace plimsoll::datasets {
namespace {

constexpr int64_t kCheckedTokens = int64_t{1} << 24;  // at the start: about 30 ms of reading
constexpr int64_t kMaxScratchBytes = int64_t{1} << 20;

Status check_rows(const TokenSource& source, const DatasetOptions& options) {
  if (!source.has_rows() || source.row_tokens() == options.sequence_length) return Ok{};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("data.sequence_length is {}, but the rows have {} tokens", options.sequence_length,
                           source.row_tokens()),
               source.path(), fmt::format("set data.sequence_length={}", source.row_tokens())};
}

}  // namespace

Dataset::Dataset(std::vector<TokenSource> sources, std::vector<int64_t> starts, DatasetOptions options)
    : sources_(std::move(sources)), starts_(std::move(starts)), options_(std::move(options)) {
  num_sequences_ = num_tokens() / options_.sequence_length;
  // A tail of one token has no target.
  if (options_.keep_tail && num_tokens() % options_.sequence_length > 1) ++num_sequences_;
  if (options_.max_sequences > 0) num_sequences_ = std::min(num_sequences_, options_.max_sequences);
}

Result<Dataset> Dataset::open(std::span<const std::string> paths, const DatasetOptions& options) {
  PLIMSOLL_CHECK(options.sequence_length > 0 && options.vocab_size > 0,
                 "a dataset without sequences or vocabulary");
  if (paths.empty())
    return Error{ErrorCode::kInvalidArgument,
                 options.setting + " names no file",
                 {},
                 "set it to a .npy, .bin or .txt file, a list or a glob"};
  std::vector<TokenSource> sources;
  std::vector<int64_t> starts = {0};
  for (const std::string& pattern : paths) {
    auto files = io::expand_glob(pattern);
    if (!files) return std::move(files).error().at(options.setting);
    for (const std::string& path : *files) {
      auto source = TokenSource::open(path, options.vocab_size);
      if (!source) return std::move(source).error().at(options.setting);
      PLIMSOLL_TRY(check_rows(*source, options));
      if (!sources.empty() && sources.front().has_rows() != source->has_rows())
        return Error{ErrorCode::kInvalidArgument, options.setting + " mixes 2-D arrays with streams", path,
                     "use one kind of file"};
      starts.push_back(starts.back() + source->num_tokens());
      sources.push_back(std::move(*source));
    }
  }
  Dataset dataset(std::move(sources), std::move(starts), options);
  if (dataset.num_sequences() == 0)
    return Error{ErrorCode::kBadData,
                 fmt::format("{} has {} tokens, fewer than {}", options.setting, dataset.num_tokens(),
                             options.keep_tail ? "the two that make a target"
                                               : fmt::format("one sequence of {}", options.sequence_length)),
                 dataset.sources_.front().path(), "add data or lower data.sequence_length"};
  PLIMSOLL_TRY(dataset.check_first_ids());
  return dataset;
}

Status Dataset::check_first_ids() const {
  std::vector<int32_t> tokens(8192);
  std::vector<std::byte> scratch(tokens.size() * sizeof(int64_t));
  const int64_t end = std::min(num_tokens(), kCheckedTokens);
  for (int64_t begin = 0; begin < end; begin += static_cast<int64_t>(tokens.size())) {
    const auto count =
        static_cast<size_t>(std::min<int64_t>(end - begin, static_cast<int64_t>(tokens.size())));
    PLIMSOLL_TRY(read_stream(begin, std::span(tokens).first(count), scratch));
  }
  return Ok{};
}

Status Dataset::keep_within(int64_t& room) {
  for (TokenSource& source : sources_) PLIMSOLL_TRY(source.keep_within(room));
  return Ok{};
}

int64_t Dataset::sequence_tokens(int64_t index) const {
  PLIMSOLL_CHECK(index >= 0 && index < num_sequences_, "a sequence outside of the data");
  return std::min(options_.sequence_length, num_tokens() - index * options_.sequence_length);
}

int64_t Dataset::scratch_bytes() const {
  int widest = 1;
  for (const TokenSource& source : sources_) widest = std::max(widest, source.element_bytes());
  // sequence_length is at most 2^31 (a setting's bound), so the product is far from overflow.
  return std::min(round_up(options_.sequence_length * widest, 64), kMaxScratchBytes);
}

Status Dataset::read_sequence(int64_t index, std::span<int32_t> tokens, std::span<std::byte> scratch) const {
  const auto valid = static_cast<size_t>(sequence_tokens(index));
  PLIMSOLL_CHECK(static_cast<int64_t>(tokens.size()) <= options_.sequence_length && tokens.size() >= valid,
                 "a buffer of another length");
  PLIMSOLL_TRY(read_stream(index * options_.sequence_length, tokens.first(valid), scratch));
  std::fill(tokens.begin() + static_cast<std::ptrdiff_t>(valid), tokens.end(), 0);
  return Ok{};
}

Status Dataset::read_stream(int64_t begin, std::span<int32_t> out, std::span<std::byte> scratch) const {
  auto source =
      static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), begin) - starts_.begin()) - 1;
  while (!out.empty()) {
    const auto count =
        static_cast<size_t>(std::min<int64_t>(starts_[source + 1] - begin, static_cast<int64_t>(out.size())));
    PLIMSOLL_TRY(sources_[source].read(begin - starts_[source], out.first(count), scratch));
    out = out.subspan(count);
    begin += static_cast<int64_t>(count);
    ++source;
  }
  return Ok{};
}

}  // namespace plimsoll::datasets
