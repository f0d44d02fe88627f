#include "preprocessing/image_labels.h"

#include <set>
#include <utility>

#include "corpora/images/image_entries.h"
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

Result<io::Labels> image_labels(const settings::RunConfig& config, const io::ConfigJson& model,
                                const corpora::LabelSummary& found, bool training) {
  PLIMSOLL_ASSIGN(corpora::LabelRequest request, image_label_request(config, model, training));
  if (training && !are_the_models(request.config.names, found)) {
    request.whole = false;
    request.config.names.clear();
  }
  PLIMSOLL_ASSIGN(io::Labels labels, corpora::resolve_labels(request, found));
  if (!request.whole && request.names.empty() && found.names) corpora::sort_class_names(labels.names);
  return labels;
}

bool has_head_of(const io::ConfigJson& model, const io::Labels& labels) {
  const auto fields = io::read_label_fields(model);
  return io::is_image_classifier(model) && fields && fields->names == labels.names;
}

}  // namespace plimsoll::preprocessing
