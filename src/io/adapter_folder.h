// Folders of LoRA adapters as users name them: PEFT's, or a run's that ends in one; and the base that an
// adapter was trained on, which adapter_config.json names (base_model_name_or_path).
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace plimsoll::io {

/// Whether the folder holds an adapter and no model's weights.
bool is_adapter_folder(const std::string& folder);
/// The adapter's folder: a run's means its final/; a hub id the cached snapshot. Errors: kBadData where there
/// is none.
Result<std::string> find_adapter_folder(const std::string& path_or_id);
/// base_model_name_or_path; empty where none is named or the file cannot be read.
std::string base_named_by(const std::string& adapter);
/// PEFT's task_type ("QUESTION_ANS"); empty where none is named or the file cannot be read.
std::string task_named_by(const std::string& adapter);

/// A model as users name it: a whole one, or an adapter and its base.
struct NamedModel {
  std::string model;                     ///< folder of the base or of the whole model
  std::string adapter = {};              ///< folder; empty: none
  std::optional<std::string> note = {};  ///< the base that was found, or that another one is named
};
/// Opens a name as transformers does: a folder that holds an adapter means its base with it. The base is
/// looked for from the working folder, then from the adapter's folder and those above it, then in the hub's
/// cache. `adapter`, where it is not empty, was named apart. Errors: kBadData with the command to type.
Result<NamedModel> find_named_model(const std::string& path_or_id, const std::string& adapter = {});
/// As find_model_folder, for what takes a whole model alone. Errors: also kBadData for an adapter's folder,
/// with the command that makes a whole one.
Result<std::string> find_whole_model(const std::string& path_or_id);

/// "the adapter … was trained on …, not on …", where the adapter names another base than the model in the
/// folder `model`. Nothing where they are the same, wherever they lie, or where that cannot be known.
std::optional<std::string> other_base_note(const std::string& adapter, const std::string& model);
/// The error with the adapter's place, and the base that it names in the hint.
Error of_adapter(Error error, const std::string& adapter);

}  // namespace plimsoll::io
