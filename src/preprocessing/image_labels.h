// The classes of a run over images.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "corpora/images/image_entries.h"
#include "corpora/labelled/resolve_labels.h"
#include "io/label_fields.h"
#include "io/model_config.h"
#include "settings/run_config.h"

namespace plimsoll::preprocessing {

/// What is said of the classes before the data is known. The classes of the model's head are binding, but not
/// in a training whose settings name others or another number. Errors: kBadData of config.json's fields;
/// kInvalidArgument for another problem than one label an image.
Result<corpora::LabelRequest> image_label_request(const settings::RunConfig& config,
                                                  const io::ConfigJson& model, bool training);

/// Labels that are ids become the names that the data has for them (datasets' ClassLabel). They stay ids
/// where the settings name the classes, and where the model's head has default names and as many rows, or is
/// evaluated: it was trained for the ids. Returns the classes in the order of their ids; nothing where labels
/// stay as they are, or the data has several orders. Errors: as image_label_request and name_ids.
Result<std::vector<std::string>> name_image_ids(const settings::RunConfig& config,
                                                const io::ConfigJson& model,
                                                std::span<corpora::ImageEntries* const> sources,
                                                bool training);

/// The classes, by what has been seen of the data. A training takes them from its own images: where they are
/// the model's classes, in the model's order; any others are new classes, in `order` where it has them all,
/// else sorted (sort_class_names). An evaluation takes the model's. Errors: as above and as resolve_labels.
Result<io::Labels> image_labels(const settings::RunConfig& config, const io::ConfigJson& model,
                                const corpora::LabelSummary& found, bool training,
                                const std::vector<std::string>& order = {});

/// Whether the model's head scores just these classes; else it is drawn.
bool has_head_of(const io::ConfigJson& model, const io::Labels& labels);

}  // namespace plimsoll::preprocessing
