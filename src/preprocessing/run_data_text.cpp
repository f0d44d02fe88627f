// Numbers and paths, each behind its length, since a path may hold any byte.
#include "preprocessing/run_data_text.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/numbers.h"

namespace plimsoll::preprocessing {
namespace {

void put(std::string& text, std::string_view part) { text += fmt::format("{}:{}", part.size(), part); }

/// Takes part after part; behind the first that is none of ours it takes nothing any more, and has failed.
class Parts {
 public:
  explicit Parts(std::string_view text) : text_(text) {}

  std::string text() {
    const size_t colon = text_.find(':');
    const auto size = number_of<size_t>(text_.substr(0, colon));
    if (colon == text_.npos || !size || *size > text_.size() - colon - 1) return fail();
    std::string part(text_.substr(colon + 1, *size));
    text_.remove_prefix(colon + 1 + *size);
    return part;
  }
  template <typename Number>
  Number number() {
    const auto number = number_of<Number>(text());
    if (!number) fail();
    return number.value_or(Number{});
  }
  /// Of parts that follow: none of them is without a byte.
  size_t count() {
    const auto count = number<size_t>();
    if (count <= text_.size()) return count;
    fail();
    return 0;
  }
  [[nodiscard]] bool ended_well() const { return !failed_ && text_.empty(); }

 private:
  std::string fail() {
    failed_ = true;
    text_ = {};
    return {};
  }
  std::string_view text_;
  bool failed_ = false;
};

void put(std::string& text, const std::vector<datasets::DataFiles>& sources) {
  put(text, std::to_string(sources.size()));
  for (const datasets::DataFiles& files : sources) {
    put(text, fmt::format("{}", files.weight));
    put(text, std::to_string(files.paths.size()));
    for (const std::string& path : files.paths) put(text, path);
  }
}

std::vector<datasets::DataFiles> take_sources(Parts& parts) {
  std::vector<datasets::DataFiles> sources(parts.count());
  for (datasets::DataFiles& files : sources) {
    files.weight = parts.number<double>();
    files.paths.resize(parts.count());
    for (std::string& path : files.paths) path = parts.text();
  }
  return sources;
}

void put(std::string& text, const Buckets& buckets) {
  put(text, std::to_string(buckets.lengths.size()));
  for (const int64_t length : buckets.lengths) put(text, std::to_string(length));
  for (const int64_t count : {buckets.sequences, buckets.tokens, buckets.positions})
    put(text, std::to_string(count));
}

Buckets take_buckets(Parts& parts) {
  Buckets buckets;
  buckets.lengths.resize(parts.count());
  for (int64_t& length : buckets.lengths) length = parts.number<int64_t>();
  for (int64_t* count : {&buckets.sequences, &buckets.tokens, &buckets.positions})
    *count = parts.number<int64_t>();
  return buckets;
}

void put(std::string& text, const std::optional<io::Labels>& labels) {
  put(text, std::to_string(labels ? labels->names.size() : 0));
  if (!labels) return;
  put(text, io::name(labels->problem));
  for (const std::string& label : labels->names) put(text, label);
}

std::optional<io::Labels> take_labels(Parts& parts) {
  io::Labels labels;
  labels.names.resize(parts.count());
  if (labels.names.empty()) return std::nullopt;
  labels.problem = io::parse_problem_type(parts.text()).value_or(io::ProblemType::kSingleLabel);
  for (std::string& label : labels.names) label = parts.text();
  return labels;
}

void put(std::string& text, const datasets::TokenKinds* kinds) {
  put(text, std::to_string(kinds != nullptr ? kinds->mask_token : -1));
  put(text, kinds != nullptr ? kinds->kinds : std::string());
}

std::shared_ptr<const datasets::TokenKinds> take_token_kinds(Parts& parts) {
  datasets::TokenKinds kinds;
  kinds.mask_token = parts.number<int32_t>();
  kinds.kinds = parts.text();
  if (kinds.mask_token < 0) return nullptr;
  return std::make_shared<const datasets::TokenKinds>(std::move(kinds));
}

}  // namespace

std::string run_data_text(const RunData& data) {
  std::string text;
  put(text, data.train);
  put(text, data.eval);
  put(text, std::to_string(data.eval_names.size()));
  for (const std::string& name : data.eval_names) put(text, name);
  put(text, data.buckets);
  put(text, data.labels);
  put(text, data.token_kinds.get());
  put(text, std::to_string(data.num_eval));
  put(text, std::to_string(data.reading_bytes));
  return text;
}

Result<RunData> run_data_of(std::string_view text) {
  Parts parts(text);
  RunData data;
  data.train = take_sources(parts);
  data.eval = take_sources(parts);
  data.eval_names.resize(parts.count());
  for (std::string& name : data.eval_names) name = parts.text();
  data.buckets = take_buckets(parts);
  data.labels = take_labels(parts);
  data.token_kinds = take_token_kinds(parts);
  data.num_eval = parts.number<int64_t>();
  data.reading_bytes = parts.number<int64_t>();
  if (!parts.ended_well())
    return Error{ErrorCode::kIo, "the process that prepares the data returned no result", {}, "run again"};
  return data;
}

}  // namespace plimsoll::preprocessing
