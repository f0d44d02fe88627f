// Images in folders: a folder for each class, as torchvision's ImageFolder and the `imagefolder` of datasets
// have them. The image's label is the name of the class folder.
//
//   flowers/          the entry
//     daisy/a.jpg     class "daisy"
//     rose/1/b.png    class "rose": images may lie deeper
//     .cache/         hidden folders and files are left out
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "corpora/images/image_entries.h"

namespace plimsoll::corpora {

/// Whether a file of this name is an image of some format, whether or not it can be decoded here.
bool is_image_name(std::string_view name);

/// Adds a folder's images, sorted by their paths: of its class folders where labels are wanted, else of all
/// of it. Links to folders are followed, but for those that lead back to a folder above them. Errors:
/// kBadData for a folder without class folders, a class folder without images and a folder without any; kIo.
Status add_folder(const std::string& folder, bool with_labels, ImageEntries& entries);

}  // namespace plimsoll::corpora
