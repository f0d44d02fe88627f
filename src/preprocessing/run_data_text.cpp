// Numbers and paths, each behind its length, since a path may hold any byte.
#include "preprocessing/run_data_text.h"

#include <fmt/format.h>

#include <cstdint>

namespace plimsoll::train {
namespace {

void put(std::string& text, std::string_view part) { text += fmt::format("{}:{}", part.size(), part); }

std::string take(std::string_view& text) {
  const size_t colon = text.find(':');
  const auto size = static_cast<size_t>(std::stoull(std::string(text.substr(0, colon))));
  std::string part(text.substr(colon + 1, size));
  text.remove_prefix(colon + 1 + size);
  return part;
}

void put(std::string& text, const std::vector<DataFiles>& sources) {
  put(text, std::to_string(sources.size()));
  for (const DataFiles& files : sources) {
    put(text, fmt::format("{}", files.weight));
    put(text, std::to_string(files.paths.size()));
    for (const std::string& path : files.paths) put(text, path);
  }
}

std::vector<DataFiles> take_sources(std::string_view& text) {
  std::vector<DataFiles> sources(std::stoull(take(text)));
  for (DataFiles& files : sources) {
    files.weight = std::stod(take(text));
    files.paths.resize(std::stoull(take(text)));
    for (std::string& path : files.paths) path = take(text);
  }
  return sources;
}

void put(std::string& text, const Buckets& buckets) {
  put(text, std::to_string(buckets.lengths.size()));
  for (const int64_t length : buckets.lengths) put(text, std::to_string(length));
  for (const int64_t count : {buckets.sequences, buckets.tokens, buckets.positions})
    put(text, std::to_string(count));
}

Buckets take_buckets(std::string_view& text) {
  Buckets buckets;
  buckets.lengths.resize(std::stoull(take(text)));
  for (int64_t& length : buckets.lengths) length = std::stoll(take(text));
  for (int64_t* count : {&buckets.sequences, &buckets.tokens, &buckets.positions})
    *count = std::stoll(take(text));
  return buckets;
}

void put(std::string& text, const std::optional<Labels>& labels) {
  put(text, std::to_string(labels ? labels->names.size() : 0));
  if (!labels) return;
  put(text, name(labels->problem));
  for (const std::string& label : labels->names) put(text, label);
}

std::optional<Labels> take_labels(std::string_view& text) {
  Labels labels;
  labels.names.resize(std::stoull(take(text)));
  if (labels.names.empty()) return std::nullopt;
  labels.problem = parse_problem_type(take(text)).value_or(ProblemType::kSingleLabel);
  for (std::string& label : labels.names) label = take(text);
  return labels;
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
  put(text, std::to_string(data.num_eval));
  return text;
}

RunData run_data_of(std::string_view text) {
  RunData data;
  data.train = take_sources(text);
  data.eval = take_sources(text);
  data.eval_names.resize(std::stoull(take(text)));
  for (std::string& name : data.eval_names) name = take(text);
  data.buckets = take_buckets(text);
  data.labels = take_labels(text);
  data.num_eval = std::stoll(take(text));
  return data;
}

}  // namespace plimsoll::train
