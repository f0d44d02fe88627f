#include "corpora/images/class_folders.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <utility>
#include <vector>

#include "io/file.h"
#include "tokenizers/unicode.h"

namespace plimsoll::corpora {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 14> kImageEndings = {".jpg",  ".jpeg", ".jpe", ".jfif", ".png",
                                                            ".apng", ".webp", ".gif", ".bmp",  ".tif",
                                                            ".tiff", ".ppm",  ".pgm", ".pnm"};

/// Names in a folder that are not hidden, sorted by bytes: folders, and whatever else there is.
struct Listing {
  std::vector<std::string> folders, files;
};

Result<Listing> listing_of(const std::string& folder) {
  Listing listing;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with('.')) continue;
    PLIMSOLL_ASSIGN(const bool is_folder, io::is_folder(at->path().string()));
    (is_folder ? listing.folders : listing.files).push_back(name);
  }
  if (code) return io::io_error("the folder cannot be read", folder, code.value());
  std::sort(listing.folders.begin(), listing.folders.end());
  std::sort(listing.files.begin(), listing.files.end());
  return listing;
}

/// Which folder it is, whatever its path.
using FolderId = std::pair<dev_t, ino_t>;
FolderId id_of(const std::string& folder) {
  struct stat info {};
  return ::stat(folder.c_str(), &info) == 0 ? FolderId{info.st_dev, info.st_ino} : FolderId{};
}

/// Adds what lies in one class folder, or in a folder without classes.
class Collector {
 public:
  Collector(ImageEntries& entries, ImageEntry like) : entries_(entries), like_(std::move(like)) {}

  /// `name`: the folder's path below the entry.
  Status add(const std::string& folder, const std::string& name) {
    const FolderId id = id_of(folder);
    if (std::find(above_.begin(), above_.end(), id) != above_.end()) return Ok{};  // a link back
    above_.push_back(id);
    PLIMSOLL_ASSIGN(const Listing listing, listing_of(folder));
    for (const std::string& file : listing.files) add_file(folder + "/" + file, name + file);
    for (const std::string& inner : listing.folders)
      PLIMSOLL_TRY(add(folder + "/" + inner, name + inner + "/"));
    above_.pop_back();
    return Ok{};
  }

 private:
  void add_file(std::string path, std::string name) {
    if (!is_image_name(path)) {
      ++entries_.num_others;
      return;
    }
    ImageEntry image = like_;
    image.path = std::move(path);
    image.name = std::move(name);
    entries_.images.push_back(std::move(image));
  }

  ImageEntries& entries_;
  const ImageEntry like_;
  std::vector<FolderId> above_;  ///< the folders on the way to the one at hand
};

Error no_images(const std::string& folder, std::string_view what, std::string hint) {
  return {ErrorCode::kBadData, std::string(what), folder, std::move(hint)};
}

/// What a class is called in config.json, which is UTF-8.
std::string class_name(const std::string& folder_name) {
  std::string name;
  tokenizers::append_repaired(folder_name, name);
  return name;
}

Status add_classes(const std::string& folder, const Listing& listing, ImageEntries& entries) {
  if (listing.folders.empty())
    return no_images(folder, "the folder has no class folders",
                     "put the images of each class into a folder with the name of the class, or name a "
                     "table of images and labels: .csv, .jsonl");
  for (const std::string& name : listing.folders) {
    const std::string path = folder + "/" + name;
    const auto place = static_cast<uint32_t>(entries.places.size());
    entries.places.push_back(path);
    const size_t before = entries.images.size();
    const auto label = static_cast<float>(entries.name_index(class_name(name)));
    Collector collector(entries, {.kind = RawLabelKind::kName, .value = label, .place = place});
    PLIMSOLL_TRY(collector.add(path, name + "/"));
    if (entries.images.size() == before)
      return no_images(path, fmt::format("class {} has no images", name),
                       "add some, or remove the folder; a hidden folder (.name) is no class");
  }
  entries.num_others += static_cast<int64_t>(listing.files.size());
  return Ok{};
}

}  // namespace

bool is_image_name(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == name.npos) return false;
  std::string ending(name.substr(dot));
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::find(kImageEndings.begin(), kImageEndings.end(), ending) != kImageEndings.end();
}

Status add_folder(const std::string& entry, bool with_labels, ImageEntries& entries) {
  std::string folder = entry;
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  if (with_labels) {
    PLIMSOLL_ASSIGN(const Listing listing, listing_of(folder));
    return add_classes(folder, listing, entries);
  }
  const auto place = static_cast<uint32_t>(entries.places.size());
  entries.places.push_back(folder);
  const size_t before = entries.images.size();
  Collector collector(entries, {.place = place});
  PLIMSOLL_TRY(collector.add(folder, ""));
  if (entries.images.size() > before) return Ok{};
  return no_images(folder, "the folder has no images", "name another folder, or a table of images");
}

}  // namespace plimsoll::corpora
