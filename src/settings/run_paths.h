// Paths of a run file that can be used from anywhere: they start from the file's own folder.
#pragma once

#include <string>

#include "settings/run_config.h"

namespace plimsoll::settings {

/// The paths that `config` has from `folder`, beginning with ./ or ../, as the working folder has them.
/// Others are absolute, or no paths: ids of the hub, words.
void resolve_paths(RunConfig& config, const std::string& folder);

/// The reverse, with `paths: run_file`: every relative or absolute path, from `folder`. A model or a
/// tokenizer that is no file or folder stays as it is.
RunConfig with_paths_from(const RunConfig& config, const std::string& folder);

}  // namespace plimsoll::settings
