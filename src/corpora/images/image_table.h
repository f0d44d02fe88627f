// Tables of images and labels: JSON lines or CSV with the members
//
//   image   a path, relative to the table's folder ("file_name" is the same)
//   label   the name of the class, or its id ("labels" is the same)
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "corpora/images/image_entries.h"
#include "corpora/json_members.h"

namespace plimsoll::corpora {

/// Adds the images of a table, in its order. A file that is none by its name is an image itself, where no
/// labels are wanted. Errors: kBadData that names file and line (with OnError::kSkip rows are counted
/// instead); kInvalidArgument for a file that is no table; kIo.
Status add_image_table(const std::string& path, const ImageCollection& how, ImageEntries& entries);

/// The label of a line with these members, `where` in messages. What is wrong with it, or nothing.
std::optional<BadExample> parse_image_label(const Members& members, const std::string& where,
                                            ImageEntries& entries, ImageEntry& image);

}  // namespace plimsoll::corpora
