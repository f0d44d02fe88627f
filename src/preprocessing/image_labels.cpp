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

}  // namespace

Result<corpora::LabelRequest> image_label_request(const settings::RunConfig& config,
                                                  const io::ConfigJson& model, bool binding) {
  PLIMSOLL_ASSIGN(corpora::LabelRequest request, label_request(config, model));
  if (request.problem && *request.problem != io::ProblemType::kSingleLabel)
    return Error{ErrorCode::kInvalidArgument,
                 "classification.problem_type is " + config.classification.problem_type +
                     ", and images have one label each",
                 "classification.problem_type", "leave it out"};
  request.problem = io::ProblemType::kSingleLabel;
  request.whole = binding && io::is_image_classifier(model);
  if (!request.whole) request.config.names.clear();
  return request;
}

Result<io::Labels> image_labels(const settings::RunConfig& config, const io::ConfigJson& model,
                                const corpora::LabelSummary& found, bool training) {
  PLIMSOLL_ASSIGN(corpora::LabelRequest request, image_label_request(config, model, /*binding=*/true));
  const bool says_otherwise = !request.names.empty() && request.names != request.config.names;
  if (training && (says_otherwise || !are_the_models(request.config.names, found))) {
    PLIMSOLL_ASSIGN(request, image_label_request(config, model, /*binding=*/false));
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
