#include "preprocessing/image_labels.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "preprocessing/run_task.h"

namespace plimsoll::preprocessing {
namespace {

/// Whether the data's classes are those of the model's head.
bool are_the_models(const std::vector<std::string>& names, const corpora::LabelSummary& found) {
  if (found.names) return found.all_names == std::set<std::string>(names.begin(), names.end());
  return found.largest < static_cast<float>(names.size());
}

/// Whether the settings want other classes than the model has.
bool says_otherwise(const corpora::LabelRequest& request) {
  const std::vector<std::string>& own = request.config.names;
  const bool other_count = request.num_labels && *request.num_labels != static_cast<int64_t>(own.size());
  return other_count || (!request.names.empty() && request.names != own);
}

void put_in_order(const std::vector<std::string>& order, std::vector<std::string>& names) {
  const std::set<std::string> there(names.begin(), names.end());
  std::vector<std::string> ordered;
  std::ranges::copy_if(order, std::back_inserter(ordered),
                       [&](const std::string& name) { return there.contains(name); });
  if (ordered.size() == names.size())
    names = std::move(ordered);
  else
    corpora::sort_class_names(names);
}

}  // namespace

Result<corpora::LabelRequest> image_label_request(const settings::RunConfig& config,
                                                  const io::ConfigJson& model, bool training) {
  PLIMSOLL_ASSIGN(corpora::LabelRequest request, label_request(config, model));
  if (request.problem && *request.problem != io::ProblemType::kSingleLabel)
    return Error{ErrorCode::kInvalidArgument,
                 "classification.problem_type is " + config.classification.problem_type +
                     ", and images have one label each",
                 "classification.problem_type", "leave it out"};
  request.problem = io::ProblemType::kSingleLabel;
  request.whole = io::is_image_classifier(model);
  if (training && says_otherwise(request)) request.whole = false;
  if (!request.whole) request.config.names.clear();
  return request;
}

Result<std::vector<std::string>> name_image_ids(const settings::RunConfig& config,
                                                const io::ConfigJson& model,
                                                std::span<corpora::ImageEntries* const> sources,
                                                bool training) {
  std::set<std::vector<std::string>> orders;
  for (const corpora::ImageEntries* source : sources)
    for (const auto& [place, names] : source->id_names) orders.insert(names);
  PLIMSOLL_ASSIGN(const corpora::LabelRequest request, image_label_request(config, model, training));
  std::vector<std::string> order;
  if (orders.empty() || !request.names.empty()) return order;
  const auto rows = std::ssize(request.config.names);
  const bool is_nameless = request.whole && request.config.names == io::default_label_names(rows);
  if (is_nameless && (!training || rows == std::ssize(*orders.begin()))) return order;
  for (corpora::ImageEntries* source : sources) PLIMSOLL_TRY(corpora::name_ids(*source));
  if (orders.size() == 1) order = *orders.begin();
  return order;
}

Result<io::Labels> image_labels(const settings::RunConfig& config, const io::ConfigJson& model,
                                const corpora::LabelSummary& found, bool training,
                                const std::vector<std::string>& order) {
  PLIMSOLL_ASSIGN(corpora::LabelRequest request, image_label_request(config, model, training));
  if (training && !are_the_models(request.config.names, found)) {
    request.whole = false;
    request.config.names.clear();
  }
  PLIMSOLL_ASSIGN(io::Labels labels, corpora::resolve_labels(request, found));
  if (!request.whole && request.names.empty() && found.names) put_in_order(order, labels.names);
  return labels;
}

bool has_head_of(const io::ConfigJson& model, const io::Labels& labels) {
  const auto fields = io::read_label_fields(model);
  return io::is_image_classifier(model) && fields && fields->names == labels.names;
}

}  // namespace plimsoll::preprocessing
