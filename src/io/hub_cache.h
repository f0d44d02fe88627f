// The local cache of the Hugging Face hub: models that were downloaded before, found by their id. Nothing is
// fetched.
#pragma once

#include <string>

#include "base/result.h"

namespace plimsoll::io {

/// The folder of the cached snapshot of `id` ("HuggingFaceTB/SmolLM-135M", or "gpt2"), its main revision.
/// The cache lies at $HF_HUB_CACHE, $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub or
/// ~/.cache/huggingface/hub. Errors: kBadData with the download command as the hint.
Result<std::string> find_cached_model(const std::string& id);
/// A model's folder as users name it: a folder, or else the cached snapshot of a hub id. The folder of a run
/// means its `final/`. Errors: kBadData where it is neither, or a run's that has none, with its last
/// checkpoint as the hint.
Result<std::string> find_model_folder(const std::string& path_or_id);
/// Whether the text has the form of a hub id: one or two words of letters, digits, '-', '_', '.'.
bool is_hub_id(const std::string& text);

}  // namespace plimsoll::io
