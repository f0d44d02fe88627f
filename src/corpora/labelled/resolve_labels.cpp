#include "corpora/labelled/resolve_labels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>

namespace plimsoll::corpora {
namespace {

Error contradiction(std::string what, std::string hint) {
  return {ErrorCode::kInvalidArgument, std::move(what), "classification", std::move(hint)};
}

/// How many labels are said to be; 0: nobody says.
Result<int64_t> said_count(const LabelRequest& r) {
  auto count = static_cast<int64_t>(r.names.size());
  if (r.num_labels) {
    if (count > 0 && count != *r.num_labels)
      return contradiction(fmt::format("num_labels is {}, and label_names has {}", *r.num_labels, count),
                           "one of the two suffices");
    count = *r.num_labels;
  }
  const auto own = static_cast<int64_t>(r.config.names.size());
  if (r.whole && count > 0 && count != own)
    return contradiction(fmt::format("the settings have {} labels, the model's head {}", count, own),
                         "leave classification.num_labels and label_names to the model, or begin with a "
                         "model without a classifier's head, which gets a new one");
  return r.whole ? own : count;
}

/// The names that are said; empty where they are to be found, or are default names of a count.
std::vector<std::string> said_names(const LabelRequest& r, int64_t count) {
  if (!r.names.empty()) return r.names;
  const auto own = static_cast<int64_t>(r.config.names.size());
  const bool named = own > 0 && r.config.names != io::default_label_names(own);
  if (r.whole || (named && (count == 0 || count == own))) return r.config.names;
  return {};
}

std::optional<io::ProblemType> said_problem(const LabelRequest& r, int64_t count, bool named) {
  if (r.problem) return r.problem;
  if (r.config.problem) return r.config.problem;
  const bool single = count == 1 || (count == 0 && named && r.config.names.size() == 1);
  return single ? std::optional(io::ProblemType::kRegression) : std::nullopt;
}

io::ProblemType problem_of(const LabelSummary& found) {
  if (found.lists) return found.binary ? io::ProblemType::kMultiLabel : io::ProblemType::kRegression;
  if (found.names && (!found.numbers || found.first == RawLabelKind::kName))
    return io::ProblemType::kSingleLabel;
  return found.numbers ? io::ProblemType::kRegression : io::ProblemType::kSingleLabel;
}

/// How many labels the examples have, for a problem.
int64_t count_of(const LabelSummary& found, io::ProblemType problem) {
  if (problem != io::ProblemType::kSingleLabel) return std::max<int64_t>(1, found.width);
  return static_cast<int64_t>(std::min(std::max(found.largest, 0.0F), static_cast<float>(io::kMaxLabels))) +
         1;
}

/// What is said of the labels must leave something to learn. `count`: 0 where nobody says.
Status check_said(std::optional<io::ProblemType> problem, int64_t count) {
  if (problem != io::ProblemType::kSingleLabel || count != 1) return Ok{};
  return contradiction("there is one label, which leaves nothing to tell apart",
                       "name all labels (classification.label_names, num_labels), or set "
                       "classification.problem_type=regression");
}

Status check_count(int64_t count, io::ProblemType problem, const LabelSummary& found) {
  const bool classes = !found.lists && !found.numbers;  // else check_labels names one that is none
  if (problem == io::ProblemType::kSingleLabel && count < 2 && classes)
    return Error{ErrorCode::kBadData, "all examples have one label, which leaves nothing to tell apart",
                 "classification", "name all labels: classification.label_names, or set num_labels"};
  if (count > io::kMaxLabels)
    return Error{ErrorCode::kBadData, fmt::format("there are more than {} labels", io::kMaxLabels),
                 "classification", "numbers that are no classes: classification.problem_type=regression"};
  return Ok{};
}

}  // namespace

void LabelSummary::add(RawLabelKind kind, std::span<const float> values) {
  ++examples;
  if (!first) first = kind;
  numbers = numbers || kind == RawLabelKind::kNumber;
  names = names || kind == RawLabelKind::kName;
  if (kind == RawLabelKind::kInteger) largest = std::max(largest, values[0]);
  if (kind != RawLabelKind::kList) return;
  lists = true;
  width = static_cast<int64_t>(values.size());
  binary =
      binary && std::all_of(values.begin(), values.end(), [](float v) { return v == 0.0F || v == 1.0F; });
}

Result<LabelSummary> summarize_labels(std::span<const LabelFile* const> files) {
  LabelSummary found;
  for (const LabelFile* file : files) {
    PLIMSOLL_TRY(file->visit([&](const LabelEntry& entry) -> Status {
      found.add(entry.kind, entry.values);
      return Ok{};
    }));
    found.all_names.insert(file->names().begin(), file->names().end());
  }
  return found;
}

Result<EarlyLabels> labels_without_data(const LabelRequest& request) {
  PLIMSOLL_ASSIGN(const int64_t count, said_count(request));
  constexpr int64_t kGuess = 2;
  EarlyLabels early;
  early.labels.names = said_names(request, count);
  const auto problem = said_problem(request, count, !early.labels.names.empty());
  PLIMSOLL_TRY(check_said(problem, count));
  early.certain = problem && !early.labels.names.empty();
  early.labels.problem = problem.value_or(io::ProblemType::kSingleLabel);
  const bool regression = early.labels.problem == io::ProblemType::kRegression;
  if (early.labels.names.empty())
    early.labels.names = io::default_label_names(count > 0 ? count : regression ? 1 : kGuess);
  return early;
}

Result<io::Labels> resolve_labels(const LabelRequest& request, const LabelSummary& found) {
  PLIMSOLL_ASSIGN(const int64_t count, said_count(request));
  io::Labels labels;
  labels.names = said_names(request, count);
  const auto problem = said_problem(request, count, !labels.names.empty());
  PLIMSOLL_TRY(check_said(problem, count));
  labels.problem = problem.value_or(problem_of(found));
  if (labels.names.empty() && found.names && labels.problem == io::ProblemType::kSingleLabel) {
    labels.names.assign(found.all_names.begin(), found.all_names.end());
    const auto have = static_cast<int64_t>(labels.names.size());
    if (count > 0 && count != have)
      return Error{ErrorCode::kBadData,
                   fmt::format("the examples have {} labels ({}), num_labels is {}", have,
                               fmt::join(labels.names.begin(),
                                         labels.names.begin() + std::min<int64_t>(have, 5), ", "),
                               count),
                   "classification", "name them all: classification.label_names"};
  }
  if (labels.names.empty())
    labels.names = io::default_label_names(
        count > 0 ? count : std::min(count_of(found, labels.problem), io::kMaxLabels + 1));
  PLIMSOLL_TRY(check_count(labels.count(), labels.problem, found));
  return labels;
}

Status check_labels(const io::Labels& labels, std::span<const LabelFile* const> files, bool all_occur,
                    const std::string& setting) {
  const bool single = labels.problem == io::ProblemType::kSingleLabel;
  std::vector<float> values(single ? 1 : labels.names.size());
  std::vector<bool> occurs(labels.names.size(), false);
  for (const LabelFile* file : files) {
    const LabelReader reader(labels, *file);
    PLIMSOLL_TRY(file->visit([&](const LabelEntry& entry) -> Status {
      Status read = reader.read(entry, values);
      if (read && single) occurs[static_cast<size_t>(values[0])] = true;
      return read;
    }));
  }
  const auto missing = std::find(occurs.begin(), occurs.end(), false);
  if (!single || !all_occur || missing == occurs.end()) return Ok{};
  const auto id = static_cast<size_t>(missing - occurs.begin());
  return Error{ErrorCode::kBadData, fmt::format("label {} ({}) has no example", labels.names[id], id),
               setting,
               "a class without examples cannot be learnt: add some; a new head can do without it "
               "(classification.label_names)"};
}

LabelReader::LabelReader(const io::Labels& labels, const LabelFile& file) : labels_(&labels), file_(&file) {
  std::map<std::string_view, size_t> ids;
  for (size_t id = 0; id < labels.names.size(); ++id) ids.emplace(labels.names[id], id);
  for (const std::string& name : file.names()) {
    const auto at = ids.find(name);
    class_of_name_.push_back(at == ids.end() ? -1.0F : static_cast<float>(at->second));
  }
}

Error LabelReader::bad(const LabelEntry& entry, std::string what, std::string hint) const {
  return {ErrorCode::kBadData, std::move(what), file_->place(entry), std::move(hint)};
}

/// The labels that there are, in a few words.
std::string LabelReader::known() const {
  constexpr int64_t kShown = 8;
  const auto begin = labels_->names.begin();
  return fmt::format("{}{}", fmt::join(begin, begin + std::min(kShown, labels_->count()), ", "),
                     labels_->count() > kShown ? ", …" : "");
}

Status LabelReader::read_class(const LabelEntry& entry, float& value) const {
  value = entry.values[0];
  switch (entry.kind) {
    case RawLabelKind::kName: {
      const std::string& name = file_->names()[static_cast<size_t>(value)];
      value = class_of_name_[static_cast<size_t>(value)];
      if (value >= 0) return Ok{};
      return bad(entry, fmt::format("label is '{}', and the labels are {}", name, known()),
                 "classification.label_names gives the labels their names, in the order of their ids");
    }
    case RawLabelKind::kInteger:
      if (value >= 0 && value < static_cast<float>(labels_->count())) return Ok{};
      return bad(entry, fmt::format("label is {}, and there are {}: {}", value, labels_->count(), known()),
                 fmt::format("correct it: ids are from 0 to {}; a new head has as many labels as "
                             "classification.num_labels says",
                             labels_->count() - 1));
    case RawLabelKind::kNumber:
      return not_expected(entry, fmt::format("{:#}", value));
    case RawLabelKind::kList:
    case RawLabelKind::kAbsent:
      break;
  }
  return not_expected(entry, "a list");
}

Error LabelReader::not_expected(const LabelEntry& entry, std::string found) const {
  const int64_t count = labels_->count();
  const std::string expected = labels_->problem == io::ProblemType::kSingleLabel ? std::string("a class")
                               : labels_->problem == io::ProblemType::kMultiLabel
                                   ? (count == 1 ? std::string("a list of values 0 or 1")
                                                 : fmt::format("a list of {} values 0 or 1", count))
                               : count == 1 ? std::string("a number")
                                            : fmt::format("a list of {} numbers", count);
  return bad(entry, fmt::format("label is {}, expected {}", found, expected),
             fmt::format("correct it, or set another classification.problem_type than {}",
                         io::name(labels_->problem)));
}

Status LabelReader::read(const LabelEntry& entry, std::span<float> values) const {
  if (entry.kind == RawLabelKind::kAbsent) return bad(entry, "the line has no \"label\"", "add it");
  if (labels_->problem == io::ProblemType::kSingleLabel) return read_class(entry, values[0]);
  if (entry.kind == RawLabelKind::kName)
    return not_expected(entry, fmt::format("'{}'", file_->names()[static_cast<size_t>(entry.values[0])]));
  const bool multi = labels_->problem == io::ProblemType::kMultiLabel,
             list = entry.kind == RawLabelKind::kList;
  if (static_cast<int64_t>(entry.values.size()) != labels_->count() || (multi && !list))
    return not_expected(
        entry, list ? fmt::format("a list of {}", entry.values.size()) : fmt::format("{}", entry.values[0]));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = entry.values[i];
    if (multi && values[i] != 0.0F && values[i] != 1.0F)
      return not_expected(entry, fmt::format("a list with {}", values[i]));
  }
  return Ok{};
}

}  // namespace plimsoll::corpora
