// Source of the layout: datasets' Dataset.save_to_disk and DatasetDict.save_to_disk - state.json has
// _data_files: [{filename}], dataset_dict.json has splits: [names], each a folder.
#include "corpora/saved_dataset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <utility>

#include "io/file.h"
#include "io/json.h"

namespace plimsoll::corpora {
namespace {

constexpr int64_t kMostBytes = int64_t{16} << 20;

Result<io::Tree> read_json(const std::string& path) {
  PLIMSOLL_ASSIGN(const std::string text, io::read_small_file(path, kMostBytes));
  Result<io::Tree> tree = io::parse_json(text, {.max_bytes = kMostBytes, .max_nodes = 1'000'000});
  if (!tree) return std::move(tree).error().at(path);
  return tree;
}

/// The texts of a list, or of a member of each of its objects.
std::vector<std::string> texts_of(const io::Tree* list, const char* member) {
  std::vector<std::string> texts;
  if (list == nullptr) return texts;
  for (const io::Tree& item : list->items) {
    const io::Tree* text = member == nullptr ? &item : item.find(member);
    if (text != nullptr && text->kind == io::Tree::Kind::kString) texts.push_back(text->text);
  }
  return texts;
}

Result<std::vector<std::string>> files_in(const std::string& folder) {
  const std::string state = folder + "/state.json", splits = folder + "/dataset_dict.json";
  PLIMSOLL_ASSIGN(const bool has_splits, io::path_exists(splits));
  if (has_splits) {
    PLIMSOLL_ASSIGN(const io::Tree tree, read_json(splits));
    const auto names = texts_of(tree.find("splits"), nullptr);
    return Error{ErrorCode::kBadData, fmt::format("the folder holds the splits {}", fmt::join(names, ", ")),
                 folder, fmt::format("name one of them: {}/{}", folder, names.empty() ? "train" : names[0])};
  }
  PLIMSOLL_ASSIGN(const bool has_state, io::path_exists(state));
  if (!has_state)
    return Error{ErrorCode::kBadData, "this is a folder, and none that datasets' save_to_disk wrote", folder,
                 fmt::format("name the files in it: \"{}/*\"", folder)};
  PLIMSOLL_ASSIGN(const io::Tree tree, read_json(state));
  std::vector<std::string> files;
  for (const std::string& name : texts_of(tree.find("_data_files"), "filename")) {
    const std::filesystem::path path = name;
    if (path.filename() != path || !name.ends_with(".arrow"))
      return Error{ErrorCode::kBadData,
                   fmt::format("state.json names '{}', which is no file of the folder", name.substr(0, 60)),
                   state, "save the data set again"};
    files.push_back(folder + "/" + name);
  }
  if (files.empty())
    return Error{ErrorCode::kBadData, "state.json names no file of data", state, "save the data set again"};
  return files;
}

}  // namespace

Result<std::vector<std::string>> expand_data(const std::string& pattern) {
  PLIMSOLL_ASSIGN(const std::vector<std::string> found, io::expand_glob(pattern));
  std::vector<std::string> files;
  for (const std::string& path : found) {
    PLIMSOLL_ASSIGN(const bool is_folder, io::is_folder(path));
    if (!is_folder) {
      files.push_back(path);
      continue;
    }
    std::string folder = path;
    while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
    PLIMSOLL_ASSIGN(const auto held, files_in(folder));
    files.insert(files.end(), held.begin(), held.end());
  }
  return files;
}

}  // namespace plimsoll::corpora
