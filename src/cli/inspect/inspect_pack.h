// plimsoll inspect on a pack index: which documents make up which sequences, as runs keep it in their cache.
#pragma once

#include "base/result.h"
#include "cli/inspect/inspect.h"

namespace plimsoll::cli {

/// Whether a file begins as a pack index does.
bool is_pack_index(const std::string& path);
/// Errors: kBadData where it is damaged, after its facts where these could be read.
Status inspect_pack(const InspectArguments& arguments);

}  // namespace plimsoll::cli
