// Images within Parquet and Arrow files, in the columns of datasets' Image feature: {bytes, path}, or bytes
// alone, and a label, whose ids have the names of datasets' ClassLabel feature where the file has one. Rows
// of such files cannot be read singly, so their images are written to a pack once.
#pragma once

#include <string>

#include "base/result.h"
#include "corpora/images/image_entries.h"

namespace plimsoll::corpora {

/// Adds the images of a Parquet or Arrow file in the order of its rows. Their pack lies in
/// how.packs_folder, where it is made unless it is there; where it may not be made the images are nowhere,
/// and what is known of them are names and labels. Images that the file names by a path are read from there.
/// Errors: kBadData with file and row; kInvalidArgument where this program cannot read columns; kIo.
Status add_image_columns(const std::string& path, const ImageCollection& how, ImageEntries& entries);

}  // namespace plimsoll::corpora
