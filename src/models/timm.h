// timm's config.json files, which name an architecture, as those of the families here.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/model_config.h"

namespace plimsoll::models {

/// `config` itself, or where it names an architecture of timm ("architecture", with model_type timm_wrapper
/// or none) that of the same network in transformers' form, with its labels. The tensors' names are read by
/// Model::other_name. Errors: kBadData for an architecture that is not known, or arguments that change it.
Result<io::ConfigJson> from_timm(io::ConfigJson config);

/// An architecture of timm, and what its head reads: "token" or "avg".
struct TimmName {
  std::string architecture, pool;
};
/// The architecture that timm has for a config.json in transformers' form. The epsilon of norms may be
/// another: timm has 1e-6. Errors: kBadData naming the field that is not timm's; kInvalidArgument for a
/// family or sizes that timm has no architecture for.
Result<TimmName> timm_architecture(const io::ConfigJson& config);

/// A model's config.json in transformers' form, whichever form the file has. Errors: as above, kIo.
Result<io::ConfigJson> read_model_config(const std::string& path);

/// How the beginning of a tensor's name is spelled elsewhere: # stands for a number, in `theirs` in the order
/// of `ours`, + for the number and one.
struct Renaming {
  std::string_view ours, theirs;
};
/// The name by the first row that it begins with; empty where none is.
std::string renamed(std::span<const Renaming> rows, std::string_view name);

}  // namespace plimsoll::models
